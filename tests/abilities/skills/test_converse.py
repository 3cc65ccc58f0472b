"""converse: what the model is asked with, what its reply becomes, and what an answer that is none becomes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Abilities, Bench, Live, Outcome
from greenroom.core.ports.model import (
    Failed,
    FaultKind,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    Retried,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepInterrupted, StepType, Terms, Work
from greenroom.core.state.world import World

ANN, T1 = AgentId("ann"), TaskId("t1")
ADD = ToolCall(call_id="c1", name="add", arguments={"a": 1})
EMPTY = "Your last answer was empty. Say what you have found, or call a tool."
DONE: tuple[ModelEvent, ...] = (TextDelta(text="Done."), Usage(input=5, output=2, money=3), Finished(by="fake:m"))


class Playing:
    """Plays answers in order, the last one again and again; it knows what it was asked."""

    name = "fake:m"

    def __init__(self, *answers: Sequence[ModelEvent]) -> None:
        self.card = ModelCard(output=1000)
        self.asked: list[ModelRequest] = []
        self.names: list[str] = []
        self._answers = answers

    def named(self, name: str) -> Model:
        """Itself, whoever asks."""
        self.names.append(name)
        return self

    def price(self, read: int, written: int) -> int | None:
        """A little."""
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next answer."""
        self.asked.append(request)
        for event in self._answers[min(len(self.asked), len(self._answers)) - 1]:
            yield event


class Add:
    """A tool."""

    type: StepType = "tool"
    name: str = "add"
    description: str = "Adds."

    def terms(self, _: World, __: Step) -> Terms:
        """Free."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Add."""
        return Outcome(result={"output": str(bench.step.work.instruction_content)})


