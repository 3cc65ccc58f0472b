"""Where what a call brings comes from, and where it would carry something, by what is known of the tool and of what it
touches: no tool has to say it.

A function that a program gives to its own agents is that program's word, unless its group says that it goes elsewhere.
What a tool knows better (a page that was somewhere else in the end, who wrote a memory) it says in its outcome.

A destination is a short line such as `host docs.python.org`, `server github`, `command make deploy`: what a person
reads, and what they agree to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from greenroom.abilities.permission.command_line import read_line
from greenroom.abilities.permission.judgement import plainly
from greenroom.core.ports.tool import BUILT_IN, Target, ToolCard
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.step import SIDE_EFFECTS

GROUPS: Final = frozenset({"web", "browser", "mcp"})
"""Groups of tools that go elsewhere, whatever they are given."""

PROGRAM: Final = "program"
"""The source of a function that a program gives to its own agents."""

Reach: TypeAlias = Callable[[], Sequence[str] | None]
"""What commands get to over the network: nothing, some hosts, or (None) whatever they like. Asked when it matters."""

LOCAL: Final = frozenset(
    ("cd", "pwd", "mkdir", "cp", "mv", "rm", "rmdir", "touch", "ln", "chmod", "ls", "cat", "head", "tail", "wc", "echo")
)
"""Programs that reach no host and run no other program, whatever words they are given."""

SERVER: Final = "mcp:"
LONGEST: Final = 120
USUAL: Final = frozenset({"80", "443"})


def origins_of(card: ToolCard, targets: Sequence[Target]) -> Labels:
    """The labels of what a call reads. Those of memories and artifacts only the tool itself knows."""
    return merged((), _labels(card, targets))


def _labels(card: ToolCard, targets: Sequence[Target]) -> Iterator[str]:
    if card.source.startswith(SERVER):
        yield label("mcp", card.source.removeprefix(SERVER))
    elif card.source not in (BUILT_IN, PROGRAM):
        yield label("tool", card.spec.name)
    hosts = [known(one.value) for one in targets if one.kind == "host"]
    yield from (label("web", one) for one in hosts)
    if card.group in ("web", "browser") and not hosts:
        yield label("web", card.spec.name)
    if card.group == "command" and card.source == BUILT_IN:
        yield label("command", _program(targets) or card.spec.name)
    yield from (label("file", one.value) for one in targets if one.kind == "path")


def _program(targets: Sequence[Target]) -> str:
    """How a command line begins: enough to know it by."""
    lines = [one.value.split() for one in targets if one.kind == "command"]
    return lines[0][0] if lines and lines[0] else ""


def anywhere() -> None:
    """Nothing is around commands."""


def outward(card: ToolCard, targets: Sequence[Target], reach: Reach = anywhere) -> tuple[str, ...]:
    """The destinations of a call; none when it stays here."""
    found = [place for target in targets for place in _destinations(target, reach)]
    foreign = card.source not in (BUILT_IN, PROGRAM) and card.effect in SIDE_EFFECTS
    if not found and (card.group in GROUPS or foreign):
        server = card.source.removeprefix(SERVER) if card.source.startswith(SERVER) else ""
        found.append(f"server {server}" if server else f"tool {card.spec.name}")
    return tuple(dict.fromkeys(_line(place) for place in found))


def _destinations(target: Target, reach: Reach) -> Iterator[str]:
    """A host is one; a command goes to the hosts that all commands reach, and without a sandbox wherever it likes."""
    if target.kind == "host":
        yield f"host {known(target.value)}"
    elif target.kind == "command" and (read_line(target.value).words or ("",))[0] not in LOCAL:
        hosts = reach()
        yield from (f"command {target.value.strip()}",) if hosts is None else (f"host {known(one)}" for one in hosts)


def known(host: str) -> str:
    """A host as people know it: without the port that the web has."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port in USUAL else host.lower()


def _line(text: str) -> str:
    """One line that stands for this and nothing else, also where it has to be cut."""
    plain = plainly(text)
    name = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}… ({name})"
