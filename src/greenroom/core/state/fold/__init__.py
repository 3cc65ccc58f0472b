"""The fold: `fold(world, event)` is the next world. Pure; it trusts its events, because rules made them."""

from __future__ import annotations

from collections.abc import Iterable

from greenroom.core.base.records import evolve
from greenroom.core.state.events import Event
from greenroom.core.state.fold import plan, talk, work
from greenroom.core.state.world import World

_STEPS = {**plan.FOLDS, **work.FOLDS, **talk.FOLDS}


def fold(world: World, event: Event) -> World:
    """The world after `event`."""
    after = _STEPS[type(event)](world, event)
    if after is world:
        after = evolve(world)
    # The new world is nobody's yet: setting its version in place saves making it once more.
    after.__dict__["version"] = world.version + 1
    return after


def fold_all(world: World, events: Iterable[Event]) -> World:
    """The world after all of them."""
    for event in events:
        world = fold(world, event)
    return world
