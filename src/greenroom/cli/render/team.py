"""A team as its log tells it: one fold of its events, and the lines, rows and fields that all views show of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.organisation.inbox import kind_of
from greenroom.app.organisation.people import oldest_first
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.app.runtime import Runtime, Told
from greenroom.app.task_status import Standing, standing
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.words import CATALOGUE, WORDS, Said, attempt_words, reason, say, shorten, step_words
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TaskId, TeamId, agent_of
from greenroom.core.ports.codec import plain
from greenroom.core.state.agent import Agent
from greenroom.core.state.archive import archived
from greenroom.core.state.events import Event
from greenroom.core.state.fold import fold
from greenroom.core.state.knowledge import Artifact, Note, Value, ValueSet
from greenroom.core.state.knowledge import told as artifact_line
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.task import Task
from greenroom.core.state.world import NOWHERE, World, ordered

# -------------------------------------------------------------------------------------------------------- the history


class Line(NamedTuple):
    """What one event says, with its place and time."""

    version: int
    at: int
    type: str
    said: Said


@dataclass(slots=True)
class TeamHistory:
    """The fold of a team's events, and what has ended on the way: everything, if it began at version 0.

    `at_most`: a part of `spent` is what interrupted calls had reserved, because their cost is unknown. Without `keeps`
    the records that ended are only counted: for a team that runs for days. `language` is that of the lines.
    """

    world: World = NOWHERE
    version: int = 0
    keeps: bool = True
    language: str = "en"
    spent: dict[AgentId, Amounts] = field(default_factory=dict)
    at_most: bool = False
    steps_ended: int = 0
    messages_sent: int = 0
    failures: list[str] = field(default_factory=list)
    began_at: int = 0
    at: int = 0
    tasks: list[Task] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    artifacts: dict[tuple[str, str], Artifact] = field(default_factory=dict)
    values: dict[tuple[str, str], Value] = field(default_factory=dict)

    def add(self, told: Told) -> Line:
        """Take the next event; returns what it says."""
        event = told.event
        said = say(self.world, event, self.language.partition("-")[0])
        self._count(event)
        if self.keeps:
            self._keep(event)
        self.world = fold(self.world, event)
        self.version, self.at = told.version, event.at
        self.began_at = self.began_at or event.at
        return Line(told.version, event.at, type(event).__name__, said)

    def _count(self, event: Event) -> None:
        match event:
            case StepEnded() | StepInterrupted():
                agent = agent_of(event.step_id)
                self.spent[agent] = self.spent.get(agent, NOTHING).plus(event.spent)
                self.at_most |= isinstance(event, StepInterrupted) and bool(event.spent.tokens or event.spent.money)
                self.steps_ended += isinstance(event, StepEnded)
                if isinstance(event, StepEnded) and event.state == "failed":
                    self.failures.append(f"{event.step_id}: {event.error}")
            case MessageSent():
                self.messages_sent += 1
            case StepStarted():
                self.spent.setdefault(agent_of(event.step_id), NOTHING)
            case _:
                pass

    def _keep(self, event: Event) -> None:
        ended = archived(self.world, event)
        match ended.record if ended else event:
            case Task() as task:
                self.tasks.append(task)
            case Stage() as stage:
                self.stages.append(stage)
            case Step() as step:
                self.steps.append(step)
            case Message() as message:
                self.messages.append(message)
            case Note() as note:
                self.notes.append(note)
            case Artifact() as artifact:
                self.artifacts[artifact.task_id, artifact.artifact_id] = artifact
            case ValueSet(value=value):
                self.values[value.task_id, value.key] = value
            case _:
                pass

    def total(self) -> Amounts:
        """What all agents spent together."""
        total = NOTHING
        for amounts in self.spent.values():
            total = total.plus(amounts)
        return total

    def status(self, name: TaskId) -> Standing:
        """How a task stands that was open when this began, or was added since. Nothing is read for it."""
        found = standing(self.world, name)
        if found is not None:
            return found
        task = next(task for task in self.tasks if task.task_id == name)
        return Standing(word=task.state if task.state in ("finished", "cancelled") else "failed", why=task.summary)

    def all_tasks(self, only: TaskId | None = None) -> list[Task]:
        """Ended and open tasks in the order they were made."""
        every = (task for task in (*self.tasks, *self.world.tasks.values()) if only in (None, task.task_id))
        return sorted(every, key=lambda task: (len(task.task_id), task.task_id))

    def stages_of(self, task: Task) -> list[Stage]:
        """The task's stages, ended ones first."""
        ended = [stage for stage in self.stages if stage.task_id == task.task_id]
        return [*ended, *(self.world.stages[name] for name in task.stages)]

    def board_of(self, task: Task) -> dict[str, str]:
        """What the task's board holds by key, or held when it ended."""
        return {key: value.content for (of, key), value in sorted(self.values.items()) if of == task.task_id}

    def artifacts_of(self, task: Task) -> list[Artifact]:
        """The newest versions of the task's artifacts, by id."""
        return [artifact for key, artifact in sorted(self.artifacts.items()) if key[0] == task.task_id]


