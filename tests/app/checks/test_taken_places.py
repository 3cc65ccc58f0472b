"""New modules in the place of installed ones, as the Python of a check sees them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from greenroom.abilities.checks.shadowing import new_modules
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.taken_places import MOST, taken_places
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


async def test_every_new_module_is_asked_about_however_many_there_are(tmp_path: Path) -> None:
    many = [f"a{number:03}{'_' * 240}.py" for number in range(2 * MOST + 1)]
    assert await taken(tmp_path, *many, "hypothesis.py", "typer.py") == ["hypothesis.py", "typer.py"]


@pytest.mark.parametrize("line", ["nowhere/bin/python -m pytest", "sick/python -m pytest"])
async def test_where_nobody_can_be_asked_each_new_module_may_take_a_place(tmp_path: Path, line: str) -> None:
    (written(tmp_path, {"sick/python": "#!/bin/sh\necho taken:typer\n"}) / "sick/python").chmod(0o755)
    check = evolve(PYTEST, line=line)
    assert await taken(tmp_path, "one.py", "two/a.py", "notes.md", check=check) == ["one.py", "two/a.py"]


@pytest.mark.parametrize("line", ["uv run --offline nowhere/python -m pytest", "uv run --locked pytest"])
async def test_the_python_that_another_program_finds_is_asked_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    uv = written(tmp_path, {"bin/uv": f'#!/bin/sh\nshift 3\nexec {sys.executable} "$@"\n'}) / "bin" / "uv"
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent), prepend=":")
    check = evolve(PYTEST, line=line)
    assert await taken(tmp_path, "hypothesis.py", "one.py", check=check) == ["hypothesis.py"]
    uv.write_text("#!/bin/sh\nexit 2\n")
    assert await taken(tmp_path, "one.py", check=check) == ["one.py"], "no other Python is asked in its place"


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
