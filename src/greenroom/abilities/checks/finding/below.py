"""Projects below a folder that is none itself: in a repository of many, each has its checks beside its own files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.looking import Look

DEEP: Final = 2
MOST: Final = 12
LOOKED_AT: Final = 300
"""Folders that are looked into: it is done before the first line is shown."""

SET_UP: Final = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "pytest.ini"),
        *("package.json", "deno.json", "Cargo.toml", "go.mod", "Makefile", "justfile", "Justfile"),
        *("pom.xml", "build.gradle", "build.gradle.kts", "mix.exs", "Gemfile", "composer.json", "CMakeLists.txt"),
    }
)
NOT_OURS: Final = frozenset({"node_modules", "vendor", "third_party", "target", "dist", "build", "venv", "__pycache__"})


def projects_below(look: Look) -> tuple[str, ...]:
    """The folders in which a project begins, at most two deep, in their order."""
    return tuple(sorted(_projects(look))[:MOST])


def _projects(look: Look) -> Iterator[str]:
    level, looked = ["."], 0
    for _ in range(DEEP):
        below = [path for folder in level for path in _folders(look, folder)][: LOOKED_AT - looked]
        looked += len(below)
        begun = [path for path in below if look.names(path) & SET_UP]
        yield from begun
        level = [path for path in below if path not in begun]


def _folders(look: Look, folder: str) -> Iterator[str]:
    """What may be a folder of ours; a file has nothing in it and is none."""
    for name in sorted(look.names(folder) - NOT_OURS):
        if not name.startswith("."):
            yield name if folder == "." else f"{folder}/{name}"
