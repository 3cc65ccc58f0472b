"""The kit of an organisation: the skills of those who plan and of those who talk, the tools of its workspace, and from
whom its managers can make agents.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from greenroom.abilities.skills.planned.skills import planned
from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.tool import long_tail
from greenroom.app.conversation.kits import MANY
from greenroom.app.conversation.start import model_of
from greenroom.app.kit import Kit
from greenroom.app.organisation.founders import ready
from greenroom.app.organisation.words import BASE
from greenroom.app.reading import TextReader
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.errors import Refused, WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.executor import Abilities, Executor
from greenroom.core.ports.model import Models
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team
from greenroom.core.state.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """What a door gives to organisations. `staff` are the agents of a workspace that speak a language, `wanted` the
    names of those that the charter of a team lets managers make; none is all."""

    models: Models
    notes: Callable[[], str]
    hands: Callable[[Path], Hands]
    staff: Callable[[str], Mapping[str, AgentSpec]]
    wanted: Callable[[Team], tuple[str, ...]]
    world: Callable[[TeamId], Awaitable[World]]
    settled: Callable[[str], str]
    patience: Callable[[], int | None]


def organisation_kit(supplies: Supplies) -> Callable[[Team], Awaitable[Kit]]:
    """The kit, made when the organisation is to run."""

    async def made(team: Team) -> Kit:
        world = await supplies.world(team.team_id)
        if BASE not in world.tasks:
            raise WorldFault(f"The organisation {team.name!r} is over. Found another one: `greenroom team start`.")
        first = world.agents[world.tasks[BASE].manager].spec  # in its language and with its model all others begin
        hands = supplies.hands(Path(team.workspace))
        return Kit(
            abilities=Abilities((*_skills(supplies, hands), *map(long_tail, hands.executors))),
            blueprints=tuple(_blueprints(supplies, team, first, hands.toolbox)),
            closing=hands.close,
            approvals_expire=supplies.patience(),
        )

    return made


def _skills(supplies: Supplies, hands: Hands) -> Sequence[Executor]:
    """Of two skills with one name, that of those who plan counts: the others answer by calls."""
    plans = planned(supplies.models, hands.specs, reader=TextReader(), project=supplies.notes())
    talks = talking(supplies.models, hands.specs, reader=TextReader(), project=supplies.notes(), filter_above=MANY)
    names = {one.name for one in plans}
    return (*plans, *(one for one in talks if one.name not in names))


def _blueprints(supplies: Supplies, team: Team, first: AgentSpec, tools: Toolbox) -> Iterator[AgentSpec]:
    """Those whom managers can make agents from: no managers, and nobody whose model cannot be asked here. Whom the
    charter names and nobody is, is said to people where it is read."""
    staff, wanted = supplies.staff(first.language), supplies.wanted(team)
    for name, spec in staff.items():
        if spec.manager or (wanted and name not in wanted):
            continue
        try:
            yield ready(spec, tools, settled=supplies.settled, model=model_of(first))
        except (WorldFault, Refused) as fault:
            logging.getLogger(__name__).warning("No agent can be made of %r: %s", name, fault)
