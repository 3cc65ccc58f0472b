"""MAS's eleven questions about the house, answered from the world as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, StageId, TaskId
from greenroom.core.rules.draft import unknown
from greenroom.core.rules.intents import AskInfo, Query
from greenroom.core.state.agent import Agent
from greenroom.core.state.stage import Stage
from greenroom.core.state.world import World, ordered


def answer(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    """The answer to one query, or why there is none."""
    return _ANSWERS[intent.query](world, intent, asker)


def _task(world: World, task_id: TaskId, stages: Iterable[Stage]) -> str:
    task = world.tasks[task_id]
    head = f"## {task.task_id} {task.name}\n- state: {task.state}\n- goal: {task.intention}\n- manager: {task.manager}"
    group = f"- group: {', '.join(task.group)}"
    return "\n".join([head, group, *(_stage(stage) for stage in stages)])


def _stage(stage: Stage) -> str:
    lines = [f"### {stage.stage_id}\n- state: {stage.state}\n- goal: {stage.intention}"]
    lines += [f"- {one.agent}: {one.duty} ({one.state})" for one in stage.subtasks]
    lines += [f"- {one.agent_id} reports: {one.completion}" for one in stage.members if one.completion]
    return "\n".join(lines)


def _stages(world: World, task: TaskId) -> list[Stage]:
    return [world.stages[stage] for stage in world.tasks[task].stages]


def _profile(agent: Agent) -> str:
    spec = agent.spec
    return f"- **{agent.agent_id}** {spec.name}, {spec.role}: {spec.profile}".rstrip(": ")


def _managed(world: World, _: AskInfo, asker: Agent) -> str:
    mine = [task for task in ordered(world.tasks) if task.manager == asker.agent_id]
    return "\n".join(_task(world, task.task_id, _stages(world, task.task_id)) for task in mine) or "None."


def _joined(world: World, _: AskInfo, asker: Agent) -> str:
    name = asker.agent_id
    mine = [task.task_id for task in ordered(world.tasks) if name in task.group]
    parts = [_task(world, task, [one for one in _stages(world, task) if one.member(name)]) for task in mine]
    return "\n".join(parts) or "None."


def _one_task(world: World, intent: AskInfo, _: Agent) -> str | Rejected:
    name = TaskId(intent.about[0] if intent.about else intent.task_id)
    if name not in world.tasks:
        return unknown("task", name, tuple(world.tasks))
    return _task(world, name, _stages(world, name))


def _one_stage(world: World, intent: AskInfo, _: Agent) -> str | Rejected:
    name = StageId(intent.about[0] if intent.about else "")
    return _stage(world.stages[name]) if name in world.stages else unknown("stage", name, tuple(world.stages))


def _blueprints(world: World, _: AskInfo, __: Agent) -> str:
    return "\n".join(f"- **{one.name}** {one.role}: {one.profile}" for one in ordered(world.blueprints)) or "None."


def _all_agents(world: World, _: AskInfo, __: Agent) -> str:
    return "\n".join(_profile(agent) for agent in ordered(world.agents))


def _task_agents(world: World, intent: AskInfo, _: Agent) -> str | Rejected:
    name = TaskId(intent.about[0] if intent.about else intent.task_id)
    if name not in world.tasks:
        return unknown("task", name, tuple(world.tasks))
    return "\n".join(_profile(world.agents[one]) for one in world.tasks[name].group)


def _stage_agents(world: World, intent: AskInfo, _: Agent) -> str | Rejected:
    name = StageId(intent.about[0] if intent.about else "")
    if name not in world.stages:
        return unknown("stage", name, tuple(world.stages))
    members = world.stages[name].members
    return "\n".join(_profile(world.agents[one.agent_id]) for one in members if one.agent_id in world.agents)


def _agent_states(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    lines = []
    for name in intent.about or (asker.agent_id,):
        agent = world.agents.get(AgentId(name))
        if agent is None:
            return unknown("agent", name, tuple(world.agents))
        lines.append(_profile(agent))
        lines.append(f"  - working_state: {agent.working_state}; waits for: {', '.join(agent.step_lock) or 'nobody'}")
        lines.append(
            f"  - skills: {', '.join(agent.spec.skills) or 'none'}; tools: {', '.join(agent.spec.tools) or 'none'}"
        )
        lines.append(f"  - open steps: {', '.join(step.step_id for step in world.steps_of(agent.agent_id)) or 'none'}")
    return "\n".join(lines)


def _abilities(world: World, _: AskInfo, __: Agent) -> str:
    return "\n".join(f"- **{one.name}** ({one.type}): {one.description}" for one in ordered(world.abilities)) or "None."


_ANSWERS: Final[dict[Query, Callable[[World, AskInfo, Agent], str | Rejected]]] = {
    "managed_tasks": _managed,
    "joined_tasks": _joined,
    "task": _one_task,
    "stage": _one_stage,
    "blueprints": _blueprints,
    "all_agents": _all_agents,
    "team_agents": _all_agents,
    "task_agents": _task_agents,
    "stage_agents": _stage_agents,
    "agent_states": _agent_states,
    "abilities": _abilities,
}
