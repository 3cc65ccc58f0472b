"""How message, wait, approval, timer, memory and artifact events change the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from greenroom.core.base.records import evolve
from greenroom.core.state import agent as agents
from greenroom.core.state import approval as approvals
from greenroom.core.state import message as messages
from greenroom.core.state import timer as timers
from greenroom.core.state.artifact import ArtifactWritten, after
from greenroom.core.state.group import GroupFormed
from greenroom.core.state.memory import MemoriesCleared, MemorySaved
from greenroom.core.state.world import World, artifact_key, without


def _message_sent(world: World, event: messages.MessageSent) -> World:
    message = event.message
    sender = world.agents[message.sender_id]
    waits = world.waits
    for wait in messages.waits(message, event.thread_id):
        waits = waits.set(wait.waiting_id, wait)
    sender = evolve(
        sender,
        messages_made=sender.messages_made + 1,
        step_lock=(*sender.step_lock, *(message.waiting or ())),
    )
    asked = message.receiver if message.need_reply and message.group is None else ()
    world = evolve(world, agents=world.agents.set(sender.agent_id, sender), waits=waits)
    if not any(world.agents[one].spec.kind == "human" for one in asked):
        return world
    number = world.team.letters_made + 1
    return evolve(
        world,
        team=evolve(world.team, letters_made=number),
        mail=world.mail.set(message.message_id, message),
        letters=world.letters.set(message.message_id, number),
    )


def _group_formed(world: World, event: GroupFormed) -> World:
    return evolve(world, groups=world.groups.set(event.group.group_id, event.group))


def _message_settled(world: World, event: messages.MessageSettled) -> World:
    message = world.mail[event.message_id]
    left = tuple(one for one in message.receiver if one != event.agent_id)
    people = any(one in world.agents and world.agents[one].spec.kind == "human" for one in left)
    if not people:
        letters = world.letters.delete(event.message_id)
        return evolve(world, mail=world.mail.delete(event.message_id), letters=letters)
    waiting = message.waiting
    if waiting is not None:
        waiting = tuple(wid for one, wid in zip(message.receiver, waiting, strict=True) if one != event.agent_id)
    rest = evolve(message, receiver=left, waiting=waiting)
    return evolve(world, mail=world.mail.set(event.message_id, rest))


def _wait_released(world: World, event: messages.WaitReleased) -> World:
    waiter = agents.unlocked(world.agents[world.waits[event.waiting_id].waiter], event.waiting_id)
    return evolve(
        world,
        waits=world.waits.delete(event.waiting_id),
        agents=world.agents.set(waiter.agent_id, waiter),
    )


def _approval_requested(world: World, event: approvals.ApprovalRequested) -> World:
    return evolve(world, approvals=world.approvals.set(event.approval_id, approvals.requested(event)))


def _approval_answered(world: World, event: approvals.ApprovalAnswered) -> World:
    approval = approvals.answered(world.approvals[event.approval_id], event)
    world = evolve(world, approvals=world.approvals.set(event.approval_id, approval))
    grants, releases = world.grants, world.releases
    if event.grant:
        grants = grants.set(event.grant, approvals.Grant(rule=event.grant, by=event.by, at=event.at))
    for place in event.release.splitlines():
        releases = releases.set(place, approvals.Grant(rule=place, by=event.by, at=event.at))
    return evolve(world, grants=grants, releases=releases)


def _approval_voided(world: World, event: approvals.ApprovalVoided) -> World:
    return evolve(world, approvals=without(world.approvals, event.approval_id))


def _timer_set(world: World, event: timers.TimerSet) -> World:
    return evolve(world, timers=world.timers.set(event.timer.timer_id, event.timer))


def _timer_gone(world: World, event: timers.TimerFired | timers.TimerCancelled) -> World:
    return evolve(world, timers=without(world.timers, event.timer_id))


def _memory_saved(world: World, event: MemorySaved) -> World:
    memory, memories = event.memory, world.memories
    for one in memory.merged_from:
        memories = without(memories, one)
    # Ids are given in the order of time, also when all before them are cleared.
    team = evolve(world.team, last_memory=max(world.team.last_memory, memory.memory_id))
    return evolve(world, team=team, memories=memories.set(memory.memory_id, memory))


def _memories_cleared(world: World, event: MemoriesCleared) -> World:
    memories = world.memories
    for one in event.memory_ids:
        memories = without(memories, one)
    return evolve(world, memories=memories)


def _artifact_written(world: World, event: ArtifactWritten) -> World:
    key = artifact_key(event.artifact.task_id, event.artifact.artifact_id)
    artifact = after(world.artifacts.get(key), event.artifact)
    return evolve(world, artifacts=world.artifacts.set(key, artifact))


FOLDS: Final[dict[type, Callable[[World, Any], World]]] = {
    messages.MessageSent: _message_sent,
    GroupFormed: _group_formed,
    messages.MessageSettled: _message_settled,
    messages.WaitReleased: _wait_released,
    approvals.ApprovalRequested: _approval_requested,
    approvals.ApprovalAnswered: _approval_answered,
    approvals.ApprovalVoided: _approval_voided,
    timers.TimerSet: _timer_set,
    timers.TimerFired: _timer_gone,
    timers.TimerCancelled: _timer_gone,
    MemorySaved: _memory_saved,
    MemoriesCleared: _memories_cleared,
    ArtifactWritten: _artifact_written,
}
