"""New modules in the place of installed ones, as the Python of a check sees them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from greenroom.abilities.checks.shadowing import new_modules
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.taken_places import taken_places
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from tests.app.checks.projects import written

PYTEST = Check(name="pytest", line=f"{sys.executable} -m pytest", kind="test", why="w.")
SET = {"pytest.ini": "[pytest]\npythonpath = inner\n"}


async def taken(root: Path, *changes: str, before: frozenset[str] = frozenset(), check: Check = PYTEST) -> list[str]:
    """The paths that take a place, in a project with these files."""
    written(root, {**SET, **dict.fromkeys(changes, "")})
    commands = PlainCommands(root)
    try:
        look = FolderLook(root)
        found = await taken_places([check], commands, look, root, before=before, changes=changes)
        assert await taken_places([check], commands, None, root, before=before, changes=changes) == ()
    finally:
        commands.close()
    return [one.path for one in found]


@pytest.mark.parametrize(
    ("path", "takes"),
    [
        ("hypothesis.py", True),
        ("hypothesis/__init__.py", True),
        ("src/msgspec/json.py", True),
        ("inner/typer.so", True),
        ("json.py", True),
        ("deep/hypothesis.py", False),
        ("tests/hypothesis.py", False),
        ("hypothesis.txt", False),
        ("something_of_our_own.py", False),
        ("not-a-module.py", False),
    ],
)
async def test_a_new_module_with_the_name_of_an_installed_one_takes_its_place(
    tmp_path: Path, path: str, takes: bool
) -> None:
    assert await taken(tmp_path, path, "app.py") == ([path] if takes else [])


async def test_work_on_a_module_that_was_there_takes_no_place(tmp_path: Path) -> None:
    assert await taken(tmp_path, "hypothesis/more.py", before=frozenset({"hypothesis/__init__.py"})) == []
    assert await taken(tmp_path, "hypothesis.py", before=frozenset({"hypothesis.py"})) == []


async def test_a_check_that_runs_no_python_is_not_asked(tmp_path: Path) -> None:
    assert await taken(tmp_path, "hypothesis.py", check=evolve(PYTEST, line="npm test")) == []


def test_modules_are_seen_from_the_folder_of_the_check() -> None:
    added = ["part/hypothesis.py", "hypothesis.py", "part/src/one/two.py"]
    found = new_modules([], added, ["part", "part/src"])
    assert found == {
        "hypothesis": ["part/hypothesis.py"],
        "src": ["part/src/one/two.py"],
        "one": ["part/src/one/two.py"],
    }
