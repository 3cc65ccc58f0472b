"""Factories of capabilities. The log stores a factory's name, so that a resumed team gets the same capabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.executor import Capabilities
from greenroom.core.state.team import Team

CapabilitiesFactory: TypeAlias = Callable[[Team], Capabilities | Awaitable[Capabilities]]
"""Makes the capabilities of a team when it starts. Can be a coroutine."""


async def make_capabilities(factories: Mapping[str, CapabilitiesFactory], team: Team) -> Capabilities:
    """Make the capabilities that the team's log names. Raise an error if they are not installed."""
    factory = factories.get(team.kit)
    if factory is None:
        known = ", ".join(sorted(factories)) or "none"
        raise WorldFault("capabilities.kit_not_installed", team_id=team.team_id, kit=team.kit, known=known)
    capabilities = factory(team)
    return capabilities if isinstance(capabilities, Capabilities) else await capabilities
