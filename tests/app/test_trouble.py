"""What tools, models and unlucky moments do to a running house: each costs its own step, never the team."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.actors import pool as crew
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TaskId, task_budget
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.decide import RULES
from greenroom.core.rules.intents import AddTask, CancelTask, PauseTask, QueueSteps, ResumeTask, StartStage
from greenroom.core.state.step import Effect, Step, StepTerms, Work
from greenroom.core.state.task import TaskStarted
from greenroom.testing.harness import LEAD, harness
from tests.app.team import FakeTool, Held, call, finishes, says, spec, stage

T1 = TaskId("t1")


def odd(does: Callable[[], Outcome], terms: Callable[[], StepTerms] = lambda: StepTerms(effect="pure")) -> FakeTool:
    """Return a tool that does what the test says."""
    return FakeTool("odd", lambda _: does(), lambda _: terms())


def no_terms() -> StepTerms:
    """Terms that cannot be said."""
    raise ZeroDivisionError("no terms")


def raising() -> Outcome:
    """An effect that breaks."""
    raise ZeroDivisionError("no result")


def cancelled() -> Outcome:
    """An effect that cancels itself."""
    raise asyncio.CancelledError


def deep(levels: int) -> dict[str, object]:
    """A dictionary in a dictionary in a dictionary …"""
    made: dict[str, object] = {}
    for _ in range(levels):
        made = {"in": made}
    return made


def leaving() -> Outcome:
    """An effect that wants to end everything."""
    raise SystemExit(7)


ODDITIES = {
    "an object that is no JSON": (odd(lambda: Outcome(result={"x": object()})), "cannot be kept"),
    "half a character": (odd(lambda: Outcome(result={"x": "\ud800"})), "cannot be kept"),
    "a blob that nobody has": (odd(lambda: Outcome(blobs=("0" * 64,))), "blob"),
    "terms that raise": (odd(Outcome, no_terms), "no terms"),
    "an effect that raises": (odd(raising), "no result"),
    "no outcome at all": (odd(lambda: cast("Outcome", "done")), "not an Outcome"),
    "a state that nobody knows": (odd(lambda: Outcome(state=cast("Any", "zzz"))), "'zzz'"),
    "an error that is no text": (
        odd(lambda: Outcome(state="failed", error=cast("str", 5))),
        "an error that is not text",
    ),
    "origins that are no labels": (odd(lambda: Outcome(origins=cast("Any", (5,)))), "not a tuple of labels"),
    "intents that are none": (odd(lambda: Outcome(intents=cast("Any", None))), "not a tuple"),
    "an intent that is none": (odd(lambda: Outcome(intents=cast("Any", ("x",)))), "cannot be kept"),
    "terms that are none": (odd(Outcome, lambda: cast("StepTerms", None)), "not a StepTerms"),
    "an effect class that nobody knows": (odd(Outcome, lambda: StepTerms(effect=cast("Effect", "bogus"))), "bogus"),
    "a cost below nothing": (odd(Outcome, lambda: StepTerms(effect="pure", needs=Amounts(tokens=-1))), "cost"),
    "a cost that is no whole number": (odd(lambda: Outcome(spent=Amounts(tokens=cast("int", 1.5)))), "Amounts.tokens"),
    "terms that are half a token": (
        odd(Outcome, lambda: StepTerms(effect="pure", needs=Amounts(tokens=cast("int", 1.5)))),
        "Terms.needs.tokens",
    ),
    "a question that is no text": (
        odd(Outcome, lambda: StepTerms(effect="pure", verdict="ask", question=cast("str", 5))),
        "Terms.question",
    ),
    "a result without a bottom": (odd(lambda: Outcome(result=deep(5_000))), "cannot be kept"),
    "a cancellation from inside": (odd(cancelled), "from inside"),
    "an exit of the whole program": (odd(leaving), "SystemExit"),
    "a folder that is not there": (odd(lambda: Outcome(result={"x": Path("/no/such").read_text()})), "No such file"),
}


@pytest.mark.parametrize("name", ODDITIES)
async def test_an_odd_tool_fails_its_step_and_the_team_goes_on(name: str) -> None:
    tool, error = ODDITIES[name]
    cues = [says("ann", 1, call("odd")), finishes("ann", 2)]
    async with harness([spec("ann", "odd")], cues, executors=[tool]) as house:
        found = await asyncio.wait_for(house.do(stage("ann")), 20)
        assert found.state == "finished"
        (step,) = [one for one in await house.read_archive("step") if isinstance(one, Step) and one.work.type == "tool"]
        assert step.state == "failed"
        assert error in step.error


class Tidy(Held):
    """A tool that takes its time to clean up when it is cancelled."""

    cleaned = False

    async def run(self, context: StepContext) -> Outcome:
        """Wait, and clean up."""
        try:
            return await super().run(context)
        finally:
            for _ in range(20):
                await asyncio.sleep(0.005)
            self.cleaned = True


async def test_nobody_earns_by_saying_that_a_step_cost_less_than_nothing() -> None:
    tool = odd(lambda: Outcome(spent=Amounts(tokens=-1_000)))
    cues = [says("ann", 1, call("odd")), finishes("ann", 2)]
    async with harness([spec("ann", "odd")], cues, executors=[tool]) as house:
        await house.do(stage("ann"))
        assert (await house.state()).budgets[TEAM_BUDGET].spent.tokens == 100


async def test_a_tool_that_does_not_let_itself_be_cancelled_does_not_keep_the_house_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crew, "CANCEL_TIMEOUT_S", 0.05)

    class Stubborn(Held):
        """Ends when the test says so, and not before."""

        async def run(self, _: StepContext) -> Outcome:
            """Go on and on."""
            self.begun.set()
            while not self.let_go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await self.let_go.wait()
            return Outcome()

    tool = Stubborn()
    async with harness([spec("ann", "held")], [says("ann", 1, call("held"))], executors=[tool]) as house:
        work = asyncio.create_task(house.do(stage("ann")))
        await asyncio.wait_for(tool.begun.wait(), 20)
        await asyncio.wait_for(house.runtime.stop(house.team), 20)
        work.cancel()
        left = [task for task in asyncio.all_tasks() if task.get_name() == "actor ann"]
        assert len(left) == 1, "it is left behind, and the next owner settles its step"
        assert (await house.state()).agents[AgentId("ann")].running == "ann#2"
        tool.let_go.set()
        await asyncio.wait_for(asyncio.wait(left), 20)


async def test_a_second_cancellation_does_not_cut_the_clean_up_of_the_first_one_short() -> None:
    tool = Tidy()
    async with harness([spec("ann", "held")], [says("ann", 1, call("held"))], executors=[tool]) as house:
        work = asyncio.create_task(house.do(stage("ann")))
        await tool.begun.wait()
        await house.runtime.ask(house.team, PauseTask(task_id=T1, now=True))
        await house.runtime.ask(house.team, CancelTask(task_id=T1))
        assert (await house.runtime.wait(house.team, T1)).state == "cancelled"
        assert tool.cleaned, "it is over only when it is dead"
        work.cancel()


async def test_a_pause_and_a_resume_in_one_commit_leave_nobody_asleep() -> None:
    async with harness([spec("ann")], [finishes("ann")]) as house:
        host = await house.runtime.start(house.team)
        task = AddTask(name="t", intention="t", manager=LEAD, stages=(stage("ann"),))
        await host.submit(task, PauseTask(task_id=T1), ResumeTask(task_id=T1), by="door")
        for _ in range(30):
            await host.submit(PauseTask(task_id=T1), ResumeTask(task_id=T1), by="door")
        found = await asyncio.wait_for(house.runtime.wait(house.team, T1), 20)
        assert found.state == "finished"


async def test_a_part_of_a_task_is_capped_and_cancelled_with_it() -> None:
    held = Held()
    part = AddTask(name="part", intention="p", manager=LEAD, stages=(stage("ann"),))
    manage = odd(lambda: Outcome(intents=(part,)))
    cues = [says("ann", 1, call("held"))]
    async with harness([spec("ann", "held")], cues, executors=[held, manage]) as house:
        await house.runtime.ask(house.team, AddTask(name="whole", intention="w", manager=LEAD, driver="manager"))
        work = Work(type="tool", executor="odd", instruction_content={})
        await house.runtime.ask(house.team, QueueSteps(agent_id=LEAD, works=(work,), task_id=T1))
        await asyncio.wait_for(held.begun.wait(), 20)
        state = await house.state()
        assert state.list_ancestors(TaskId("t2")) == (T1,)
        assert (
            state.budgets[task_budget(T1)].spent.tokens == state.budgets[task_budget(TaskId("t2"))].spent.tokens == 50
        )
        await house.runtime.ask(house.team, CancelTask(task_id=T1))
        assert (await asyncio.wait_for(house.runtime.wait(house.team, TaskId("t2")), 20)).state == "cancelled"
        assert held.dead.is_set()


async def test_a_fork_can_be_made_at_any_version_and_comes_to_an_end() -> None:
    cues = [
        says("ann", 1, call("send_message", receiver=["bob"], message="when?", waiting=True)),
        finishes("ann", 2),
        says("bob", None, text="now", answering=True),
        finishes("bob"),
    ]
    async with harness([spec("ann"), spec("bob")], cues) as house:
        await house.do(stage("ann", "bob"))
        head = (await house.runtime.log.head(house.team)).version
        told = [one async for one in house.runtime.events(house.team)]
        begun = next(one.version for one in told if isinstance(one.event, TaskStarted))
        for at in range(begun, head + 1):
            fork = await house.runtime.fork(house.team, at)
            await house.runtime.start(fork)
            found = await asyncio.wait_for(house.runtime.wait(fork, T1), 20)
            assert found.state == "finished", f"forked at version {at}"
            await house.runtime.stop(fork)


async def test_a_fork_keeps_its_blobs_when_the_old_team_is_forgotten() -> None:
    long = "word " * 20_000
    tool = odd(lambda: Outcome(result={"output": long}))
    cues = [says("ann", 1, call("odd")), finishes("ann", 2)]
    async with harness([spec("ann", "odd")], cues, executors=[tool]) as house:
        await house.do(stage("ann"))
        fork = await house.runtime.fork(house.team)
        steps = [one async for one in house.runtime.archive(fork, "step") if isinstance(one, Step) and one.blobs]
        await house.runtime.stop(house.team)
        await house.runtime.log.forget(house.team)
        await house.runtime.log.collect()
        assert long.encode() in await house.runtime.log.get_blob(steps[0].blobs[0])


async def test_a_move_of_the_schedule_that_breaks_holds_up_its_own_task_only(monkeypatch: pytest.MonkeyPatch) -> None:
    start = RULES[StartStage]

    def broken(draft: Any, intent: StartStage, by: str) -> Any:
        if intent.stage_id.startswith("t1."):
            raise ZeroDivisionError("ours")
        return start(draft, intent, by)

    monkeypatch.setitem(RULES, StartStage, broken)
    async with harness([spec("ann")], [finishes("ann")]) as house:
        tasks = [AddTask(name=name, intention="t", manager=LEAD, stages=(stage("ann"),)) for name in ("bad", "good")]
        await house.runtime.ask(house.team, *tasks)
        found = await asyncio.wait_for(house.runtime.wait(house.team, TaskId("t2")), 20)
        assert found.state == "finished"
        await house.runtime.ask(house.team, AddTask(name="late", intention="t", manager=LEAD, stages=(stage("ann"),)))
        found = await asyncio.wait_for(house.runtime.wait(house.team, TaskId("t3")), 20)
        assert found.state == "finished", "the schedule goes on"
        assert (await house.state()).tasks[T1].stages, "it did not start"
