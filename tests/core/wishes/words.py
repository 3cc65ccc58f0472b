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


def agent(rng: Random, world: TeamState) -> AgentId:
    return one(rng, world.agents, AgentId(GHOST))


def task(rng: Random, world: TeamState) -> TaskId:
    return one(rng, world.tasks, TaskId(GHOST))


def stage(rng: Random, world: TeamState) -> StageId:
    return one(rng, world.stages, StageId(GHOST))


def thread(rng: Random, world: TeamState) -> ThreadId:
    return one(rng, world.threads, ThreadId(GHOST))


def step(rng: Random, world: TeamState) -> StepId:
    return one(rng, world.steps, StepId("ghost#1"))


def waiting(rng: Random, world: TeamState) -> WaitingId:
    return one(rng, world.waits, WaitingId("ghost>1:ghost"))


def asker(rng: Random, world: TeamState) -> str:
    """Return a sender: a person, the runtime, an agent, or an unknown name."""
    return rng.choice(("door", "door:page", "system", "boss", agent(rng, world)))


def startable(world: TeamState) -> list[Step]:
    """Return the steps that may start now."""
    found = (next_step(world, name) for name in sorted(world.agents))
    return [step for step in found if step is not None]


def busy(world: TeamState) -> list[Step]:
    """Return the steps that run or are being ended."""
    return [world.steps[one.running] for _, one in sorted(world.agents.items()) if one.running is not None]


def some(rng: Random, known: Iterable[N], most: int) -> tuple[N, ...]:
    """Return a few of them, without duplicates."""
    names = sorted(known)
    return tuple(rng.sample(names, k=min(len(names), rng.randint(1, most)))) if names else ()
