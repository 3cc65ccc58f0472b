"""Who may have something to do after a commit: a function of what changed, with the answer of a look at the whole."""

from __future__ import annotations

from collections.abc import Iterable

from greenroom.core.base.ids import AgentId, agent_of, waiter_of
from greenroom.core.state.budget import LimitsSet
from greenroom.core.state.events import Event
from greenroom.core.state.message import WaitReleased
from greenroom.core.state.step import StepChanged, StepEnded, StepInterrupted, StepQueued, StepUnblocked
from greenroom.core.state.task import TaskResumed, TaskStarted
from greenroom.core.state.team import OwnerChanged, TeamForked, TeamResumed
from greenroom.core.state.world import World


def touched(world: World, events: Iterable[Event]) -> set[AgentId]:
    """The agents whose next step may have become another one. All that became runnable are among them."""
    found: set[AgentId] = set()
    for event in events:
        match event:
            case StepQueued() | StepChanged() | StepUnblocked():
                found.add(agent_of(event.step_id))
            case StepEnded() | StepInterrupted():
                found.add(agent_of(event.step_id))
                found.update(agent_of(step) for step in world.hungry)
            case LimitsSet():
                found.update(agent_of(step) for step in world.hungry)
            case WaitReleased():
                found.add(waiter_of(event.waiting_id))
            case TaskResumed() | TaskStarted():
                task = world.tasks.get(event.task_id)
                found.update(task.group if task else ())
            case TeamResumed() | OwnerChanged() | TeamForked():
                found.update(world.agents)
            case _:
                pass
    return found
