"""The draft: a tentative world on which a rule works, event by event. Thrown away when the rule says no."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, StepId, WaitingId
from greenroom.core.state.archive import Archived, archived
from greenroom.core.state.events import Event
from greenroom.core.state.fold import fold
from greenroom.core.state.origin import Labels
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

SYSTEM: Final = "system"
"""Who asks when the house itself does: schedules, timers, recovery."""

DOOR: Final = "door"
"""Who asks when a person does, through a terminal or the page; `door:NAME` names the door."""

Verdict: TypeAlias = Rejected | None
Rule: TypeAlias = "Callable[[Draft, Any, str], Verdict]"


class Draft:
    """What would be true. `cause` is the step whose consequences are being decided, `locks` its agent's before them,
    `read` the labels of all that its conversation has read."""

    __slots__ = ("archived", "cause", "events", "locks", "now", "read", "rules", "world")

    def __init__(self, world: World, now: int, rules: Mapping[type, Rule]) -> None:
        self.world = world
        self.now = now
        self.rules = rules
        self.cause: Step | None = None
        self.locks: tuple[WaitingId, ...] = ()
        self.read: Labels = ()
        self.events: list[Event] = []
        self.archived: list[tuple[int, Archived]] = []

    def emit(self, event: Event) -> None:
        """Let it have happened."""
        row = archived(self.world, event)
        if row is not None:
            self.archived.append((len(self.events), row))
        self.events.append(event)
        self.world = fold(self.world, event)

    def asked(self, agent: AgentId) -> tuple[WaitingId, ...]:
        """What the agent has begun to wait for in the step whose consequences are being decided."""
        return tuple(one for one in self.world.agents[agent].step_lock if one not in self.locks)

    def apply(self, intent: object, by: str) -> Verdict:
        """Decide an intent on what is true so far; a refusal leaves no trace."""
        world, events, rows = self.world, len(self.events), len(self.archived)
        refused = self.rules[type(intent)](self, intent, by)
        if refused is not None:
            self.world = world
            del self.events[events:]
            del self.archived[rows:]
        return refused


def is_trusted(world: World, by: str) -> bool:
    """A person (at a door or as an agent) or the house itself."""
    if by == SYSTEM or by.split(":", 1)[0] == DOOR:
        return True
    agent = world.agents.get(AgentId(by))
    return agent is not None and agent.spec.kind == "human"


def is_manager(world: World, by: str) -> bool:
    """Somebody who may create tasks and agents."""
    agent = world.agents.get(AgentId(by))
    return is_trusted(world, by) or (agent is not None and agent.spec.manager)


def unknown(noun: str, name: str, known: object = ()) -> Rejected:
    """There is no such open thing."""
    names = sorted(str(one) for one in known) if isinstance(known, list | tuple | set | frozenset) else []
    hint = f"Known: {', '.join(names[:12])}." if names else "It may have ended, or never existed."
    return Rejected(code=f"unknown_{noun}", why=f"There is no open {noun} {name!r}.", hint=hint)


def own_step(world: World, name: str, by: str) -> Step | Rejected:
    """The open step of this name, if the asker may speak of it: its agent, a person, the house."""
    step = world.steps.get(StepId(name))
    if step is None:
        return unknown("step", name)
    if by != step.agent_id and not is_trusted(world, by):
        return Rejected(code="not_yours", why=f"Step {name!r} belongs to {step.agent_id!r}, not to {by!r}.")
    return step


def not_in_group(agent: str, task: Task) -> Rejected:
    """Only its group works in a task."""
    return Rejected(
        code="not_in_group",
        why=f"{agent!r} is not in the group of task {task.task_id!r}.",
        hint=f"The group: {', '.join(task.group)}.",
    )


def not_manager(by: str, what: str) -> Rejected:
    """Only a manager manages."""
    return Rejected(
        code="not_manager",
        why=f"{by!r} may not {what}: only the manager or a person may.",
        hint="Ask the manager with a message.",
    )
