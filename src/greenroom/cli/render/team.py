"""A team as it works: each event in words, what every agent has spent, and a live row per agent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.runtime import Told
from greenroom.cli.render.output import Column, Fitted, row
from greenroom.cli.render.words import WORDS, Said, attempt_words, say, shorten, step_words
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, agent_of
from greenroom.core.base.records import record
from greenroom.core.state.agent import Agent
from greenroom.core.state.events import Event
from greenroom.core.state.fold import fold
from greenroom.core.state.message import MessageSent
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.world import NOWHERE, World


@record
class Line:
    """What one event says, with its place and time."""

    version: int
    at: int
    type: str
    said: Said


@dataclass(slots=True)
class Teller:
    """Folds what it is told. `spent` counts what went by here, which is everything when it began at version 0.
    `at_most` says that what an interrupted call had reserved is part of it: nobody knows what it really cost.
    `language` is that of the lines."""

    world: World = NOWHERE
    version: int = 0
    spent: dict[AgentId, Amounts] = field(default_factory=dict)
    at_most: bool = False
    steps: int = 0
    messages: int = 0
    failures: list[str] = field(default_factory=list)
    began_at: int = 0
    at: int = 0
    language: str = "en"

    def tell(self, told: Told) -> Line:
        event = told.event
        line = Line(
            version=told.version,
            at=event.at,
            type=type(event).__name__,
            said=say(self.world, event, self.language.partition("-")[0]),
        )
        self._count(told.event)
        self.world = fold(self.world, told.event)
        self.version, self.at = told.version, told.event.at
        self.began_at = self.began_at or told.event.at
        return line

    def _count(self, event: Event) -> None:
        match event:
            case StepEnded() | StepInterrupted():
                agent = agent_of(event.step_id)
                self.spent[agent] = self.spent.get(agent, NOTHING).plus(event.spent)
                self.at_most |= isinstance(event, StepInterrupted) and bool(event.spent.tokens or event.spent.money)
                self.steps += isinstance(event, StepEnded)
                if isinstance(event, StepEnded) and event.state == "failed":
                    self.failures.append(f"{event.step_id}: {event.error}")
            case MessageSent():
                self.messages += 1
            case StepStarted():
                self.spent.setdefault(agent_of(event.step_id), NOTHING)
            case _:
                pass

    def total(self) -> Amounts:
        """What all agents spent together."""
        total = NOTHING
        for one in self.spent.values():
            total = total.plus(one)
        return total


COLUMNS: Final = (
    Column(name="agent"),
    Column(name="role", style="dim", gives=True, needs=80),
    Column(name="doing", gives=True),
    Column(name="step", style="dim", least=7, needs=60),
    Column(name="state", least=9),
    Column(name="tokens", right=True, least=6, needs=70),
    Column(name="time", right=True, least=6, needs=50),
)
COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
MOST: Final = 16  # rows that fit a screen
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SUBTASKS: Final = {
    "init": ("○", "dim"),
    "running": ("●", "bold"),
    "finished": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("–", "dim"),
    "cancelled": ("✗", "dim"),
}
STATES: Final = {"working": "bold", "waiting": "yellow", "asking": "yellow", "paused": "yellow", "idle": "dim"}


def colour(world: World, agent: str) -> str:
    """An agent keeps its colour as long as nobody before it leaves."""
    names: list[str] = sorted(world.agents)
    return COLOURS[names.index(agent) % len(COLOURS)] if agent in names else ""


def doing(world: World, agent: Agent, language: str = "en") -> tuple[str, str, str]:
    """What the agent does in words, its step, and its state in a word."""
    if agent.running is not None:
        step = world.steps[agent.running]
        again = attempt_words(step.attempt, language)
        what = f"{step_words(step, language)}{_about(world, step, language)}{again}"
        return what, step.step_id, "working" if step.state == "running" else step.state
    asked = [one for one in world.approvals.values() if one.agent_id == agent.agent_id and one.state == "pending"]
    if asked:
        return WORDS.phrase("doing", "asks", language, text=shorten(asked[0].question, 60)), asked[0].step_id, "asking"
    if agent.step_lock:
        names = ", ".join(dict.fromkeys(world.waits[one].on for one in agent.step_lock if one in world.waits))
        return WORDS.phrase("doing", "waits", language, names=names), "", "waiting"
    if agent.todo:
        step = world.steps[agent.todo[0]]
        paused = world.team.paused or world.tasks[step.task_id].paused
        return (
            WORDS.phrase("doing", "next", language, text=step_words(step, language)),
            step.step_id,
            "paused" if paused else "queued",
        )
    return WORDS.phrase("doing", "person", language) if agent.spec.kind == "human" else "", "", "idle"


def _about(world: World, step: Step, language: str) -> str:
    """Which subtask somebody thinks about."""
    stage = world.stages.get(step.stage_id) if step.stage_id else None
    subtask = stage.subtask(step.subtask_id) if stage and step.subtask_id else None
    if subtask is None or subtask.name == step.agent_id or step.work.type != "skill" or step.answers is not None:
        return ""
    return WORDS.phrase("doing", "about", language, name=subtask.name)


def worked(teller: Teller, agent: Agent, *, now: int) -> int:
    """Milliseconds of work, with what runs now."""
    spent = teller.spent.get(agent.agent_id, NOTHING).millis
    step = teller.world.steps.get(agent.running) if agent.running else None
    running = now - step.started_at if step and step.started_at else 0
    return spent + max(running, 0)


def agents_table(teller: Teller, *, moving: bool = False) -> Fitted:
    """A row per agent. While it is `moving`, who works shows a sign of life and their time goes on."""
    now = int(time.time() * 1000) if moving else teller.at
    every, many = teller.world.agents.values(), len(teller.world.agents) > MOST
    # When they are too many, those who have something to do come first.
    shown = sorted(every, key=lambda agent: (many and agent.working_state == "idle", agent.agent_id))[:MOST]
    rows = [_agent(teller, agent, now, moving=moving) for agent in shown]
    if many:
        more = WORDS.phrase("doing", "more", teller.language, count=len(teller.world.agents) - MOST)
        rows.append(row("", "", more, "", "", "", ""))
    heads = WORDS.table("columns", teller.language)
    return Fitted([replace(column, name=heads[column.name]) for column in COLUMNS], rows, spread=moving)


def _agent(teller: Teller, agent: Agent, now: int, *, moving: bool) -> list[Text]:
    name = agent.agent_id
    what, step, state = doing(teller.world, agent, teller.language)
    told = WORDS.table("states", teller.language).get(state, state)
    sign = f"{SPINNER[now // 100 % len(SPINNER)]} " if moving and agent.running else ""
    return row(
        Text(name, style=colour(teller.world, name)),
        agent.spec.role,
        what,
        step,
        Text(f"{sign}{told}", style=STATES.get(state, "")),
        f"{teller.spent.get(name, NOTHING).tokens:,}",
        seconds(worked(teller, agent, now=now)),
    )


def seconds(millis: int) -> str:
    """A length of time, as short as it can be said."""
    if millis < 60_000:
        return f"{millis / 1000:.1f}s"
    minutes, rest = divmod(millis // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def stage_line(stage: Stage) -> Text:
    """A stage and how its subtasks stand."""
    line = Text(f"{stage.stage_id} {stage.intention}  ", style="bold" if stage.state == "running" else "dim")
    for subtask in stage.subtasks:
        sign, style = SUBTASKS[subtask.state]
        line.append(f" {sign} {subtask.name} ", style=f"not bold {style}")
    return line


def picture(teller: Teller, trouble: str | None = None) -> RenderableType:
    """The live area: tasks, stages, agents."""
    world = teller.world
    parts: list[RenderableType] = [Text("")]
    for task in world.tasks.values():
        head = Text(f"{task.task_id} {task.name}", style="bold")
        head.append(f"  team {world.team.team_id} · version {teller.version}", style="not bold dim")
        parts += [head, *(stage_line(world.stages[name]) for name in task.stages)]
    if trouble:
        parts.append(Text(trouble, style="bold red"))
    parts += [Text(""), agents_table(teller, moving=True)]
    return Group(*parts)
