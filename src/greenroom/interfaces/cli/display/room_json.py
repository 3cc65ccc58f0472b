"""What a program reads of a person's room: the same things that the room shows to a person, as fields."""

from __future__ import annotations

from collections.abc import Iterator

from greenroom.app.organisation.commands import commands
from greenroom.app.organisation.letters import Letter
from greenroom.app.organisation.pool import Private
from greenroom.core.base.ids import AgentId, StageId
from greenroom.core.state.message import Message
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World, ordered
from greenroom.interfaces.cli.display.json_lines import Json
from greenroom.interfaces.cli.display.organised import waited_for
from greenroom.interfaces.cli.display.rows import doing


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
    """What somebody owes an answer to."""
    return {**message_fields(letter.message, letter.number), "wants": letter.kind, "waiting_id": letter.waiting}


def agents_fields(world: World, me: AgentId, language: str) -> Iterator[Json]:
    """Everybody: what they are, what they do, and whom they wait for."""
    for agent in ordered(world.agents):
        what, step, state = doing(world, agent, language)
        yield {
            "agent": agent.agent_id,
            "role": agent.spec.role,
            "kind": agent.spec.kind,
            "you": agent.agent_id == me,
            "state": state,
            "doing": what,
            "step": step or None,
            "waits_for": list(waited_for(world, agent)),
        }


def task_fields(world: World, task: Task) -> Json:
    """An open task with its open stages."""
    return {
        "task": task.task_id,
        "name": task.name,
        "intention": task.intention,
        "manager": task.manager,
        "group": list(task.group),
        "state": task.state,
        "paused": task.paused,
        "stages": [_stage_fields(world, one) for one in task.stages],
    }


def _stage_fields(world: World, name: StageId) -> Json:
    stage = world.stages[name]
    return {
        "stage": name,
        "intention": stage.intention,
        "state": stage.state,
        "subtasks": [
            {"name": one.name, "agent": one.agent, "duty": one.duty, "state": one.state} for one in stage.subtasks
        ],
    }


def said_fields(other: str, said: Private) -> Json:
    """Something that was said between the person and another."""
    return {"with": other, "from": said.sender_id, "message": said.content, "at": said.timestamp}


def call_fields(call: Step, stage: StageId | None) -> Json:
    """A tool that was used by hand, and what came of it."""
    result = dict(call.result or {})
    return {
        "tool": call.work.executor,
        "stage": stage,
        "state": call.state,
        "output": str(result.get("output", "")),
        "error": call.error,
        "result": result,
    }


def commands_fields(language: str) -> Iterator[Json]:
    """What can be typed."""
    for name, told in commands(language).items():
        takes, _, about = told.rpartition("  ")
        yield {"command": name, "takes": takes, "about": about}
