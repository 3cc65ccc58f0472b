"""Portraits: tasks, stages, agents and steps in MAS's own words (its §2), as plain dicts that JSON can hold.

Read-only views for pages and questions; nothing in the house depends on them. The world holds open work only: what is
over is in the archive, and whoever has it from there hands it in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from greenroom.core.base.ids import NO_RELATIVE, AgentId
from greenroom.core.base.records import Data
from greenroom.core.state.knowledge import Note
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

Portrait = dict[str, object]

MASK: Final = "***"
SECRETS: Final = ("password", "passwd", "secret", "token", "key", "credential", "authorization")


def portray_task(task: Task, stages: Iterable[Stage], notes: Iterable[Note]) -> Portrait:
    """A task, open or over. Its queue is always empty: a sent message is with its receivers at once."""
    return {
        "task_id": task.task_id,
        "task_name": task.name,
        "task_intention": task.intention,
        "task_manager": task.manager,
        "task_group": list(task.group),
        "shared_message_pool": [_note(note) for note in notes],
        "communication_queue": [],
        "stage_list": [portray_stage(stage) for stage in stages],
        "execution_state": task.state,
        "task_summary": task.summary,
    }


def _note(note: Note) -> Portrait:
    return {"agent_id": note.agent_id, "role": note.role, "stage_id": note.stage_id, "content": note.content}


def portray_stage(stage: Stage) -> Portrait:
    """A stage, open or over. An agent with several subtasks has all of them as its duty."""
    duties: dict[str, list[str]] = {}
    for subtask in stage.subtasks:
        duties.setdefault(subtask.agent, []).append(subtask.duty)
    return {
        "task_id": stage.task_id,
        "stage_id": stage.stage_id,
        "stage_intention": stage.intention,
        "agent_allocation": {agent: "\n".join(duty) for agent, duty in duties.items()},
        "execution_state": stage.state,
        "every_agent_state": {member.agent_id: member.state for member in stage.members},
        "completion_summary": {member.agent_id: member.completion for member in stage.members if member.completion},
    }


def agent_state(
    world: World, agent_id: AgentId, *, ended: Iterable[Step] = (), pool: Portrait | None = None
) -> Portrait:
    """An agent, with everything that made it. `ended` are its steps that are over, from the archive; `pool` is what was
    said to and by it, which only people have."""
    agent = world.agents[agent_id]
    spec = agent.spec
    return {
        "agent_id": agent_id,
        "name": spec.name,
        "role": spec.role,
        "profile": spec.profile,
        "working_state": agent.working_state,
        "llm_config": _masked(spec.llm_config) if spec.llm_config is not None else None,
        "human_config": _masked(spec.human_config) if spec.human_config is not None else None,
        "working_memory": working_memory(world, agent_id),
        "persistent_memory": agent.memory,
        "agent_step": {
            "agent_id": agent_id,
            "todo_list": list(agent.todo),
            "step_list": [portray_step(step) for step in (*ended, *world.steps_of(agent_id))],
        },
        "step_lock": list(agent.step_lock),
        "tools": list(spec.tools),
        "skills": list(spec.skills),
        "conversation_pool": plain(pool),
    }


def working_memory(world: World, agent_id: AgentId) -> dict[str, dict[str, list[str]]]:
    """{task: {stage: [step, …]}} of the agent's unfinished work; what belongs to no stage is under `no_relative`."""
    found: dict[str, dict[str, list[str]]] = {}
    for duty in world.agents[agent_id].duties:
        stages = found.setdefault(duty.task_id, {})
        if duty.stage_id is not None:
            stages.setdefault(duty.stage_id, [])
    for step in world.steps_of(agent_id):
        if step.stage_id is None or step.stage_id in world.stages:
            stages = found.setdefault(step.task_id, {})
            stages.setdefault(step.stage_id or NO_RELATIVE, []).append(step.step_id)
    return found


def portray_step(step: Step) -> Portrait:
    """A step, open or over."""
    work = step.work
    return {
        "task_id": step.task_id,
        "stage_id": step.stage_id or NO_RELATIVE,
        "agent_id": step.agent_id,
        "step_id": step.step_id,
        "step_intention": work.intention,
        "type": work.type,
        "executor": work.executor,
        "execution_state": step.state,
        "text_content": work.text_content,
        "instruction_content": plain(work.instruction_content),
        "execute_result": plain(step.result),
    }


def plain(value: object) -> object:
    """The value as JSON can hold it; what it cannot hold becomes a readable placeholder."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case _:
            return f"<{type(value).__name__}>"


def _masked(config: Data) -> Portrait:
    """A configuration without its secrets. Numbers are never secrets: `max_tokens` stays."""
    return {str(key): _mask(str(key), value) for key, value in config.items()}


def _mask(key: str, value: object) -> object:
    if isinstance(value, int | float | None):
        return plain(value)
    if any(word in key.lower() for word in SECRETS):
        return MASK
    match value:
        case Mapping():
            return _masked(value)
        case list() | tuple():
            return [_mask("", one) for one in value]
        case _:
            return plain(value)
