"""Models for an invocation, trying one, and the first request of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.agents.specs import parse_spec
from greenroom.app.first_request import RequestContext, build_first_request
from greenroom.app.model_catalog import TRIAL_MODES, estimate_max_cost, run_trials
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, task_id
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.model import (
    Failed,
    FaultKind,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    Purpose,
    ToolCall,
    ToolSpec,
    Usage,
)
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from greenroom.core.state.step import Work
from tests.abilities.skills.talks import Played, in_order, says


class Obedient:
    """Answers, and calls the tool that it is told of."""

    name = "fake:model"
    card = ModelCard(effort=True)

    def __init__(self, fault: FaultKind | None = None, *, calls: bool = True, ends: bool = True) -> None:
        self.asked: list[ModelRequest] = []
        self._fault: FaultKind | None = fault
        self._calls = calls
        self._ends = ends

    def price(self, read: int, written: int) -> int | None:
        """One for each token."""
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """As it was told."""
        self.asked.append(request)
        if self._fault is not None:
            yield Failed(kind=self._fault, why="No.")
            return
        if request.tools and self._calls:
            yield ToolCall(call_id="1", name="add", arguments={"a": 2, "b": 3})
        else:
            yield ModelTextDelta(text="Green.")
        yield Usage(input=9, output=1)
        if self._ends:
            yield Finished()


async def test_a_good_model_works_in_three_ways() -> None:
    model = Obedient()
    found = [one async for one in run_trials(model)]
    assert [(one.way, one.fault) for one in found] == [(way, "") for way in TRIAL_MODES]
    assert [request.streaming for request in model.asked] == [True, False, True]
    assert all(request.effort == "low" for request in model.asked)
    assert estimate_max_cost(model) == 3 * (600 + 256)


async def test_after_a_fault_that_only_a_person_mends_nothing_more_is_sent() -> None:
    model = Obedient("auth")
    found = [one async for one in run_trials(model)]
    assert [(one.fault, one.hopeless) for one in found] == [("No.", True)]


async def test_a_passing_fault_does_not_end_the_trial() -> None:
    assert len([one async for one in run_trials(Obedient("server"))]) == 3


async def test_a_model_that_answers_instead_of_calling_is_found_out() -> None:
    found = [one async for one in run_trials(Obedient(calls=False))]
    assert [bool(one.fault) for one in found] == [False, False, True]


async def test_a_stream_without_an_end_does_not_work() -> None:
    found = [one async for one in run_trials(Obedient(ends=False))]
    assert "ended its stream too early" in found[0].fault


LOOK = ToolSpec(name="look", description="Looks.")
ANN = AgentSpec(
    name="ann",
    prompt="You review.",
    tools=("look", "fly"),
    calls=("bob", "eve"),
    llm_config={"temperature": 0.2, "effort": "high", "streaming": False, "max_output": 500},
)
BOB = AgentSpec(name="bob", description="Searches.")
AROUND = RequestContext(tools=(LOOK,), callable_agents={"ann": ANN, "bob": BOB}, project_notes="Use tabs.")


def bare(request: ModelRequest) -> ModelRequest:
    """Without what differs from team to team."""
    nobody = Purpose(agent=AgentId(""), skill="", step=request.purpose.step, thread=request.purpose.thread, turn=1)
    return evolve(request, purpose=nobody)


async def sent(spec: AgentSpec, message: str) -> ModelRequest:
    """What a model gets of a team that really runs."""
    model, name = Played(in_order(says("Done."))), AgentId(spec.name)
    kit = Capabilities([Converse(model, [LOOK], solo=True, project=AROUND.project_notes)])
    runtime = Runtime(MemoryLog(), capability_factories={"k": lambda _: kit})
    try:
        team = await runtime.create("t", [(name, spec), (AgentId("bob"), BOB)], capabilities_name="k")
        await runtime.start(team)
        work = Work(type="skill", executor="converse", text_content=message)
        task = AddTask(name="t", intention=message, manager=name)
        await runtime.ask(team, task, QueueSteps(agent_id=name, works=(work,), task_id=task_id(1)))
        await runtime.wait(team, task_id(1))
    finally:
        await runtime.close()
    return model.asked[0]


@pytest.mark.parametrize("ends", [None, "finish", "mark"])
async def test_what_is_shown_is_what_is_sent(ends: str | None) -> None:
    spec = evolve(ANN, turn=evolve(TurnPolicy(), ends=ends))
    played = Played(in_order(says("Never asked.")))
    shown = await build_first_request(spec, "Look at this.", played, AROUND)
    assert bare(shown.request) == bare(await sent(spec, "Look at this."))
    assert (shown.model, shown.trouble) == ("fake:m", "")
    assert played.asked == []


@pytest.mark.req("MA-63")
async def test_an_agent_reads_who_can_be_called_and_what_the_project_says() -> None:
    request = (await build_first_request(ANN, "Look.", Played(in_order(says("x"))), AROUND)).request
    system, user = request.messages
    assert "You review." in system.content
    assert "- `bob`: Searches.\n- `eve`" in system.content
    assert system.content.endswith("Use tabs.")
    assert (user.role, user.content) == ("user", "Look.")
    assert [tool.name for tool in request.tools] == ["look", "call_agent"]


class Nobody:
    """No model is set up."""

    def get_model(self, name: str) -> Model:
        """None of this name."""
        raise WorldFault(f"There is no {name!r}.")


async def test_without_a_model_the_request_is_shown_all_the_same() -> None:
    shown = await build_first_request(ANN, "Look.", Nobody(), AROUND)
    assert (shown.model, shown.trouble) == ("", "There is no ''.")
    assert shown.request.max_output == 500


async def test_an_agent_that_acts_in_text_needs_something_that_reads_it() -> None:
    spec = parse_spec({"name": "ann", "system_prompt": "You help.", "design": "jarvis"})
    with pytest.raises(WorldFault, match="acts in text"):
        await build_first_request(spec, "Look.", Nobody(), AROUND)
