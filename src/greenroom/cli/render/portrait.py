"""A team as it was at some version, put together from its log: for `show` and `replay`, as text and as JSON."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from greenroom.app.runtime import Runtime
from greenroom.cli.render.team import Teller, agents_table, colour, doing, stage_line
from greenroom.cli.render.words import shorten, step_words
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.ports.codec import plain
from greenroom.core.state.archive import archived
from greenroom.core.state.knowledge import Artifact, Note, Value, ValueSet
from greenroom.core.state.knowledge import told as told_of
from greenroom.core.state.message import Message
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import ordered

NEWEST: Final = 6  # how many notes and messages are shown
PLAN: Final = "plan"  # under which key the board has it
STYLES: Final = {"finished": "green", "failed": "red", "cancelled": "red", "running": "bold"}


@dataclass(slots=True)
class Portrait:
    """The teller knows what is open; the lists hold what is over."""

    teller: Teller = field(default_factory=Teller)
    tasks: list[Task] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    artifacts: dict[tuple[str, str], Artifact] = field(default_factory=dict)
    values: dict[tuple[str, str], Value] = field(default_factory=dict)
    steps: int = 0

    def all_tasks(self, only: TaskId | None = None) -> list[Task]:
        """Ended and open tasks in the order they were made."""
        every = [*self.tasks, *self.teller.world.tasks.values()]
        wanted = (task for task in every if only in (None, task.task_id))
        return sorted(wanted, key=lambda task: (len(task.task_id), task.task_id))

    def stages_of(self, task: Task) -> list[Stage]:
        """The task's stages, ended ones first."""
        open_ones = [self.teller.world.stages[name] for name in task.stages]
        return [stage for stage in self.stages if stage.task_id == task.task_id] + open_ones

    def artifacts_of(self, task: Task) -> list[Artifact]:
        """The newest versions of the task's artifacts, by id."""
        return [artifact for key, artifact in sorted(self.artifacts.items()) if key[0] == task.task_id]

    def board_of(self, task: Task) -> dict[str, str]:
        """What the task's board holds by key, or held when it ended."""
        return {key: value.content for (of, key), value in sorted(self.values.items()) if of == task.task_id}


async def portray(runtime: Runtime, team: TeamId, at: int | None = None) -> Portrait:
    """Read the log up to version `at` (or all of it). No model is asked and nothing is run."""
    found = Portrait()
    async for told in runtime.events(team):
        if at is not None and told.version > at:
            break
        row = archived(found.teller.world, told.event)
        match row.record if row else None:
            case Task() as task:
                found.tasks.append(task)
            case Stage() as stage:
                found.stages.append(stage)
            case Message() as message:
                found.messages.append(message)
            case Note() as note:
                found.notes.append(note)
            case Artifact() as artifact:
                found.artifacts[artifact.task_id, artifact.artifact_id] = artifact
            case Step():
                found.steps += 1
            case None:
                pass
        if isinstance(told.event, ValueSet):
            value = told.event.value
            found.values[value.task_id, value.key] = value
        found.teller.tell(told)
    return found


def rendered(portrait: Portrait, how: str, only: TaskId | None = None) -> list[RenderableType]:
    """For people; `how` says in which light it is seen: who runs it, or of when it is."""
    parts: list[RenderableType] = [heading(portrait, how)]
    for task in portrait.all_tasks(only):
        parts += ["", *_task(portrait, task)]
    if portrait.teller.world.agents:
        parts += ["", agents_table(portrait.teller)]
    parts += _read(portrait)
    parts += _open_steps(portrait)
    parts += _talk(portrait)
    return parts


def heading(portrait: Portrait, how: str) -> Text:
    """The team in one line, and what holds it up."""
    team, teller = portrait.teller.world.team, portrait.teller
    text = Text(f"team {team.team_id}", style="bold")
    text.append(f"  {team.name}", style="not bold")
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(teller.began_at / 1000))
    text.append(f"  began {began} · {how}", style="not bold dim")
    if team.origin:
        text.append(f"\nforked from {team.origin.team_id} at version {team.origin.version}", style="not bold dim")
    if team.paused:
        text.append(f"\npaused: {team.paused}", style="yellow")
    return text


