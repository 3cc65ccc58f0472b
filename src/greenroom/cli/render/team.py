"""A team as its log describes it: the fold of its events, and the lines, rows and fields of all views."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.cost import format_dollars
from greenroom.app.messages import current_language, translate
from greenroom.app.organisation.inbox import kind_of
from greenroom.app.organisation.people import sort_oldest_first
from greenroom.app.organisation.phrases import ORGANISATION_KIT as ORGANISATION
from greenroom.app.runtime import LoggedEvent, Runtime
from greenroom.app.task_status import RunFigures, TaskStatus, format_duration, read_status
from greenroom.app.words import (
    EVENT_WORDS,
    ORGANISATION_WORDS,
    EventSummary,
    attempt_words,
    describe_event,
    describe_reason,
    end_word,
    find_subtask_name,
    shorten,
    step_words,
)
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StepId, SubtaskId, TaskId, TeamId, agent_of
from greenroom.core.ports.codec import to_json_dict
from greenroom.core.state.agent import AgentState
from greenroom.core.state.archive import build_archive_row
from greenroom.core.state.events import Event
from greenroom.core.state.knowledge import Artifact, BoardValue, Note, ValueSet
from greenroom.core.state.knowledge import describe_artifact as artifact_line
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.reducer import reduce
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import EMPTY_STATE, TeamState, sort_rows


class EventLine(NamedTuple):
    """The summary of one event, with its version and time. `subtask` is the name of the subtask it belongs to."""

    version: int
    at: int
    type: str
    summary: EventSummary
    subtask: str = ""


@dataclass(slots=True)
class TeamHistory(RunFigures):
    """The fold of a team's events, and the records that ended on the way; complete if it starts at version 0.

    `spent_on` has the parts of `spent`. `is_at_most`: a part of them is an estimate for calls that have no believable
    bill. Without `keeps_records` ended records are only counted, for teams that run for days. `language` is that of the
    lines.
    """

    state: TeamState = EMPTY_STATE
    version: int = 0
    keeps_records: bool = True
    language: str = field(default_factory=current_language)
    spent: dict[AgentId, Amounts] = field(default_factory=dict)
    is_at_most: bool = False
    steps_ended: int = 0
    messages_sent: int = 0
    failures: list[str] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    artifacts: dict[tuple[str, str], Artifact] = field(default_factory=dict)
    values: dict[tuple[str, str], BoardValue] = field(default_factory=dict)

    def add(self, logged_event: LoggedEvent) -> EventLine:
        """Add the next event; return its line."""
        event = logged_event.event
        summary = describe_event(self.state, event, self.language.partition("-")[0])
        subtask = find_subtask_name(self.state, event)
        self.count(event, self._find_subtask)
        self._count(event)
        if self.keeps_records:
            self._keep_record(event)
        self.state = reduce(self.state, event)
        self.version = logged_event.version
        return EventLine(logged_event.version, event.at, type(event).__name__, summary, subtask)

    def _find_subtask(self, name: StepId) -> SubtaskId | None:
        step = self.state.steps.get(name)
        return step.subtask_id if step is not None else None

    def _count(self, event: Event) -> None:
        match event:
            case StepEnded() | StepInterrupted():
                agent = agent_of(event.step_id)
                self.spent[agent] = self.spent.get(agent, NOTHING).plus(event.spent)
                # The spent amounts of old logs do not say what was estimated.
                is_unbilled = isinstance(event, StepInterrupted) and bool(event.spent.tokens or event.spent.money)
                self.is_at_most |= is_unbilled or event.spent.estimated > 0
                self.steps_ended += isinstance(event, StepEnded)
                if isinstance(event, StepEnded) and event.state == "failed":
                    self.failures.append(f"{event.step_id}: {event.error}")
            case MessageSent():
                self.messages_sent += 1
            case StepStarted():
                self.spent.setdefault(agent_of(event.step_id), NOTHING)
            case _:
                pass

    def _keep_record(self, event: Event) -> None:
        ended = build_archive_row(self.state, event)
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
        """Return what all agents spent together."""
        total = NOTHING
        for amounts in self.spent.values():
            total = total.plus(amounts)
        return total

    def status(self, name: TaskId) -> TaskStatus:
        """Return the status of a task that was open at the start or created since. Nothing is read from the log."""
        status = read_status(self.state, name)
        if status is not None:
            return status
        task = next(task for task in self.tasks if task.task_id == name)
        return TaskStatus(
            state=task.state if task.state in ("finished", "cancelled") else "failed", reason=task.summary
        )

    def all_tasks(self, only: TaskId | None = None) -> list[Task]:
        """Return ended and open tasks in the order of their creation."""
        tasks = (task for task in (*self.tasks, *self.state.tasks.values()) if only in (None, task.task_id))
        return sorted(tasks, key=lambda task: (len(task.task_id), task.task_id))

    def stages_of(self, task: Task) -> list[Stage]:
        """Return the stages of a task, ended ones first."""
        ended = [stage for stage in self.stages if stage.task_id == task.task_id]
        return [*ended, *(self.state.stages[name] for name in task.stages)]

    def board_of(self, task: Task) -> dict[str, str]:
        """Return the values on the board of a task, by key."""
        return {key: value.content for (task_id, key), value in sorted(self.values.items()) if task_id == task.task_id}

    def artifacts_of(self, task: Task) -> list[Artifact]:
        """Return the newest version of each artifact of a task."""
        return [artifact for key, artifact in sorted(self.artifacts.items()) if key[0] == task.task_id]


async def read_history(runtime: Runtime, team: TeamId, at: int | None = None) -> TeamHistory:
    """Read the log up to version `at`, or all of it. No model is called and nothing is run."""
    history = TeamHistory()
    async for logged_event in runtime.events(team):
        if at is not None and logged_event.version > at:
            break
        history.add(logged_event)
    return history


AGENT_COLUMNS: Final = (
    Column(name="agent"),
    Column(name="role", style="dim", can_shrink=True, min_terminal_width=80),
    Column(name="doing", can_shrink=True),
    Column(name="step", style="dim", min_width=7, min_terminal_width=60),
    Column(name="state", min_width=9),
    Column(name="tokens", right=True, min_width=6, min_terminal_width=70),
    Column(name="time", right=True, min_width=6, min_terminal_width=50),
)
AGENT_COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
MAX_AGENT_ROWS: Final = 16  # rows that fit on a screen
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STATE_STYLES: Final = {"working": "bold", "waiting": "yellow", "asking": "yellow", "paused": "yellow", "idle": "dim"}


def colour(state: TeamState, agent: str) -> str:
    """Return the colour of an agent. It stays the same until an agent before it leaves."""
    names: list[str] = sorted(state.agents)
    return AGENT_COLOURS[names.index(agent) % len(AGENT_COLOURS)] if agent in names else ""


def describe_activity(state: TeamState, agent: AgentState, language: str = "en") -> tuple[str, str, str]:
    """Return what an agent does in words, its step, and its state."""
    if agent.running is not None:
        step = state.steps[agent.running]
        subtask = _describe_subtask(state, step, language)
        what = f"{step_words(step, language)}{subtask}{attempt_words(step.attempt, language)}"
        return what, step.step_id, "working" if step.state == "running" else step.state
    pending = [
        approval
        for approval in state.approvals.values()
        if (approval.agent_id, approval.state) == (agent.agent_id, "pending")
    ]
    if pending:
        return (
            EVENT_WORDS.phrase("doing", "asks", language, text=shorten(pending[0].question, 60)),
            pending[0].step_id,
            "asking",
        )
    if agent.step_lock:
        names = ", ".join(dict.fromkeys(state.waits[name].on for name in agent.step_lock if name in state.waits))
        return EVENT_WORDS.phrase("doing", "waits", language, names=names), "", "waiting"
    if agent.todo:
        step = state.steps[agent.todo[0]]
        state_name = "paused" if state.team.paused or state.tasks[step.task_id].paused else "queued"
        return EVENT_WORDS.phrase("doing", "next", language, text=step_words(step, language)), step.step_id, state_name
    return EVENT_WORDS.phrase("doing", "person", language) if agent.spec.kind == "human" else "", "", "idle"


def _describe_subtask(state: TeamState, step: Step, language: str) -> str:
    stage = state.stages.get(step.stage_id) if step.stage_id else None
    subtask = stage.find_subtask(step.subtask_id) if stage and step.subtask_id else None
    if subtask is None or subtask.name == step.agent_id or step.work.type != "skill" or step.answers is not None:
        return ""
    return EVENT_WORDS.phrase("doing", "about", language, name=subtask.name)


def render_agents(history: TeamHistory, *, is_live: bool = False) -> FittedTable:
    """Render a row per agent. With `is_live` working agents have a spinner and a running time."""
    now = int(time.time() * 1000) if is_live else history.at
    agents, is_cut = history.state.agents.values(), len(history.state.agents) > MAX_AGENT_ROWS
    # If there are too many agents, those with work come first.
    shown = sorted(agents, key=lambda agent: (is_cut and agent.working_state == "idle", agent.agent_id))[
        :MAX_AGENT_ROWS
    ]
    rows = [_render_agent_row(history, agent, now, is_live=is_live) for agent in shown]
    if is_cut:
        more = EVENT_WORDS.phrase("doing", "more", history.language, count=len(history.state.agents) - MAX_AGENT_ROWS)
        rows.append(make_row("", "", more, "", "", "", ""))
    headings = EVENT_WORDS.table("columns", history.language)
    return FittedTable(
        [replace(column, name=headings[column.name]) for column in AGENT_COLUMNS], rows, is_expanded=is_live
    )


def _render_agent_row(history: TeamHistory, agent: AgentState, now: int, *, is_live: bool) -> list[Text]:
    name, state = agent.agent_id, history.state
    what, step, state_name = describe_activity(state, agent, history.language)
    spent, running = history.spent.get(name, NOTHING), state.steps.get(agent.running) if agent.running else None
    runs_for = max(now - running.started_at, 0) if running and running.started_at else 0
    sign = f"{SPINNER[now // 100 % len(SPINNER)]} " if is_live and agent.running else ""
    return make_row(
        Text(name, style=colour(state, name)),
        agent.spec.role,
        what,
        step,
        Text(
            f"{sign}{EVENT_WORDS.table('states', history.language).get(state_name, state_name)}",
            style=STATE_STYLES.get(state_name, ""),
        ),
        f"{spent.tokens:,}",
        format_duration(spent.millis + runs_for),
    )


def agent_fields(state: TeamState, agent: AgentState, language: str = "en") -> dict[str, object]:
    """Return an agent as fields: what it is, and what it does now."""
    what, step, state_name = describe_activity(state, agent, language)
    return {"agent": agent.agent_id, "role": agent.spec.role, "doing": what, "step": step, "state": state_name}


MAX_TITLE_CHARS: Final = 60  # characters of a task's name
SUBTASK_SIGNS: Final = {
    "init": ("○", "dim"),
    "running": ("●", "bold"),
    "finished": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("–", "dim"),
    "cancelled": ("✗", "dim"),
}
TASK_STYLES: Final = {"finished": "green", "failed": "red", "cancelled": "red", "running": "bold"}


def task_title(task: Task) -> str:
    """Return the name of a task for people. The standing task of an organisation has a name for models."""
    return translate("runs.standing_task") if task.standing else task.name


def render_task(task: Task, stages: list[Stage], note: str, style: str, language: str) -> list[Text]:
    """Render a task with a note after its name, why it is paused, and its stages."""
    head = Text(f"{task.task_id} ", style="dim").append(
        strip_control_characters(shorten(task_title(task), MAX_TITLE_CHARS)), style="not dim bold"
    )
    paused = [render_pause(task.paused, language, "   ")] if task.paused is not None else []
    lines = (Text("  ").append_text(render_stage(stage)) for stage in stages)
    return [head.append(f"  {note}", style=f"not bold {style}".strip()), *paused, *lines]


def render_stage(stage: Stage) -> Text:
    """Render a stage and the states of its subtasks."""
    line = Text(f"{stage.stage_id} {stage.intention}  ", style="bold" if stage.state == "running" else "dim")
    for subtask in stage.subtasks:
        sign, style = SUBTASK_SIGNS[subtask.state]
        line.append(f" {sign} {subtask.name} ", style=f"not bold {style}")
    return line


def render_pause(why: str, language: str, indent: str = "") -> Text:
    phrase = ORGANISATION_WORDS.phrase("picture", "paused", language, why=describe_reason(why, language))
    return Text(strip_control_characters(f"{indent}{phrase}"), style="yellow")


def render_open_tasks(state: TeamState, note: str = "", language: str = "en") -> Iterator[Text]:
    """Render the open tasks with their open stages. Without a `note`, each names its agents."""
    if state.team.paused is not None:
        yield render_pause(state.team.paused, language)
    for task in sort_oldest_first(state.tasks):
        stages = [state.stages[name] for name in task.stages]
        yield from render_task(task, stages, note or ", ".join(task.group), "dim", language)


def is_organisation(state: TeamState) -> bool:
    return state.team.kit == ORGANISATION


def language_of(state: TeamState) -> str:
    """Return the language of the people in a team."""
    return next((agent.spec.language for agent in sort_rows(state.agents) if agent.spec.kind == "human"), "en")


def render_organisation_head(state: TeamState, language: str) -> Text:
    budget = state.budgets[TEAM_BUDGET]
    spent, most = format_dollars(budget.spent.money), budget.limits.money
    money = (
        spent
        if most is None
        else ORGANISATION_WORDS.phrase("picture", "of", language, spent=spent, most=format_dollars(most))
    )
    busy = sum(1 for agent in state.agents.values() if agent.running is not None)
    known = {"name": state.team.name, "tasks": max(len(state.tasks) - 1, 0), "busy": busy, "money": money}
    return Text(strip_control_characters(ORGANISATION_WORDS.phrase("picture", "head", language, **known)), style="bold")


def render_waits(state: TeamState, language: str) -> Iterator[Text]:
    """Render which agent waits for which, and which people have to answer."""
    for agent in sort_rows(state.agents):
        if waited_agents := find_waited_for(state, agent):
            known = {"who": agent.agent_id, "whom": ", ".join(waited_agents)}
            yield Text(ORGANISATION_WORDS.phrase("picture", "waits", language, **known), style="yellow")
    for agent in sort_rows(state.agents):
        count = sum(1 for mail in state.mail.values() if agent.agent_id in mail.receiver)
        if agent.spec.kind == "human" and count:
            owes = {"who": agent.agent_id, "count": count, "name": state.team.name}
            yield Text(ORGANISATION_WORDS.phrase("picture", "owes", language, **owes), style="bold yellow")


def find_waited_for(state: TeamState, agent: AgentState) -> tuple[str, ...]:
    """Return the names that an agent waits for."""
    waiting_agents = [state.waits[wait].on for wait in agent.step_lock if wait in state.waits]
    approvals = (
        mail for mail in sort_rows(state.mail) if mail.sender_id == agent.agent_id and kind_of(mail) == "approval"
    )
    return tuple(dict.fromkeys((*waiting_agents, *(person for mail in approvals for person in mail.receiver))))


def render_team(history: TeamHistory, trouble: str | None = None, *, is_live: bool = True) -> RenderableType:
    """Render the current state of a team, for the live area and for `team status`."""
    state, language = history.state, history.language
    has_organisation = is_organisation(state)
    known = {"team": state.team.team_id, "version": history.version}
    note = "" if has_organisation else translate("runs.run_version", **known)
    parts: list[RenderableType] = [Text("")] if is_live else []
    parts += [render_organisation_head(state, language)] if has_organisation else []
    parts += render_open_tasks(state, note, language)
    parts += [Text(trouble, style="bold red")] if trouble else []
    parts += [Text(""), render_agents(history, is_live=is_live)]
    return Group(*parts, *(render_waits(state, language) if has_organisation else ()))


MAX_ITEMS_SHOWN: Final = 6  # notes and messages shown
PLAN_KEY: Final = "plan"  # its key on the board


def render_history(
    history: TeamHistory, how: str, only: TaskId | None = None, results: Sequence[RenderableType] = ()
) -> list[RenderableType]:
    """Render all that is known of a team, for `show` and `replay`. `how` names the process that runs it, or the
    version. `results` is the table of a team run, in place of the rows of its agents."""
    parts: list[RenderableType] = [_render_heading(history, how)]
    for task in history.all_tasks(only):
        parts += ["", *_render_whole_task(history, task)]
    if history.state.agents:
        parts += ["", *(results or (render_agents(history),))]
    parts += _render_origins(history.state)
    parts += _render_open_steps(history.state)
    message_lines = [
        (message.sender_id, f" → {', '.join(message.receiver)}: {shorten(message.message)}")
        for message in history.messages
        if message.kind != "instruction"
    ]
    note_lines = [(note.agent_id, f": {shorten(note.content)}") for note in history.notes]
    for title, lines in (
        (translate("runs.messages", count=len(history.messages)), message_lines),
        (translate("runs.on_board", count=len(note_lines)), note_lines),
    ):
        if lines:
            parts += ["", Text(title, style="dim")]
            parts += [
                Text(f"  {name}", style=colour(history.state, name)).append(text, style="default")
                for name, text in lines[-MAX_ITEMS_SHOWN:]
            ]
    return parts


def _render_heading(history: TeamHistory, how: str) -> Text:
    team = history.state.team
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(history.began_at / 1000))
    key = "runs.heading_team" if is_organisation(history.state) else "runs.heading"
    text = Text(translate(key, team=team.team_id, name=team.name, began=began, how=how), style="bold")
    if team.origin:
        origin = translate("runs.forked_from", team=team.origin.team_id, version=team.origin.version)
        text.append(f"\n{origin}", style="not bold dim")
    return Text("\n").join((text, render_pause(team.paused, history.language))) if team.paused else text


def _render_whole_task(history: TeamHistory, task: Task) -> list[RenderableType]:
    state, stages = TASK_STYLES.get(task.state, ""), history.stages_of(task)
    parts: list[RenderableType] = [
        *render_task(task, [], end_word(task.state, history.language), state, history.language)
    ]
    for stage in () if history.state.team.kit == TEAM_RUN else stages:  # the table of a team run has its subtasks
        parts.append(Text("  ").append_text(render_stage(stage)))
        for subtask in stage.subtasks:
            if subtask.summary:
                known = {"name": subtask.name, "agent": subtask.agent, "summary": shorten(subtask.summary, 90)}
                parts.append(Text(f"      {translate('runs.subtask_done', **known)}", style="dim"))
    parts += [Text(f"  {line}", style="dim") for line in history.board_of(task).get(PLAN_KEY, "").splitlines()]
    parts += [
        Text(f"  {translate('runs.artifact', artifact=artifact_line(artifact))}", style="dim")
        for artifact in history.artifacts_of(task)
    ]
    if task.uncertain:
        parts.append(Text(f"  {translate('runs.uncertain', steps=', '.join(task.uncertain))}", style="yellow"))
    if task.evidence:
        evidence = ", ".join(dict.fromkeys(task.evidence))
        parts.append(Text(f"  {translate('runs.evidence', evidence=evidence)}", style="dim"))
    return parts


def _render_origins(state: TeamState) -> Iterator[Text]:
    """Render the sources that open conversations have read, and whether they ask before data leaves."""
    for thread in sort_rows(state.threads):
        if thread.origins:
            key = "runs.has_read" if thread.exposed_at is None else "runs.has_read_asks"
            line = translate(key, thread=thread.thread_id, origins=", ".join(thread.origins))
            yield Text(line, style="dim" if thread.exposed_at is None else "yellow")


def _render_open_steps(state: TeamState) -> list[RenderableType]:
    pending = [approval for approval in state.approvals.values() if approval.state == "pending"]
    parts: list[RenderableType] = [
        Text(f"? {translate('runs.asks', agent=approval.agent_id, question=approval.question)}", style="yellow")
        for approval in pending
    ]
    steps = (step for name in sorted(state.agents) for step in state.steps_of(name))
    waiting = [step for step in steps if step.state not in ("running", "cancelling")]
    if waiting:
        step_list = ", ".join(f"{step.step_id} {step_words(step)}" for step in waiting[:MAX_ITEMS_SHOWN])
        hidden = len(waiting) - MAX_ITEMS_SHOWN
        more = translate("counts.and_more", count=hidden) if hidden > 0 else ""
        parts.append(Text(translate("runs.to_do", steps=f"{step_list}{more}"), style="dim"))
    return ["", *parts] if parts else []


def team_fields(history: TeamHistory, owner: str | None, only: TaskId | None = None) -> dict[str, object]:
    """Return a team as fields: the records as in the log, and a row per agent."""
    state = history.state
    tasks = [
        {
            **to_json_dict(task),
            "stages": [to_json_dict(stage) for stage in history.stages_of(task)],
            "artifacts": [to_json_dict(artifact) for artifact in history.artifacts_of(task)],
            "board": history.board_of(task),
        }
        for task in history.all_tasks(only)
    ]
    spent = {name: history.spent.get(name, NOTHING) for name in sorted(state.agents)}
    agents = [
        {**agent_fields(state, state.agents[name]), "tokens": amounts.tokens, "millis": amounts.millis}
        for name, amounts in spent.items()
    ]
    return {
        "team": to_json_dict(state.team),
        "version": history.version,
        "owner": owner,
        "tasks": tasks,
        "agents": agents,
        "open_steps": [to_json_dict(step) for step in state.steps.values()],
        "approvals": [to_json_dict(approval) for approval in state.approvals.values()],
        "read": {thread.thread_id: list(thread.origins) for thread in sort_rows(state.threads) if thread.origins},
        "messages": len(history.messages),
        "notes": [to_json_dict(note) for note in history.notes],
        "steps_ended": history.steps_ended,
        "spent": to_json_dict(history.total()),
    }
