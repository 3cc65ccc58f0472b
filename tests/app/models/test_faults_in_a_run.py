"""Every provider fault in the middle of a run: no step is lost, none is done twice, and a person hears one sentence."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.adapters.models.pricing import FREE_PRICE
from greenroom.adapters.models.retry import RateLimiter, RetryingModel, RetryPolicy
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.model import FAULT_ACTIONS, Model
from greenroom.core.rules.intents import AddTask, QueueSteps, ResumeTask
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepInterrupted, StepQueued, Work
from greenroom.core.state.task import Task
from tests.adapters.models.asked import Time
from tests.adapters.models.openai.test_faults import CASES, ENDLESS, KINDS
from tests.fake_openai import FAULTS, Answer, FakeOpenAI, Fault

ANN, T1 = AgentId("ann"), TaskId("t1")
GOOD = Answer(text="All is well.")
CALLS = frozenset(name for name, fault in FAULTS.items() if fault.usable and fault.answer.calls)


class One:
    """The only model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def get_model(self, _: str) -> Model:
        """That one."""
        return self._model


class Asked:
    """A team of one that is asked one question."""

    def __init__(self, runtime: Runtime, team: TeamId, server: FakeOpenAI) -> None:
        self.runtime, self.team, self.server = runtime, team, server

    async def steps(self) -> list[Step]:
        """All steps that ended."""
        return [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]


@asynccontextmanager
async def asked(script: list[Fault | Answer], *, streaming: bool, retries: int = 3) -> AsyncIterator[Asked]:
    """Ask, with a provider that does this. Pauses take no time; a provider that may yet go on gets all it needs."""
    idle, longest = (
        (0.25, 0.6) if any(one.name in ENDLESS for one in script if isinstance(one, Fault)) else (30.0, 60.0)
    )
    time = Time()
    async with FakeOpenAI(script) as server:
        endpoint = Endpoint("fake", server.base_url, idle=idle)
        plain = OpenAICompatible(
            endpoint, "m", price=FREE_PRICE.compute_max_cost, cost=FREE_PRICE.compute_cost, max_seconds=longest
        )
        gate = RateLimiter(clock=time, sleep=time.sleep)
        model = RetryingModel(plain, gate, RetryPolicy(retries=retries), clock=time, sleep=time.sleep)
        kit = Capabilities([Converse(One(model), solo=True)])
        runtime = Runtime(MemoryLog(), capability_factories={"ask": lambda _: kit})
        spec = AgentSpec(name="Ann", llm_config={"streaming": streaming})
        try:
            team = await runtime.create("ask", [(ANN, spec)], capabilities_name="ask")
            await runtime.start(team)
            work = Work(type="skill", executor="converse", text_content="Is all well?")
            task = AddTask(name="ask", intention="Is all well?", manager=ANN, group=(ANN,), driver="manager")
            await runtime.ask(team, task, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
            yield Asked(runtime, team, server)
        finally:
            await runtime.close()
            await endpoint.close()


async def finished(here: Asked) -> Task:
    """The task, which must have ended well."""
    assert (await here.runtime.wait(here.team, T1)).state == "finished"
    (task,) = await here.runtime.ended_tasks(here.team)
    return task


@pytest.mark.parametrize(("fault", "streaming"), CASES)
async def test_a_fault_costs_no_step_and_doubles_none(fault: Fault, streaming: bool) -> None:
    verdict = {str(kind): str(word) for kind, word in FAULT_ACTIONS.items()}.get(KINDS.get(fault.name, ""), "answer")
    async with asked([fault, GOOD], streaming=streaming) as here:
        standing = await here.runtime.wait(here.team, T1)
        if verdict == "ask":
            assert standing.state == "provider"
            assert "fake:m" in standing.reason
            assert "\n" not in standing.reason
            assert await here.steps() == [], "the question still stands"
            await here.runtime.ask(here.team, ResumeTask(task_id=T1))
        if verdict == "stop":
            (step,) = await here.steps()
            assert (step.state, "fake:m" in step.error) == ("failed", True)
            return
        task = await finished(here)
        calls = fault.name in CALLS
        assert task.summary == ("Hello from the fake server." if verdict == "answer" and not calls else "All is well.")
        steps = await here.steps()
        turns = [step for step in steps if step.work.type == "skill"]
        assert [step.state for step in turns] == ["finished"] * (2 if calls else 1)
        assert all(step.state == "failed" for step in steps if step.work.type == "tool"), "tools it does not have"
        events = [told.event async for told in here.runtime.events(here.team)]
        assert sum(isinstance(event, StepQueued) for event in events) == len(steps)
        assert here.server.asked == (1 if verdict == "answer" and not calls else 2)
        assert sum(isinstance(event, StepInterrupted) for event in events) == sum(one.attempt - 1 for one in turns)


async def test_a_provider_that_never_recovers_pauses_the_task_and_says_why() -> None:
    script: list[Fault | Answer] = [FAULTS["overloaded"]] * 4 + [FAULTS["reset_in_text"]] * 4 + [GOOD]
    async with asked(script, streaming=True) as here:
        for words in ("is overloaded (HTTP 529): Overloaded.", "The connection to "):
            standing = await here.runtime.wait(here.team, T1)
            assert standing.state == "provider"
            assert words in standing.reason
            await here.runtime.ask(here.team, ResumeTask(task_id=T1))
        assert (await finished(here)).summary == "All is well."
