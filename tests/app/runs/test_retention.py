"""Old team runs go with worktrees, commits and log; what is not applied, not over or not a team's never does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.clock import SystemClock
from greenroom.app.conversation.capability_names import CHANGE_RUN, TEAM_RUN
from greenroom.app.runs.workspaces import MILLIS_PER_DAY, measure_objects, open_workspace, remove_old_team_runs
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.workspace import AppliedChange, CommitInfo, UndoResult
from greenroom.core.rules.intents import AddTask, CancelTask
from greenroom.core.state.spec import AgentSpec
from tests.adapters.git.person import Person, put
from tests.adapters.git.shapes import plain

LEAD = AgentId("lead")
LATER = SystemClock().now() + 31 * MILLIS_PER_DAY


@pytest.fixture(name="person")
def _person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "home"))
    person = Person(tmp_path / "repo")
    plain(person)
    person.git("config", "user.name", "Pat")
    person.git("config", "user.email", "pat@example.org")
    return person


@pytest.fixture(name="runtime")
async def _runtime() -> AsyncIterator[Runtime]:
    factories = {kit: lambda _: Capabilities([]) for kit in (TEAM_RUN, CHANGE_RUN)}
    runtime = Runtime(MemoryLog(), capability_factories=factories)
    yield runtime
    await runtime.close()


async def ran(runtime: Runtime, person: Person, *, kit: str = TEAM_RUN, over: bool = True) -> TeamId:
    """A run with a base commit that is over, or not."""
    members = [(LEAD, AgentSpec(name="lead", manager=True))]
    task = AddTask(name="It", intention="It", manager=LEAD)
    root = str(person.root)
    team = await runtime.create(kit, members, capabilities_name=kit, workspace=root, first_intents=(task,))
    (task_id,) = (await runtime.state(team)).tasks
    if over:
        await runtime.ask(team, CancelTask(task_id=task_id))
    await runtime.stop(team)
    await (await open_workspace(person.root)).snapshot(team)
    return team


async def work(person: Person, team: TeamId, thread: str = "code", *, merge: bool = True) -> None:
    workspace = await open_workspace(person.root)
    worktree = await workspace.open(team, thread, await workspace.tip(team, "main"))
    put(worktree, f"{thread} of {team}.txt", thread)
    await worktree.commit(CommitInfo(run=team, key=thread, summary="Work"))
    if merge:
        await workspace.integrate(team, thread, "main", CommitInfo(run=team, key=f"in {thread}", summary="Work"))


async def applied(person: Person, team: TeamId) -> AppliedChange:
    workspace = await open_workspace(person.root)
    done = await workspace.apply(team, (await workspace.snapshot(team)).commit, await workspace.tip(team, "main"))
    assert isinstance(done, AppliedChange)
    await workspace.commit(done.id, "Do it", hooks=False)
    return done


async def left(runtime: Runtime, person: Person) -> tuple[set[str], set[str]]:
    """The runs that have a log, and those of which the repository keeps something."""
    streams = {info.stream for info in await runtime.log.streams()}
    return streams, {kept.run for kept in await (await open_workspace(person.root)).list_kept_runs()}


@pytest.mark.parametrize("ending", ["applied", "undone", "discarded", "failed once", "empty"])
async def test_what_a_person_has_decided_goes_after_its_days(runtime: Runtime, person: Person, ending: str) -> None:
    team = await ran(runtime, person)
    if ending == "discarded":
        for thread in ("doc", "code"):
            await work(person, team, thread, merge=thread == "code")
        await (await open_workspace(person.root)).discard(team)
        assert await (await open_workspace(person.root)).tip(team, "doc")
    elif ending != "empty":
        if ending == "failed once":
            await work(person, team, "code", merge=False)
        await work(person, team, "code.2" if ending == "failed once" else "code")
        done = await applied(person, team)
        if ending == "undone":
            assert isinstance(await (await open_workspace(person.root)).undo(done.id), UndoResult)
    for days, now in ((30, SystemClock().now()), (0, LATER), (32, LATER)):
        assert await remove_old_team_runs(runtime, days, now) == []
    assert await left(runtime, person) == ({team}, {team})
    assert await remove_old_team_runs(runtime, 30, LATER) == [team]
    assert await left(runtime, person) == (set(), set())
    assert not list((person.root.parent / "cache").glob("greenroom/worktrees/*/trees/*"))
    assert await remove_old_team_runs(runtime, 30, LATER) == []


@pytest.mark.parametrize(
    "case",
    ["not applied", "not merged", "discarded before", "failed twice", "not over", "no team", "a file in no commit"],
)
async def test_anything_else_stays(runtime: Runtime, person: Person, case: str) -> None:
    kit = CHANGE_RUN if case == "no team" else TEAM_RUN
    team = await ran(runtime, person, kit=kit, over=case != "not over")
    await work(person, team)
    workspace = await open_workspace(person.root)
    if case == "discarded before":
        await workspace.discard(team)
        await work(person, team, "doc", merge=False)
    elif case != "not applied":
        await applied(person, team)
    for attempt in ("doc", "doc.2") if case == "failed twice" else ():
        await work(person, team, attempt, merge=False)
    if case == "not merged":
        await work(person, team, "doc", merge=False)
    if case == "a file in no commit":
        put(await workspace.open(team, "main", (await workspace.snapshot(team)).commit), "mine.txt", "1")
    assert await remove_old_team_runs(runtime, 30, LATER) == []
    assert await left(runtime, person) == ({team}, {team})


async def test_a_run_whose_repository_is_gone_stays(runtime: Runtime, person: Person) -> None:
    team = await ran(runtime, person)
    await work(person, team)
    await applied(person, team)
    person.git("update-ref", "-d", f"refs/greenroom/{team}/@base")
    for ref in person.git("for-each-ref", "--format=%(refname)", "refs/greenroom").split():
        person.git("update-ref", "-d", ref)
    assert await remove_old_team_runs(runtime, 30, LATER) == []
    assert team in {info.stream for info in await runtime.log.streams()}


async def test_what_only_a_run_keeps_is_measured(runtime: Runtime, person: Person) -> None:
    team = await ran(runtime, person)
    state = await runtime.state(team)
    small = await measure_objects(state.team)
    await work(person, team)
    assert await measure_objects(state.team) > small
