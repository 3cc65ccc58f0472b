"""All checks of a project, from its own files, the most useful first; each says which file wants it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, get_args

from greenroom.abilities.checks.finding.javascript import javascript
from greenroom.abilities.checks.finding.others import others
from greenroom.abilities.checks.finding.python import python
from greenroom.abilities.checks.finding.recipes import recipes
from greenroom.abilities.checks.looking import Look, Place
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, CheckKind

FINDERS: Final[tuple[Callable[[Place], Iterator[Check]], ...]] = (python, javascript, others)
KINDS: Final[tuple[CheckKind, ...]] = get_args(CheckKind)
MOST: Final = 12
"""Checks that a person can be shown at once."""

PROGRAM: Final = re.compile(r"[\w.+-]+")
"""A word that can only be the name of a program on the PATH."""

DEEP: Final = 2
PROJECTS: Final = 12
LOOKED_AT: Final = 300
"""Folders that are looked into: it is done before the first line is shown."""

BEGINS: Final = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "pytest.ini"),
        *("package.json", "deno.json", "Cargo.toml", "go.mod", "Makefile", "justfile", "Justfile"),
        *("pom.xml", "build.gradle", "build.gradle.kts", "mix.exs", "Gemfile", "composer.json", "CMakeLists.txt"),
    }
)
"""Files with which a project begins."""

NOT_OURS: Final = frozenset({"node_modules", "vendor", "third_party", "target", "dist", "build", "venv", "__pycache__"})


def find_checks(look: Look) -> tuple[Check, ...]:
    """The checks of a folder; where it has no tests itself, also those of the projects below it."""
    here = found(look)
    if any(check.kind == "test" for check in here):
        return here
    return found(look, (".", *projects_below(look)))


def found(look: Look, folders: Sequence[str] = (".",)) -> tuple[Check, ...]:
    """The checks of these folders, none twice. Recipes count only where nothing else can run the tests."""
    every: list[Check] = []
    for folder in dict.fromkeys(folders):
        place = Place(look, folder)
        direct = [check for find in FINDERS for check in find(place)]
        if not any(check.kind == "test" and _has_program(place, check.line) for check in direct):
            direct += recipes(place)
        named = {check.name for check in every}
        for check in direct:
            placed = evolve(check, folder=folder)
            every.append(evolve(placed, name=f"{check.name} ({folder})") if check.name in named else placed)
    return tuple(sorted(every, key=lambda check: KINDS.index(check.kind))[:MOST])


def _has_program(place: Place, line: str) -> bool:
    """Whether the machine has the program of a line, as far as its first word names one."""
    first = line.split(maxsplit=1)[0]
    return PROGRAM.fullmatch(first) is None or place.has_program(first)


def projects_below(look: Look) -> tuple[str, ...]:
    """The folders in which a project begins, at most two deep, in their order."""
    return tuple(sorted(_projects(look))[:PROJECTS])


def _projects(look: Look) -> Iterator[str]:
    level, looked = ["."], 0
    for _ in range(DEEP):
        below = [path for folder in level for path in _folders(look, folder)][: LOOKED_AT - looked]
        looked += len(below)
        begun = [path for path in below if look.names(path) & BEGINS]
        yield from begun
        level = [path for path in below if path not in begun]


def _folders(look: Look, folder: str) -> Iterator[str]:
    for name in sorted(look.names(folder) - NOT_OURS):
        if not name.startswith("."):
            yield name if folder == "." else f"{folder}/{name}"
