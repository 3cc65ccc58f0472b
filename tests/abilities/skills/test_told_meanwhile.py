"""What a person says while an agent works is read in its very next turn, and before the work ends."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from greenroom.app.reading import TextReader
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ModelEvent, ModelRequest
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.spec import AgentSpec, Turn
from greenroom.core.state.step import Work
from tests.abilities.skills.talks import ANN, T1, Answer, Echo, Played, Team, calls, in_order, says, team

MORE = "And hurry."


class Slow(Echo):
    """A tool that waits for the person."""

    def __init__(self) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()

    async def run(self, bench: Bench) -> Outcome:
        """Wait."""
        self.begun.set()
        await self.gate.wait()
        return Outcome(result={"output": "waited"})


class Waiting(Played):
    """Answers only when the person has spoken."""

    def __init__(self, play: Callable[[ModelRequest], Answer], asked: asyncio.Event, told: asyncio.Event) -> None:
        super().__init__(play)
        self._begun, self._told = asked, told

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Wait."""
        self._begun.set()
        await self._told.wait()
        async for event in super().stream(request):
            yield event


async def tell(here: Team) -> None:
    work = Work(type="skill", executor="converse", text_content=MORE)
    await here.runtime.ask(here.team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))


async def test_it_is_read_in_the_next_turn_together_with_the_result() -> None:
    slow = Slow()
    model = Played(lambda request: says("Done.") if len(request.messages) > 2 else calls("echo"))
    async with team(model, tools=[slow]) as here:
        asking = asyncio.create_task(here.ask("Go."))
        await slow.begun.wait()
        await tell(here)
        slow.gate.set()
        assert await asking == "finished"
    assert [one.content for one in model.asked[-1].messages[-2:]] == ["waited", MORE]
    assert len(model.asked) == 2, "no turn is spent without it"


@pytest.mark.parametrize("ends", ["finish", "answer"])
async def test_the_work_does_not_end_before_it_is_read(ends: str) -> None:
    turns = 0
    asked, told = asyncio.Event(), asyncio.Event()

    def play(_: ModelRequest) -> Answer:
        nonlocal turns
        turns += 1
        return (
            calls("finish", f"c{turns}", status="done", summary=f"End {turns}.")
            if ends == "finish"
            else calls("answer", f"c{turns}", value=turns)
        )

    spec = AgentSpec(name="Ann", turn=Turn(ends="finish"), answer=None if ends == "finish" else {"type": "integer"})
    model = Waiting(play, asked, told)
    async with team(model, spec) as here:
        asking = asyncio.create_task(here.ask("Go."))
        await asked.wait()
        await tell(here)
        told.set()
        assert await asking == "finished"
        assert await here.summary() == ("End 2." if ends == "finish" else "2")
    assert model.asked[1].messages[-1].content == MORE
    assert model.asked[1].messages[-2].content.startswith("Not yet")


async def test_why_a_block_was_not_run_is_not_lost_when_somebody_speaks_first() -> None:
    asked, told = asyncio.Event(), asyncio.Event()
    spec = AgentSpec(name="Ann", tools=("echo",), turn=Turn(protocols=("tool_call",)))
    model = Waiting(in_order(says("<TOOL_CALL>\n{broken\n</TOOL_CALL>"), says("!!!COMPLETE!!!")), asked, told)
    async with team(model, spec, reader=TextReader()) as here:
        asking = asyncio.create_task(here.ask("Go."))
        await asked.wait()
        await tell(here)
        told.set()
        assert await asking == "finished"
    why, more = (one.content for one in model.asked[1].messages[-2:])
    assert "was not run" in why
    assert more.startswith(MORE)