class Team:
    """A team of one, in memory."""

    def __init__(self, runtime: Runtime, team: TeamId) -> None:
        self.runtime, self.team = runtime, team

    async def ask(self, text: str = "Well?") -> list[Step]:
        """Ask, wait until nothing more happens; all steps then."""
        work = Work(type="skill", executor="converse", text_content=text)
        await self.runtime.ask(self.team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
        await self.runtime.wait(self.team, T1)
        return [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]


@asynccontextmanager
async def team(model: Playing, config: Data | None = None, *, solo: bool = False) -> AsyncIterator[Team]:
    """A team whose agent has this model."""
    tools = [ToolSpec(name="add", description="Adds."), ToolSpec(name="other", description="Not hers.")]
    kit = Kit(abilities=Abilities([Converse(model, tools, solo=solo), Add()]))
    runtime = Runtime(MemoryLog(), kits={"test": lambda _: kit})
    spec = AgentSpec(name="Ann", role="calculator", tools=("add",), llm_config=config)
    try:
        name = await runtime.create("test", [(ANN, spec)], kit="test")
        await runtime.start(name)
        await runtime.ask(name, AddTask(name="t", intention="t", manager=ANN, group=(ANN,), driver="manager"))
        yield Team(runtime, name)
    finally:
        await runtime.close()


async def test_a_tool_round_is_asked_with_the_same_messages_and_more() -> None:
    model = Playing((ADD, Finished(reason="calls")), DONE)
    async with team(model) as here:
        steps = await here.ask()
    assert [(step.work.executor, step.state) for step in steps] == [
        ("converse", "finished"),
        ("add", "finished"),
        ("converse", "finished"),
    ]
    first, second = (request.messages for request in model.asked)
    assert [one.role for one in second] == ["system", "user", "assistant", "tool"]
    assert second[0] is first[0]
    assert second[1] == first[1]
    assert [tool.name for tool in model.asked[0].tools] == ["add"]
    assert [request.purpose.turn for request in model.asked] == [1, 2]


async def test_requests_of_a_talk_share_the_very_objects_of_their_past() -> None:
    model = Playing((ADD, Finished(reason="calls")), (ADD, Finished(reason="calls")), DONE)
    async with team(model) as here:
        await here.ask()
        await here.ask("And now?")
    requests = [request.messages for request in model.asked]
    for before, after in pairwise(requests[1:]):
        assert all(one is other for one, other in zip(before[2:], after[2:], strict=False))
    assert requests[-1][-1].content == "And now?"


async def test_a_reply_is_kept_with_all_that_came_and_what_it_cost() -> None:
    opaque = Opaque(provider="fake", data={"sig": "x"})
    model = Playing((ReasoningDelta(text="hm"), TextDelta(text="Do"), TextDelta(text="ne."), opaque, *DONE[1:]))
    async with team(model) as here:
        (step,) = await here.ask()
    assert step.result == {
        "text": "Done.",
        "calls": [],
        "reasoning": "hm",
        "opaque": [{"provider": "fake", "data": {"sig": "x"}}],
        "usage": {"input": 5, "output": 2, "money": 3},
        "by": "fake:m",
    }
    assert (step.spent.tokens, step.spent.money) == (7, 3)


async def test_what_came_before_a_retry_is_void() -> None:
    again = Retried(attempt=2, wait=0.0, failed=Failed(kind="server", why="no"))
    async with team(Playing((TextDelta(text="Hal"), again, *DONE))) as here:
        (step,) = await here.ask()
    assert (step.result or {})["text"] == "Done."


@pytest.mark.req("AF-27")
async def test_pieces_are_seen_while_they_come() -> None:
    seen: list[Live] = []
    async with team(Playing(DONE)) as here:
        host = await here.runtime.start(here.team)
        host.watch(lambda step, event: seen.append(event))
        await here.ask()
    assert seen == list(DONE)


@pytest.mark.req("AG-185")
async def test_an_empty_answer_is_asked_for_again_and_then_is_a_failure() -> None:
    nothing: Sequence[ModelEvent] = (Usage(output=0, money=1), Finished())
    recovers = Playing(nothing, nothing, DONE)
    async with team(recovers, solo=True) as here:
        work = Work(type="skill", executor="converse", text_content="Well?")
        await here.runtime.ask(here.team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
        assert (await here.runtime.wait(here.team, T1)).word == "finished"
    assert [request.messages[-1].content for request in recovers.asked] == ["Well?", EMPTY, EMPTY]
    async with team(Playing(nothing), solo=True) as here:
        steps = await here.ask()
    assert [step.state for step in steps] == ["finished", "finished", "failed"]
    assert steps[-1].error == "fake:m answered nothing 3 times in a row."
    assert steps[-1].spent.money == 1


async def test_a_call_that_nobody_can_read_is_told_so_and_not_run() -> None:
    broken = ToolCall(call_id="c1", name="add", arguments={}, unread='{"a":')
    model = Playing((broken, Finished(reason="calls")), DONE)
    async with team(model) as here:
        steps = await here.ask()
    assert [step.work.executor for step in steps] == ["converse", "converse"]
    assert "not a JSON object" in model.asked[1].messages[-1].content


async def test_an_answer_that_is_refused_is_no_answer() -> None:
    async with team(Playing((TextDelta(text="Hal"), Failed(kind="filter", why="fake:m refuses.")))) as here:
        (step,) = await here.ask()
    assert (step.state, step.error) == ("failed", "fake:m refuses.")


LONG = (TextDelta(text="Hal"), ToolCall(call_id="c1", name="add", arguments={"a": 1}), Finished(reason="length"))


async def test_of_a_reply_that_is_cut_off_nothing_is_run_and_it_is_asked_for_in_less() -> None:
    model = Playing(LONG, DONE)
    async with team(model, solo=True) as here:
        steps = await here.ask()
    assert [step.work.executor for step in steps] == ["converse", "converse"]
    said, told = model.asked[1].messages[-2:]
    assert (said.role, said.content, said.calls) == ("assistant", "Hal", ())
    assert told.content.startswith("Your last reply was longer than you may write at once.")


async def test_who_is_cut_off_again_and_again_has_failed() -> None:
    async with team(Playing(LONG), solo=True) as here:
        steps = await here.ask()
        (task,) = await here.runtime.ended_tasks(here.team)
    why = "longer than the model may write at once (`max_output`)."
    assert [step.state for step in steps] == ["finished", "finished", "failed"]
    assert (task.state, task.summary.endswith(why), steps[-1].error.endswith(why)) == ("failed", True, True)


async def test_a_stream_without_an_end_is_no_answer() -> None:
    async with team(Playing((TextDelta(text="Hal"),))) as here:
        (step,) = await here.ask()
    assert (step.state, step.error) == ("failed", "fake:m stopped before its answer was complete.")


ODD = {"temperature": True, "effort": "max", "streaming": "no", "max_output": -1}


@pytest.mark.parametrize(
    ("config", "temperature", "effort", "streaming", "most"),
    [
        ({"model": "fast"}, None, None, True, 1000),
        ({"temperature": 1, "effort": "low"}, 1.0, "low", True, 1000),
        ({"streaming": False, "max_output": 77}, None, None, False, 77),
        (ODD, None, None, True, 1000),
    ],
)
async def test_an_agent_says_how_it_wants_to_be_answered(
    config: Data, temperature: float | None, effort: str | None, streaming: bool, most: int
) -> None:
    model = Playing(DONE)
    async with team(model, config) as here:
        await here.ask()
    asked = model.asked[0]
    assert (asked.temperature, asked.effort) == (temperature, effort)
    assert (asked.streaming, asked.max_output) == (streaming, most)
    assert set(model.names) == {str(config.get("model", ""))}


async def test_a_plain_answer_ends_the_task_of_an_agent_that_works_alone() -> None:
    async with team(Playing(DONE), solo=True) as here:
        await here.ask()
        (task,) = await here.runtime.ended_tasks(here.team)
    assert (task.state, task.summary) == ("finished", "Done.")


@pytest.mark.parametrize("kind", ["overloaded", "server", "rate"])
async def test_an_answer_that_broke_off_is_paid_for_whatever_broke_it(kind: FaultKind) -> None:
    broken = (TextDelta(text="Hal"), Failed(kind=kind, why=f"fake:m: {kind}.", again=True))
    refused = (Failed(kind=kind, why=f"fake:m: {kind}."),)
    for answer, costs in ((broken, True), (refused, False)):
        async with team(Playing(answer, DONE)) as here:
            await here.ask()
            events = [told.event async for told in here.runtime.events(here.team)]
        (cut_off,) = [event for event in events if isinstance(event, StepInterrupted)]
        assert (cut_off.spent.money > 0) is costs


async def test_an_answer_that_a_filter_took_away_is_a_refusal() -> None:
    async with team(Playing((Finished(reason="filter", said="content_filter"),))) as here:
        (step,) = await here.ask()
    assert (step.state, step.error) == ("failed", "fake:m refuses to answer this (content_filter).")


async def test_two_teams_with_one_kit_do_not_hear_each_other() -> None:
    model = Playing(DONE)
    kit = Kit(abilities=Abilities([Converse(model)]))
    runtime = Runtime(MemoryLog(), kits={"test": lambda _: kit})
    task = AddTask(name="t", intention="t", manager=ANN, group=(ANN,), driver="manager")
    for secret in ("ALICE", "BOB"):
        name = await runtime.create("test", [(ANN, AgentSpec(name="Ann"))], kit="test", begin=(task,))
        await runtime.start(name)
        here = Team(runtime, name)
        await here.ask(f"I am {secret}.")
        await here.ask("Who am I?")
    await runtime.close()
    assert not any("ALICE" in one.content for one in model.asked[-1].messages)


async def test_what_an_agent_was_told_between_stays_in_its_talk() -> None:
    model = Playing((ToolCall(call_id="c1", name="ghost", arguments={}), Finished(reason="calls")), DONE)
    async with team(model) as here:
        await here.ask()
        await here.ask("And now?")
    before, after = model.asked[-2].messages, model.asked[-1].messages
    assert [one.content for one in after[: len(before)]] == [one.content for one in before]
