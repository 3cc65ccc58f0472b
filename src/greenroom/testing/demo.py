"""The demo team: three scripted agents who write a one-page guide. Their replies are scripted; all else is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.converse import Converse
from greenroom.app.kit import Kit, KitMaker
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import Models
from greenroom.core.rules.intents import AddTask, StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.testing.demo_script import SCRIPT
from greenroom.testing.scripted import ScriptedModel
from greenroom.testing.tools import CountWords, Ledger, WriteFile

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


def unchanged(script: ScriptedModel) -> Models:
    """The script itself."""
    return script


def demo_kits(
    home: Path, *, pace: float = 0.0, around: Callable[[ScriptedModel], Models] = unchanged
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