async def read_history(runtime: Runtime, team: TeamId, at: int | None = None) -> TeamHistory:
    """Read the log up to version `at`, or all of it. No model is asked and nothing is run."""
    history = TeamHistory()
    async for told in runtime.events(team):
        if at is not None and told.version > at:
            break
        history.add(told)
    return history


# ------------------------------------------------------------------------------------------------------------- figures

MILLION: Final = 1_000_000


def seconds(millis: int) -> str:
    """A length of time, as short as it can be said."""
    if millis < 60_000:
        return f"{millis / 1000:.1f}s"
    minutes, rest = divmod(millis // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def dollars(money: int) -> str:
    """Millionths of a dollar, with as many digits as it takes to see them."""
    value = money / MILLION
    return f"${value:,.2f}" if value >= 1 or not money else f"${value:.4f}" if value >= 0.0001 else f"${value:.6f}"


# -------------------------------------------------------------------------------------------------------------- agents

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
STATES: Final = {"working": "bold", "waiting": "yellow", "asking": "yellow", "paused": "yellow", "idle": "dim"}


def colour(world: World, agent: str) -> str:
    """An agent keeps its colour as long as no agent before it leaves."""
    names: list[str] = sorted(world.agents)
    return COLOURS[names.index(agent) % len(COLOURS)] if agent in names else ""


def doing(world: World, agent: Agent, language: str = "en") -> tuple[str, str, str]:
    """What the agent does in words, its step, and its state in a word."""
    if agent.running is not None:
        step = world.steps[agent.running]
        what = f"{step_words(step, language)}{_about(world, step, language)}{attempt_words(step.attempt, language)}"
        return what, step.step_id, "working" if step.state == "running" else step.state
    asked = [
        found for found in world.approvals.values() if (found.agent_id, found.state) == (agent.agent_id, "pending")
    ]
    if asked:
        return WORDS.phrase("doing", "asks", language, text=shorten(asked[0].question, 60)), asked[0].step_id, "asking"
    if agent.step_lock:
        names = ", ".join(dict.fromkeys(world.waits[name].on for name in agent.step_lock if name in world.waits))
        return WORDS.phrase("doing", "waits", language, names=names), "", "waiting"
    if agent.todo:
        step = world.steps[agent.todo[0]]
        state = "paused" if world.team.paused or world.tasks[step.task_id].paused else "queued"
        return WORDS.phrase("doing", "next", language, text=step_words(step, language)), step.step_id, state
    return WORDS.phrase("doing", "person", language) if agent.spec.kind == "human" else "", "", "idle"


def _about(world: World, step: Step, language: str) -> str:
    """Which subtask an agent thinks about."""
    stage = world.stages.get(step.stage_id) if step.stage_id else None
    subtask = stage.subtask(step.subtask_id) if stage and step.subtask_id else None
    if subtask is None or subtask.name == step.agent_id or step.work.type != "skill" or step.answers is not None:
        return ""
    return WORDS.phrase("doing", "about", language, name=subtask.name)


def agents_table(history: TeamHistory, *, moving: bool = False) -> Fitted:
    """A row per agent. While it is `moving`, an agent that works shows a sign of life and its time goes on."""
    now = int(time.time() * 1000) if moving else history.at
    every, many = history.world.agents.values(), len(history.world.agents) > MOST
    # When they are too many, those that have something to do come first.
    shown = sorted(every, key=lambda agent: (many and agent.working_state == "idle", agent.agent_id))[:MOST]
    rows = [_agent_row(history, agent, now, moving=moving) for agent in shown]
    if many:
        more = WORDS.phrase("doing", "more", history.language, count=len(history.world.agents) - MOST)
        rows.append(row("", "", more, "", "", "", ""))
    heads = WORDS.table("columns", history.language)
    return Fitted([replace(column, name=heads[column.name]) for column in COLUMNS], rows, spread=moving)


def _agent_row(history: TeamHistory, agent: Agent, now: int, *, moving: bool) -> list[Text]:
    name, world = agent.agent_id, history.world
    what, step, state = doing(world, agent, history.language)
    spent, running = history.spent.get(name, NOTHING), world.steps.get(agent.running) if agent.running else None
    runs_for = max(now - running.started_at, 0) if running and running.started_at else 0
    sign = f"{SPINNER[now // 100 % len(SPINNER)]} " if moving and agent.running else ""
    return row(
        Text(name, style=colour(world, name)),
        agent.spec.role,
        what,
        step,
        Text(f"{sign}{WORDS.table('states', history.language).get(state, state)}", style=STATES.get(state, "")),
        f"{spent.tokens:,}",
        seconds(spent.millis + runs_for),
    )


def agent_fields(world: World, agent: Agent, language: str = "en") -> dict[str, object]:
    """An agent for programs: what it is, and what it does now."""
    what, step, state = doing(world, agent, language)
    return {"agent": agent.agent_id, "role": agent.spec.role, "doing": what, "step": step, "state": state}


# --------------------------------------------------------------------------------------------------- tasks and stages

TITLE: Final = 60  # characters of a task's name
SUBTASKS: Final = {
    "init": ("○", "dim"),
    "running": ("●", "bold"),
    "finished": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("–", "dim"),
    "cancelled": ("✗", "dim"),
}
STYLES: Final = {"finished": "green", "failed": "red", "cancelled": "red", "running": "bold"}


def task_lines(task: Task, stages: list[Stage], note: str, style: str, language: str) -> list[Text]:
    """A task with a note behind its name, why it is paused, and its stages."""
    head = Text(f"{task.task_id} ", style="dim").append(harmless(shorten(task.name, TITLE)), style="not dim bold")
    paused = [paused_line(task.paused, language, "   ")] if task.paused is not None else []
    lines = (Text("  ").append_text(stage_line(stage)) for stage in stages)
    return [head.append(f"  {note}", style=f"not bold {style}".strip()), *paused, *lines]


def stage_line(stage: Stage) -> Text:
    """A stage and how its subtasks stand."""
    line = Text(f"{stage.stage_id} {stage.intention}  ", style="bold" if stage.state == "running" else "dim")
    for subtask in stage.subtasks:
        sign, style = SUBTASKS[subtask.state]
        line.append(f" {sign} {subtask.name} ", style=f"not bold {style}")
    return line


def paused_line(why: str, language: str, indent: str = "") -> Text:
    """That something is paused, and why."""
    told = CATALOGUE.phrase("picture", "paused", language, why=reason(why, language))
    return Text(harmless(f"{indent}{told}"), style="yellow")


def open_tasks(world: World, note: str = "", language: str = "en") -> Iterator[Text]:
    """Every open task with its open stages; without a `note`, who works on it stands behind its name."""
    if world.team.paused is not None:
        yield paused_line(world.team.paused, language)
    for task in oldest_first(world.tasks):
        stages = [world.stages[name] for name in task.stages]
        yield from task_lines(task, stages, note or ", ".join(task.group), "dim", language)


# ------------------------------------------------------------------------------------------------ an organisation's own


def is_organisation(world: World) -> bool:
    """Whether this team is an organisation."""
    return world.team.kit == ORGANISATION


def language_of(world: World) -> str:
    """The language in which its people are spoken to."""
    return next((agent.spec.language for agent in ordered(world.agents) if agent.spec.kind == "human"), "en")


def organisation_head(world: World, language: str) -> Text:
    """The organisation in one line."""
    budget = world.budgets[TEAM_BUDGET]
    spent, most = dollars(budget.spent.money), budget.limits.money
    money = spent if most is None else CATALOGUE.phrase("picture", "of", language, spent=spent, most=dollars(most))
    busy = sum(1 for agent in world.agents.values() if agent.running is not None)
    known = {"name": world.team.name, "tasks": max(len(world.tasks) - 1, 0), "busy": busy, "money": money}
    return Text(harmless(CATALOGUE.phrase("picture", "head", language, **known)), style="bold")


def waits_lines(world: World, language: str) -> Iterator[Text]:
    """Which agent waits for which, and which people owe an answer."""
    for agent in ordered(world.agents):
        if whom := waited_for(world, agent):
            known = {"who": agent.agent_id, "whom": ", ".join(whom)}
            yield Text(CATALOGUE.phrase("picture", "waits", language, **known), style="yellow")
    for agent in ordered(world.agents):
        count = sum(1 for mail in world.mail.values() if agent.agent_id in mail.receiver)
        if agent.spec.kind == "human" and count:
            owes = {"who": agent.agent_id, "count": count, "name": world.team.name}
            yield Text(CATALOGUE.phrase("picture", "owes", language, **owes), style="bold yellow")


def waited_for(world: World, agent: Agent) -> tuple[str, ...]:
    """Those that an agent waits for."""
    found = [world.waits[wait].on for wait in agent.step_lock if wait in world.waits]
    asked = (mail for mail in ordered(world.mail) if mail.sender_id == agent.agent_id and kind_of(mail) == "approval")
    return tuple(dict.fromkeys((*found, *(person for mail in asked for person in mail.receiver))))


# --------------------------------------------------------------------------------------------------------- whole teams


def picture(history: TeamHistory, trouble: str | None = None, *, moving: bool = True) -> RenderableType:
    """The team as it is now: the live area of a terminal, and what `team status` shows."""
    world, language = history.world, history.language
    organised = is_organisation(world)
    note = "" if organised else f"team {world.team.team_id} · version {history.version}"
    parts: list[RenderableType] = [Text("")] if moving else []
    parts += [organisation_head(world, language)] if organised else []
    parts += open_tasks(world, note, language)
    parts += [Text(trouble, style="bold red")] if trouble else []
    parts += [Text(""), agents_table(history, moving=moving)]
    return Group(*parts, *(waits_lines(world, language) if organised else ()))


NEWEST: Final = 6  # how many notes and messages are shown
PLAN: Final = "plan"  # under which key the board has it


def portrait(history: TeamHistory, how: str, only: TaskId | None = None) -> list[RenderableType]:
    """All that is known of a team, for `show` and `replay`; `how` says which process runs it, or of when it is."""
    parts: list[RenderableType] = [_heading(history, how)]
    for task in history.all_tasks(only):
        parts += ["", *_whole_task(history, task)]
    if history.world.agents:
        parts += ["", agents_table(history)]
    parts += _origins(history.world)
    parts += _open_steps(history.world)
    said = [
        (message.sender_id, f" → {', '.join(message.receiver)}: {shorten(message.message)}")
        for message in history.messages
        if message.kind != "instruction"
    ]
    noted = [(note.agent_id, f": {shorten(note.content)}") for note in history.notes]
    for title, lines in ((f"messages: {len(history.messages)}", said), (f"on the board: {len(noted)}", noted)):
        if lines:
            parts += ["", Text(title, style="dim")]
            parts += [
                Text(f"  {name}", style=colour(history.world, name)).append(text, style="default")
                for name, text in lines[-NEWEST:]
            ]
    return parts


def _heading(history: TeamHistory, how: str) -> Text:
    """The team in one line, and what holds it up."""
    team = history.world.team
    text = Text(f"team {team.team_id}", style="bold").append(f"  {team.name}", style="not bold")
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(history.began_at / 1000))
    text.append(f"  began {began} · {how}", style="not bold dim")
    if team.origin:
        text.append(f"\nforked from {team.origin.team_id} at version {team.origin.version}", style="not bold dim")
    return Text("\n").join((text, paused_line(team.paused, history.language))) if team.paused else text


