"""Who may have something to do after a commit: a function of what changed, with the answer of a look at the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from greenroom.core.base.ids import AgentId, agent_of, awaited_of, waiter_of
from greenroom.core.state.budget import LimitsSet
from greenroom.core.state.events import Event
from greenroom.core.state.message import MessageSent, WaitReleased
from greenroom.core.state.step import (
    StepBlocked,
    StepChanged,
    StepEnded,
    StepInterrupted,
    StepQueued,
    StepStarted,
    StepUnblocked,
)
from greenroom.core.state.task import TaskPaused, TaskResumed, TaskStarted
from greenroom.core.state.team import OwnerChanged, TeamForked, TeamResumed
from greenroom.core.state.world import World


def touched(world: World, events: Iterable[Event]) -> set[AgentId]:
    """The agents whose next step may have become another one. All that became runnable are among them."""
    found: set[AgentId] = set()
    for event in events:
        look = _LOOKS.get(type(event))
        if look is not None:
            found.update(look(world, event))
    return found


def _own(_: World, event: StepQueued | StepChanged | StepBlocked | StepUnblocked) -> tuple[AgentId, ...]:
    return (agent_of(event.step_id),)


def _over(world: World, event: StepEnded | StepInterrupted | StepStarted) -> tuple[AgentId, ...]:
    return (agent_of(event.step_id), *_hungry(world, event)) if world.hungry else (agent_of(event.step_id),)


def _hungry(world: World, _: object) -> tuple[AgentId, ...]:
    return tuple(agent_of(step) for step in world.hungry)


def _both(_: World, event: WaitReleased) -> tuple[AgentId, ...]:
    """Who waited goes on; whoever was to answer may be locked and have nothing left to answer."""
    return (waiter_of(event.waiting_id), awaited_of(event.waiting_id))


def _sender(_: World, event: MessageSent) -> tuple[AgentId, ...]:
    """Its lock lets other steps through than before."""
    return (event.message.sender_id,)


def _group(world: World, event: TaskResumed | TaskStarted) -> Iterable[AgentId]:
    """Everybody in the task and in what is part of it."""
    return {agent for task in world.below(event.task_id) for agent in world.tasks[task].group}


def _all(world: World, _: object) -> Iterable[AgentId]:
    return world.agents.keys()


_LOOKS: Final[dict[type, Callable[[World, Any], Iterable[AgentId]]]] = {
    StepQueued: _own,
    StepChanged: _own,
    StepBlocked: _own,
    StepUnblocked: _own,
    StepStarted: _over,
    StepEnded: _over,
    StepInterrupted: _over,
    LimitsSet: _hungry,
    WaitReleased: _both,
    MessageSent: _sender,
    TaskResumed: _group,
    TaskStarted: _group,
    TaskPaused: _group,
    TeamResumed: _all,
    OwnerChanged: _all,
    TeamForked: _all,
}
