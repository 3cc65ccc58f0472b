"""The fold: `fold(world, event)` is the next world. Pure; it trusts its events, because rules made them."""

from __future__ import annotations

from greenroom.core.base.records import evolve
from greenroom.core.state.events import Event
from greenroom.core.state.fold import plan, talk, work
from greenroom.core.state.world import World

_STEPS = {**plan.FOLDS, **work.FOLDS, **talk.FOLDS}


def fold(world: World, event: Event) -> World:
    """The world after `event`."""
    return evolve(_STEPS[type(event)](world, event), version=world.version + 1, at=event.at)
