"""Worktrees for checks: opened, prepared by a setup, and whether tests import their code."""

from __future__ import annotations

import json
import venv
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from greenroom.core.ports.commands import Command, CommandEnded, CommandEvent, CommandRunner
from greenroom.core.ports.executor import LiveEvent, Outcome, StepContext
from greenroom.core.ports.workspace import SharedFolder, TreeSnapshot, Workspace, Worktree
from greenroom.core.rules.intents import FinishTask
from greenroom.runs.checkout import (
    Checkout,
    PrepareTool,
    WorkspaceSetup,
    find_foreign_imports,
    find_imported_folder,
    find_python,
    list_changed_modules,
    list_import_folders,
)
from greenroom.runs.workspace import RunWorkspace
from tests.abilities.tools.files.desk import FakeBench
from tests.runs.log import Story
from tests.runs.projects import Shelf, written

TEST = Check(name="pytest", line="python3 -m pytest", kind="test", why="w.")


@pytest.fixture(name="python", scope="module")
def _python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which nothing is installed."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


class Root:
    """The person's repository."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)


def place_of(theirs: Path, lent: Sequence[SharedFolder] = ()) -> RunWorkspace:
    return RunWorkspace(
        run="r1",
        mount_point=theirs,
        workspace=cast("Workspace", Root(theirs)),
        snapshot=TreeSnapshot(commit="c", tree="t"),
        worktree=cast("Worktree", None),
        shared_folders=tuple(lent),
    )


async def found(check: Check, changes: Sequence[str], tree: Path, place: RunWorkspace) -> list[str]:
    """Where a check imports what was changed from, if not from this tree."""
    commands = LocalCommands(tree)
    try:
        findings = await find_foreign_imports(
            [check], changes, Checkout(tree, place.mount_point, "t", commands), place, Shelf()
        )
    finally:
        commands.close()
    assert {finding.code for finding in findings} <= {"imports_elsewhere"}
    return [finding.why for finding in findings]


def install(python: Path, folder: Path) -> str:
    """As `pip install --editable` does; returns the Python that imports from there."""
    (packages,) = (python / "lib").glob("python*/site-packages")
    (packages / "editable.pth").write_text(f"{folder}\n")
    return str(python / "bin" / "python")


@pytest.mark.parametrize("layout", ["src/", ""], ids=["src", "flat"])
@pytest.mark.parametrize("how", ["pytest", "-m pytest"])
async def test_an_editable_install_of_the_persons_folder_is_noticed(
    tmp_path: Path, python: Path, layout: str, how: str
) -> None:
    files = {f"{layout}app/__init__.py": "", f"{layout}app/core.py": "X = 1\n", "tests/test_app.py": ""}
    theirs, tree = written(tmp_path / "theirs", files), written(tmp_path / "tree", files)
    own = install(python, theirs / layout)
    line = f"{own} -m pytest" if how == "-m pytest" else f"{own} pytest"
    elsewhere = await found(evolve(TEST, line=line), [f"{layout}app/core.py"], tree, place_of(theirs))
    first = not layout and how == "-m pytest"
    assert elsewhere == ([] if first else [str(theirs / layout / "app/__init__.py")])
    install(python, tree / layout)
    assert await found(evolve(TEST, line=line), [f"{layout}app/core.py"], tree, place_of(theirs)) == []


async def test_where_the_persons_folder_cannot_be_read_its_editable_install_is_noticed(
    tmp_path: Path, python: Path
) -> None:
    files = {"src/app/__init__.py": "", "docs/conf.py": ""}
    theirs, tree = tmp_path / "hidden", written(tmp_path / "tree", files)
    own = evolve(TEST, line=f"{install(python, theirs / 'src')} -m pytest")
    commands = LocalCommands(tree)
    checkout = Checkout(tree, theirs, "t", commands)
    assert await find_imported_folder(own, checkout, Shelf()) == "", "nothing says that it was installed from there"
    (packages,) = (python / "lib").glob("python*/site-packages")
    direct = {"url": theirs.as_uri(), "dir_info": {"editable": True}}
    written(
        packages, {"app-1.dist-info/METADATA": "Name: app\n", "app-1.dist-info/direct_url.json": json.dumps(direct)}
    )
    assert await find_imported_folder(own, checkout, Shelf()) == str(theirs)
    assert await find_imported_folder(own, replace(checkout, at=tree), Shelf()) == "", "it is mounted there"
    assert await find_imported_folder(evolve(own, line="make check"), checkout, Shelf()) == ""
    commands.close()


async def test_pythonpath_and_a_package_that_is_nowhere_are_no_reason(tmp_path: Path, python: Path) -> None:
    ini = {"pytest.ini": "[pytest]\npythonpath = src\n"}
    files = {"src/app.py": "", "docs/conf.py": ""}
    theirs, tree = written(tmp_path / "theirs", files), written(tmp_path / "tree", {**files, **ini})
    own = evolve(TEST, line=f"{install(python, theirs / 'src')} pytest")
    assert await found(own, ["src/app.py", "docs/conf.py", "test_x.py", "README.md"], tree, place_of(theirs)) == []
    (tree / "pytest.ini").unlink()
    assert await found(own, ["src/app.py"], tree, place_of(theirs)) == [str(theirs / "src/app.py")]


async def test_a_linter_and_a_check_that_runs_no_python_are_not_asked(tmp_path: Path) -> None:
    theirs, tree = written(tmp_path / "theirs", {"app.py": ""}), written(tmp_path / "tree", {"app.py": ""})
    for check in (evolve(TEST, kind="lint"), evolve(TEST, line="make check"), evolve(TEST, name="tox", line="tox")):
        assert await found(check, ["app.py"], tree, place_of(theirs)) == []


async def test_a_package_that_node_modules_link_into_the_persons_folder_is_noticed(tmp_path: Path) -> None:
    files = {"packages/sum/index.js": "", "node_modules/other/index.js": ""}
    theirs, tree = written(tmp_path / "theirs", files), written(tmp_path / "tree", files)
    for name in ("sum", "@own/sum"):
        link = theirs / "node_modules" / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(theirs / "packages/sum")
    lent = [SharedFolder(path="node_modules", source=str(theirs / "node_modules"), kind="ignored")]
    npm, changes = evolve(TEST, name="npm test", line="npm test"), ["packages/sum/index.js"]
    assert await found(npm, changes, tree, place_of(theirs, lent)) == [str(theirs / "packages/sum")]
    assert await found(npm, ["index.js"], tree, place_of(theirs, lent)) == []
    assert await found(npm, changes, theirs, place_of(theirs, lent)) == [], "it is mounted at its own path"


@pytest.mark.parametrize(
    ("check", "python"),
    [
        (TEST, "python3"),
        (evolve(TEST, line=".venv/bin/python -m pytest"), ".venv/bin/python"),
        (evolve(TEST, line="uv run --offline python -m pytest"), "python"),
        (evolve(TEST, line="pytest -q"), "python3"),
        (evolve(TEST, line="make check", means="check:\npython3.12 -m unittest"), "python3"),
        (evolve(TEST, line="npm test", means="test: jest"), ""),
        (evolve(TEST, line="cargo test"), ""),
        (evolve(TEST, name="nox", line=".venv/bin/nox", means="session.run('pytest')"), ""),
    ],
)
def test_the_python_of_a_check_is_read_from_its_line(check: Check, python: str) -> None:
    assert find_python(check) == python


@pytest.mark.parametrize(
    ("changes", "folder", "names"),
    [
        (["src/app/a.py", "src/app/b.py", "lib/more.py"], ".", ["app", "more"]),
        (["app.py", "tests/test_a.py", "setup.py", "conftest.py", "a.txt", "my-script.py"], ".", ["app"]),
        (["web/app.py", "other/x.py"], "web", ["app"]),
    ],
)
def test_changed_files_belong_to_top_level_modules(changes: list[str], folder: str, names: list[str]) -> None:
    assert list_changed_modules(changes, folder) == names


@pytest.mark.parametrize(
    ("files", "line", "folders"),
    [
        ({}, "pytest", []),
        ({}, "python3 -m pytest", ["."]),
        ({"conftest.py": ""}, "pytest", ["."]),
        ({"tests/__init__.py": ""}, "pytest", ["."]),
        ({"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src", "tools"]\n'}, "pytest", ["src", "tools"]),
    ],
)
def test_the_folders_that_are_first_on_the_path_are_known(
    tmp_path: Path, files: dict[str, str], line: str, folders: list[str]
) -> None:
    assert list_import_folders(evolve(TEST, line=line), written(tmp_path, files)) == folders


class Seen(FakeBench):
    """A bench at which somebody watches."""

    def show(self, _: LiveEvent) -> None:
        """Let them."""


async def prepared(setup: WorkspaceSetup, commands: CommandRunner) -> Outcome:
    (step,) = Story().step("prepare").steps
    return await PrepareTool(setup, commands).run(cast("StepContext", Seen(step, ())))


def why(outcome: Outcome) -> str:
    (end,) = outcome.intents
    assert isinstance(end, FinishTask)
    assert end.state == "failed"
    return end.summary


async def test_what_it_makes_stays_in_the_copy_and_what_it_printed_is_kept(tmp_path: Path) -> None:
    commands = LocalCommands(tmp_path)
    outcome = await prepared(WorkspaceSetup(line="mkdir node_modules && echo made"), commands)
    commands.close()
    assert (tmp_path / "node_modules").is_dir()
    assert outcome.intents == ()
    assert (outcome.result or {})["printed"] == "made\n"


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        (
            WorkspaceSetup(line="echo no such package; exit 3"),
            "failed: exit code 3. The run did not start.\nno such package",
        ),
        (WorkspaceSetup(line="sleep 60", seconds=0.2), "failed: it took longer than 0.2 s"),
        (WorkspaceSetup(line="kill -9 $$"), "failed: it was ended by signal 9"),
    ],
)
async def test_a_failure_ends_the_job_and_says_how(tmp_path: Path, setup: WorkspaceSetup, said: str) -> None:
    commands = LocalCommands(tmp_path)
    outcome = await prepared(setup, commands)
    commands.close()
    assert said in why(outcome)


class Broken:
    """Commands that cannot begin, or are stopped."""

    def __init__(self, *events: CommandEvent) -> None:
        self._events = events

    async def run(self, _: Command) -> AsyncGenerator[CommandEvent, None]:
        if not self._events:
            raise WorldFault("There is no shell.")
        for event in self._events:
            yield event

    def close(self) -> None:
        """Nothing runs."""


async def test_one_that_cannot_begin_or_is_stopped_is_a_failure_too() -> None:
    assert "it cannot start: There is no shell." in why(await prepared(WorkspaceSetup(line="x"), Broken()))
    assert "it was stopped" in why(await prepared(WorkspaceSetup(line="x"), Broken(CommandEnded(how="cancelled"))))


async def test_a_line_that_is_left_out_is_not_run_and_the_job_goes_on() -> None:
    outcome = await prepared(WorkspaceSetup(line="x", left="`x` was not run: no walls."), Broken())
    assert (outcome.intents, (outcome.result or {})["output"]) == ((), "`x` was not run: no walls.")
