"""The kit of an organisation: the skills of those who plan and of those who talk, the tools of its workspace, and from
whom its managers can make agents.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from greenroom.abilities.skills.planned.skills import planned
from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.tool import long_tail
from greenroom.app.context import AppContext
from greenroom.app.conversation.kits import MANY
from greenroom.app.conversation.start import model_of
from greenroom.app.kit import Kit
from greenroom.app.organisation.charter import charters, find_charter
from greenroom.app.organisation.founders import all_staff, ready
from greenroom.app.organisation.words import BASE
from greenroom.app.reading import TextReader
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.errors import Refused, WorldFault
from greenroom.core.ports.executor import Abilities, Executor
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team


async def organisation_kit(app: AppContext, team: Team) -> Kit:
    """The kit, made when the organisation is to run; a `WorldFault` when it is over."""
    world = await app.runtime.world(team.team_id)
    if BASE not in world.tasks:
        raise WorldFault(f"The organisation {team.name!r} is over. Start another one: `greenroom team start`.")
    first = world.agents[world.tasks[BASE].manager].spec  # all others begin with its language and model
    hands = app.toolset(Path(team.workspace))
    return Kit(
        abilities=Abilities((*_skills(app, hands), *map(long_tail, hands.executors))),
        blueprints=tuple(_blueprints(app, team, first, hands.toolbox)),
        closing=hands.close,
        approvals_expire=app.patience(),
    )


def _skills(app: AppContext, hands: Hands) -> Sequence[Executor]:
    """Of two skills with one name, that of agents that plan counts: the other one answers by calls."""
    plans = planned(app, hands.specs, reader=TextReader(), project=app.notes())
    talks = talking(app, hands.specs, reader=TextReader(), project=app.notes(), filter_above=MANY)
    names = {skill.name for skill in plans}
    return (*plans, *(skill for skill in talks if skill.name not in names))


def _blueprints(app: AppContext, team: Team, first: AgentSpec, tools: Toolbox) -> Iterator[AgentSpec]:
    """The agents that managers can make: no managers, and none whose model is not available here. If the charter is
    there and names some, only those."""
    root = Path(team.workspace)
    wanted = find_charter(root, team.name).blueprints if team.name in charters(root) else ()
    for name, spec in all_staff(first.language, app.agents().specs).items():
        if spec.manager or (wanted and name not in wanted):
            continue
        try:
            yield ready(spec, tools, settled=app.settled, model=model_of(first))
        except (WorldFault, Refused) as fault:
            logging.getLogger(__name__).warning("No agent can be made of %r: %s", name, fault)
