"""The inbox of a person in an organisation, as text and as JSON fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from greenroom.app.organisation.inbox import InboxMessage, approval_of, render_notices, subtask_of
from greenroom.app.organisation.phrases import command_phrases
from greenroom.app.words import inbox_phrase
from greenroom.cli.errors import Json
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.team import agent_fields, colour, describe_activity, find_waited_for
from greenroom.core.base.ids import AgentId
from greenroom.core.state.message import Message
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import TeamState, sort_rows

INDENT: Final = "    "
"""Indents text of others, so that an agent cannot write a line that looks like Greenroom's."""


class HangingText:
    """Text wrapped between words; continuation lines keep the indent of their line."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split(allow_blank=True):
            indent = len(line.plain) - len(line.plain.lstrip())
            rest_indent = indent or len(INDENT)
            width = options.max_width - (indent if line.cell_len <= options.max_width else rest_indent)
            for index, part in enumerate(line[indent:].wrap(console, max(width, 20)) or [Text("")]):
                yield Text(" " * (rest_indent if index else indent)).append_text(part)


def render_inbox_message(state: TeamState, inbox_message: InboxMessage, language: str) -> Text:
    """Render a message that waits for an answer: its number, sender and text, and how to answer it."""
    message = inbox_message.message
    text = Text(f"{inbox_message.number}", style="bold yellow").append("  ")
    text.append(message.sender_id, style=f"not bold {colour(state, message.sender_id)}".strip())
    stage = str((message.data or {}).get("stage_id", message.stage_relative))
    kind = "asks" if inbox_message.kind == "question" else inbox_message.kind
    waits = inbox_phrase("waits", language) if inbox_message.waiting is not None else ""
    text.append(f" · {inbox_phrase(kind, language, stage=stage)}{waits}\n", style="not bold dim")
    text.append(_indent(_find_body(state, inbox_message, language)), style="not bold default")
    return text.append(f"\n    {how_to_answer(state, inbox_message, language)}", style="not bold dim")


def _find_body(state: TeamState, inbox_message: InboxMessage, language: str) -> str:
    """Return the text of a message. The start of a duty, which the log has in English, is translated."""
    text = inbox_message.message.message
    stage = (
        state.stages.get(inbox_message.stage)
        if inbox_message.stage is not None and inbox_message.kind == "duty"
        else None
    )
    subtask = stage.find_subtask(subtask_of(inbox_message.message)) if stage is not None else None
    if stage is None or subtask is None:
        return text
    known = {"goal": stage.intention, "duty": subtask.duty}
    logged = inbox_phrase("briefing", "en", **known)
    return inbox_phrase("briefing", language, **known) + text.removeprefix(logged) if text.startswith(logged) else text


def how_to_answer(state: TeamState, inbox_message: InboxMessage, language: str) -> str:
    """Return how to answer a message, with the permission rule if there is one."""
    approval = state.approvals.get(approval_of(inbox_message.message)) if inbox_message.kind == "approval" else None
    kind = (
        "question"
        if approval is not None and approval.words
        else "duty"
        if inbox_message.kind == "stage"
        else inbox_message.kind
    )
    how = inbox_phrase(f"how_{kind}", language, number=inbox_message.number)
    if approval is None or approval.words or not approval.grant:
        return how
    rules = strip_control_characters(approval.grant.replace("\n", "; "))
    return f"{how}; {inbox_phrase('how_always', language, number=inbox_message.number, rules=rules)}"


def render_message(state: TeamState, message: Message, language: str, me: AgentId) -> Text:
    """Render a message that needs no answer; a notice is rendered in Greenroom's own words."""
    own_notices = render_notices(message, me, language)
    if own_notices:
        lines = (
            Text("◆ ", style="bold blue").append(hang_indent(notice), style="not bold default")
            for notice in own_notices
        )
        return Text("\n").join(lines)
    text = Text(f"#{message.group} " if message.group else "", style="dim")
    text.append(message.sender_id, style=f"not dim bold {colour(state, message.sender_id)}".strip())
    return text.append("\n").append(_indent(message.message), style="not dim not bold default")


def _indent(text: str) -> str:
    return "\n".join(f"{INDENT}{line}" for line in strip_control_characters(text).splitlines()) or INDENT


def hang_indent(text: str) -> str:
    """Indent all lines but the first, so that text of others never starts a line."""
    return f"\n{INDENT}".join(strip_control_characters(text).splitlines())


def agent_lines(state: TeamState, me: AgentId, language: str) -> Iterator[Text]:
    """Render all agents: what they are, and what they do now."""
    for agent in sort_rows(state.agents):
        what, _, state_name = describe_activity(state, agent, language)
        busy = (
            what
            if agent.running or agent.step_lock or agent.todo or state_name == "asking"
            else inbox_phrase("idle", language)
        )
        parts = dict.fromkeys(
            (agent.spec.role, inbox_phrase("person", language) if agent.spec.kind == "human" else busy)
        )
        line = Text(agent.agent_id, style=f"bold {colour(state, agent.agent_id)}".strip())
        you_mark = inbox_phrase("you", language) if agent.agent_id == me else ""
        yield line.append(strip_control_characters(f"{you_mark}  {' · '.join(parts)}"), style="not bold default")


def help_parts(language: str, manager: str) -> list[RenderableType]:
    """Render the commands and what they do."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(style="dim")
    for command in command_fields(language):
        grid.add_row(f"  /{command['command']} {command['takes']}", str(command["about"]))
    return [Text(inbox_phrase("plain", language, manager=manager)), grid, Text(inbox_phrase("literal", language))]


def message_fields(message: Message, number: int | None) -> Json:
    """Return a message as fields; `number` is its number in the inbox."""
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


def inbox_message_fields(inbox_message: InboxMessage) -> Json:
    """Return a message that waits for an answer as fields."""
    return {
        **message_fields(inbox_message.message, inbox_message.number),
        "wants": inbox_message.kind,
        "waiting_id": inbox_message.waiting,
    }


def agents_fields(state: TeamState, me: AgentId, language: str) -> Iterator[Json]:
    """Yield the fields of all agents: what they are, what they do, and whom they wait for."""
    for agent in sort_rows(state.agents):
        fields = agent_fields(state, agent, language)
        extra_fields = {
            "kind": agent.spec.kind,
            "you": agent.agent_id == me,
            "waits_for": list(find_waited_for(state, agent)),
        }
        yield {**fields, **extra_fields, "step": fields["step"] or None}


def task_fields(state: TeamState, task: Task) -> Json:
    """Return the fields of an open task with its open stages."""
    stages = [state.stages[name] for name in task.stages]
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
    """Return the fields of a tool call by a person, with its result."""
    result, work = dict(call.result or {}), call.work.executor
    output = str(result.get("output", ""))
    return {"tool": work, "stage": stage, "state": call.state, "output": output, "error": call.error, "result": result}


def command_fields(language: str) -> Iterator[Json]:
    for name, help_text in command_phrases(language).items():
        takes, _, about = help_text.rpartition("  ")
        yield {"command": name, "takes": takes, "about": about}
