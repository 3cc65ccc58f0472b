"""Files that take the place of a checker itself: modules with its name or that of what it loads.

Python looks for modules in the current folder first, so a `pytest.py` there is what `python -m pytest` runs. Which
other modules a check loads nobody knows, so the Python that it runs is asked whether an installed one has the name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

CHECKERS: Final = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "coverage", "mypy", "tox", "nox"})
"""Programs that check, and what only they load."""

STANDARD: Final = sys.stdlib_module_names - {"test", "tests", "this", "antigravity"}
ROOTS: Final = ((), ("src",), ("lib",))
"""Folders in which Python may look first."""

MODULE: Final = (".py", ".pyc", ".so", ".pyd")


def shadowed(path: str) -> str:
    """The module whose place a new file takes; empty when it takes none."""
    parts = PurePosixPath(path).parts
    if not path.endswith(MODULE):
        return ""
    for at, part in enumerate(parts):
        name = part.partition(".")[0]
        if name in CHECKERS or (name in STANDARD and parts[:at] in ROOTS):
            return name
    return ""


TAKEN: Final = "taken:"
ASKED: Final = "all were asked about"
ASKS: Final = """
import sys
sys.path[:] = [one for one in sys.path if one]
import os
from importlib.machinery import PathFinder
own = [os.path.realpath(one) + os.sep for one in (sys.argv[1], os.getcwd())]
installed = os.path.realpath(sys.prefix) + os.sep
every = [os.path.realpath(one) + os.sep for one in sys.path]
path = [one for one in every if one.startswith(installed) or not one.startswith(tuple(own))]
for name in sys.argv[2:]:
    found = PathFinder.find_spec(name, path)
    if found is not None and found.loader is not None:
        print("taken:" + name)
print("all were asked about")
"""
"""Says which of these modules are installed; what Python would find in the project itself does not count. Only where
it comes to its end is that all of them."""


def new_modules(before: Iterable[str], added: Iterable[str], roots: Iterable[str]) -> dict[str, list[str]]:
    """Modules that a project has not had, each with its files: those that Python finds in one of these `roots`."""
    tops = tuple(PurePosixPath(one) for one in roots)
    known = {name for path in before for name in _modules(path, tops)}
    found: dict[str, list[str]] = {}
    for path in added:
        for name in _modules(path, tops) - known if path.endswith(MODULE) else ():
            found.setdefault(name, []).append(path)
    return found


def _modules(path: str, roots: Iterable[PurePosixPath]) -> set[str]:
    place = PurePosixPath(path)
    inside = (place.relative_to(one).parts[0] for one in roots if place.is_relative_to(one))
    return {name for one in inside if (name := one.partition(".")[0]).isidentifier()}
