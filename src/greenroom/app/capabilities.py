"""Team capabilities: what a team runs with. The log stores their name, so that a resumed team gets the same ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.executor import Capabilities
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team

CloseCallback: TypeAlias = Callable[[], Awaitable[None]]


@record
class TeamCapabilities:
    """Executors and agent specs of a team. `on_close` is called when the team closes. `approvals_expire` is how long an
    approval request stays open, in milliseconds; None means forever."""

    executors: Capabilities
    agent_specs: tuple[AgentSpec, ...] = ()
    on_close: CloseCallback | None = None
    approvals_expire: int | None = None


CapabilitiesFactory: TypeAlias = Callable[[Team], TeamCapabilities | Awaitable[TeamCapabilities]]
"""Makes the capabilities of a team when it starts. Can be a coroutine."""


async def make_capabilities(factories: Mapping[str, CapabilitiesFactory], team: Team) -> TeamCapabilities:
    """Make the capabilities that the team's log names. Raise an error if they are not installed."""
    factory = factories.get(team.kit)
    if factory is None:
        known = ", ".join(sorted(factories)) or "none"
        raise WorldFault(
            f"Team {team.team_id!r} needs the kit {team.kit!r}, which is not installed here (known: {known}). "
            "You can view it, but not run it."
        )
    capabilities = factory(team)
    return capabilities if isinstance(capabilities, TeamCapabilities) else await capabilities
