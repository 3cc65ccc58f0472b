"""Random names for intents: mostly existing things, sometimes missing ones."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId, ThreadId, WaitingId
from greenroom.core.rules.queue import next_step
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState

N = TypeVar("N", bound=str)

NAMES = tuple(AgentId(name) for name in ("boss", "ann", "bob", "cy", "pia", "hue", "guest", "spare"))
GHOST = "ghost"


def one(rng: Random, known: Iterable[N], ghost: N) -> N:
    """Return an existing name, sometimes the ghost."""
    names = sorted(known)
    return rng.choice(names) if names and rng.randrange(12) else ghost


def agent(rng: Random, state: TeamState) -> AgentId:
    return one(rng, state.agents, AgentId(GHOST))


def task(rng: Random, state: TeamState) -> TaskId:
    return one(rng, state.tasks, TaskId(GHOST))


def stage(rng: Random, state: TeamState) -> StageId:
    return one(rng, state.stages, StageId(GHOST))


def thread(rng: Random, state: TeamState) -> ThreadId:
    return one(rng, state.threads, ThreadId(GHOST))


def step(rng: Random, state: TeamState) -> StepId:
    return one(rng, state.steps, StepId("ghost#1"))


def waiting(rng: Random, state: TeamState) -> WaitingId:
    return one(rng, state.waits, WaitingId("ghost>1:ghost"))


def asker(rng: Random, state: TeamState) -> str:
    """Return a sender: a person, the runtime, an agent, or an unknown name."""
    return rng.choice(("door", "door:page", "system", "boss", agent(rng, state)))


def startable(state: TeamState) -> list[Step]:
    """Return the steps that may start now."""
    found = (next_step(state, name) for name in sorted(state.agents))
    return [step for step in found if step is not None]


def busy(state: TeamState) -> list[Step]:
    """Return the steps that run or are being ended."""
    return [state.steps[one.running] for _, one in sorted(state.agents.items()) if one.running is not None]


def some(rng: Random, known: Iterable[N], most: int) -> tuple[N, ...]:
    """Return a few of them, without duplicates."""
    names = sorted(known)
    return tuple(rng.sample(names, k=min(len(names), rng.randint(1, most)))) if names else ()
