"""The draft: a tentative team state on which a rule works, event by event. A rejection discards it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import AgentId, StepId, WaitingId
from greenroom.core.state.archive import ArchiveEntry, build_archive_row
from greenroom.core.state.events import Event
from greenroom.core.state.origin import Labels
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import TeamState

SYSTEM: Final = "system"
"""The sender of intents from Greenroom itself: scheduler, timers, recovery."""

CLIENT: Final = "door"
"""The sender of a person's intents from a terminal. `door:NAME` names the client."""

RuleResult: TypeAlias = Rejection | None
Rule: TypeAlias = "Callable[[Draft, Any, str], RuleResult]"


class Draft:
    """A tentative state. `cause` is the step whose consequences are being decided, `locks` are its agent's waits before
    them. `read` labels everything that its conversation has read."""

    __slots__ = ("archived", "cause", "events", "locks", "now", "read", "rules", "world")

    def __init__(self, world: TeamState, now: int, rules: Mapping[type, Rule]) -> None:
        self.world = world
        self.now = now
        self.rules = rules
        self.cause: Step | None = None
        self.locks: tuple[WaitingId, ...] = ()
        self.read: Labels = ()
        self.events: list[Event] = []
        self.archived: list[tuple[int, ArchiveEntry]] = []

    def emit(self, event: Event) -> None:
        """Append an event and apply it to the state."""
        row = build_archive_row(self.world, event)
        if row is not None:
            self.archived.append((len(self.events), row))
        self.events.append(event)
        self.world = reduce(self.world, event)

    def list_new_waits(self, agent: AgentId) -> tuple[WaitingId, ...]:
        """Return the waits that the agent began in the step whose consequences are being decided."""
        return tuple(waiting for waiting in self.world.agents[agent].step_lock if waiting not in self.locks)

    def apply(self, intent: object, by: str) -> RuleResult:
        """Apply an intent to the draft. A rejection leaves the draft unchanged."""
        world, events, rows = self.world, len(self.events), len(self.archived)
        refused = self.rules[type(intent)](self, intent, by)
        if refused is not None:
            self.world = world
            del self.events[events:]
            del self.archived[rows:]
        return refused


def is_trusted(world: TeamState, by: str) -> bool:
    """Return whether the sender is a person (client or agent) or Greenroom itself."""
    if by == SYSTEM or by.split(":", 1)[0] == CLIENT:
        return True
    agent = world.agents.get(AgentId(by))
    return agent is not None and agent.spec.kind == "human"


def is_manager(world: TeamState, by: str) -> bool:
    """Return whether the sender may create tasks and agents."""
    agent = world.agents.get(AgentId(by))
    return is_trusted(world, by) or (agent is not None and agent.spec.manager)


def reject_unknown(noun: str, name: str, known: object = ()) -> Rejection:
    """Reject a name that is not open."""
    names = sorted(str(known_name) for known_name in known) if isinstance(known, list | tuple | set | frozenset) else []
    hint = f"Known: {', '.join(names[:12])}." if names else "It may have ended, or never existed."
    return Rejection(code=f"unknown_{noun}", why=f"There is no open {noun} {name!r}.", hint=hint)


def find_own_step(world: TeamState, name: str, by: str) -> Step | Rejection:
    """Return the open step if the sender may act on it: its agent, a person, or Greenroom itself."""
    step = world.steps.get(StepId(name))
    if step is None:
        return reject_unknown("step", name)
    if by != step.agent_id and not is_trusted(world, by):
        return Rejection(code="not_yours", why=f"Step {name!r} belongs to {step.agent_id!r}, not to {by!r}.")
    return step


def reject_not_in_group(agent: str, task: Task) -> Rejection:
    """Reject an agent outside the task's group."""
    return Rejection(
        code="not_in_group",
        why=f"{agent!r} is not in the group of task {task.task_id!r}.",
        hint=f"The group: {', '.join(task.group)}.",
    )


def reject_not_manager(by: str, what: str) -> Rejection:
    """Reject a sender that does not manage."""
    return Rejection(
        code="not_manager",
        why=f"{by!r} may not {what}: only the manager or a person may.",
        hint="Ask the manager with a message.",
    )
