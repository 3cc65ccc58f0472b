"""Rules for people: what they are told, where they talk among themselves, and what is written down of what they do.

A person is an agent like any other, with two differences: nothing is queued for them, because they act when they like;
and what they did is a step only afterwards.
"""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_in_group, unknown
from greenroom.core.rules.endings import after_end, emit_end
from greenroom.core.rules.intents import FormGroup, RecordStep, SendMessage
from greenroom.core.rules.origins import tell
from greenroom.core.rules.queue import enqueue, open_thread
from greenroom.core.state.agent import Agent
from greenroom.core.state.group import Group, GroupFormed
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

ABOUT: Final = "about"
"""What was written by somebody in what people are told: the rest of it can be said in any language."""

GROUP_NAME: Final = re.compile(r"[^\s#@>:!?/,]{1,64}")


def people_of(world: World, agents: tuple[AgentId, ...]) -> tuple[AgentId, ...]:
    """Those among them who are people."""
    return tuple(one for one in agents if one in world.agents and world.agents[one].spec.kind == "human")


def tell_people(draft: Draft, task: Task, people: tuple[AgentId, ...], text: str, data: Data) -> None:
    """What changed for them, as a message that wants no answer. A model is told by what is queued for it."""
    told = tuple(one for one in people if one != task.manager)
    if told:
        tell(draft, task.manager, told, text, task=task.task_id, data=data, kind="instruction")


def welcome(draft: Draft, task: Task, agents: tuple[AgentId, ...]) -> None:
    """People hear that they belong to a task now."""
    told = {"instruction": "update_working_memory", "task_id": task.task_id, ABOUT: f"{task.name}: {task.intention}"}
    text = f"You take part in task {task.task_id} ({task.name}): {task.intention}"
    tell_people(draft, task, people_of(draft.world, agents), text, told)


def form_group(draft: Draft, intent: FormGroup, by: str) -> Verdict:
    """People of a task talk together; formed again, with others."""
    if not is_trusted(draft.world, by):
        return Rejected(code="not_a_person", why=f"{by!r} may not form a group: people do.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if not GROUP_NAME.fullmatch(intent.group_id) or not intent.group_id.isprintable():
        hint = "Use 1 to 64 characters without spaces and without # @ > : ! ? / ,"
        return Rejected(code="bad_group", why=f"{intent.group_id!r} cannot be a group's name.", hint=hint)
    known = draft.world.groups.get(intent.group_id)
    if known is not None and known.task_id != task.task_id:
        return Rejected(code="group_exists", why=f"The group {intent.group_id!r} talks in task {known.task_id!r}.")
    for one in intent.participants:
        if one not in task.group:
            return not_in_group(one, task)
        if draft.world.agents[one].spec.kind != "human":
            why = f"{one!r} is no person, and only people take part in a group."
            return Rejected(code="not_a_person", why=why, hint="Name it in what you say there: then it hears that.")
    people = tuple(dict.fromkeys(intent.participants))
    if len(people) < 2:
        return Rejected(code="small_group", why="A group has two people or more.", hint="Write to them directly.")
    group = Group(group_id=intent.group_id, task_id=task.task_id, participants=people, formed_at=draft.now)
    draft.emit(GroupFormed(at=draft.now, group=group))
    return None


def in_group(draft: Draft, intent: SendMessage, sender: AgentId) -> SendMessage | Rejected:
    """What is said in a group goes to all who take part, and to the models that are named."""
    group = draft.world.groups.get(intent.group) if intent.group is not None else None
    if group is None or group.task_id != intent.task_id:
        return unknown("group", str(intent.group), tuple(draft.world.groups))
    if sender not in group.participants:
        return Rejected(code="not_in_group", why=f"{sender!r} takes no part in the group {group.group_id!r}.")
    if intent.waiting or intent.return_waiting_id is not None or intent.delivery != "post":
        why = "In a group nobody waits for an answer."
        return Rejected(code="no_waiting_here", why=why, hint="Write to the one you mean directly.")
    others = [one for one in people_of(draft.world, group.participants) if one != sender]
    return evolve(intent, receiver=tuple(dict.fromkeys((*others, *intent.receiver))))


def record_step(draft: Draft, intent: RecordStep, by: str) -> Verdict:
    """What a person does becomes a step of theirs that is over; what they may not do is no step."""
    agent = draft.world.agents.get(intent.agent_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(draft.world.agents))
    refused = _not_theirs(draft, agent, intent, by)
    for act in (intent.says, intent.reports, intent.ends, intent.decides):
        if refused is None and act is not None:
            refused = draft.apply(act, by)
    if refused is not None:
        return refused
    thread = open_thread(draft, agent.agent_id, intent.task_id)
    name = enqueue(draft, thread, intent.work, stage=intent.stage_id)
    step = draft.world.steps[name]
    emit_end(draft, step, intent.state, result=intent.result, error=intent.error)
    after_end(draft, step)
    return None


def _not_theirs(draft: Draft, agent: Agent, intent: RecordStep, by: str) -> Verdict:
    if agent.spec.kind != "human" or (by != agent.agent_id and not is_trusted(draft.world, by)):
        why = f"What {agent.agent_id!r} does is written down before it is done."
        return Rejected(code="not_a_person", why=why, hint="Queue a step instead.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if agent.agent_id not in task.group:
        return not_in_group(agent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return unknown("stage", intent.stage_id, task.stages)
    return None
