"""Rules for agents: making, removing, taking part, remembering."""

from __future__ import annotations

import re

from greenroom.core.base.errors import Rejected
from greenroom.core.rules.draft import Draft, Verdict, is_manager, is_trusted, not_manager, unknown
from greenroom.core.rules.endings import cancel_steps
from greenroom.core.rules.intents import AddAgent, AddParticipants, RemoveAgent, UpdateWorkingMemory
from greenroom.core.rules.waits import release_where
from greenroom.core.state.agent import AgentAdded, AgentRemoved, Duty, DutyTaken
from greenroom.core.state.task import ParticipantsAdded
from greenroom.core.state.thread import ThreadClosed

AGENT_NAME = re.compile(r"[^\s#@>:!?/,]{1,64}")
"""Ids of steps, threads and messages are made from an agent's id and these signs, so it may not hold them."""


def add_agent(draft: Draft, intent: AddAgent, by: str) -> Verdict:
    """Make an agent; it lives at once. Its id was never used and its name is free."""
    if not is_manager(draft.world, by):
        return not_manager(by, "make agents")
    world = draft.world
    if not AGENT_NAME.fullmatch(intent.agent_id) or intent.agent_id in ("system", "door"):
        return Rejected(
            code="bad_agent_id",
            why=f"{intent.agent_id!r} cannot be an agent's id.",
            hint="Use 1 to 64 characters without spaces and without # @ > : ! ? / ,",
        )
    if intent.agent_id in world.agents or intent.agent_id in world.retired:
        return Rejected(code="agent_exists", why=f"The agent id {intent.agent_id!r} is taken.", hint="Choose another.")
    spec = intent.spec if intent.spec is not None else world.blueprints.get(intent.blueprint or "")
    if spec is None:
        return unknown("blueprint", str(intent.blueprint), tuple(world.blueprints))
    if spec.manager and not is_trusted(world, by):
        return not_manager(by, "make another manager")
    draft.emit(AgentAdded(at=draft.now, agent_id=intent.agent_id, spec=spec, made_by=by))
    return None


def remove_agent(draft: Draft, intent: RemoveAgent, by: str) -> Verdict:
    """Let an agent go: its queue is skipped, nobody waits for it any more."""
    world = draft.world
    if not is_manager(world, by):
        return not_manager(by, "remove agents")
    agent = world.agents.get(intent.agent_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(world.agents))
    if agent.running is not None:
        return Rejected(
            code="agent_busy",
            why=f"{intent.agent_id!r} runs step {agent.running!r}.",
            hint="Pause its task now, then remove it.",
        )
    if any(task.manager == intent.agent_id for task in world.tasks.values()):
        return Rejected(
            code="agent_manages", why=f"{intent.agent_id!r} manages an open task.", hint="End the task first."
        )
    if any(
        one.agent == intent.agent_id and one.state in ("init", "running")
        for stage in world.stages.values()
        for one in stage.subtasks
    ):
        return Rejected(
            code="agent_allotted",
            why=f"{intent.agent_id!r} has open subtasks.",
            hint="End or hand over its subtasks first.",
        )
    cancel_steps(draft, list(world.steps_of(intent.agent_id)), "skipped")
    release_where(draft, "agent_gone", lambda wait: intent.agent_id in (wait.on, wait.waiter))
    for thread in [one for one in draft.world.threads.values() if one.agent_id == intent.agent_id]:
        draft.emit(ThreadClosed(at=draft.now, thread_id=thread.thread_id))
    draft.emit(AgentRemoved(at=draft.now, agent_id=intent.agent_id, why=intent.why))
    return None


def add_participants(draft: Draft, intent: AddParticipants, by: str) -> Verdict:
    """Add agents to a task's group."""
    task = draft.world.tasks.get(intent.task_id)
    if task is None:
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if by != task.manager and not is_trusted(draft.world, by):
        return not_manager(by, f"add agents to task {task.task_id!r}")
    for agent in intent.agents:
        if agent not in draft.world.agents:
            return unknown("agent", agent, tuple(draft.world.agents))
    draft.emit(ParticipantsAdded(at=draft.now, task_id=intent.task_id, agents=intent.agents))
    return None


def update_working_memory(draft: Draft, intent: UpdateWorkingMemory, by: str) -> Verdict:
    """Remember a task or stage; nothing that is remembered is lost by it."""
    world = draft.world
    if by != intent.agent_id and not is_manager(world, by):
        return not_manager(by, f"change the working memory of {intent.agent_id!r}")
    if intent.agent_id not in world.agents:
        return unknown("agent", intent.agent_id, tuple(world.agents))
    if intent.task_id not in world.tasks:
        return unknown("task", intent.task_id, tuple(world.tasks))
    if intent.stage_id is not None and intent.stage_id not in world.tasks[intent.task_id].stages:
        return unknown("stage", intent.stage_id, world.tasks[intent.task_id].stages)
    duty = Duty(task_id=intent.task_id, stage_id=intent.stage_id)
    draft.emit(DutyTaken(at=draft.now, agent_id=intent.agent_id, duty=duty))
    return None
