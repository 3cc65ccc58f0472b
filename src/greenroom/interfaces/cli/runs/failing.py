"""What went wrong for good while somebody listened: work that a manager gave up, a task that ended without success."""

from __future__ import annotations

from typing import Final

from greenroom.app.organisation.names import BASE
from greenroom.core.base.ids import StepId, TaskId, ThreadId, agent_of
from greenroom.core.base.records import record
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step, StepEnded, StepQueued
from greenroom.core.state.task import EndWord, TaskEnded
from greenroom.core.state.world import World

SUMS_UP: Final = "compact"
"""Makes the window of a thread shorter. Where it fails the work goes on with a longer one: nothing was given up."""


@record
class GaveUp:
    """Work of a manager that nobody tries again."""

    who: str
    why: str


@record
class Lost:
    """A task that is over without having been done."""

    task: TaskId
    name: str
    state: EndWord


class Failures:
    """Hears every event. A worker's failure is its manager's to deal with; a manager's is nobody's."""

    def __init__(self) -> None:
        self._steps: dict[StepId, tuple[str, GaveUp]] = {}
        self._tasks: list[Lost] = []

    def hear(self, world: World, event: Event) -> None:
        """One event, on the world as it was before it."""
        match event:
            case StepEnded(state="failed", step_id=name) if _counts(world, step := world.steps[name]):
                self._steps[name] = (step.work.executor, GaveUp(who=step.agent_id, why=event.error))
            case StepQueued(cause=cause, agent_id=agent) if cause in self._steps and agent_of(cause) == agent:
                # The same work once more. What others do because they hear of the failure repairs nothing.
                if event.work.executor == self._steps[cause][0]:
                    del self._steps[cause]
            case TaskEnded(state="failed" | "cancelled"):
                self._hear_task(world, event)
            case _:
                pass

    def _hear_task(self, world: World, event: TaskEnded) -> None:
        """What is a part of another task is for that one's manager."""
        task = world.tasks[event.task_id]
        if task.parent in (None, BASE):
            self._tasks.append(Lost(task=task.task_id, name=task.name, state=event.state))

    def all(self) -> tuple[GaveUp | Lost, ...]:
        """Everything that stays as it is."""
        return (*(one for _, one in self._steps.values()), *self._tasks)


def _counts(world: World, step: Step) -> bool:
    return step.work.type == "skill" and step.work.executor != SUMS_UP and _manages(world, step.thread_id)


def _manages(world: World, name: ThreadId) -> bool:
    """Whether it is a manager's own work: nobody is above it who would hear of a failure and do something."""
    thread = world.threads.get(name)
    if thread is None or thread.subtask_id is not None or thread.call is not None:
        return False
    task = world.tasks.get(thread.task_id)
    return task is not None and task.manager == thread.agent_id
