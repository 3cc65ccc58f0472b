"""Rules for agents: making, removing, taking part, remembering."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, looks_like, mixed, sender_of
from greenroom.core.base.text import has_high, underlines
from greenroom.core.rules.draft import Draft, Verdict, is_manager, is_trusted, not_in_group, not_manager, unknown
from greenroom.core.rules.endings import cancel_steps, settle_mail
from greenroom.core.rules.intents import (
    AddAgent,
    AddParticipants,
    ChangeAgent,
    Remember,
    RemoveAgent,
    UpdateWorkingMemory,
)
from greenroom.core.rules.origins import ABOUT, people_of, tell, welcome
from greenroom.core.rules.questions import ask_who_is_there
from greenroom.core.rules.queue import release
from greenroom.core.state.agent import Agent, AgentAdded, AgentChanged, AgentRemoved, Duty, DutyTaken, Remembered
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import ParticipantsAdded
from greenroom.core.state.thread import ThreadClosed
from greenroom.core.state.timer import TimerCancelled
from greenroom.core.state.world import World, ordered

AGENT_NAME = re.compile(r"[^\s#@>:!?/,]{1,64}")
"""Ids of steps, threads and messages are made from an agent's id and these signs, so it may not hold them."""

RESERVED: Final = ("", "system", "door")
"""What nobody is called, because nobody sees it or because the house itself is meant."""

MEMORY: Final = 16_000
"""Characters that an agent remembers for good: it reads all of them in every prompt."""


def add_agent(draft: Draft, intent: AddAgent, by: str) -> Verdict:
    """Make an agent; it lives at once. Its id was never used and its name is free."""
    if not is_manager(draft.world, by):
        return not_manager(by, "make agents")
    world = draft.world
    refused = _bad_name(world, intent.agent_id)
    if refused is not None:
        return refused
    spec = intent.spec if intent.spec is not None else world.blueprints.get(intent.blueprint or "")
    if spec is None:
        return unknown("blueprint", str(intent.blueprint), tuple(world.blueprints))
    if (spec.manager or spec.kind != "llm") and not is_trusted(world, by):
        return not_manager(by, "make a manager, a person or a part of the house")
    refused = _beyond(world, intent, spec, by)
    if refused is not None:
        return refused
    draft.emit(AgentAdded(at=draft.now, agent_id=intent.agent_id, spec=spec, made_by=by, origins=draft.read))
    ask_who_is_there(draft)
    return None


def _bad_name(world: World, name: AgentId) -> Verdict:
    """An id is one that ids are made from, that was never used, and that nobody takes for another one."""
    ours = any(looks_like(name, one) for one in RESERVED)
    if ours or not AGENT_NAME.fullmatch(name) or not name.isprintable():
        return Rejected(
            code="bad_agent_id",
            why=f"{name!r} cannot be an agent's id.",
            hint="Use 1 to 64 characters without spaces and without # @ > : ! ? / ,",
        )
    if mixed(name):
        return Rejected(
            code="bad_agent_id",
            why=f"{name!r} mixes letters of scripts that look alike.",
            hint="Write it in one script: Latin, Cyrillic or Greek.",
        )
    if name in world.agents or name in world.retired:
        return Rejected(code="agent_exists", why=f"The agent id {name!r} is taken.", hint="Choose another.")
    alike = min((one for one in (*world.agents, *world.retired) if looks_like(one, name)), default=None)
    if alike is not None:
        why = f"The agent id {name!r} can be taken for {alike!r}."
        return Rejected(code="agent_exists", why=why, hint="Choose another.")
    return None


def _beyond(world: World, intent: AddAgent, spec: AgentSpec, by: str) -> Verdict:
    """A model gives an agent that it describes itself only what it may use: what people described is as they did."""
    maker = world.agents.get(AgentId(by))
    if intent.spec is None or maker is None or is_trusted(world, by):
        return None
    more = sorted({*spec.tools, *spec.calls} - {*maker.spec.tools, *maker.spec.calls})
    if not more and not spec.groups and not spec.proof:
        return None
    return Rejected(
        code="not_yours_to_give",
        why=f"{by!r} may not give {', '.join(more) or 'groups of tools'} to an agent: it has that not itself.",
        hint=f"Give what you have, or make it from a blueprint: {', '.join(sorted(world.blueprints)) or 'none'}.",
    )


def change_agent(draft: Draft, intent: ChangeAgent, by: str) -> Verdict:
    """Only people change what an agent is and may do, and nobody makes a person of a model or the other way round."""
    if not is_trusted(draft.world, by):
        return Rejected(code="not_yours", why=f"{by!r} may not change agents.", hint="Ask a person.")
    agent = draft.world.agents.get(intent.agent_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(draft.world.agents))
    if (agent.spec.kind, agent.spec.style) != (intent.spec.kind, intent.spec.style):
        return Rejected(code="another_kind", why=f"{agent.agent_id!r} stays {agent.spec.kind} and {agent.spec.style}.")
    draft.emit(AgentChanged(at=draft.now, agent_id=agent.agent_id, spec=intent.spec, changed_by=by))
    return None


def remove_agent(draft: Draft, intent: RemoveAgent, by: str) -> Verdict:
    """Let an agent go: its queue is skipped, nobody waits for it any more."""
    world = draft.world
    if not is_manager(world, by):
        return not_manager(by, "remove agents")
    agent = world.agents.get(intent.agent_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(world.agents))
    refused = _not_theirs(world, agent, by) or _needed(world, agent)
    if refused is not None:
        return refused
    _clear_desk(draft, intent.agent_id)
    draft.emit(AgentRemoved(at=draft.now, agent_id=intent.agent_id, why=intent.why))
    ask_who_is_there(draft)
    return None


