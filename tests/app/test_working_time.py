"""The end of working time on the running house: the clock is in the state, and the effect really ends."""

from __future__ import annotations

import asyncio

from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import TaskId, task_budget
from greenroom.core.rules.intents import AddTask, QueueSteps, ResumeTask, SetLimits
from greenroom.core.state.step import Step, Work
from greenroom.testing.harness import LEAD, harness
from tests.app.team import ANN, Held, says, spec

T1 = TaskId("t1")


async def test_an_effect_that_works_longer_than_it_may_is_ended_and_a_higher_limit_lets_the_agent_go_on() -> None:
    tool = Held()
    async with harness([spec("ann", "held")], [says("ann", None, text="read")], executors=[tool]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager", limits=Limits(millis=30))
        await house.runtime.ask(house.team, task)
        held = Work(type="tool", executor="held", instruction_content={})
        await house.runtime.ask(house.team, QueueSteps(agent_id=ANN, works=(held,), task_id=T1))
        await asyncio.wait_for(tool.dead.wait(), 10)
        found = await asyncio.wait_for(house.runtime.wait(house.team, T1), 10)
        assert (found.word, found.why) == ("limit", "limit: task:t1 millis")
        (step,) = [one for one in await house.archived("step") if isinstance(one, Step)]
        assert (step.state, step.spent.millis) == ("failed", 30)
        assert "the limit millis of 'task:t1'" in step.error
        world = await house.world()
        assert not world.timers
        assert world.budgets[task_budget(T1)].spent.millis == 30
        raised = SetLimits(budget_id=task_budget(T1), limits=Limits(millis=60_000))
        await house.runtime.ask(house.team, raised, ResumeTask(task_id=T1))
        assert (await asyncio.wait_for(house.runtime.wait(house.team, T1), 10)).word == "idle"
        assert not (await house.world()).timers
