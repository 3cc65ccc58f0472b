"""The syntax of what was changed, asked of those who know: our own readers first, then the project's Python and node.

A newer Python than ours has words that we do not know, so what we find wrong counts only if its own finds it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Final

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.syntax import LONGEST, SyntaxFault, syntax_faults
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Command, Commands, Ended, Printed

PARSES: Final = "import ast, sys; ast.parse(open(sys.argv[1], 'rb').read(), sys.argv[1])"
SECONDS: Final = 20
LONG: Final = 20_000
"""Characters of what they say."""

MOST: Final = 50
"""Files of a kind that are asked about."""

SCRIPTS: Final = (".js", ".mjs", ".cjs")
OTHER: Final = (b"</", b"/>", b"@flow")
"""What only another language has that goes by the same suffix."""

MODULES: Final = ("outside a module", "Unexpected token 'export'", "top level bodies of modules")
"""What node says of a module that it takes for a script: a question of set-up, and no mistake."""


async def broken(changes: Sequence[Changed], commands: Commands, python: str = "python3") -> tuple[SyntaxFault, ...]:
    """The changed files that cannot be read as what they are called. `commands` run where they lie."""
    now = {one.path: one.after for one in changes if one.after is not None}
    before = {one.path: one.before for one in changes if one.before is not None}
    found = [one for one in syntax_faults(now, before) if not await _knows(one, commands, python)]
    for path in list(_scripts(changes))[:MOST]:
        code, said = await asked(commands, ("node", "--check", path))
        line = next((one.strip() for one in said.splitlines() if "SyntaxError" in one), "")
        if code and line and not any(word in line for word in MODULES):
            found.append(SyntaxFault(path=path, line=_line(said, path), said=line[:300]))
    return tuple(found)


def _scripts(changes: Sequence[Changed]) -> Iterator[str]:
    for one in changes:
        content = one.after if one.path.endswith(SCRIPTS) else None
        if content is not None and len(content) <= LONGEST and not any(sign in content for sign in OTHER):
            yield one.path


async def _knows(fault: SyntaxFault, commands: Commands, python: str) -> bool:
    """Whether the project's own Python takes it."""
    if not fault.path.endswith((".py", ".pyi")):
        return False
    code, _ = await asked(commands, (python, "-I", "-c", PARSES, fault.path))
    return code == 0


async def asked(commands: Commands, words: tuple[str, ...], folder: str = ".") -> tuple[int | None, str]:
    """How it ended and what it said; None where it cannot be asked."""
    try:
        async with aclosing(commands.run(Command(words=words, folder=folder, seconds=SECONDS))) as events:
            every = [event async for event in events]
    except WorldFault:
        return None, ""
    said = "".join(event.text for event in every if isinstance(event, Printed))[:LONG]
    return next((event.code for event in every if isinstance(event, Ended)), None), said


def _line(said: str, path: str) -> int:
    """`/where/it/is/a.js:3`, in the first line that node prints."""
    first = next((one for one in said.splitlines() if one.rpartition(":")[0].endswith(path)), "")
    number = first.rpartition(":")[2]
    return int(number) if number.isdigit() else 1