def _not_theirs(world: World, agent: Agent, by: str) -> Verdict:
    """A model lets go of itself and of agents that work, never of people, of the house or of others who manage."""
    worker = agent.spec.kind == "llm" and not agent.spec.manager
    if worker or by == agent.agent_id or is_trusted(world, by):
        return None
    what = "is a person" if agent.spec.kind == "human" else "manages, or belongs to the house"
    why = f"{by!r} may not remove {agent.agent_id!r}, who {what}: only a person may."
    return Rejected(code="not_yours_to_remove", why=why, hint="Ask a person with a message.")


def _needed(world: World, agent: Agent) -> Verdict:
    name = agent.agent_id
    if agent.running is not None:
        return Rejected(
            code="agent_busy",
            why=f"{name!r} runs step {agent.running!r}.",
            hint="Pause its task now, then remove it.",
        )
    if any(task.manager == name for task in world.tasks.values()):
        return Rejected(code="agent_manages", why=f"{name!r} manages an open task.", hint="End the task first.")
    if any(
        one.agent == name and one.state in ("init", "running")
        for stage in world.stages.values()
        for one in stage.subtasks
    ):
        return Rejected(
            code="agent_allotted", why=f"{name!r} has open subtasks.", hint="End or hand over its subtasks first."
        )
    return None


def _clear_desk(draft: Draft, name: AgentId) -> None:
    """Nothing that is open points to the agent any more: waits, steps, letters, timers, threads."""
    for wait in ordered(draft.world.waits):
        if name in (wait.on, wait.waiter):
            release(draft, wait.waiting_id, "agent_gone", silent=wait.waiter == name)
    _tell_writers(draft, name)
    cancel_steps(draft, list(draft.world.steps_of(name)), "skipped")
    for message in ordered(draft.world.mail):
        settle_mail(draft, message, message.receiver if message.sender_id == name else (name,))
    for timer in ordered(draft.world.timers):
        if timer.agent_id == name:
            draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
    for thread in ordered(draft.world.threads):
        if thread.agent_id == name:
            draft.emit(ThreadClosed(at=draft.now, thread_id=thread.thread_id))


def _tell_writers(draft: Draft, name: AgentId) -> None:
    """People hear that what they wrote to the agent is not read any more: nobody else would tell them."""
    unread = {one.message_id: one for one in draft.world.steps_of(name) if one.message_id is not None}
    for message, step in unread.items():
        writer = sender_of(message)
        if writer != name and people_of(draft.world, (writer,)):
            about = step.work.text_content.partition("\n")[2]
            told = {"instruction": "remove_agent", "agent_id": name, ABOUT: about}
            text = f"{name} will not answer: the agent was removed. You wrote: {about}"
            tell(draft, name, (writer,), text, task=step.task_id, data=told, kind="instruction")


def add_participants(draft: Draft, intent: AddParticipants, by: str) -> Verdict:
    """Add agents to a task's group."""
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if by != task.manager and not is_trusted(draft.world, by):
        return not_manager(by, f"add agents to task {task.task_id!r}")
    for agent in intent.agents:
        if agent not in draft.world.agents:
            return unknown("agent", agent, tuple(draft.world.agents))
    draft.emit(ParticipantsAdded(at=draft.now, task_id=intent.task_id, agents=intent.agents))
    welcome(draft, task, tuple(one for one in intent.agents if one not in task.group))
    return None


def remember(draft: Draft, intent: Remember, by: str) -> Verdict:
    """Keep something for good: little, and so that it can stand in a prompt."""
    agent = draft.world.agents.get(AgentId(by))
    if agent is None:
        return Rejected(code="not_an_agent", why=f"{by!r} is no agent: only agents have a memory of their own.")
    content = intent.content.strip()
    if not content:
        return Rejected(code="empty_memory", why="There is nothing to remember.")
    if has_high(content) or underlines(agent.memory, content):
        why = "A heading in a memory is of the third level or lower."
        return Rejected(code="high_heading", why=why, hint="Begin it with ###.")
    if len(agent.memory) + len(content) > MEMORY:
        why = f"The memory of {by!r} would be longer than {MEMORY:,} characters."
        return Rejected(code="memory_full", why=why, hint="Remember less, and only what every later task needs.")
    draft.emit(Remembered(at=draft.now, agent_id=agent.agent_id, content=content, origins=draft.read))
    return None


def update_working_memory(draft: Draft, intent: UpdateWorkingMemory, by: str) -> Verdict:
    """Remember a task or stage; nothing that is remembered is lost by it."""
    world = draft.world
    if by != intent.agent_id and not is_manager(world, by):
        return not_manager(by, f"change the working memory of {intent.agent_id!r}")
    if intent.agent_id not in world.agents:
        return unknown("agent", intent.agent_id, tuple(world.agents))
    task = world.tasks.get(intent.task_id)
    if task is None:
        return unknown("task", intent.task_id, tuple(world.tasks))
    if intent.agent_id not in task.group:
        return not_in_group(intent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return unknown("stage", intent.stage_id, task.stages)
    duty = Duty(task_id=intent.task_id, stage_id=intent.stage_id)
    draft.emit(DutyTaken(at=draft.now, agent_id=intent.agent_id, duty=duty))
    return None
