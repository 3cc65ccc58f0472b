"""A team comes into being at once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.app.lookup import resolve_id
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError, StoreFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.log import StoredEvent
from greenroom.core.rules.intents import AddTask, Intent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.sync import replay

ANN, LEAD = AgentId("ann"), AgentId("lead")
TEAM = [(LEAD, AgentSpec(name="lead", manager=True)), (ANN, AgentSpec(name="ann"))]


@pytest.mark.parametrize(
    "bad",
    [
        lambda runtime: runtime.create("x", [*TEAM, TEAM[0]]),
        lambda runtime: runtime.create("x", [(AgentId(""), AgentSpec(name=""))]),
        lambda runtime: runtime.create("x", [(cast("AgentId", 7), AgentSpec(name="seven"))]),
        lambda runtime: runtime.create(
            "x", TEAM, first_intents=[AddTask(name="t", intention="t", manager=AgentId("no"))]
        ),
        lambda runtime: runtime.create("x", TEAM, first_intents=[cast("Intent", "junk")]),
    ],
    ids=["twice the same agent", "no name", "a number", "no such manager", "no intent"],
)
async def test_a_team_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path, bad: Callable[[Runtime], Any]) -> None:
    runtime = await Runtime.open(tmp_path)
    with pytest.raises(RefusedError):
        await bad(runtime)
    assert await runtime.log.streams() == []
    await runtime.close()


async def test_a_fork_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = await Runtime.open(tmp_path)
    team = await runtime.create("x", TEAM)

    def unreadable(_: StoredEvent) -> None:
        raise StoreFault("it cannot be read")

    monkeypatch.setattr(replay, "decode_event", unreadable)
    with pytest.raises(StoreFault):
        await runtime.fork(team)
    assert [info.stream for info in await runtime.log.streams()] == [team]
    await runtime.close()


async def test_what_a_crash_kept_from_being_made_is_no_team(tmp_path: Path) -> None:
    runtime = await Runtime.open(tmp_path)
    team = await runtime.create("x", TEAM)
    await runtime.log.create("half", 1)
    assert (await resolve_id(runtime, "last")).team == team
    with pytest.raises(RefusedError, match="There is no team 'half'"):
        await resolve_id(runtime, "half")
    await runtime.close()


async def test_an_event_that_cannot_be_read_is_told_with_its_team(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = await Runtime.open(tmp_path)
    team = TeamId(await runtime.create("x", TEAM))

    def unreadable(stored: StoredEvent) -> None:
        raise StoreFault(f"Event {stored.version} cannot be read")

    monkeypatch.setattr(replay, "decode_event", unreadable)
    with pytest.raises(StoreFault, match=f"Team {team!r}: Event 1 cannot be read"):
        await runtime.state(team, at=1)
    await runtime.close()


@pytest.mark.parametrize("at", [-1, 0, 10**9])
async def test_a_world_that_never_was_is_refused(tmp_path: Path, at: int) -> None:
    runtime = await Runtime.open(tmp_path)
    team = await runtime.create("x", TEAM)
    for ask in (runtime.state, runtime.fork):
        with pytest.raises(RefusedError, match=f"has versions 1 to 3, not {at}"):
            await ask(team, at)
    assert len((await runtime.state(team, 3)).agents) == 2
    await runtime.close()
