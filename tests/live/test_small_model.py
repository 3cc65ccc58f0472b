"""Greenroom with a small real model, through the command line and the library. `./go live` runs it.

The model has 135 million parameters and little sense, so these tests assert structure and never a text: every call is
answered once, limits hold, everything ends by itself or by its limit, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from greenroom import Agent, Conversation, Greenroom, GreenroomError, RunResult, TextDelta, ToolCallFinished, tool
from tests.e2e.jobs import PERSON, committed, exactly
from tests.e2e.terminal import GREENROOM, Ended, environment
from tests.live.model_front import PYTHON, ModelFront, serve_model

MODEL = "llamacpp:smollm2"
PATIENCE = 900.0
"""Seconds that one play may take on a busy machine."""

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PYTHON.exists(), reason="the model is not installed; ./go live installs it"),
]
TABLE: list[str] = []
BRIEF = Agent("guide", "Answer in one short sentence.", model=MODEL)


@pytest.fixture(scope="module", name="front")
def _front() -> Iterator[ModelFront]:
    with serve_model() as front:
        yield front
    lines = ["| play | turns | tokens | seconds | repairs | ended |", "|---|--:|--:|--:|--:|---|", *TABLE]
    (PYTHON.parents[1] / "table.md").write_text("\n".join(lines) + "\n")


@dataclass
class Play:
    """How a play ended, for the table."""

    ended: str = ""


@contextmanager
def play(front: ModelFront, name: str) -> Iterator[Play]:
    """Measure one play and add it to the table."""
    front.take()
    result, begin = Play(), time.monotonic()
    yield result
    seconds, traffic = time.monotonic() - begin, front.take()
    assert traffic.faults == []
    row = f"| {name} | {traffic.requests} | {traffic.tokens:,} | {seconds:.0f} | {0} | {result.ended} |"
    TABLE.append(row)


class Desk:
    """One person's home and folder, where commands use the small model."""

    def __init__(self, folder: Path, front: ModelFront) -> None:
        self.home, self.folder, self.front = folder / "home", folder / "repo", front
        self.folder.mkdir()

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        env = environment(self.home, **PERSON, LLAMACPP_BASE_URL=self.front.base_url, GREENROOM_SANDBOX="auto")
        return subprocess.Popen(
            [*GREENROOM, *words],
            env=env,
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str) -> Ended:
        """Run a command to its end."""
        return end(self.start(*words))

    def events(self, run: str) -> list[dict[str, Any]]:
        """Return the events of a run."""
        ended = self.run("events", run, "--output-format", "stream-json")
        assert ended.code == 0, ended.err
        return [json.loads(line) for line in ended.out.splitlines()]


def end(process: subprocess.Popen[str]) -> Ended:
    """Wait until a command ends. It must not end with a traceback."""
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return Ended(process.returncode, out, err)


def last_run(desk: Desk) -> str:
    """Return the id of the newest run."""
    rows = desk.run("runs", "--output-format", "json").json["tasks"]
    assert isinstance(rows, list)
    return str(rows[0]["run"] if "run" in rows[0] else rows[0]["team"])


def assert_each_step_ended_once(events: list[dict[str, Any]]) -> None:
    """Every step that was started has ended exactly once, however often it was attempted."""
    started = {event["step_id"] for event in events if event["type"] == "StepStarted"}
    ended = Counter(event["step_id"] for event in events if event["type"] == "StepEnded")
    assert started <= ended.keys()
    assert set(ended.values()) <= {1}


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, front: ModelFront) -> Desk:
    return Desk(tmp_path, front)


def test_ask(front: ModelFront, desk: Desk) -> None:
    with play(front, "ask") as this:
        ended = desk.run("ask", "--model", MODEL, "Name one colour, in one word.")
        this.ended = {0: "by itself", 4: "cut off by the provider"}[ended.code]
    assert ended.out.strip()
    assert_each_step_ended_once(desk.events(last_run(desk)))


