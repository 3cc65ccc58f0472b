"""The running house, through its facade: work, talk, pause, cancel, fork, crash, two processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import greenroom
from greenroom.adapters.storage.memory import MemoryLog, MemoryStore
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.base.ids import AgentId, TaskId, TeamId, task_budget
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.rules.intents import (
    AddTask,
    AnswerApproval,
    CancelTask,
    PauseTask,
    PauseTeam,
    ResumeTask,
    ResumeTeam,
    SetLimits,
    SetTimer,
)
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.testing.harness import LEAD, Harness, harness
from greenroom.testing.scripted import Cue
from greenroom.testing.tools import CountWords, LedgerTool
from tests.app.team import Held, call, finishes, says, spec, stage
from tests.speed import is_soon

T1 = TaskId("t1")


@asynccontextmanager
async def working(tool: Held) -> AsyncIterator[Harness]:
    """Start a task in which Ann calls this tool, wait until the tool runs, and end the task at the end of the block."""
    cues = [says("ann", 1, call("held")), finishes("ann", 2)]
    async with harness([spec("ann", "held")], cues, executors=[tool]) as house:
        work = asyncio.create_task(house.do(stage("ann")))
        await tool.begun.wait()
        yield house
        work.cancel()


async def test_agents_do_their_parts_and_the_task_says_so() -> None:
    cues = [says("ann", 1, call("count_words", text="a b c")), finishes("ann", 2), finishes("bob")]
    async with harness([spec("ann", "count_words"), spec("bob")], cues, executors=[CountWords()]) as house:
        found = await house.do(stage("ann", "bob"))
        assert found.state == "finished"
        tools = [
            step for step in await house.read_archive("step") if isinstance(step, Step) and step.work.type == "tool"
        ]
        assert [step.result for step in tools] == [{"output": 3}]
        (task,) = await house.read_archive("task")
        assert isinstance(task, Task)
        assert task.evidence == ("seen", "seen")


@pytest.mark.req("MAS-78", "MAS-231")
async def test_a_program_adds_a_stage_to_the_working_memory_of_an_agent() -> None:
    bob = AgentId("bob")
    async with harness([spec("ann"), spec("bob")], []) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(bob,), driver="manager", stages=(stage("ann"),))
        await house.runtime.ask(house.team, task)
        assert collect_working_memory(await house.state(), bob) == {T1: {}}
        (name,) = (await house.state()).stages
        await house.runtime.ask(house.team, greenroom.UpdateWorkingMemory(agent_id=bob, task_id=T1, stage_id=name))
        assert collect_working_memory(await house.state(), bob) == {T1: {name: []}}


async def test_an_uncovered_turn_fails_its_subtask_and_says_which() -> None:
    async with harness([spec("ann")], []) as house:
        found = await house.do(stage("ann"))
        assert found.state == "failed"
        (step,) = await house.read_archive("step")
        assert isinstance(step, Step)
        assert "no reply for 'ann'" in step.error


async def test_a_refused_message_costs_neither_the_reply_nor_the_run() -> None:
    cues = [
        says("ann", 1, call("send_message", receiver=["nobody"], message="hello"), call("post_note", content="kept")),
        finishes("ann", 2),
    ]
    async with harness([spec("ann")], cues) as house:
        found = await house.do(stage("ann"))
        assert found.state == "finished"
        assert len(await house.read_archive("note")) == 1


async def test_pause_starts_nothing_new_and_resume_goes_on() -> None:
    tool = Held()
    async with working(tool) as house:
        await house.runtime.ask(house.team, PauseTask(task_id=T1))
        tool.let_go.set()
        assert (await house.runtime.wait(house.team, T1)).state == "paused"
        assert len(house.model.purposes) == 1, "the running step ended, and no other began"
        await house.runtime.ask(house.team, ResumeTask(task_id=T1))
        assert (await house.runtime.wait(house.team, T1)).state == "finished"


async def test_pause_now_ends_the_effect_and_resume_runs_a_pure_step_again() -> None:
    tool = Held()
    async with working(tool) as house:
        begin_at = time.monotonic()
        await house.runtime.ask(house.team, PauseTeam(now=True))
        assert (await house.runtime.wait(house.team, T1)).state == "paused"
        assert tool.dead.is_set()
        assert is_soon(time.monotonic() - begin_at, 1)
        tool.let_go.set()
        await house.runtime.ask(house.team, ResumeTeam())
        assert (await house.runtime.wait(house.team, T1)).state == "finished"
        assert tool.runs == 2


async def test_an_effectful_step_that_is_cut_off_is_uncertain_and_never_run_again() -> None:
    tool = Held(effect="effectful")
    async with working(tool) as house:
        await house.runtime.ask(house.team, PauseTask(task_id=T1, now=True))
        await house.runtime.wait(house.team, T1)
        await house.runtime.ask(house.team, ResumeTask(task_id=T1))
        assert (await house.runtime.wait(house.team, T1)).state == "finished"
        assert tool.runs == 1
        (task,) = await house.read_archive("task")
        assert isinstance(task, Task)
        assert len(task.uncertain) == 1


async def test_cancel_sees_running_effects_dead_and_ends_the_task() -> None:
    tool = Held()
    async with working(tool) as house:
        begin_at = time.monotonic()
        await house.runtime.ask(house.team, CancelTask(task_id=T1))
        assert (await house.runtime.wait(house.team, T1)).state == "cancelled"
        assert tool.dead.is_set()
        assert is_soon(time.monotonic() - begin_at, 1)
        state = await house.state()
        assert not state.steps
        assert not state.threads


async def test_a_limit_pauses_the_task_and_a_higher_one_lets_it_go_on() -> None:
    cues = [says("ann", turn, call("count_words", text="a")) for turn in (1, 2)] + [finishes("ann", 3)]
    async with harness([spec("ann", "count_words")], cues, executors=[CountWords()]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, stages=(stage("ann"),), limits=Limits(steps=3))
        await house.runtime.ask(house.team, task)
        found = await house.runtime.wait(house.team, T1)
        assert (found.state, found.reason) == ("limit", "limit: task:t1 steps")
        await house.runtime.ask(house.team, SetLimits(budget_id=task_budget(T1), limits=Limits(steps=30)))
        await house.runtime.ask(house.team, ResumeTask(task_id=T1))
        assert (await house.runtime.wait(house.team, T1)).state == "finished"


async def test_a_step_waits_for_a_person_and_runs_when_they_agree(tmp_path: Path) -> None:
    cues = [says("ann", 1, call("ledger", line="x")), finishes("ann", 2)]
    tool = LedgerTool(tmp_path / "ledger", ask=True)
    people = [spec("ann", "ledger"), AgentSpec(name="pat", kind="human")]
    async with harness(people, cues, executors=[tool]) as house:
        found = await house.do(stage("ann"))
        assert found.state == "waiting"
        assert not (tmp_path / "ledger").exists()
        (approval,) = (await house.state()).approvals.values()
        assert approval.asked_of == "pat"
        await house.runtime.ask(house.team, AnswerApproval(approval_id=approval.approval_id, answer="approved"))
        assert (await house.runtime.wait(house.team, T1)).state == "finished"
        assert (tmp_path / "ledger").read_text().count("\n") == 1


async def test_a_timer_wakes_an_agent() -> None:
    async with harness([spec("ann")], [Cue(agent="lead", reply=says("lead", 1, text="up").reply)]) as house:
        plan = AddTask(name="t", intention="t", manager=LEAD, driver="manager")
        nap = SetTimer(agent_id=LEAD, task_id=T1, name="nap", due=1, text="wake up")
        await house.runtime.ask(house.team, plan, nap)
        assert (await house.runtime.wait(house.team, T1)).state == "idle"
        assert [purpose.agent for purpose in house.model.purposes] == ["lead"]


async def test_a_fork_goes_its_own_way_and_leaves_the_old_team_alone() -> None:
    tool = Held()
    async with working(tool) as house:
        before = (await house.runtime.log.head(house.team)).version
        new = await house.runtime.fork(house.team)
        assert (await house.runtime.log.head(house.team)).version == before
        tool.let_go.set()
        await house.runtime.start(new)
        assert (await house.runtime.wait(new, T1)).state == "finished"
        assert tool.runs == 2, "the fork runs the interrupted step itself"
        state = await house.runtime.state(new)
        assert state.team.origin is not None
        assert state.team.origin.team_id == house.team
        await house.runtime.wait(house.team, T1)


async def test_the_world_of_the_past_can_be_seen() -> None:
    async with harness([spec("ann")], [finishes("ann")]) as house:
        await house.do(stage("ann"))
        assert T1 not in (await house.state()).tasks
        head = (await house.runtime.log.head(house.team)).version
        tasks = [set((await house.runtime.state(house.team, at)).tasks) for at in range(1, head + 1)]
        assert {T1} in tasks


def reopened(memory: MemoryStore, *executors: Executor) -> Runtime:
    """Another process, as far as the log can tell."""
    kit = Capabilities(executors)
    return Runtime(MemoryLog(memory), capability_factories={"harness": lambda _: kit})


@pytest.mark.req("MAS-31")
async def test_another_process_asks_through_the_inbox_and_hears_a_refusal(tmp_path: Path) -> None:
    first = Runtime(
        await SqliteLog.open(tmp_path),
        capability_factories={"": lambda _: Capabilities([])},
    )
    second = Runtime(await SqliteLog.open(tmp_path))
    try:
        team = await first.create("two", [(LEAD, AgentSpec(name="lead", manager=True))])
        await first.start(team)
        await second.ask(team, AddTask(name="t", intention="t", manager=LEAD, driver="manager"))
        assert T1 in (await first.state(team)).tasks
        with pytest.raises(RefusedError, match="There is no open task 't9'"):
            await second.ask(team, CancelTask(task_id=TaskId("t9")))
        with pytest.raises(WorldFault, match="already runs"):
            await second.start(team)
    finally:
        await second.close()
        await first.close()


async def test_a_team_that_nobody_runs_can_be_changed_in_passing(tmp_path: Path) -> None:
    first = Runtime(await SqliteLog.open(tmp_path))
    team = await first.create("idle", [(LEAD, AgentSpec(name="lead", manager=True))])
    await first.close()
    second = Runtime(await SqliteLog.open(tmp_path))
    await second.ask(team, AddTask(name="t", intention="t", manager=LEAD, driver="manager"))
    assert T1 in (await second.state(team)).tasks
    assert await second.log.holder(team) is None
    await second.close()


async def test_a_team_whose_kit_is_not_installed_can_be_seen_but_not_run() -> None:
    memory = MemoryStore()
    runtime = reopened(memory)
    team = await runtime.create("strange", [], capabilities_name="elsewhere")
    with pytest.raises(WorldFault, match="which is not installed here"):
        await runtime.start(team)
    await runtime.close()


async def test_what_never_was_a_team_cannot_be_forked() -> None:
    runtime = Runtime(MemoryLog())
    await runtime.log.create("empty", 0)
    with pytest.raises(RefusedError, match="holds no team yet"):
        await runtime.fork(TeamId("empty"))
    await runtime.close()


async def test_waiting_for_a_team_that_does_not_run_here_is_refused() -> None:
    async with harness([], []) as house:
        with pytest.raises(RefusedError, match="does not run here"):
            await house.runtime.wait(TeamId("nope"), T1)
