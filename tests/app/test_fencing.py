"""Two processes want one team: the newer lease counts, and whoever lost it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app import team_host
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.rules.intents import AddTask, PauseTeam, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from greenroom.core.state.team import Team
from greenroom.testing.harness import LEAD, harness
from tests.app.team import BOB, Held, call, finishes, says, spec, stage

T1 = TaskId("t1")


@asynccontextmanager
async def two_processes(home: Path, first: Executor, second: Executor) -> AsyncIterator[tuple[Runtime, Runtime]]:
    """Open two runtimes on one log. Each has one tool."""
    owner, later = [
        Runtime(await SqliteLog.open(home), capability_factories={"k": partial(_with_tool, tool)})
        for tool in (first, second)
    ]
    try:
        yield owner, later
    finally:
        await later.close()
        await owner.close()


def _with_tool(tool: Executor, _: Team) -> Capabilities:
    return Capabilities([tool])


async def test_a_fenced_owner_stops_and_the_new_one_goes_on(tmp_path: Path) -> None:
    tool, other = Held(), Held()
    other.let_go.set()
    async with two_processes(tmp_path, tool, other) as (first, second):
        team = await _held_team(first)
        await tool.begun.wait()
        await second.start(team, take_over=True)
        await other.begun.wait()
        tool.let_go.set()
        await second.wait(team, T1)
        with pytest.raises(WorldFault, match="no longer owns"):
            await first.ask(team, PauseTeam())
        with pytest.raises(WorldFault, match="no longer owns"):
            await first.wait(team, T1)
        assert other.runs == 1


async def test_an_owner_who_lost_the_team_stops_though_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_host, "LEASE_CHECK_S", 0.05)
    tool, other = Held(), Held()
    async with two_processes(tmp_path, tool, other) as (first, second):
        team = await _held_team(first)
        waiting = asyncio.create_task(first.wait(team, T1))
        await asyncio.wait_for(tool.begun.wait(), 10)
        await second.start(team, take_over=True)
        await asyncio.wait_for(tool.dead.wait(), 10)
        with pytest.raises(WorldFault, match="no longer owns"):
            await asyncio.wait_for(waiting, 10)
        await asyncio.wait_for(other.begun.wait(), 10)
        assert not other.dead.is_set(), "the new owner's work goes on"
        assert (await second.state(team)).team.epoch == 2


async def test_an_owner_who_was_visited_by_force_stops_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor is gone again before anybody looks: what it wrote tells."""
    monkeypatch.setattr(team_host, "LEASE_CHECK_S", 0.05)
    tool = Held()
    async with two_processes(tmp_path, tool, Held()) as (first, second):
        team = await _held_team(first)
        await asyncio.wait_for(tool.begun.wait(), 10)
        await second.start(team, take_over=True)
        await second.stop(team)
        assert await second.log.holder(team) is None
        await asyncio.wait_for(tool.dead.wait(), 10)


async def test_an_owner_who_looks_after_its_lease_goes_on_working(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_host, "LEASE_CHECK_S", 0.0)
    tool = Held()
    cues = [says("ann", 1, call("held")), finishes("ann", 2)]
    async with harness([spec("ann", "held")], cues, executors=[tool]) as house:
        work = asyncio.create_task(house.do(stage("ann")))
        await asyncio.wait_for(tool.begun.wait(), 10)
        for _ in range(100):
            await house.runtime.log.holder(house.team)
            await asyncio.sleep(0)
        assert not tool.dead.is_set()
        tool.let_go.set()
        assert (await asyncio.wait_for(work, 10)).state == "finished"


async def _held_team(runtime: Runtime) -> TeamId:
    team = await runtime.create(
        "fence", [(LEAD, AgentSpec(name="lead", manager=True)), (BOB, spec("bob", "held"))], capabilities_name="k"
    )
    await runtime.start(team)
    await runtime.ask(team, AddTask(name="t", intention="t", manager=LEAD, group=(BOB,), driver="manager"))
    work = Work(type="tool", executor="held", instruction_content={})
    await runtime.ask(team, QueueSteps(agent_id=BOB, works=(work,), task_id=T1))
    return team
