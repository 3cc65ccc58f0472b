"""A kit: the wiring a team runs with. Its name is in the team's log, so that a resumed team gets the same one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.executor import Abilities
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team

Closing: TypeAlias = Callable[[], Awaitable[None]]


@record
class Kit:
    """Skills, tools and blueprints. `closing` is called when the team is closed here.

    `approvals_expire` (ms) is how long a question to a person waits for its answer; None is for ever.
    """

    abilities: Abilities
    blueprints: tuple[AgentSpec, ...] = ()
    closing: Closing | None = None
    approvals_expire: int | None = None


KitMaker: TypeAlias = Callable[[Team], Kit | Awaitable[Kit]]
"""What makes a team's kit when it is to run; some have to prepare something for it."""


async def find_kit(kits: Mapping[str, KitMaker], team: Team) -> Kit:
    """The kit that the team says it runs with."""
    maker = kits.get(team.kit)
    if maker is None:
        known = ", ".join(sorted(kits)) or "none"
        raise WorldFault(
            f"Team {team.team_id!r} runs with the kit {team.kit!r}, which is not installed here (known: {known}). "
            "It can be looked at, but not run."
        )
    made = maker(team)
    return made if isinstance(made, Kit) else await made
