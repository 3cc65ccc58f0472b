"""The draft: a tentative team state on which a rule works, event by event. A rejection discards it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from greenroom.core.base.errors import Rejection, reject
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

    __slots__ = ("archived", "cause", "events", "locks", "now", "read", "rules", "state")

    def __init__(self, state: TeamState, now: int, rules: Mapping[type, Rule]) -> None:
        self.state = state
        self.now = now
        self.rules = rules
        self.cause: Step | None = None
        self.locks: tuple[WaitingId, ...] = ()
        self.read: Labels = ()
        self.events: list[Event] = []
        self.archived: list[tuple[int, ArchiveEntry]] = []

    def emit(self, event: Event) -> None:
        """Append an event and apply it to the state."""
        row = build_archive_row(self.state, event)
        if row is not None:
            self.archived.append((len(self.events), row))
        self.events.append(event)
        self.state = reduce(self.state, event)

    def list_new_waits(self, agent: AgentId) -> tuple[WaitingId, ...]:
        """Return the waits that the agent began in the step whose consequences are being decided."""
        return tuple(waiting for waiting in self.state.agents[agent].step_lock if waiting not in self.locks)

    def apply(self, intent: object, by: str) -> RuleResult:
        """Apply an intent to the draft. A rejection leaves the draft unchanged."""
        state, events, rows = self.state, len(self.events), len(self.archived)
        refused = self.rules[type(intent)](self, intent, by)
        if refused is not None:
            self.state = state
            del self.events[events:]
            del self.archived[rows:]
        return refused


def is_trusted(state: TeamState, by: str) -> bool:
    """Return whether the sender is a person (client or agent) or Greenroom itself, also as a system agent."""
    if by == SYSTEM or by.split(":", 1)[0] == CLIENT:
        return True
    agent = state.agents.get(AgentId(by))
    return agent is not None and agent.spec.kind in ("human", "system")


def is_manager(state: TeamState, by: str) -> bool:
    """Return whether the sender may create tasks and agents."""
    agent = state.agents.get(AgentId(by))
    return is_trusted(state, by) or (agent is not None and agent.spec.manager)


def reject_unknown(noun: str, name: str, known: object = ()) -> Rejection:
    """Reject a name that is not open."""
    names = sorted(str(known_name) for known_name in known) if isinstance(known, list | tuple | set | frozenset) else []
    code, why = f"unknown_{noun}", "There is no open {noun} {name!r}."
    if not names:
        return reject("unknown", why, "It may have ended, or never existed.", code=code, noun=noun, name=name)
    return reject("unknown_of", why, "Known: {known}.", code=code, noun=noun, name=name, known=", ".join(names[:12]))


def find_own_step(state: TeamState, name: str, by: str) -> Step | Rejection:
    """Return the open step if the sender may act on it: its agent, a person, or Greenroom itself."""
    step = state.steps.get(StepId(name))
    if step is None:
        return reject_unknown("step", name)
    if by != step.agent_id and not is_trusted(state, by):
        return Rejection(code="not_yours", why=f"Step {name!r} belongs to {step.agent_id!r}, not to {by!r}.")
    return step


def reject_not_in_group(agent: str, task: Task) -> Rejection:
    """Reject an agent outside the task's group."""
    why, group = "{agent!r} is not in the group of task {task!r}.", ", ".join(task.group)
    return reject("not_in_group", why, "The group: {group}.", agent=agent, task=task.task_id, group=group)


def reject_not_manager(by: str, what: str) -> Rejection:
    """Reject a sender that does not manage."""
    return Rejection(
        code="not_manager",
        why=f"{by!r} may not {what}: only the manager or a person may.",
        hint="Ask the manager with a message.",
    )
