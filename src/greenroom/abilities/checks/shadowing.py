"""Files that take the place of a checker itself: modules with its name or that of what it loads.

Python looks for modules in the current folder first, so a `pytest.py` there is what `python -m pytest` runs.
"""

from __future__ import annotations

import sys
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
