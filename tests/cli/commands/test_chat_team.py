"""`/team` and `@multi-agent` in a chat: planned, confirmed and run; the agent of the chat reads how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from greenroom.app.conversation.chat_input import (
    ChatCommand,
    EndOfInput,
    InputEvent,
    NoPersonInput,
    TextInput,
    handle_command,
)
from greenroom.cli.commands import chat, run
from greenroom.cli.context import Invocation
from greenroom.cli.interactive import plan_review
from greenroom.testing.scripted import Cue
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import REQUEST, team_cues
from tests.cli.conftest import Type
from tests.tiers import has_bubblewrap

needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


class TypedLines(NoPersonInput):
    """A person who types these lines."""

    is_attended = True

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        return TextInput(text=self._lines.pop(0)) if self._lines else EndOfInput()


@pytest.fixture(name="answers")
def _answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answer these lines to the questions about plan, checks and change."""
    lines: list[str] = []
    monkeypatch.setattr(Invocation, "is_attended", property(lambda cli: cli.app.is_attended))
    for module in (plan_review, run):
        monkeypatch.setattr(module, "ask_line", lambda _: lines.pop(0))
    return lines


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    @contextmanager
    def open_typist(*_: object) -> Iterator[TypedLines]:
        yield TypedLines(lines)

    monkeypatch.setattr(chat, "open_typist", open_typist)


@needs_sandbox
@pytest.mark.req("RC-106", "RC-107", "RC-110")
@pytest.mark.parametrize("start", ["@multi-agent", "/team"])
def test_a_team_runs_from_the_chat_and_the_agent_reads_its_summary(
    shop: Path, greenroom: Type, script: Script, answers: list[str], monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    model = script([*team_cues(), Cue(agent="assistant", reply="They added tax and discount.")])
    type_lines(monkeypatch, f"{start} {REQUEST}", "what did they do?", "and why?")
    answers += ["c", "y", "l"]
    ended = greenroom("chat")
    assert ended.code == 0, ended.err
    assert answers == []
    assert "Task types: feature-development, testing, documentation" in ended.err
    assert "✓ Verified" in ended.err
    assert "The agent reads the summary with your next message." in ended.err
    assert "They added tax and discount." in ended.out
    first, second = (request for request in model.requests if request.purpose.agent == "assistant")
    told = [str(message) for request in (first, second) for message in request.messages]
    assert sum("team-run.txt" in text for text in told) == 2, "once, and again as a part of the conversation"
    assert any("code-1: finished. tax" in text for text in told)


def test_a_cancelled_plan_leads_back_to_the_chat(
    shop: Path, greenroom: Type, script: Script, answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script([Cue(agent="assistant", reply="Hello.")])
    type_lines(monkeypatch, f"/team {REQUEST}", "/team", "/team fix the crash in the cart", "hello")
    answers += ["x"]
    ended = greenroom("chat")
    assert ended.code == 0, ended.err
    assert "Cancelled. Nothing was started." in ended.err
    assert "Type what the team shall do" in ended.err
    assert "No team is needed." in ended.err
    assert ended.out == "Hello.\n"
    assert "team-run.txt" not in str(model.requests)


@pytest.mark.req("RC-106")
@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("@multi-agent add it", ChatCommand(name="team", argument="add it")),
        ("@Multi-Agent\nadd it\nnow", ChatCommand(name="team", argument="add it\nnow")),
        ("/team add it", ChatCommand(name="team", argument="add it")),
        ("@multi-agent", ChatCommand(name="team")),
        ("@multi-agents.py what is it?", None),
        ("see @multi-agent", None),
    ],
)
def test_only_a_line_that_starts_so_asks_for_a_team(text: str, command: ChatCommand | None) -> None:
    assert handle_command(text).command == command
