"""Skills and tools: what runs in a step. Both read a step context and return an outcome; neither changes the state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeAlias

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.codec import find_type_error
from greenroom.core.ports.model import ModelEvent
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.agent import AgentState, Capability
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import PreparedEffect, Step, StepTerms, StepType
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState


@record
class Outcome:
    """The outcome of an attempt: its result, its cost, and the intents it submits.

    Only the actor sets *cancelled*, never an executor. `origins` labels what it has read, beyond what its terms named.
    """

    state: Literal["finished", "failed", "uncertain", "cancelled"] = "finished"
    result: Data | None = None
    error: str = ""
    spent: Amounts = NOTHING
    intents: tuple[Consequence, ...] = ()
    blobs: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


@record
class ToolPrinted:
    """Complete lines that a tool prints while it runs."""

    text: str


LiveEvent: TypeAlias = ModelEvent | ToolPrinted
"""What live listeners of a step receive. It is not stored."""


class StepContext(Protocol):
    """What an executor sees while it runs: a read-only team state and its own step."""

    @property
    def state(self) -> TeamState:
        """The newest committed team state."""
        ...

    @property
    def step(self) -> Step:
        """The running step, with this attempt's number."""
        ...

    @property
    def agent(self) -> AgentState:
        """The agent that runs the step."""
        ...

    @property
    def key(self) -> str:
        """A name for this step that is unique over all teams, for idempotency keys and commit trailers."""
        ...

    async def prepare(self, *prepared: PreparedEffect) -> None:
        """Record external effects before they happen. Return when the record is durable."""
        ...

    async def blob(self, digest: str) -> bytes:
        """Return a large result of an earlier step, whole, by the digest in its `blob`."""
        ...

    async def keep(self, data: bytes) -> str:
        """Store a blob beside the log and return its digest. The outcome must list it in `blobs`."""
        ...

    def show(self, event: LiveEvent) -> None:
        """Send an event to live listeners. It is not stored."""
        ...

    def set_partial_outcome(self, partial_outcome: Callable[[], Outcome | None]) -> None:
        """Set the function that returns the partial outcome of a cancelled attempt. It has no consequences."""
        ...

    async def history(self) -> Sequence[Step]:
        """Return the ended steps in this thread's window, oldest first."""
        ...


class Executor(Protocol):
    """A skill (uses the model) or a tool (acts outside the team)."""

    @property
    def type(self) -> StepType:
        """Skill or tool."""
        ...

    @property
    def name(self) -> str:
        """The name by which steps refer to it."""
        ...

    @property
    def description(self) -> str:
        """When to use it, in a sentence."""
        ...

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms for this step: effect class, cost, permission. Fast and without side effects."""
        ...

    async def run(self, context: StepContext) -> Outcome:
        """Run the step. On cancellation, end everything it started before propagating the cancellation."""
        ...


CloseCallback: TypeAlias = Callable[[], Awaitable[None]]


class Capabilities:
    """What a team runs with.

    Args:

    - `executors`: Its skills and tools.
    - `agent_specs`: The specs from which it can create agents.
    - `on_close`: A coroutine function that is called when the team closes.
    - `approvals_expire`: How long an approval request stays open, in milliseconds. None means forever.
    """

    def __init__(
        self,
        executors: Iterable[Executor] = (),
        *,
        agent_specs: tuple[AgentSpec, ...] = (),
        on_close: CloseCallback | None = None,
        approvals_expire: int | None = None,
    ) -> None:
        self.agent_specs = agent_specs
        self.on_close = on_close
        self.approvals_expire = approvals_expire
        self._table: dict[tuple[StepType, str], Executor] = {
            (executor.type, executor.name): executor for executor in executors
        }

    def get(self, type_: StepType, name: str) -> Executor | None:
        """Return the executor of a step, or None."""
        return self._table.get((type_, name))

    def describe(self) -> tuple[Capability, ...]:
        """Describe all skills and tools, for prompts and queries."""
        return tuple(
            Capability(name=executor.name, type=executor.type, description=executor.description)
            for executor in self._table.values()
        )


CapabilitiesFactory: TypeAlias = Callable[[Team], Capabilities | Awaitable[Capabilities]]
"""Makes the capabilities of a team when it starts. Can be a coroutine. The log stores its name, so that a resumed team
gets the same capabilities."""


def check_outcome(outcome: object) -> Outcome:
    """Return an executor's outcome if it is valid, else raise `WorldFault`. Executors are third-party code."""
    if not isinstance(outcome, Outcome):
        raise WorldFault("ports.returned_no_outcome", name=type(outcome).__name__)
    if outcome.state not in ("finished", "failed", "uncertain"):
        raise WorldFault("ports.returned_unknown_state", state=outcome.state)
    intents: object = outcome.intents
    spent: object = outcome.spent
    error: object = outcome.error
    if not isinstance(intents, tuple) or not isinstance(spent, Amounts) or not isinstance(error, str):
        raise WorldFault("ports.outcome_types_wrong")
    origins: object = outcome.origins
    if not isinstance(origins, tuple) or not all(isinstance(label, str) for label in origins):
        raise WorldFault("ports.returned_bad_origins")
    if spent is not NOTHING and (problem := find_type_error(spent)):
        raise WorldFault("ports.returned_invalid_cost", problem=problem)
    return outcome


def check_terms(terms: object) -> StepTerms:
    """Return an executor's terms if they are valid, else raise `WorldFault`."""
    if not isinstance(terms, StepTerms):
        raise WorldFault("ports.terms_wrong_type", terms=terms)
    if problem := find_type_error(terms):
        raise WorldFault("ports.terms_invalid", problem=problem)
    if terms.needs.lowest < 0:
        raise WorldFault("ports.terms_negative_cost", needs=terms.needs)
    return terms
