"""Checks that a project runs by a recipe of its own: targets of a Makefile, recipes of a justfile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.abilities.checks.looking import Place
from greenroom.core.ports.checks import Check, CheckKind

TARGETS: Final[Mapping[str, CheckKind]] = {
    "check": "test",
    "test": "test",
    "tests": "test",
    "typecheck": "types",
    "types": "types",
    "lint": "lint",
}
FILES: Final = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}


def recipes(place: Place) -> Iterator[Check]:
    """Those that are checks by their names. Of `check` and `test` in one file the first that is there is enough."""
    for program, names in FILES.items():
        file = place.first(*names)
        if not file or not place.has_program(program):
            continue
        targets = _targets(place.text(file))
        kinds: set[CheckKind] = set()
        for target, kind in TARGETS.items():
            if target in targets and kind not in kinds:
                kinds.add(kind)
                why = f"{file} has the {'target' if program == 'make' else 'recipe'} {target!r}."
                line = f"{program} {target}"
                yield Check(name=line, line=line, kind=kind, why=why, means=targets[target])


def _targets(text: str) -> dict[str, str]:
    """Each target that is a check by its name, with its head and its own lines: what a person agrees to."""
    found: dict[str, str] = {}
    current: set[str] = set()
    for line in filter(str.strip, text.splitlines()):
        indented = line[:1] in ("\t", " ")
        current = current if indented else _named(line)
        for name in current:
            before = f"{found[name]}\n" if name in found else ""
            found[name] = before + (line.strip() if indented else line)
    return found


def _named(line: str) -> set[str]:
    """The checks that a line begins; none for a comment or a variable."""
    before, colon, rest = line.partition(":")
    if not colon or rest.removeprefix(":").startswith("=") or "=" in before or line.startswith(("#", ".PHONY")):
        return set()
    return {*before.removeprefix("@").split()} & {*TARGETS}
