"""The demo team: three scripted agents write a one-page guide. Their replies are scripted; everything else is real."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.converse import Converse
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Capabilities, CapabilitiesFactory
from greenroom.core.ports.model import ModelRequest, Models
from greenroom.core.rules.intents import AddTask, StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ReplyMaker, ScriptedCall, ScriptedModel, ScriptedReply
from greenroom.testing.tools import CountWords, LedgerTool, WriteFile

PACE_VARIABLE: Final = "GREENROOM_DEMO_PACE"
"""The environment variable with the seconds per scripted reply."""

DEFAULT_PACE_S: Final = 0.4
"""Seconds per reply at a pace that people can follow."""

DRAFT: Final = """\
# Tea

Fresh water, just off the boil. One spoon of leaves for each cup, and one for the pot.
Black tea takes four minutes. Take the leaves out, or it turns bitter.
"""

GUIDE: Final = """\
# Tea

1. Draw fresh water and warm the pot.
2. One spoon of leaves for each cup, and one for the pot.
3. Black tea: water off the boil, four minutes.
   Green tea: 80 degrees, two minutes. Boiling water burns it.
4. Take the leaves out, or it turns bitter.
"""

GLOSSARY: Final = """\
Infusion: leaves left in hot water.
Off the boil: the moment the bubbles stop.
"""

COVER: Final = "TEA. One page, two kettles, no mysteries.\n"


def _reply_with_call(says: str, tool: str, /, **arguments: object) -> ScriptedReply:
    return ScriptedReply(text=says, calls=(ScriptedCall(name=tool, arguments=arguments),))


def _reply_done(summary: str, *evidence: str) -> ScriptedReply:
    return _reply_with_call("Done.", "finish", summary=summary, evidence=list(evidence))


def _reply_asking(text: str, whom: str) -> ScriptedReply:
    return _reply_with_call("", "send_message", receiver=[whom], message=text, waiting=True)


def _find_last_result(request: ModelRequest) -> str:
    """Return the newest tool result. Scripted agents read real results."""
    return next((message.content for message in reversed(request.messages) if message.role == "tool"), "?")


def _reply_publishing(request: ModelRequest) -> ScriptedReply:
    line = f"published guide.md, {_find_last_result(request)} words"
    return _reply_with_call("Under 120: publish it.", "ledger", line=line)


def _reply_ending(request: ModelRequest) -> ScriptedReply:
    result = _find_last_result(request)
    if result == "added":
        return _reply_done("The guide is published.", "guide.md", "glossary.md", "cover.md")
    return _reply_with_call("Then not.", "finish", status="failed", summary=f"Not published. {result}")


def _make_thread_cues(name: str, *replies: ReplyMaker) -> tuple[Cue, ...]:
    agent, _, _ = name.partition("@")
    return tuple(Cue(agent=agent, thread=name, turn=turn, reply=reply) for turn, reply in enumerate(replies, start=1))


def _make_answer_cue(agent: str, text: str) -> Cue:
    return Cue(agent=agent, answering=True, reply=ScriptedReply(text=text))


SCRIPT: Final[tuple[Cue, ...]] = (
    # Stage 1: Ben drafts and asks Maya, while Iris writes the glossary; then Iris reviews and asks Ben.
    *_make_thread_cues(
        "ben@t1.s1.1",
        _reply_asking("Who reads it: people who are new to tea, or people who know it?", "maya"),
        _reply_with_call("Then it stays simple. How long is it?", "count_words", text=DRAFT),
        _reply_with_call("Short enough.", "write_file", name="draft.md", content=DRAFT),
        _reply_done("a first draft for newcomers", "draft.md"),
    ),
    _make_answer_cue("maya", "New to it. Under 120 words, and warn them about boiling water."),
    *_make_thread_cues(
        "iris@t1.s1.2",
        _reply_with_call(
            "First the style.", "post_note", content="House style: plain words, present tense, no mysteries."
        ),
        _reply_with_call("Two terms are enough.", "write_file", name="glossary.md", content=GLOSSARY),
        _reply_done("two terms explained", "glossary.md"),
    ),
    *_make_thread_cues(
        "iris@t1.s1.3",
        _reply_with_call("How long is the draft?", "count_words", text=DRAFT),
        _reply_asking("The draft forgets green tea. How long, how hot?", "ben"),
        _reply_with_call("Good. For the record:", "ledger", line="reviewed draft.md, one change: green tea"),
        _reply_done("one change asked for: green tea"),
    ),
    _make_answer_cue("ben", "Two minutes at 80 degrees. I will put it in."),
    # Stage 2: Ben revises while Iris makes the cover; then Maya publishes.
    *_make_thread_cues(
        "ben@t1.s2.1",
        _reply_with_call("With green tea, in steps.", "write_file", name="guide.md", content=GUIDE),
        _reply_with_call("For the record:", "ledger", line="revised guide.md, green tea is in"),
        _reply_done("the guide, with green tea", "guide.md"),
    ),
    *_make_thread_cues(
        "iris@t1.s2.2",
        _reply_with_call("", "post_note", content="The cover says what the guide keeps."),
        _reply_with_call("One line.", "write_file", name="cover.md", content=COVER),
        _reply_done("a cover of one line", "cover.md"),
    ),
    *_make_thread_cues(
        "maya@t1.s2.3",
        _reply_with_call("How long did it get?", "count_words", text=GUIDE),
        _reply_publishing,
        _reply_ending,
    ),
)


DEMO_KIT: Final = "demo"
ASKING_KIT: Final = "demo-ask"
"""Like `demo`, but asks a person before the guide is published."""

MAYA, BEN, IRIS, YOU = AgentId("maya"), AgentId("ben"), AgentId("iris"), AgentId("you")
ANSWER_FILE: Final = "guide.md"
"""The file that the team must write."""

AGENTS: Final = (
    (MAYA, AgentSpec(name="Maya", role="lead", manager=True, tools=("count_words", "ledger"))),
    (BEN, AgentSpec(name="Ben", role="writer", tools=("count_words", "write_file", "ledger"))),
    (IRIS, AgentSpec(name="Iris", role="editor", tools=("count_words", "write_file", "ledger"))),
)
PERSON: Final = (YOU, AgentSpec(name="You", role="the person who is asked", kind="human"))

TASK: Final = AddTask(
    name="A one-page guide to tea",
    intention="Write a one-page guide to making tea, with a glossary and a cover.",
    manager=MAYA,
    stages=(
        StagePlan(
            intention="Draft",
            subtasks=(
                SubtaskPlan(name="draft", duty="Write the draft.", agent=BEN),
                SubtaskPlan(name="glossary", duty="Write the glossary.", agent=IRIS),
                SubtaskPlan(name="review", duty="Review the draft.", agent=IRIS, needs=("draft", "glossary")),
            ),
        ),
        StagePlan(
            intention="Publish",
            subtasks=(
                SubtaskPlan(name="revise", duty="Work the review into the guide.", agent=BEN),
                SubtaskPlan(name="cover", duty="Write the cover.", agent=IRIS),
                SubtaskPlan(name="publish", duty="Publish the guide.", agent=MAYA, needs=("revise", "cover")),
            ),
        ),
    ),
)


class SignedLedger(LedgerTool):
    """Asks a person before it publishes anything, and only then."""

    def __init__(self, path: Path, *, pace: float) -> None:
        super().__init__(path, pace=pace)
        self._signed = LedgerTool(path, ask=True)

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return effectful terms. Publishing needs a person's approval."""
        line = str((step.work.instruction_content or {}).get("line"))
        return self._signed.terms(state, step) if line.startswith("published") else super().terms(state, step)


def demo_folder(home: Path, team: str) -> Path:
    """Return the folder with the files of a demo team."""
    return home / "demo" / team


def demo_pace() -> float:
    """Return the seconds per reply: from the environment, else a pace that people can follow."""
    try:
        return max(float(os.environ.get(PACE_VARIABLE, DEFAULT_PACE_S)), 0.0)
    except ValueError:
        return DEFAULT_PACE_S


def make_demo_factories(
    home: Path, *, pace: float = 0.0, wrap_model: Callable[[ScriptedModel], Models] = lambda script: script
) -> Mapping[str, CapabilitiesFactory]:
    """Return the demo's capabilities by name. `pace` is the seconds per reply or tool call. `wrap_model` can wrap the
    script, for example in a recording."""

    def make(team: Team) -> Capabilities:
        root = demo_folder(home, team.team_id)
        ledger = SignedLedger if team.kit == ASKING_KIT else LedgerTool
        tools = (CountWords(), WriteFile(root, pace=pace), ledger(root / "ledger.txt", pace=pace))
        return Capabilities((Converse(wrap_model(ScriptedModel(SCRIPT, pace=pace))), *tools))

    return {DEMO_KIT: make, ASKING_KIT: make}
