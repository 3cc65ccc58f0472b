"""`greenroom workspaces list` in this process: what is said of work is so, also where its copy is gone."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.clock import SystemClock
from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.runs.workspaces import FOLDERS_HISTORY, MILLIS_PER_DAY, open_workspace
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import worktrees_folder
from greenroom.core.base.clock import Clock
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.workspace import SCRATCH_THREAD
from greenroom.core.rules.intents import AddTask, CancelTask
from greenroom.core.state.spec import AgentSpec
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import no_git, plain
from tests.cli.conftest import Type

NOTHING = "There are no worktrees, and no unapplied work is kept here.\n"
TAKE = """\
Apply it, or delete it for good:
  greenroom apply r1
  greenroom workspaces clean r1 --refs --discard
"""


@pytest.fixture(name="person")
def _person(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Somebody with a cache of their own, who has not begun yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Person(tmp_path / "tree", tmp_path / "pat")


def works(person: Person, run: str) -> None:
    """A run leaves work there."""

    async def done() -> None:
        worktree = await opened(await open_workspace(person.root), run)
        put(worktree, "a.txt", f"by {run}\n")
        await worked(worktree, summary=f"Work of {run}")

    asyncio.run(done())


def test_the_worktree_of_a_run_in_another_home_is_kept_and_the_others_are_removed(
    person: Person, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(person)
    works(person, "r1")
    monkeypatch.chdir(person.root)
    cleaned = greenroom("workspaces", "clean")
    assert (cleaned.code, "its run r1 is not in this home: give its home with --home" in cleaned.out) == (0, True)
    assert greenroom("workspaces", "clean", "--discard").out == "Removed: 1. Left: 0.\n"
    assert "Run r1 of " in (left := greenroom("workspaces", "list").out)
    assert left.startswith("There are no worktrees.")


@pytest.mark.parametrize("begin", [plain, no_git], ids=["in git", "outside git"])
def test_work_without_a_copy_is_said_to_be_there(
    person: Person, begin: object, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(begin)
    begin(person)
    monkeypatch.chdir(person.root)
    assert greenroom("workspaces", "list").out == NOTHING
    works(person, "r1")
    assert "has no worktree" not in greenroom("workspaces", "list").out
    shutil.rmtree(worktrees_folder())
    said = f"Run r1 of {person.root} has no worktree, but its work is kept:\n  not applied: Work of r1\n{TAKE}"
    assert greenroom("workspaces", "list").out == f"There are no worktrees.\n{said}"
    other = Person(person.root.parent / "other", person.home)
    plain(other)
    works(other, "r2")
    listed = greenroom("workspaces", "list").out
    assert (f"run r2\n  of {other.root}\n  not applied: Work of r2\n" in listed, listed.endswith(said)) == (True, True)
    kept = greenroom("workspaces", "list", "--output-format", "json").json["uncopied"]
    assert kept == [{"run": "r1", "root": str(person.root), "unapplied": ["Work of r1"]}]


def test_a_copy_in_which_only_checks_ran_has_no_work(
    person: Person, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(person)
    works(person, "r1")
    monkeypatch.chdir(person.root)

    async def checked() -> None:
        theirs = await open_workspace(person.root)
        await theirs.open("r1", SCRATCH_THREAD, await theirs.tip("r1", "ann@t1"))
        await theirs.close("r1", "ann@t1")

    asyncio.run(checked())
    assert f"Run r1 of {person.root} has no worktree, but its work is kept:" in greenroom("workspaces", "list").out


def test_by_looking_nothing_is_made_for_a_folder_outside_git(
    person: Person, home: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_git(person)
    monkeypatch.chdir(person.root)
    assert greenroom("workspaces", "list").out == NOTHING
    assert ((home / FOLDERS_HISTORY).exists(), worktrees_folder().exists()) == (False, False)


def test_a_repository_that_cannot_be_used_is_not_said_to_keep_nothing(
    person: Person, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(person)
    (person.root / ".git" / "HEAD").unlink()
    monkeypatch.chdir(person.root)
    said = greenroom("workspaces", "list")
    assert (said.code, said.out) == (
        0,
        f"There are no worktrees.\n'{person.root}/.git' is not a usable repository. Check it with 'git status'.\n",
    )


def test_what_worktrees_take_is_shown_with_the_logs(
    person: Person, home: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(person)
    monkeypatch.chdir(person.root)
    assert greenroom("du", "--output-format", "json").json["worktrees"] == 0
    assert str(worktrees_folder()) not in greenroom("du").out
    works(person, "r1")
    used = greenroom("du", "--output-format", "json").json
    assert cast("int", used["worktrees"]) > 0
    assert greenroom("du").out.splitlines()[-1].endswith(f" in {worktrees_folder()}")


@pytest.mark.parametrize(("days", "is_kept"), [(30, False), (0, True), (50, True)])
def test_old_team_runs_go_when_worktrees_are_cleaned(
    person: Person, home: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch, days: int, is_kept: bool
) -> None:
    plain(person)
    monkeypatch.chdir(person.root)

    async def run() -> str:
        clock = SimpleNamespace(now=lambda: SystemClock().now() - 40 * MILLIS_PER_DAY)
        factories = {TEAM_RUN: lambda _: Capabilities([])}
        runtime = Runtime(await SqliteLog.open(home), capability_factories=factories, clock=cast("Clock", clock))
        lead = AgentId("lead")
        task = AddTask(name="It", intention="It", manager=lead)
        members, root = [(lead, AgentSpec(name="lead", manager=True))], str(person.root)
        team = await runtime.create("x", members, capabilities_name=TEAM_RUN, workspace=root, first_intents=(task,))
        await runtime.ask(team, CancelTask(task_id=next(iter((await runtime.state(team)).tasks))))
        await runtime.close()
        await (await open_workspace(person.root)).snapshot(team)
        return team

    team = asyncio.run(run())
    person.write(".greenroom/config.toml", f"[team]\nkeep_days = {days}\n")
    cleaned = greenroom("workspaces", "clean", "--output-format", "json")
    assert (cleaned.code, cleaned.json["forgotten"]) == (0, [] if is_kept else [team])
    assert bool(greenroom("runs", "--output-format", "json").json["tasks"]) == is_kept