def test_streamed_chat(front: ModelFront, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", front.base_url)

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
        async with Greenroom(tmp_path / "store") as greenroom, greenroom.chat(BRIEF) as chat:
            answers = [await stream(chat, text) for text in ("Say hello.", "What is 2 + 2?", "Say goodbye.")]
            assert [turn.answer for turn in await chat.turns()] == answers
        return answers

    with play(front, "streamed chat, three turns") as this:
        assert len(asyncio.run(talk())) == 3
        this.ended = "by itself"


@dataclass
class Place:
    """A place that a text names. Only words that end by themselves: the model would fill a free text to its limit."""

    kind: Literal["city", "river", "mountain"]
    is_capital: bool


def test_typed_output(front: ModelFront, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", front.base_url)
    agent = Agent("reader", "Name the place in the text.", model=MODEL, output_type=Place, output_retries=3)

    async def read() -> RunResult[Place]:
        async with Greenroom(tmp_path / "store") as greenroom:
            return await agent.run("I live in Paris.", greenroom=greenroom)

    with play(front, "typed output by grammar") as this:
        try:
            assert isinstance(asyncio.run(read()).output, Place)
            this.ended = "by itself"
        except GreenroomError as error:
            this.ended = f"with {type(error).__name__}"


@tool(effect="pure")
def weather(city: Literal["Paris", "Rome", "Oslo"]) -> str:
    """Tell the weather of a city."""
    return f"Sunny in {city}."


@tool(effect="pure")
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def test_tool_loop(front: ModelFront, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", front.base_url)
    agent = Agent("guide", "Use a tool, then answer.", model=MODEL, tools=[weather, add], max_turns=6)
    answered = Counter[str]()

    async def work() -> None:
        async with Greenroom(tmp_path / "store") as greenroom:
            async for event in agent.stream("What is the weather in Paris?", greenroom=greenroom):
                if isinstance(event, ToolCallFinished):
                    answered[event.call_id] += 1

    with play(front, "tool loop of at most six turns") as this:
        try:
            asyncio.run(work())
            this.ended = "by itself"
        except GreenroomError as error:
            this.ended = f"at its limit ({type(error).__name__})"
    assert set(answered.values()) == {1}


def test_an_organisation_of_three(front: ModelFront, desk: Desk) -> None:
    assert desk.run("org", "new", "tea", "--person", "ann").code == 0
    charter = desk.folder / ".greenroom" / "teams" / "tea.toml"
    charter.write_text(charter.read_text() + f'\nmodel = "{MODEL}"\n')
    with play(front, "organisation, at most 20 turns") as this:
        waiting = desk.start("inbox", "tea", "--as", "ann", "--say", "A short guide to green tea, please.", "--wait")
        for _ in range(20):
            if not front.started.acquire(timeout=60) and waiting.poll() is not None:
                break
        waiting.send_signal(signal.SIGINT)
        ended = end(waiting)
        this.ended = {0: "by itself", 130: "stopped after 20 turns"}.get(ended.code, f"with exit code {ended.code}")
    assert ended.code in (0, 1, 5, 6, 130), ended.err
    assert_each_step_ended_once(desk.events(last_run(desk)))


def make_repository(desk: Desk) -> None:
    """Write a small project with one test."""
    (desk.folder / "greet.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
    (desk.folder / "test_greet.py").write_text(
        "from greet import greet\n\n\ndef test_greet():\n    assert greet('a')\n"
    )
    committed(desk.folder)


RUN = ("run", "--yes", "--non-interactive", "--allow-unverified", "--model", MODEL, "--max-tokens", "25k")
REQUEST = "Add a function goodbye to greet.py."


def test_a_run_in_a_small_repository(front: ModelFront, desk: Desk) -> None:
    make_repository(desk)
    before = exactly(desk.folder)
    with play(front, "run in a small repository, at most 25,000 tokens") as this:
        ended = desk.run(*RUN, REQUEST)
        this.ended = f"with exit code {ended.code}"
    assert ended.code in (1, 4, 5, 7), ended.err
    assert exactly(desk.folder) == before, "a run changes nothing before `apply`"
    assert_each_step_ended_once(desk.events(last_run(desk)))


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "interrupt"), (signal.SIGKILL, "kill -9")])
def test_a_run_that_is_stopped_and_resumed(front: ModelFront, desk: Desk, number: signal.Signals, name: str) -> None:
    make_repository(desk)
    before = exactly(desk.folder)
    while front.started.acquire(blocking=False):
        pass
    with play(front, f"run, {name} in its second turn, resume") as this:
        stopped = desk.start(*RUN, REQUEST)
        for _ in range(2):
            assert front.started.acquire(timeout=PATIENCE)
        stopped.send_signal(number)
        out, err = stopped.communicate(timeout=PATIENCE)
        assert stopped.returncode == (-9 if number == signal.SIGKILL else 130), (out, err)
        run = last_run(desk)
        finished = {event["step_id"] for event in desk.events(run) if event["type"] == "StepEnded"}
        ended = desk.run("resume", run, "--yes", "--non-interactive")
        this.ended = f"with exit code {ended.code}"
    assert ended.code in (1, 4, 5, 7), ended.err
    assert exactly(desk.folder) == before
    events = desk.events(run)
    assert_each_step_ended_once(events)
    assert finished, "the first turn was kept"
    again = [event for event in events if event["type"] == "StepStarted" and event["step_id"] in finished]
    assert len(again) == len(finished), "no finished step was started again"
