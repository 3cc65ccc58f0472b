"""What a wish can name: mostly things that are there, sometimes things that are not."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId, ThreadId, WaitingId
from greenroom.core.rules.queue import next_step
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

N = TypeVar("N", bound=str)

NAMES = tuple(AgentId(name) for name in ("boss", "ann", "bob", "cy", "pia", "hue", "guest", "spare"))
GHOST = "ghost"


def one(rng: Random, known: Iterable[N], ghost: N) -> N:
    """One that is there; now and then one that is not."""
    names = sorted(known)
    return rng.choice(names) if names and rng.randrange(12) else ghost


def agent(rng: Random, world: World) -> AgentId:
    """An agent."""
    return one(rng, world.agents, AgentId(GHOST))


def task(rng: Random, world: World) -> TaskId:
    """A task."""
    return one(rng, world.tasks, TaskId(GHOST))


def stage(rng: Random, world: World) -> StageId:
    """A stage."""
    return one(rng, world.stages, StageId(GHOST))


def thread(rng: Random, world: World) -> ThreadId:
    """A thread."""
    return one(rng, world.threads, ThreadId(GHOST))


def step(rng: Random, world: World) -> StepId:
    """An open step."""
    return one(rng, world.steps, StepId("ghost#1"))


def waiting(rng: Random, world: World) -> WaitingId:
    """A waiting id."""
    return one(rng, world.waits, WaitingId("ghost>1:ghost"))


def asker(rng: Random, world: World) -> str:
    """Who asks: a person at a door, the house, an agent, or somebody who is nobody."""
    return rng.choice(("door", "door:page", "system", "boss", agent(rng, world)))


def startable(world: World) -> list[Step]:
    """The steps that may start now."""
    found = (next_step(world, name) for name in sorted(world.agents))
    return [step for step in found if step is not None]


def busy(world: World) -> list[Step]:
    """The steps that run or are being ended."""
    return [world.steps[one.running] for _, one in sorted(world.agents.items()) if one.running is not None]


def some(rng: Random, known: Iterable[N], most: int) -> tuple[N, ...]:
    """A few of them, none twice."""
    names = sorted(known)
    return tuple(rng.sample(names, k=min(len(names), rng.randint(1, most)))) if names else ()
