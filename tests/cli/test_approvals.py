"""`approvals list`: what waits in whichever team, when it expires; teams in which nothing waits are not read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.clock import SystemClock
from greenroom.app.runtime import Runtime
from greenroom.core.base.clock import Millis
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms, Work
from greenroom.core.state.team_state import TeamState
from tests.app.team import FakeTool
from tests.cli.conftest import Type

ANN, T1 = AgentId("ann"), TaskId("t1")
HOUR, DAY = 3_600_000, 86_400_000


def burning(*, ask: bool) -> FakeTool:
    """Return a tool that is asked about, or not."""
    terms = StepTerms(effect="effectful", verdict="ask" if ask else "allow", question="Burn it?", digest="x")
    return FakeTool("burn", terms=lambda _: terms)


class Past:
    """A clock of some days ago."""

    def __init__(self, days: int) -> None:
        self._behind = days * DAY

    def now(self) -> Millis:
        """Then."""
        return Millis(SystemClock().now() - self._behind)


def parked(home: Path, *, ask: bool, expire: int | None = None, days: int = 0) -> TeamId:
    """A team that stands still since some days: with a question, or done."""

    async def made() -> TeamId:
        kit = Capabilities([burning(ask=ask)], approvals_expire=expire)
        runtime = Runtime(await SqliteLog.open(home), capability_factories={"burning": lambda _: kit}, clock=Past(days))
        try:
            team = await runtime.create(
                "burning", [(ANN, AgentSpec(name="ann", tools=("burn",)))], capabilities_name="burning"
            )
            await runtime.start(team)
            await runtime.ask(team, AddTask(name="t", intention="t", manager=ANN, group=(ANN,), driver="manager"))
            work = Work(type="tool", executor="burn", instruction_content={})
            await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
            async with asyncio.timeout(20):
                await runtime.wait(team, T1)
            return team
        finally:
            await runtime.close()

    return asyncio.run(made())


def listed(greenroom: Type) -> Sequence[dict[str, object]]:
    """The questions as a program reads them."""
    return cast("list[dict[str, object]]", greenroom("approvals", "list", "--output-format", "json").json["approvals"])


def test_a_team_in_which_nothing_waits_is_not_read(
    home: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        parked(home, ask=False)
    asking = parked(home, ask=True)
    read: list[TeamId] = []
    state = Runtime.state

    async def counted(self: Runtime, team: TeamId) -> TeamState:
        read.append(team)
        return await state(self, team)

    monkeypatch.setattr(Runtime, "state", counted)
    assert [one["team"] for one in listed(greenroom)] == [asking]
    assert read == [asking]


def test_when_a_question_expires_is_said(home: Path, greenroom: Type) -> None:
    parked(home, ask=True, expire=60 * HOUR)
    (one,) = listed(greenroom)
    assert cast("int", one["expires_at"]) - cast("int", one["asked_at"]) == 60 * HOUR
    assert "expires in 2 d" in greenroom("approvals", "list").out


def test_a_question_that_has_expired_takes_no_answer(home: Path, greenroom: Type) -> None:
    team = parked(home, ask=True, expire=DAY, days=2)
    ended = greenroom("answer", team, "yes")
    assert ended.code == 2
    assert "The question has expired: no one answered within 1 day." in ended.err


def test_what_has_expired_is_denied_when_the_team_goes_on(home: Path) -> None:
    team = parked(home, ask=True, expire=DAY, days=2)

    async def goes_on() -> Step:
        runtime = await Runtime.open(
            home,
            capability_factories={"burning": lambda _: Capabilities([burning(ask=True)])},
        )
        try:
            host = await runtime.start(team)
            assert not host.state.approvals, "whoever looks then finds it denied, and goes on"
            (step,) = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
            return step
        finally:
            await runtime.close()

    step = asyncio.run(goes_on())
    assert (step.state, step.result) == ("failed", None)
    assert step.error.startswith("Denied: no one answered within 1 day.")
