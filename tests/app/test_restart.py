"""A restart: timers are right, windows are read again, what is paused stays paused, snapshots are rebuilt."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.app.store_check import find_damage, find_damaged_snapshots
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.log import StateSnapshot
from greenroom.core.rules.intents import AddTask, CancelTask, PauseTask, QueueSteps, ResumeTask, SetTimer
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from greenroom.core.sync.replay import make_snapshot, rebuild_archive, replay
from greenroom.testing.harness import LEAD
from greenroom.testing.scripted import Cue, ScriptedModel, ScriptedReply
from greenroom.testing.tools import CountWords
from tests.app.team import ANN, call, finishes, says, spec, stage

T1 = TaskId("t1")
READS = Cue(agent="lead", reply=ScriptedReply(text="read"))
WORK = AddTask(name="t", intention="t", manager=LEAD, stages=(stage("ann"),))
LED = AddTask(name="t", intention="t", manager=LEAD, driver="manager")


async def create(runtime: Runtime, *tools: str) -> TeamId:
    """Create a team of a lead and Ann, who has these tools."""
    members = [(LEAD, AgentSpec(name="lead", manager=True)), (ANN, spec("ann", *tools))]
    return await runtime.create("t", members, capabilities_name="k")


async def create_and_work(runtime: Runtime) -> TeamId:
    """Create the team and let it do its task."""
    team = await create(runtime)
    await runtime.start(team)
    await runtime.ask(team, WORK)
    await runtime.wait(team, T1)
    return team


@asynccontextmanager
async def life(home: Path, *cues: Cue) -> AsyncIterator[tuple[Runtime, ScriptedModel]]:
    """One process on this home."""
    model = ScriptedModel(cues)
    kit = Capabilities([Converse(model), CountWords()])
    runtime = Runtime(await SqliteLog.open(home), capability_factories={"k": lambda _: kit})
    try:
        yield runtime, model
    finally:
        await runtime.close()


async def test_a_timer_that_came_due_while_nobody_ran_fires_at_once(tmp_path: Path) -> None:
    async with life(tmp_path) as (runtime, _):
        team = await create(runtime)
        await runtime.ask(team, LED, SetTimer(agent_id=LEAD, task_id=T1, name="nap", due=1, text="wake up"))
    async with life(tmp_path, READS) as (runtime, model):
        await runtime.start(team)
        assert (await runtime.wait(team, T1)).state == "idle"
        assert [purpose.agent for purpose in model.purposes] == ["lead"]


async def test_a_thread_remembers_what_it_did_in_an_earlier_life(tmp_path: Path) -> None:
    cues = [says("ann", turn, call("count_words", text="a " * turn)) for turn in (1, 2, 3)]
    async with life(tmp_path, *cues) as (runtime, _):
        team = await create(runtime, "count_words")
        await runtime.start(team)
        await runtime.ask(team, WORK)
        assert (await runtime.wait(team, T1)).state == "failed", "turn 4 is not in this script"
        failed = (await runtime.log.head(team)).version
        (at,) = [told.version async for told in runtime.events(team) if _is_third_answer(told.event)]
        assert at < failed
        fork = await runtime.fork(team, at)
    async with life(tmp_path, finishes("ann", 4)) as (runtime, model):
        await runtime.start(fork)
        assert (await runtime.wait(fork, T1)).state == "finished"
        assert [purpose.turn for purpose in model.purposes] == [4], "three turns were read back from the log"


def _is_third_answer(event: object) -> bool:
    return getattr(event, "result", None) == {"output": 3}


async def test_a_paused_task_stays_paused(tmp_path: Path) -> None:
    async with life(tmp_path) as (runtime, _):
        team = await create(runtime)
        await runtime.ask(team, WORK)
        await runtime.ask(team, PauseTask(task_id=T1, why="tea"))
    async with life(tmp_path, finishes("ann")) as (runtime, model):
        await runtime.start(team)
        found = await runtime.wait(team, T1)
        assert (found.state, found.reason, model.purposes) == ("paused", "tea", [])
        await runtime.ask(team, ResumeTask(task_id=T1))
        assert (await runtime.wait(team, T1)).state == "finished"


async def test_a_snapshot_and_the_events_after_it_are_the_whole_log(tmp_path: Path) -> None:
    async with life(tmp_path, finishes("ann")) as (runtime, _):
        team = await create_and_work(runtime)
        whole = await replay(runtime.log, team, snapshots=False)
        middle = await replay(runtime.log, team, whole.version // 2, snapshots=False)
        await runtime.log.save_snapshot(team, make_snapshot(middle.state, middle.version))
        short = await replay(runtime.log, team)
        assert short.tail == whole.version - middle.version
        assert short.state == whole.state


async def test_the_archive_can_be_made_anew_from_the_log(tmp_path: Path) -> None:
    async with life(tmp_path, finishes("ann")) as (runtime, _):
        team = await create_and_work(runtime)
        kinds = ("task", "stage", "message", "note")
        before = [list(await runtime.log.read_archive(team, kind)) for kind in kinds]
        assert await rebuild_archive(runtime.log, team) == sum(len(rows) for rows in before)
        assert [list(await runtime.log.read_archive(team, kind)) for kind in kinds] == before


async def test_a_large_result_goes_to_the_blobs_and_comes_back_whole(tmp_path: Path) -> None:
    long = "word " * 20_000
    cue = Cue(agent="ann", reply=ScriptedReply(text=long))
    async with life(tmp_path, cue) as (runtime, _):
        team = await create(runtime)
        await runtime.start(team)
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager")
        await runtime.ask(team, task)
        work = Work(type="skill", executor="converse", text_content="talk")
        await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
        await runtime.wait(team, T1)
        (step,) = [one async for one in runtime.archive(team, "step")]
        result = getattr(step, "result", None) or {}
        assert len(str(result["text"])) < 3_000
        assert long.strip().encode() in await runtime.log.get_blob(str(result["blob"]))
        (info,) = await runtime.log.streams()
        assert info.event_bytes < 20_000 < info.blob_bytes


@pytest.mark.parametrize("cut", [-10, 0, 40])
async def test_a_snapshot_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, cut: int) -> None:
    async with life(tmp_path) as (runtime, _):
        team = await create(runtime)
        await runtime.stop(team)
        whole = await replay(runtime.log, team)
        good = make_snapshot(whole.state, whole.version)
        await runtime.log.save_snapshot(team, good)
        assert (await find_damaged_snapshots(runtime.log), (await replay(runtime.log, team)).tail) == ([], 0)
        spoilt = StateSnapshot(version=good.version, fingerprint=good.fingerprint, data=good.data[:cut])
        await runtime.log.save_snapshot(team, spoilt)
        found = await replay(runtime.log, team)
        assert (found.state, found.tail) == (whole.state, whole.version)
        assert [
            one.startswith(f"Team {team!r}: The snapshot") for one in await find_damaged_snapshots(runtime.log)
        ] == [True]
        assert await find_damage(runtime.log) == []
        await runtime.ask(team, LED)
        assert T1 in (await runtime.state(team)).tasks


@pytest.mark.parametrize(("table", "says"), [("events", "Event 1 "), ("archive", "The task 't1' in the archive")])
async def test_what_cannot_be_read_any_more_is_found_and_said(tmp_path: Path, table: str, says: str) -> None:
    async with life(tmp_path) as (runtime, _):
        team = await create(runtime)
        await runtime.ask(team, LED, CancelTask(task_id=T1))
        assert await find_damage(runtime.log) == []
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db:
        db.execute(f"UPDATE {table} SET data = substr(data, 1, length(data) - 3)")
        db.commit()
    async with life(tmp_path) as (runtime, _):
        (sentence,) = await find_damage(runtime.log)
        assert sentence.startswith(f"Team {team!r}: {says}")
        with pytest.raises(StoreFault, match=says):
            assert [await runtime.ended_tasks(team), await runtime.state(team)] == []
