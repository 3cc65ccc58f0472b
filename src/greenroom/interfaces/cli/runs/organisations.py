"""Organisations at this door: what they work with. Loaded by name: skills and tools take their time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from greenroom.app.kit import Kit
from greenroom.app.organisation.charter import charters, find_charter
from greenroom.app.organisation.kit import Supplies, organisation_kit
from greenroom.app.organisation.staffing import all_staff
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import TeamId
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.interfaces.cli.runs.means import Means


def kit_of(means: Means) -> Callable[[Team], Awaitable[Kit]]:
    """The kit of organisations, with what this door has."""

    async def world(team: TeamId) -> World:
        if means.runtime is None:
            raise Bug("An organisation runs without a runtime.")
        return await means.runtime.world(team)

    return organisation_kit(
        Supplies(
            models=means,
            notes=means.notes,
            hands=means.hands,
            staff=lambda language: all_staff(language, means.surroundings.agents().specs),
            wanted=_wanted,
            world=world,
            settled=means.provisions.settled,
            patience=means.patience,
        )
    )


def _wanted(team: Team) -> tuple[str, ...]:
    """The blueprints that its charter names; where that is gone, all there are."""
    root = Path(team.workspace)
    return find_charter(root, team.name).blueprints if team.name in charters(root) else ()
