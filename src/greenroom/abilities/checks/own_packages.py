"""Packages that are installed from the person's own folder, and whether a check in a copy would then test that folder.

What is installed as *editable* is imported from where it was installed. A copy that commands do not see at the person's
own place has other code, and no check that imports the installed one says anything of it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.looking import Place, ini, table, toml
from greenroom.core.ports.checks import Check

LISTS: Final = """
import os, sys
root = os.path.realpath(sys.argv[1])
there, here = os.path.realpath(os.path.join(root, sys.argv[2])), os.path.realpath(os.getcwd())
own = [one for one in sys.path if one and not os.path.realpath(one).startswith(os.path.realpath(sys.prefix) + os.sep)]
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        own += [os.path.dirname(one) for one in getattr(module, "MAPPING", {}).values()]
for one in map(os.path.realpath, own if here != there else ()):
    if one == root or one.startswith(root + os.sep):
        print("own:" + os.path.relpath(one, there))
"""
"""Says from which folders of the person's own this Python imports: nothing where what it runs in is shown there."""

SAID: Final = "own:"
PYTHON: Final = re.compile(r"(?:\S*/)?python[\d.]*")
RUNS_PYTHON: Final = re.compile(r"\bpy(?:thon[\d.]*|\.?test)\b|\bunittest\b")
SESSIONS: Final = frozenset({"tox", "nox"})
"""These make environments of their own, from the files that they are run on."""


def python_of(check: Check) -> str:
    """The Python that a check runs; empty for one that runs none, as far as can be told."""
    if check.kind != "test" or check.name in SESSIONS or not RUNS_PYTHON.search(f"{check.line}\n{check.means}"):
        return ""
    return next((word for word in check.line.split() if PYTHON.fullmatch(word)), "python3")


def imports_them(check: Check, own: str, place: Place) -> bool:
    """Whether a check imports what lies in the person's folder `own`, and not the same of the copy: that goes first
    where settings put it on the path, and the root does where a module is run or a conftest.py is there."""
    if own != ".":
        return own not in set(paths_of(place))
    return "-m" not in f"{check.line} {check.means}".split() and "conftest.py" not in place.names


def paths_of(place: Place) -> Iterator[str]:
    """What the settings of pytest put first on the path."""
    tool = table(toml(place.text("pyproject.toml")), "tool")
    found = [table(tool, "pytest", "ini_options").get("pythonpath"), table(tool, "pytest").get("pythonpath")]
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        found.append(ini(place.text(name)).get(section, {}).get("pythonpath"))
    for one in found:
        words = one if isinstance(one, list) else str(one or "").split()
        yield from (posixpath.normpath(str(word)) for word in words)
