"""Greenroom with a small real model, through the command line and the library. `./go live` runs it.

The model has 135 million parameters and little sense, so these tests assert structure and never a text: every call is
answered once, limits hold, everything ends by itself or by its limit, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Literal

import pytest

from greenroom import (
    Agent,
    Conversation,
    Greenroom,
    GreenroomError,
    RunResult,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    tool,
)
from tests.e2e.jobs import exactly
from tests.live.model_front import PYTHON, ModelFront
from tests.live.plays import MODEL, PATIENCE, Desk, end, play

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PYTHON.exists(), reason="the model is not installed; ./go live installs it"),
]
BY_ITSELF = "by itself"


def test_ask(front: ModelFront, desk: Desk) -> None:
    with play(front, "ask") as this:
        ended = desk.run("ask", "Name one colour, in one word.")
        this.ended = {0: BY_ITSELF, 4: "cut off at its longest answer"}[ended.code]
        this.log = desk.events(desk.last_run())
    assert ended.out.strip()


def test_streamed_chat(front: ModelFront, desk: Desk) -> None:
    guide = Agent("guide", "Answer in one short sentence.", model=MODEL)

    async def stream(chat: Conversation[str], text: str) -> str:
        pieces, outputs = list[str](), list[str]()
        async for event in chat.stream(text):
            if isinstance(event, TextDelta):
                pieces.append(event.text)
            elif isinstance(event, RunResult):
                outputs.append(event.output)
        assert ["".join(pieces).strip()] == [output.strip() for output in outputs]
        return outputs[0]

    async def talk() -> list[str]:
        async with Greenroom(desk.home) as greenroom, greenroom.chat(guide) as chat:
            answers = [await stream(chat, text) for text in ("Say hello.", "What is 2 + 2?", "Say goodbye.")]
            assert [turn.answer for turn in await chat.turns()] == answers
        return answers

    with play(front, "streamed chat, three questions") as this:
        assert len(asyncio.run(talk())) == 3
        this.ended, this.log = BY_ITSELF, desk.events(desk.last_run())


@dataclass
class Place:
    """A place that a text names."""

    name: str
    kind: Literal["city", "river", "mountain"]
    is_capital: bool


def test_typed_output(front: ModelFront, desk: Desk) -> None:
    agent = Agent("reader", "Name the place in the text.", model=MODEL, output_type=Place, output_retries=3)

    async def read() -> RunResult[Place]:
        async with Greenroom(desk.home) as greenroom:
            return await agent.run("I live in Paris.", greenroom=greenroom)

    with play(front, "typed output by grammar") as this:
        assert isinstance(asyncio.run(read()).output, Place)
        this.ended, this.log = BY_ITSELF, desk.events(desk.last_run())


@tool(effect="pure")
def weather(city: Literal["Paris", "Rome", "Oslo"]) -> str:
    """Tell the weather of a city."""
    return f"Sunny in {city}."


@tool(effect="pure")
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def test_tool_loop(front: ModelFront, desk: Desk) -> None:
    agent = Agent("guide", "Use a tool, then answer.", model=MODEL, tools=[weather, add], max_turns=6)
    called, answered = Counter[str](), Counter[str]()

    async def work() -> str:
        async with Greenroom(desk.home) as greenroom:
            try:
                async for event in agent.stream("What is the weather in Paris?", greenroom=greenroom):
                    called.update([event.call_id] if isinstance(event, ToolCallStarted) else [])
                    answered.update([event.call_id] if isinstance(event, ToolCallFinished) else [])
            except GreenroomError as error:
                return f"at its limit ({type(error).__name__})"
        return BY_ITSELF

    with play(front, "tool loop, at most six rounds") as this:
        this.ended, this.log = asyncio.run(work()), desk.events(desk.last_run())
    assert answered
    assert called == answered, "every call is answered once"
    assert set(answered.values()) == {1}


MEMBER = """---
description: {name} of a tea house.
manager: true
style: converse
---
You are the {name} of a tea house. Write to the others.
"""
STAFF = ("lead", "writer", "editor")
ORGANISATION_TURNS = 20
IDLE_S = 10.0
"""Seconds without a new turn after which the person writes again."""


def test_an_organisation_of_three(front: ModelFront, desk: Desk) -> None:
    for name in STAFF:
        desk.write_agent(name, MEMBER.format(name=name))
    assert desk.run("org", "new", "tea", "--person", "ann").code == 0
    charter = desk.folder / ".greenroom" / "teams" / "tea.toml"
    charter.write_text(charter.read_text().replace('["manager"]', str(list(STAFF))))
    with play(front, f"organisation of three, {ORGANISATION_TURNS} turns") as this:
        running = desk.start("org", "start", "tea")
        receivers = chain([",".join(STAFF)], cycle(STAFF))
        for _ in range(ORGANISATION_TURNS):
            while not front.started.acquire(timeout=IDLE_S):
                assert running.poll() is None, end(running).err
                said = f"/ask {next(receivers)}: Ask the others for tea."
                assert desk.run("inbox", "tea", "--as", "ann", "--say", said).code == 0
        assert desk.run("org", "stop", "tea").code == 0
        ended = end(running)
        this.ended, this.log = "stopped", desk.events(desk.last_run())
    assert ended.code == 0, ended.err
    assert this.log.agents >= set(STAFF)


MENDER = """---
description: Changes files.
tools: [read_code, rewrite]
---
Change the file. Then finish.
"""
MAX_TOKENS = 20_000
RUN = ("run", "--yes", "--non-interactive", "--allow-unverified", "--agent", "mender", "--max-tokens", str(MAX_TOKENS))
ENDINGS = {1: "failed", 4: "cut off at its longest answer", 5: "at its token limit", 7: "finished, not verified"}
"""What the exit codes mean that a run without sense may have."""

REQUEST = "Add a function goodbye to greet.py."


def test_a_run_in_a_small_repository(front: ModelFront, desk: Desk) -> None:
    desk.write_agent("mender", MENDER)
    desk.write_repository()
    before = exactly(desk.folder)
    with play(front, f"run in a small repository, at most {MAX_TOKENS:,} tokens") as this:
        ended = desk.run(*RUN, REQUEST)
        this.ended, this.log = ENDINGS[ended.code], desk.events(desk.last_run())
    assert exactly(desk.folder) == before, "a run changes nothing before `apply`"
    assert this.log.tokens <= MAX_TOKENS


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "interrupt"), (signal.SIGKILL, "kill -9")])
def test_a_run_that_is_stopped_and_resumed(front: ModelFront, desk: Desk, number: signal.Signals, name: str) -> None:
    desk.write_agent("mender", MENDER)
    desk.write_repository()
    before = exactly(desk.folder)
    with play(front, f"run, {name} in its second turn, resume") as this:
        stopped = desk.start(*RUN, REQUEST)
        for _ in range(2):
            assert front.started.acquire(timeout=PATIENCE)
        stopped.send_signal(number)
        out, err = stopped.communicate(timeout=PATIENCE)
        assert stopped.returncode == (-9 if number == signal.SIGKILL else 130), (out, err)
        run = desk.last_run()
        kept = desk.events(run)
        ended = desk.run("resume", run, "--yes", "--non-interactive")
        this.ended, this.log = ENDINGS[ended.code], desk.events(run)
    assert exactly(desk.folder) == before
    assert kept.finished, "the first turn was kept"
    assert this.log.stored[: len(kept.stored)] == kept.stored, "nothing was lost or changed"
    again = [event for event in this.log.of("StepStarted") if event["step_id"] in kept.finished]
    assert len(again) == len(kept.finished), "no finished step was started again"
    assert this.log.finished > kept.finished, "it went on"
    assert this.log.tokens <= MAX_TOKENS
