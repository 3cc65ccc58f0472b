"""The demo team: three scripted agents who write a one-page guide. Their replies are scripted; all else is real."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.converse import Converse
from greenroom.app.kit import Kit, KitMaker
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import ModelRequest, Models
from greenroom.core.rules.intents import AddTask, StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.testing.scripted import Call, Cue, Reply, ReplyMaker, ScriptedModel
from greenroom.testing.tools import CountWords, Ledger, WriteFile

PACE: Final = "GREENROOM_DEMO_PACE"
"""The environment variable for how many seconds a reply of the scripted agents takes."""

WATCHABLE: Final = 0.4
"""Seconds per reply that a person can follow."""

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


def _does(says: str, tool: str, /, **arguments: object) -> Reply:
    return Reply(text=says, calls=(Call(name=tool, arguments=arguments),))


def _done(summary: str, *evidence: str) -> Reply:
    return _does("Done.", "finish", summary=summary, evidence=list(evidence))


def _asks(text: str, whom: str) -> Reply:
    return _does("", "send_message", receiver=[whom], message=text, waiting=True)


def _last_result(request: ModelRequest) -> str:
    """What the newest tool said: the scripted agents read real results."""
    return next((one.content for one in reversed(request.messages) if one.role == "tool"), "?")


def _publishes(request: ModelRequest) -> Reply:
    line = f"published guide.md, {_last_result(request)} words"
    return _does("Under 120: publish it.", "ledger", line=line)


def _ends(request: ModelRequest) -> Reply:
    result = _last_result(request)
    if result == "added":
        return _done("The guide is published.", "guide.md", "glossary.md", "cover.md")
    return _does("Then not.", "finish", status="failed", summary=f"Not published. {result}")


def _thread(name: str, *replies: ReplyMaker) -> tuple[Cue, ...]:
    agent, _, _ = name.partition("@")
    return tuple(Cue(agent=agent, thread=name, turn=turn, reply=reply) for turn, reply in enumerate(replies, start=1))


def _answers(agent: str, text: str) -> Cue:
    return Cue(agent=agent, answering=True, reply=Reply(text=text))


SCRIPT: Final[tuple[Cue, ...]] = (
    # Stage 1: Ben drafts and asks Maya, while Iris writes the glossary; then Iris reviews and asks Ben.
    *_thread(
        "ben@t1.s1.1",
        _asks("Who reads it: people who are new to tea, or people who know it?", "maya"),
        _does("Then it stays simple. How long is it?", "count_words", text=DRAFT),
        _does("Short enough.", "write_file", name="draft.md", content=DRAFT),
        _done("a first draft for newcomers", "draft.md"),
    ),
    _answers("maya", "New to it. Under 120 words, and warn them about boiling water."),
    *_thread(
        "iris@t1.s1.2",
        _does("First the style.", "post_note", content="House style: plain words, present tense, no mysteries."),
        _does("Two terms are enough.", "write_file", name="glossary.md", content=GLOSSARY),
        _done("two terms explained", "glossary.md"),
    ),
    *_thread(
        "iris@t1.s1.3",
        _does("How long is the draft?", "count_words", text=DRAFT),
        _asks("The draft forgets green tea. How long, how hot?", "ben"),
        _does("Good. For the record:", "ledger", line="reviewed draft.md, one change: green tea"),
        _done("one change asked for: green tea"),
    ),
    _answers("ben", "Two minutes at 80 degrees. I will put it in."),
    # Stage 2: Ben revises while Iris makes the cover; then Maya publishes.
    *_thread(
        "ben@t1.s2.1",
        _does("With green tea, in steps.", "write_file", name="guide.md", content=GUIDE),
        _does("For the record:", "ledger", line="revised guide.md, green tea is in"),
        _done("the guide, with green tea", "guide.md"),
    ),
    *_thread(
        "iris@t1.s2.2",
        _does("", "post_note", content="The cover says what the guide keeps."),
        _does("One line.", "write_file", name="cover.md", content=COVER),
        _done("a cover of one line", "cover.md"),
    ),
    *_thread(
        "maya@t1.s2.3",
        _does("How long did it get?", "count_words", text=GUIDE),
        _publishes,
        _ends,
    ),
)


KIT: Final = "demo"
ASKING_KIT: Final = "demo-ask"
"""Like `demo`, but a person is asked before the guide is published."""

MAYA, BEN, IRIS, YOU = AgentId("maya"), AgentId("ben"), AgentId("iris"), AgentId("you")
ANSWER: Final = "guide.md"
"""The file that the team was asked for."""

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


class SignedLedger(Ledger):
    """Asks a person before something is published, and only then."""

    def __init__(self, path: Path, *, pace: float) -> None:
        super().__init__(path, pace=pace)
        self._signed = Ledger(path, ask=True)

    def terms(self, world: World, step: Step) -> Terms:
        """At most once; what is published needs a person's yes."""
        line = str((step.work.instruction_content or {}).get("line"))
        return self._signed.terms(world, step) if line.startswith("published") else super().terms(world, step)


def folder(home: Path, team: str) -> Path:
    """Where the files of a demo team are."""
    return home / "demo" / team


def demo_pace() -> float:
    """Seconds per reply: what the environment says, else a pace that can be watched."""
    try:
        return max(float(os.environ.get(PACE, WATCHABLE)), 0.0)
    except ValueError:
        return WATCHABLE


def demo_kits(
    home: Path, *, pace: float = 0.0, around: Callable[[ScriptedModel], Models] = lambda script: script
) -> Mapping[str, KitMaker]:
    """The demo's kits by name. `pace` is how many seconds a reply or a tool takes.

    `around` may put something between the agents and their script: a recording.
    """

    def make(team: Team) -> Kit:
        root = folder(home, team.team_id)
        ledger = SignedLedger if team.kit == ASKING_KIT else Ledger
        tools = (CountWords(), WriteFile(root, pace=pace), ledger(root / "ledger.txt", pace=pace))
        return Kit(abilities=Abilities((Converse(around(ScriptedModel(SCRIPT, pace=pace))), *tools)))

    return {KIT: make, ASKING_KIT: make}
