"""The threads of a team run: a run that starts from another has each as it was at that step, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.app.runs.workspaces import find_change, find_last_commits, find_snapshot, open_workspace
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.workspace import CommitInfo, StepCommit
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team import ForkOrigin, Team
from tests.adapters.git.person import Person, put
from tests.adapters.git.shapes import plain

RUN = TeamId("r1")


@pytest.fixture(name="person")
def _person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    person = Person(tmp_path / "repo")
    plain(person)
    return person


def ended(agent: str, result: Data, subtask: str | None = "") -> Step:
    """A step of an agent that ended so."""
    return Step(
        step_id=StepId(f"{agent}#1"),
        agent_id=AgentId(agent),
        thread_id=ThreadId(agent),
        task_id=TaskId("t1"),
        stage_id=None,
        subtask_id=None if subtask is None else SubtaskId(subtask or agent),
        work=Work(type="tool", executor="edit", intention=""),
        queued_at=0,
        state="finished",
        result=result,
    )


def test_each_commit_belongs_to_the_thread_that_its_subtask_opened() -> None:
    steps = [
        ended("ann", {"thread": "code", "base": "b"}),
        ended("bob", {"thread": "test", "base": "b"}),
        ended("ann", {"commit": "c1"}),
        ended("bob", {"commit": "t1"}),
        ended("ann", {"commit": "c2"}, subtask=None),
    ]
    assert find_last_commits(steps) == {"main": "b", "code": "c2", "test": "t1"}, "where the subtasks began"
    steps += [ended("ann", {"commit": "c3", "integrated": "m1"}), ended("bob", {"integrated": "m2"})]
    assert find_last_commits(steps) == {"main": "m2", "code": "c3", "test": "t1"}
    steps += [ended("lead", {"thread": "main", "base": "m2"}), ended("lead", {"commit": "m3"})]
    assert find_last_commits(steps)["main"] == "m3"


def test_of_a_run_without_threads_every_commit_is_on_the_main_one() -> None:
    assert find_last_commits([]) == {"main": ""}
    assert find_last_commits([ended("ann", {"commit": "c1"}, None), ended("ann", {"commit": "c2"})]) == {"main": "c2"}


async def test_a_rewound_run_has_each_thread_as_it_was_and_looking_moves_none(person: Person) -> None:
    workspace = await open_workspace(person.root)
    base = (await workspace.snapshot(RUN)).commit
    steps = list[Step]()
    for thread in ("code", "test"):
        worktree = await workspace.open(RUN, thread, base)
        steps.append(ended(thread, {"thread": thread, "base": base}))
        put(worktree, f"{thread}.txt", thread)
        made = await worktree.commit(CommitInfo(run=RUN, key=thread, summary="x"))
        steps.append(ended(thread, {"commit": made.commit}))

    async def history(_: TeamId) -> Sequence[Step]:
        return steps

    team = Team(team_id=RUN, workspace=str(person.root))
    assert (await find_change(team, history)).tip == base, "what is not integrated is not in the change"
    done = await workspace.integrate(RUN, "code", "main", CommitInfo(run=RUN, key="in", summary="x"))
    assert isinstance(done, StepCommit)
    before = {thread: await workspace.tip(RUN, thread) for thread in ("code", "test")}
    fork = Team(team_id=TeamId("r2"), workspace=str(person.root), origin=ForkOrigin(team_id=RUN, version=7))
    for _ in range(2):
        await find_snapshot(fork, history)
        assert {thread: await workspace.tip("r2", thread) for thread in before} == before
        assert await workspace.tip("r2", "main") == base, "it was integrated later"
    assert await workspace.tip(RUN, "main") == done.commit
