"""The timekeeper by itself: a clock that the test turns, and a world that it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from immutables import Map

from greenroom.app.timekeeper import MAX_STALE_DEADLINES, REFIRE_AFTER_MS, Timekeeper
from greenroom.core.base.clock import Millis
from greenroom.core.base.errors import Bug, Rejection
from greenroom.core.base.ids import AgentId, TaskId, TimerId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import FireTimer, Intent
from greenroom.core.state.team_state import EMPTY_STATE, TeamState
from greenroom.core.state.timer import Timer, TimerCancelled, TimerSet


class House:
    """A world of timers; what is fired is gone from it."""

    def __init__(self) -> None:
        self.time = 0
        self.fired: list[TimerId] = []
        self.trouble: dict[TimerId, list[Rejection | Bug]] = {}
        self._timers: Map[TimerId, Timer] = Map()
        self.keeper = Timekeeper(self, self.look, self, wait_for=self.nap)

    def look(self) -> TeamState:
        return evolve(EMPTY_STATE, timers=self._timers)

    def now(self) -> Millis:
        return Millis(self.time)

    async def nap(self, changed: Awaitable[object], _: float) -> object:
        return await changed

    async def submit(self, *intents: Intent, by: str) -> Sequence[Rejection | None]:
        assert by == "system"
        for intent in intents:
            assert isinstance(intent, FireTimer)
            if self.trouble.get(intent.timer_id):
                trouble = self.trouble[intent.timer_id].pop(0)
                if isinstance(trouble, Bug):
                    raise trouble
                return [trouble]
            self.fired.append(intent.timer_id)
            self._timers = self._timers.delete(intent.timer_id)
        return [None] * len(intents)

    def set(self, name: str, due: int) -> None:
        timer = Timer(
            timer_id=TimerId(name), purpose="wake", subject="x", due=due, task_id=TaskId("t1"), agent_id=AgentId("ann")
        )
        self._timers = self._timers.set(timer.timer_id, timer)
        self.keeper.follow([TimerSet(at=0, timer=timer)])

    def cancel(self, name: str) -> None:
        self._timers = self._timers.delete(TimerId(name))
        self.keeper.follow([TimerCancelled(at=0, timer_id=TimerId(name))])

    async def run(self) -> None:
        """Let it fire what is due."""
        task = asyncio.create_task(self.keeper.run())
        for _ in range(200):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_timers_that_were_set_and_cancelled_take_no_room() -> None:
    house = House()
    for number in range(10):
        house.set(f"kept {number}", 1_000_000 + number)
    for number in range(5_000):
        house.set(f"short {number}", 2_000_000)
        house.cancel(f"short {number}")
        assert len(house.keeper) <= MAX_STALE_DEADLINES + 2 * 10 + 2
    house.time = 1_000_005
    await house.run()
    assert house.fired == [f"kept {number}" for number in range(6)]


async def test_a_timer_that_is_set_again_fires_at_its_new_time_only() -> None:
    house = House()
    for due in range(1_000, 3_000):
        house.set("moved", due)
    house.time = 2_998
    await house.run()
    assert house.fired == []
    house.time = 2_999
    await house.run()
    assert house.fired == ["moved"]
    house.time = 10_000
    await house.run()
    assert house.fired == ["moved"]


async def test_all_that_is_due_fires_in_order_whatever_was_cancelled_between() -> None:
    house = House()
    for number in range(400):
        house.set(f"t{number}", 1_000 - number)
    for number in range(0, 400, 2):
        house.cancel(f"t{number}")
    house.time = 5_000
    await house.run()
    assert house.fired == [f"t{number}" for number in range(399, 0, -2)]


async def test_a_timer_that_cannot_be_fired_is_tried_again_and_holds_up_no_other() -> None:
    house = House()
    house.trouble = {
        TimerId("broken"): [Bug("ours"), Bug("ours")],
        TimerId("refused"): [Rejection(code="too_early", why="not yet")],
    }
    for name in ("broken", "refused", "sound"):
        house.set(name, 1_000)
    house.time = 1_000
    await house.run()
    assert house.fired == ["sound"]
    house.time += REFIRE_AFTER_MS - 1
    await house.run()
    assert house.fired == ["sound"]
    house.time += 1
    await house.run()
    assert house.fired == ["sound", "refused"]
    house.time += REFIRE_AFTER_MS
    await house.run()
    assert house.fired == ["sound", "refused", "broken"]


async def test_a_timer_that_could_not_be_fired_and_is_set_anew_fires_at_its_new_time_only() -> None:
    house = House()
    house.trouble = {TimerId("moved"): [Bug("ours")]}
    house.set("moved", 1_000)
    house.time = 1_000
    await house.run()
    house.set("moved", 50_000)
    house.time += REFIRE_AFTER_MS
    await house.run()
    assert house.fired == []
    house.time = 50_000
    await house.run()
    assert house.fired == ["moved"]