def _whole_task(history: TeamHistory, task: Task) -> list[RenderableType]:
    state, stages = STYLES.get(task.state, ""), history.stages_of(task)
    parts: list[RenderableType] = [*task_lines(task, [], task.state, state, history.language)]
    for stage in stages:
        parts.append(Text("  ").append_text(stage_line(stage)))
        for subtask in stage.subtasks:
            if subtask.summary:
                done = f"{subtask.name} by {subtask.agent}: {shorten(subtask.summary, 90)}"
                parts.append(Text(f"      {done}", style="dim"))
    parts += [Text(f"  {line}", style="dim") for line in history.board_of(task).get(PLAN, "").splitlines()]
    parts += [Text(f"  artifact {artifact_line(found)}", style="dim") for found in history.artifacts_of(task)]
    if task.uncertain:
        parts.append(Text(f"  uncertain, look yourself: {', '.join(task.uncertain)}", style="yellow"))
    if task.evidence:
        parts.append(Text(f"  evidence: {', '.join(dict.fromkeys(task.evidence))}", style="dim"))
    return parts


def _origins(world: World) -> Iterator[Text]:
    """Where what open conversations have read is from, and whether they may give it away unasked."""
    for thread in ordered(world.threads):
        if thread.origins:
            line = Text(f"{thread.thread_id} has read: {', '.join(thread.origins)}", style="dim")
            asks = "" if thread.exposed_at is None else " (asks before anything leaves)"
            yield line.append(asks, style="yellow")


