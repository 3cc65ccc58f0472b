"""Tasks, stages, agents and steps in MAS's format (its §2), as plain JSON-compatible dicts.

MAS is one of the designs that Greenroom unites. These are read-only views for queries and prompts. The team state holds
open work only: callers pass ended records from the archive.
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
from greenroom.core.state.team_state import TeamState

MasData = dict[str, object]

MASK: Final = "***"
SECRET_WORDS: Final = ("password", "passwd", "secret", "token", "key", "credential", "authorization")


def format_task(task: Task, stages: Iterable[Stage], notes: Iterable[Note]) -> MasData:
    """Format a task, open or ended. Its queue is always empty, because messages are delivered immediately."""
    return {
        "task_id": task.task_id,
        "task_name": task.name,
        "task_intention": task.intention,
        "task_manager": task.manager,
        "task_group": list(task.group),
        "shared_message_pool": [_format_note(note) for note in notes],
        "communication_queue": [],
        "stage_list": [format_stage(stage) for stage in stages],
        "execution_state": task.state,
        "task_summary": task.summary,
    }


def _format_note(note: Note) -> MasData:
    return {"agent_id": note.agent_id, "role": note.role, "stage_id": note.stage_id, "content": note.content}


def format_stage(stage: Stage) -> MasData:
    """Format a stage, open or ended. An agent's duty joins all its subtasks."""
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


def format_agent(
    state: TeamState, agent_id: AgentId, *, ended: Iterable[Step] = (), pool: MasData | None = None
) -> MasData:
    """Format an agent with its spec. `ended` are its ended steps from the archive. `pool` is the conversation pool,
    which only people have."""
    agent = state.agents[agent_id]
    spec = agent.spec
    return {
        "agent_id": agent_id,
        "name": spec.name,
        "role": spec.role,
        "profile": spec.profile,
        "working_state": agent.working_state,
        "llm_config": _mask_config(spec.llm_config) if spec.llm_config is not None else None,
        "human_config": _mask_config(spec.human_config) if spec.human_config is not None else None,
        "working_memory": collect_working_memory(state, agent_id),
        "persistent_memory": agent.memory,
        "agent_step": {
            "agent_id": agent_id,
            "todo_list": list(agent.todo),
            "step_list": [format_step(step) for step in (*ended, *state.steps_of(agent_id))],
        },
        "step_lock": list(agent.step_lock),
        "tools": list(spec.tools),
        "skills": list(spec.skills),
        "conversation_pool": to_json_value(pool),
    }


def collect_working_memory(state: TeamState, agent_id: AgentId) -> dict[str, dict[str, list[str]]]:
    """Return `{task: {stage: [step, …]}}` of the agent's open work. Steps without a stage are under `no_relative`."""
    memory: dict[str, dict[str, list[str]]] = {}
    for duty in state.agents[agent_id].duties:
        stages = memory.setdefault(duty.task_id, {})
        if duty.stage_id is not None:
            stages.setdefault(duty.stage_id, [])
    for step in state.steps_of(agent_id):
        if step.stage_id is None or step.stage_id in state.stages:
            stages = memory.setdefault(step.task_id, {})
            stages.setdefault(step.stage_id or NO_RELATIVE, []).append(step.step_id)
    return memory


def format_step(step: Step) -> MasData:
    """Format a step, open or ended."""
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
        "instruction_content": to_json_value(work.instruction_content),
        "execute_result": to_json_value(step.result),
    }


def to_json_value(value: object) -> object:
    """Convert a value to JSON types. Anything else becomes a readable placeholder."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): to_json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json_value(item) for item in value]
        case _:
            return f"<{type(value).__name__}>"


def _mask_config(config: Data) -> MasData:
    """Return a configuration with its secrets masked. Numbers are never secrets: `max_tokens` stays."""
    return {str(key): _mask_value(str(key), value) for key, value in config.items()}


def _mask_value(key: str, value: object) -> object:
    if isinstance(value, int | float | None):
        return to_json_value(value)
    if any(word in key.lower() for word in SECRET_WORDS):
        return MASK
    match value:
        case Mapping():
            return _mask_config(value)
        case list() | tuple():
            return [_mask_value("", item) for item in value]
        case _:
            return to_json_value(value)
