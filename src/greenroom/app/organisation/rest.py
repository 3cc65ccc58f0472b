"""When an organisation is at rest: nothing happens in it any more until somebody outside does something."""

from __future__ import annotations

from typing import Literal, TypeAlias

from greenroom.app.standing import Standing, standing
from greenroom.core.state.world import World

Rest: TypeAlias = Literal["working", "waiting", "paused", "limit", "provider", "idle"]
_WORST: tuple[Rest, ...] = ("working", "provider", "limit", "paused", "waiting")


def at_rest(world: World) -> Standing:
    """How it stands: works, stands still for want of something (and why), waits for a person, or has nothing to do."""
    found = [one for task in world.tasks if (one := standing(world, task)) is not None]
    for word in _WORST:
        stands = next((one for one in found if one.word == word), None)
        if stands is not None:
            return stands
    return Standing(word="idle")