def _open_steps(world: World) -> list[RenderableType]:
    asked = [found for found in world.approvals.values() if found.state == "pending"]
    parts: list[RenderableType] = [Text(f"? {each.agent_id} asks: {each.question}", style="yellow") for each in asked]
    every = (step for name in sorted(world.agents) for step in world.steps_of(name))
    waiting = [step for step in every if step.state not in ("running", "cancelling")]
    if waiting:
        told = ", ".join(f"{step.step_id} {step_words(step)}" for step in waiting[:NEWEST])
        more = f" and {len(waiting) - NEWEST} more" if len(waiting) > NEWEST else ""
        parts.append(Text(f"to do: {told}{more}", style="dim"))
    return ["", *parts] if parts else []


def team_fields(history: TeamHistory, owner: str | None, only: TaskId | None = None) -> dict[str, object]:
    """For programs: the records as they are in the log, and a row per agent."""
    world = history.world
    tasks = [
        {
            **plain(task),
            "stages": [plain(stage) for stage in history.stages_of(task)],
            "artifacts": [plain(artifact) for artifact in history.artifacts_of(task)],
            "board": history.board_of(task),
        }
        for task in history.all_tasks(only)
    ]
    spent = {name: history.spent.get(name, NOTHING) for name in sorted(world.agents)}
    agents = [
        {**agent_fields(world, world.agents[name]), "tokens": amounts.tokens, "millis": amounts.millis}
        for name, amounts in spent.items()
    ]
    return {
        "team": plain(world.team),
        "version": history.version,
        "owner": owner,
        "tasks": tasks,
        "agents": agents,
        "open_steps": [plain(step) for step in world.steps.values()],
        "approvals": [plain(approval) for approval in world.approvals.values()],
        "read": {thread.thread_id: list(thread.origins) for thread in ordered(world.threads) if thread.origins},
        "messages": len(history.messages),
        "notes": [plain(note) for note in history.notes],
        "steps_ended": history.steps_ended,
        "spent": plain(history.total()),
    }
