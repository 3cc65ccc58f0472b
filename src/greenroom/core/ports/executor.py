"""Skills and tools: what runs inside a step. Both read a bench and return an outcome; neither changes the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeAlias

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.codec import odd
from greenroom.core.ports.model import ModelEvent
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.agent import Ability, Agent
from greenroom.core.state.step import Prepared, Step, StepType, Terms
from greenroom.core.state.world import World


@record
class Outcome:
    """What an attempt came to: its result, what it cost, and what it asks for.

    *cancelled* is what the actor makes of one that somebody has cancelled; no executor says it of itself. `origins` are
    labels of what it has read, beside those that its terms have named.
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
    """Whole lines that a tool prints while it runs."""

    text: str


Live: TypeAlias = ModelEvent | ToolPrinted
"""What those see who watch a step; nothing of it is kept."""


class Bench(Protocol):
    """What an executor sees while it runs: a read-only world and its own step."""

    @property
    def world(self) -> World:
        """The newest committed world."""
        ...

    @property
    def step(self) -> Step:
        """The running step, with the attempt that this is."""
        ...

    @property
    def agent(self) -> Agent:
        """Whose step it is."""
        ...

    @property
    def key(self) -> str:
        """A name for this step that no other step of any team has: for idempotency keys and commit trailers."""
        ...

    async def prepare(self, *prepared: Prepared) -> None:
        """Make known what is about to be done outside; returns when that is durable."""
        ...

    async def blob(self, digest: str) -> bytes:
        """A large result of an earlier step, whole: its `blob` names it."""
        ...

    async def keep(self, data: bytes) -> str:
        """Keep something large beside the log; returns its digest, which the outcome has to name in its `blobs`."""
        ...

    def show(self, event: Live) -> None:
        """Let those see it who watch, as it comes; nothing of it is kept."""
        ...

    def leave(self, left: Callable[[], Outcome | None]) -> None:
        """Say what stays of this attempt if somebody cancels it: `left` is asked only then. It has no consequences."""
        ...

    async def history(self) -> Sequence[Step]:
        """The ended steps of this thread's window, oldest first."""
        ...


class Executor(Protocol):
    """A skill (needs the model) or a tool (touches the world)."""

    @property
    def type(self) -> StepType:
        """Which of the two."""
        ...

    @property
    def name(self) -> str:
        """What a step calls it by."""
        ...

    @property
    def description(self) -> str:
        """When to use it, in a sentence."""
        ...

    def terms(self, world: World, step: Step) -> Terms:
        """Under what it would run this step: effect class, cost, permission. Quick and without effects."""
        ...

    async def run(self, bench: Bench) -> Outcome:
        """Do it. Cancelled, it ends everything it began before it lets the cancellation pass."""
        ...


class Abilities:
    """All executors by type and name: MAS's router."""

    def __init__(self, executors: Iterable[Executor] = ()) -> None:
        self._table: dict[tuple[StepType, str], Executor] = {(one.type, one.name): one for one in executors}

    def get(self, type_: StepType, name: str) -> Executor | None:
        """The executor of a step."""
        return self._table.get((type_, name))

    def described(self) -> tuple[Ability, ...]:
        """What the house can do, for prompts and questions."""
        return tuple(Ability(name=one.name, type=one.type, description=one.description) for one in self._table.values())


def sound(outcome: object) -> Outcome:
    """What an executor returned, if it is an outcome; executors are written by strangers."""
    if not isinstance(outcome, Outcome):
        raise WorldFault(f"It returned {type(outcome).__name__}, not an Outcome.")
    if outcome.state not in ("finished", "failed", "uncertain"):
        raise WorldFault(f"It returned the state {outcome.state!r}; finished, failed and uncertain are known.")
    intents: object = outcome.intents
    spent: object = outcome.spent
    error: object = outcome.error
    if not isinstance(intents, tuple) or not isinstance(spent, Amounts) or not isinstance(error, str):
        raise WorldFault("It returned intents that are no tuple, a cost that is none, or an error that is no text.")
    origins: object = outcome.origins
    if not isinstance(origins, tuple) or not all(isinstance(one, str) for one in origins):
        raise WorldFault("It returned origins that are no tuple of labels.")
    if spent is not NOTHING and (misfit := odd(spent)):
        raise WorldFault(f"It returned a cost that is none. {misfit}.")
    return outcome


def fair(terms: object) -> Terms:
    """What an executor wants to run under, if it can be."""
    if not isinstance(terms, Terms):
        raise WorldFault(f"It wants to run under {terms!r}, which are no terms.")
    if misfit := odd(terms):
        raise WorldFault(f"It wants to run under terms that are none. {misfit}.")
    if terms.needs.lowest < 0:
        raise WorldFault(f"It wants to run at a cost below nothing: {terms.needs}.")
    return terms