def _task(portrait: Portrait, task: Task) -> list[RenderableType]:
    head = Text(f"{task.task_id} {task.name}  ", style="bold")
    head.append(task.state, style=f"not bold {STYLES.get(task.state, '')}".strip())
    if task.paused:
        head.append(f"  paused: {task.paused}", style="not bold yellow")
    parts: list[RenderableType] = [head]
    for stage in portrait.stages_of(task):
        parts.append(Text("  ").append_text(stage_line(stage)))
        parts += [
            Text(f"      {one.name} by {one.agent}: {shorten(one.summary, 90)}", style="dim")
            for one in stage.subtasks
            if one.summary
        ]
    parts += [Text(f"  {line}", style="dim") for line in portrait.board_of(task).get(PLAN, "").splitlines()]
    parts += [Text(f"  artifact {told_of(one)}", style="dim") for one in portrait.artifacts_of(task)]
    if task.uncertain:
        parts.append(Text(f"  uncertain, look yourself: {', '.join(task.uncertain)}", style="yellow"))
    if task.evidence:
        parts.append(Text(f"  evidence: {', '.join(dict.fromkeys(task.evidence))}", style="dim"))
    return parts


def _read(portrait: Portrait) -> list[RenderableType]:
    """Where it comes from what open conversations have read, and whether they may give it away unasked."""
    threads = [one for one in ordered(portrait.teller.world.threads) if one.origins]
    return [
        Text(f"{one.thread_id} has read: {', '.join(one.origins)}", style="dim").append(
            "" if one.exposed_at is None else " (asks before anything leaves)", style="yellow"
        )
        for one in threads
    ]


def _open_steps(portrait: Portrait) -> list[RenderableType]:
    world = portrait.teller.world
    asked = [one for one in world.approvals.values() if one.state == "pending"]
    parts: list[RenderableType] = [Text(f"? {one.agent_id} asks: {one.question}", style="yellow") for one in asked]
    every = (step for name in sorted(world.agents) for step in world.steps_of(name))
    waiting = [step for step in every if step.state not in ("running", "cancelling")]
    if waiting:
        told = ", ".join(f"{step.step_id} {step_words(step)}" for step in waiting[:NEWEST])
        more = f" and {len(waiting) - NEWEST} more" if len(waiting) > NEWEST else ""
        parts.append(Text(f"to do: {told}{more}", style="dim"))
    return ["", *parts] if parts else []


def _talk(portrait: Portrait) -> list[RenderableType]:
    world, parts = portrait.teller.world, list[RenderableType]()
    said = [one for one in portrait.messages if one.kind != "instruction"]
    if said:
        parts += ["", Text(f"messages: {len(portrait.messages)}", style="dim")]
        for message in said[-NEWEST:]:
            line = Text(f"  {message.sender_id}", style=colour(world, message.sender_id))
            parts.append(line.append(f" → {', '.join(message.receiver)}: {shorten(message.message)}", style="default"))
    if portrait.notes:
        parts += ["", Text(f"on the board: {len(portrait.notes)}", style="dim")]
        for note in portrait.notes[-NEWEST:]:
            line = Text(f"  {note.agent_id}", style=colour(world, note.agent_id))
            parts.append(line.append(f": {shorten(note.content)}", style="default"))
    return parts


def fields(portrait: Portrait, owner: str | None, only: TaskId | None = None) -> dict[str, object]:
    """For programs: the records as they are in the log, and a row per agent."""
    world, teller = portrait.teller.world, portrait.teller
    return {
        "team": plain(world.team),
        "version": teller.version,
        "owner": owner,
        "tasks": [
            {
                **plain(task),
                "stages": [plain(stage) for stage in portrait.stages_of(task)],
                "artifacts": [plain(one) for one in portrait.artifacts_of(task)],
                "board": portrait.board_of(task),
            }
            for task in portrait.all_tasks(only)
        ],
        "agents": [_agent(teller, name) for name in sorted(world.agents)],
        "open_steps": [plain(step) for step in world.steps.values()],
        "approvals": [plain(one) for one in world.approvals.values()],
        "read": {one.thread_id: list(one.origins) for one in ordered(world.threads) if one.origins},
        "messages": len(portrait.messages),
        "notes": [plain(note) for note in portrait.notes],
        "steps_ended": portrait.steps,
        "spent": plain(teller.total()),
    }


def _agent(teller: Teller, name: str) -> dict[str, object]:
    agent = next(one for one in teller.world.agents.values() if one.agent_id == name)
    what, step, state = doing(teller.world, agent)
    spent = teller.spent.get(agent.agent_id, NOTHING)
    return {
        "agent": name,
        "role": agent.spec.role,
        "doing": what,
        "step": step,
        "state": state,
        "tokens": spent.tokens,
        "millis": spent.millis,
    }
