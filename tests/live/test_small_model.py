"""Greenroom with a small real model, through the command line and the library. `./go live` runs it.

The model has 135 million parameters and little sense, so these tests assert structure and never a text: every call is
answered once, limits hold, everything ends by itself or by its limit, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Conversation, Greenroom, RunResult, TextDelta
from tests.e2e.jobs import PERSON
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
    lines = ["| play | turns | tokens | seconds | ended |", "|---|--:|--:|--:|---|", *TABLE]
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
    row = f"| {name} | {traffic.requests} | {traffic.tokens:,} | {seconds:.0f} | {result.ended} |"
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
    return str(rows[0]["team"])


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
