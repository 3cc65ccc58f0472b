"""A step that has ended is found by its name, wherever in the team, and nothing is replayed for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from greenroom.abilities.tools.output.long import presented
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.toolset.by_hand import ended_step
from greenroom.core.base.ids import StepId
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.log import Store, StoredEvent
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World
from greenroom.core.sync import replay
from tests.abilities.tools.calling import caller

KEPT = ("step_id", "agent_id", "thread_id", "work", "state", "result", "blobs")


class Says:
    """A tool that says a long text."""

    type: StepType = "tool"
    name: str = "says"
    description: str = "Say."

    def terms(self, _: World, __: Step) -> Terms:
        """Nothing is changed."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Say it."""
        return Outcome(result=presented("x\n" * 20_000, bench.step.step_id))


class Looked:
    """How often a log was looked through, and whether it was read from its beginning."""

    def __init__(self, log: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searched = self.read = 0
        newest, read = log.newest, log.read

        async def counted(stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
            self.searched += 1
            return await newest(stream, type_, field, value)

        def reading(stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
            self.read += 1
            return read(stream, after, upto)

        monkeypatch.setattr(log, "newest", counted)
        monkeypatch.setattr(log, "read", reading)


@pytest.mark.parametrize("kind", ["memory", "disk"])
async def test_an_ended_step_is_found_as_it_was(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: Store = MemoryLog() if kind == "memory" else await SqliteLog.open(tmp_path)
    async with caller([Says()], log) as team:
        for _ in range(3):
            await team.call("says")
        every = await team.steps()
        looked = Looked(log, monkeypatch)
        for one in every:
            found = await ended_step(team.runtime, team.team, one.step_id)
            assert found is not None
            assert [getattr(found, name) for name in KEPT] == [getattr(one, name) for name in KEPT]
        assert (looked.searched, looked.read) == (3, 0)
        for odd in ("ann#4", "ann#0", "ann#", "bob#1", "", "x", "ann#1x", "ann#" + "9" * 5_000, "ann#\u0661", "ann#01"):
            assert await ended_step(team.runtime, team.team, StepId(odd)) is None, odd
        assert (looked.searched, looked.read) == (3, 0), "for a name that somebody made up nothing is looked at"
        assert await replay.ended_step(log, team.team, StepId("ann#4")) is None
