"""Steps that begin in the commit that made them possible: run once, whoever comes between, and let go at a close."""

import asyncio
from collections.abc import Sequence

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Outcome, StepContext
from greenroom.core.ports.log import EventBatch
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Effect, Step, StepEnded, StepInterrupted, StepStarted, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState

ANN, BOB, T1 = AgentId("ann"), AgentId("bob"), TaskId("t1")
WORK = Work(type="skill", executor="converse")


class Does:
    """A skill that does nothing, and knows how often."""

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Nothing."

    def __init__(self, effect: Effect = "model") -> None:
        self.runs: list[str] = []
        self._effect = effect

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Dear: two at once are over the limit."""
        return StepTerms(effect=self._effect, needs=Amounts(tokens=600))

    async def run(self, context: StepContext) -> Outcome:
        self.runs.append(context.step.step_id)
        await asyncio.sleep(0)
        return Outcome(result={"text": "done"})


class SlowLog(MemoryLog):
    """A log whose appends wait for the test, once it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = asyncio.Event()

    async def append(self, batch: EventBatch) -> int:
        """Append, when the test lets it."""
        if not self.gate.is_set():
            self.held.set()
            await self.gate.wait()
        return await super().append(batch)


async def team(runtime: Runtime, *agents: AgentId) -> TeamId:
    """A team with a task and little to spend."""
    task = AddTask(name="t", intention="t", manager=agents[0], group=agents, driver="manager")
    members = [(name, AgentSpec(name=name)) for name in agents]
    found = await runtime.create("x", members, capabilities_name="k", limits=Limits(tokens=1000), first_intents=(task,))
    await runtime.start(found)
    return found


async def rest(runtime: Runtime, name: TeamId) -> None:
    """Wait until no step is left."""
    async with asyncio.timeout(10):
        while True:
            if not (await runtime.state(name)).steps:
                return
            await asyncio.sleep(0)


async def events(runtime: Runtime, name: TeamId) -> Sequence[Event]:
    return [told.event async for told in runtime.events(name)]


async def test_a_step_that_begins_when_another_one_makes_room_is_run() -> None:
    does = Does()
    runtime = Runtime(MemoryLog(), capability_factories={"k": lambda _: Capabilities([does])})
    name = await team(runtime, ANN, BOB)
    await runtime.ask(name, *(QueueSteps(agent_id=agent, works=(WORK,), task_id=T1) for agent in (ANN, BOB)))
    await rest(runtime, name)
    assert sorted(does.runs) == ["ann#1", "bob#1"]
    await runtime.close()


async def test_a_queue_and_its_start_are_one_commit_and_one_run() -> None:
    does = Does()
    runtime = Runtime(MemoryLog(), capability_factories={"k": lambda _: Capabilities([does])})
    name = await team(runtime, ANN)
    await runtime.ask(name, QueueSteps(agent_id=ANN, works=(WORK, WORK, WORK), task_id=T1))
    await rest(runtime, name)
    assert does.runs == ["ann#1", "ann#2", "ann#3"]
    found = await events(runtime, name)
    assert sum(isinstance(event, StepStarted) for event in found) == 3
    await runtime.close()


async def test_what_began_while_everything_ends_is_let_go_and_in_no_doubt() -> None:
    does, log = Does("effectful"), SlowLog()
    runtime = Runtime(log, capability_factories={"k": lambda _: Capabilities([does])})
    name = await team(runtime, ANN)
    log.gate.clear()
    asking = asyncio.ensure_future(runtime.ask(name, QueueSteps(agent_id=ANN, works=(WORK,), task_id=T1)))
    await log.held.wait()
    stopping = asyncio.ensure_future(runtime.stop(name))
    for _ in range(20):
        await asyncio.sleep(0)
    log.gate.set()
    await asyncio.gather(asking, stopping)
    found = await events(runtime, name)
    assert does.runs == []
    assert any(isinstance(event, StepInterrupted) for event in found)
    assert not any(isinstance(event, StepEnded) for event in found), "it is not uncertain: it never ran"
    await runtime.start(name)
    await rest(runtime, name)
    assert does.runs == ["ann#1"]
    await runtime.close()
