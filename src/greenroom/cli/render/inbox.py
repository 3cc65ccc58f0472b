"""A person's inbox in an organisation, as text and as JSON fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from greenroom.app.organisation.inbox import Letter, approval_of, notices, subtask_of
from greenroom.app.organisation.words import commands
from greenroom.cli.errors import Json
from greenroom.cli.render.output import harmless
from greenroom.cli.render.team import agent_fields, colour, doing, waited_for
from greenroom.cli.render.words import word
from greenroom.core.base.ids import AgentId
from greenroom.core.state.message import Message
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World, ordered

INDENT: Final = "    "
"""It stands before what others wrote, so that no agent can write a line that looks like one of ours."""


class Hanging:
    """A text on a terminal, broken between words; what a line is broken into is indented like it, and never not."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split(allow_blank=True):
            deep = len(line.plain) - len(line.plain.lstrip())
            rest = deep or len(INDENT)
            wide = options.max_width - (deep if line.cell_len <= options.max_width else rest)
            for place, part in enumerate(line[deep:].wrap(console, max(wide, 20)) or [Text("")]):
                yield Text(" " * (rest if place else deep)).append_text(part)


def letter_text(world: World, letter: Letter, language: str) -> Text:
    """A letter: its number, its sender, what is asked, and how to answer it."""
    message = letter.message
    text = Text(f"{letter.number}", style="bold yellow").append("  ")
    text.append(message.sender_id, style=f"not bold {colour(world, message.sender_id)}".strip())
    stage = str((message.data or {}).get("stage_id", message.stage_relative))
    kind = "asks" if letter.kind == "question" else letter.kind
    waits = word("waits", language) if letter.waiting is not None else ""
    text.append(f" · {word(kind, language, stage=stage)}{waits}\n", style="not bold dim")
    text.append(_indented(_asked(world, letter, language)), style="not bold default")
    return text.append(f"\n    {how_to_answer(world, letter, language)}", style="not bold dim")


def _asked(world: World, letter: Letter, language: str) -> str:
    """What a letter says. A duty begins with our own words, which the log has in English."""
    said = letter.message.message
    stage = world.stages.get(letter.stage) if letter.stage is not None and letter.kind == "duty" else None
    subtask = stage.subtask(subtask_of(letter.message)) if stage is not None else None
    if stage is None or subtask is None:
        return said
    known = {"goal": stage.intention, "duty": subtask.duty}
    logged = word("briefing", "en", **known)
    return word("briefing", language, **known) + said.removeprefix(logged) if said.startswith(logged) else said


def how_to_answer(world: World, letter: Letter, language: str) -> str:
    """How a letter is answered; where a yes may be one to a rule, also that."""
    asked = world.approvals.get(approval_of(letter.message)) if letter.kind == "approval" else None
    kind = "question" if asked is not None and asked.words else "duty" if letter.kind == "stage" else letter.kind
    told = word(f"how_{kind}", language, number=letter.number)
    if asked is None or asked.words or not asked.grant:
        return told
    rules = harmless(asked.grant.replace("\n", "; "))
    return f"{told}; {word('how_always', language, number=letter.number, rules=rules)}"


def message_text(world: World, message: Message, language: str, me: AgentId) -> Text:
    """A message that wants no answer: its sender, where, what; our own words where it only tells."""
    told = notices(message, me, language)
    if told:
        each = (Text("◆ ", style="bold blue").append(hang(notice), style="not bold default") for notice in told)
        return Text("\n").join(each)
    text = Text(f"#{message.group} " if message.group else "", style="dim")
    text.append(message.sender_id, style=f"not dim bold {colour(world, message.sender_id)}".strip())
    return text.append("\n").append(_indented(message.message), style="not dim not bold default")


def _indented(text: str) -> str:
    return "\n".join(f"{INDENT}{line}" for line in harmless(text).splitlines()) or INDENT


def hang(text: str) -> str:
    """Our own words with something of others in them: ours have the first line, and no other begins like it."""
    return f"\n{INDENT}".join(harmless(text).splitlines())


def agent_lines(world: World, me: AgentId, language: str) -> Iterator[Text]:
    """All agents: what they are, and what they do now."""
    for agent in ordered(world.agents):
        what, _, state = doing(world, agent, language)
        busy = what if agent.running or agent.step_lock or agent.todo or state == "asking" else word("idle", language)
        told = dict.fromkeys((agent.spec.role, word("person", language) if agent.spec.kind == "human" else busy))
        line = Text(agent.agent_id, style=f"bold {colour(world, agent.agent_id)}".strip())
        mine = word("you", language) if agent.agent_id == me else ""
        yield line.append(harmless(f"{mine}  {' · '.join(told)}"), style="not bold default")


def help_parts(language: str, manager: str) -> list[RenderableType]:
    """What can be typed, and what it does."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(style="dim")
    for command in command_fields(language):
        grid.add_row(f"  /{command['command']} {command['takes']}", str(command["about"]))
    return [Text(word("plain", language, manager=manager)), grid, Text(word("literal", language))]


# ------------------------------------------------------------------------------------------------------- JSON fields


def message_fields(message: Message, number: int | None) -> Json:
    """A message; `number` is that of the letter that it is."""
    return {
        "number": number,
        "message_id": message.message_id,
        "task": message.task_id,
        "from": message.sender_id,
        "to": list(message.receiver),
        "message": message.message,
        "kind": message.kind,
        "need_reply": message.need_reply,
        "waiting": list(message.waiting) if message.waiting is not None else None,
        "stage_relative": message.stage_relative,
        "group": message.group,
        "data": dict(message.data) if message.data is not None else None,
        "sent_at": message.sent_at,
    }


def letter_fields(letter: Letter) -> Json:
    """What a person owes an answer to."""
    return {**message_fields(letter.message, letter.number), "wants": letter.kind, "waiting_id": letter.waiting}


def agents_fields(world: World, me: AgentId, language: str) -> Iterator[Json]:
    """All agents: what they are, what they do, and whom they wait for."""
    for agent in ordered(world.agents):
        fields = agent_fields(world, agent, language)
        more = {"kind": agent.spec.kind, "you": agent.agent_id == me, "waits_for": list(waited_for(world, agent))}
        yield {**fields, **more, "step": fields["step"] or None}


def task_fields(world: World, task: Task) -> Json:
    """An open task with its open stages."""
    stages = [world.stages[name] for name in task.stages]
    return {
        "task": task.task_id,
        "name": task.name,
        "intention": task.intention,
        "manager": task.manager,
        "group": list(task.group),
        "state": task.state,
        "paused": task.paused,
        "stages": [
            {
                "stage": stage.stage_id,
                "intention": stage.intention,
                "state": stage.state,
                "subtasks": [
                    {"name": part.name, "agent": part.agent, "duty": part.duty, "state": part.state}
                    for part in stage.subtasks
                ],
            }
            for stage in stages
        ],
    }


def call_fields(call: Step, stage: str | None) -> dict[str, object]:
    """A tool that was used by hand, and what came of it."""
    result, work = dict(call.result or {}), call.work.executor
    output = str(result.get("output", ""))
    return {"tool": work, "stage": stage, "state": call.state, "output": output, "error": call.error, "result": result}


def command_fields(language: str) -> Iterator[Json]:
    """What can be typed."""
    for name, told in commands(language).items():
        takes, _, about = told.rpartition("  ")
        yield {"command": name, "takes": takes, "about": about}
