"""Many callers at one team, in one process: nobody fences, shuts out or speaks for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.app.team_host import TeamHost
from greenroom.core.base.errors import RefusedError, StoreFault, WorldFault
from greenroom.core.base.ids import TaskId, TeamId, TimerId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.log import Store
from greenroom.core.rules.intents import AddTask, FireTimer, Intent, PauseTeam, SetValue
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import Driver
from greenroom.core.state.team import Team
from greenroom.testing.harness import LEAD

STORES = ("memory", "sqlite")


def task(name: str) -> AddTask:
    """A task that its manager drives."""
    return AddTask(name=name, intention=name, manager=LEAD, driver="manager")


async def closing_badly() -> None:
    """A kit that breaks when it is closed."""
    raise WorldFault("the kit broke")


@asynccontextmanager
async def idle(store: str, home: Path) -> AsyncIterator[tuple[Runtime, TeamId]]:
    """A team that nobody runs."""
    log: Store = MemoryLog() if store == "memory" else await SqliteLog.open(home)
    runtime = Runtime(log, capability_factories={"k": lambda _: Capabilities([])})
    try:
        team = await runtime.create("idle", [(LEAD, AgentSpec(name="lead", manager=True))], capabilities_name="k")
        await runtime.stop(team)
        yield runtime, team
    finally:
        await runtime.close()


@pytest.mark.parametrize("store", STORES)
async def test_all_who_ask_an_idle_team_at_once_are_heard(store: str, tmp_path: Path) -> None:
    async with idle(store, tmp_path) as (runtime, team), asyncio.timeout(10):
        # Without any time for an inbox: they wait for each other here.
        await asyncio.gather(*(runtime.ask(team, task(f"task {number}"), timeout=0) for number in range(5)))
        names = {one.name for one in (await runtime.state(team)).tasks.values()}
        assert names == {f"task {number}" for number in range(5)}
        assert await runtime.log.holder(team) is None


@pytest.mark.parametrize("store", STORES)
async def test_who_asks_while_a_team_starts_or_stops_is_heard(store: str, tmp_path: Path) -> None:
    async with idle(store, tmp_path) as (runtime, team), asyncio.timeout(10):
        await asyncio.gather(runtime.ask(team, task("before")), runtime.start(team), runtime.ask(team, task("beside")))
        await runtime.ask(team, task("after"))
        await asyncio.gather(runtime.stop(team), runtime.ask(team, task("at the end")))
        names = {one.name for one in (await runtime.state(team)).tasks.values()}
        assert names == {"before", "beside", "after", "at the end"}


@pytest.mark.parametrize("store", STORES)
async def test_a_team_that_is_started_twice_at_once_runs_once(store: str, tmp_path: Path) -> None:
    async with idle(store, tmp_path) as (runtime, team), asyncio.timeout(10):
        one, other = await asyncio.gather(runtime.start(team), runtime.start(team))
        assert one is other
        await runtime.ask(team, task("after"))


async def test_a_team_that_is_started_again_gets_no_second_kit() -> None:
    made: list[Capabilities] = []

    def make(_: Team) -> Capabilities:
        made.append(Capabilities([]))
        return made[-1]

    runtime = Runtime(MemoryLog(), capability_factories={"k": make})
    team = await runtime.create("idle", [(LEAD, AgentSpec(name="lead", manager=True))], capabilities_name="k")
    for _ in range(2):
        await runtime.start(team)
    assert len(made) == 1, "it may open, and take away, what the first works with"
    await runtime.stop(team)
    await runtime.start(team)
    assert len(made) == 2
    await runtime.close()


async def test_a_visit_that_fails_gives_the_team_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> TeamHost:
        raise StoreFault("cannot be opened")

    async with idle("sqlite", tmp_path) as (runtime, team):
        with monkeypatch.context() as patch:
            patch.setattr(TeamHost, "open", broken)
            with pytest.raises(StoreFault, match="cannot be opened"):
                await runtime.ask(team, PauseTeam())
        assert await runtime.log.holder(team) is None
        await runtime.ask(team, PauseTeam())


async def test_who_stops_waiting_for_a_visit_does_not_keep_the_team(tmp_path: Path) -> None:
    async with idle("sqlite", tmp_path) as (runtime, team), asyncio.timeout(10):
        for turns in range(12):
            asked = asyncio.create_task(runtime.ask(team, task("t")))
            for _ in range(turns):
                await asyncio.sleep(0.001)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        await runtime.ask(team, PauseTeam())
        assert (await runtime.state(team)).team.paused is not None


@pytest.mark.parametrize(
    "odd",
    [
        AddTask(name="\ud800", intention="t", manager=LEAD),
        AddTask(name="t", intention="t", manager=LEAD, driver=cast("Driver", "nobody")),
        SetValue(task_id=TaskId("t1"), key="k", content=cast("str", object())),
        FireTimer(timer_id=TimerId("x")),
    ],
)
async def test_a_bad_intent_is_refused_alike_wherever_the_team_runs(odd: Intent, tmp_path: Path) -> None:
    async with idle("sqlite", tmp_path) as (runtime, team):
        await runtime.start(team)
        other = await Runtime.open(tmp_path)
        try:
            with pytest.raises(RefusedError) as here:
                await runtime.ask(team, odd)
            with pytest.raises(RefusedError) as there:
                await other.ask(team, odd, timeout=10)
        finally:
            await other.close()
        assert here.value.rejection == there.value.rejection


async def test_a_team_that_cannot_be_closed_well_keeps_nothing_else_open(tmp_path: Path) -> None:
    kits = {
        "bad": lambda _: Capabilities([], on_close=closing_badly),
        "good": lambda _: Capabilities([]),
    }
    runtime, other = await Runtime.open(tmp_path, capability_factories=kits), await Runtime.open(tmp_path)
    try:
        teams = [await runtime.create(kit, [], capabilities_name=kit) for kit in ("bad", "good")]
        for team in teams:
            await runtime.start(team)
        with pytest.raises(WorldFault, match="the kit broke"):
            await runtime.close()
        assert [await other.log.holder(team) for team in teams] == [None, None]
        with pytest.raises(StoreFault, match="closed"):
            await runtime.log.streams()
    finally:
        await other.close()


async def test_a_team_whose_crew_cannot_be_closed_is_given_back_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object, *, wait: bool) -> None:
        raise WorldFault("the crew broke")

    async with idle("sqlite", tmp_path) as (runtime, team):
        await runtime.start(team)
        with monkeypatch.context() as patch:
            patch.setattr("greenroom.actors.pool.ActorPool.close", broken)
            with pytest.raises(WorldFault, match="the crew broke"):
                await runtime.stop(team)
        assert await runtime.log.holder(team) is None
        await runtime.ask(team, PauseTeam())
