"""All kits that this process can run: a team says in its log which one it needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from greenroom.abilities.skills.planned.skills import planned
from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.tool import long_tail
from greenroom.app.context import AppContext
from greenroom.app.conversation.kits import MANY, talk_kits
from greenroom.app.conversation.names import JOB
from greenroom.app.conversation.start import model_of
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.library.results import kits_of_programs
from greenroom.app.organisation.charter import charters, find_charter
from greenroom.app.organisation.founders import all_staff, ready
from greenroom.app.organisation.words import BASE, KIT
from greenroom.app.reading import TextReader
from greenroom.app.toolset.by_hand import by_hand_kits
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.errors import Refused, WorldFault
from greenroom.core.ports.executor import Abilities
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team


def all_kits(app: AppContext) -> Mapping[str, KitMaker]:
    """The kits by name. The tools of runs are loaded when a run starts."""

    async def run(team: Team) -> Kit:
        from greenroom.app.runs.kit import run_kit

        return await run_kit(app, team)

    talks = talk_kits(app, app.notes, app.toolset, app.patience)
    return {JOB: run, KIT: partial(organisation_kit, app), **talks, **by_hand_kits(app.toolset), **kits_of_programs()}


async def organisation_kit(app: AppContext, team: Team) -> Kit:
    """The kit, made when the organisation is to run; a `WorldFault` when it is over."""
    world = await app.runtime.world(team.team_id)
    if BASE not in world.tasks:
        raise WorldFault(f"The organisation {team.name!r} is over. Start another one: `greenroom team start`.")
    first = world.agents[world.tasks[BASE].manager].spec  # all others begin with its language and model
    hands = app.toolset(Path(team.workspace))
    plans = planned(app, hands.specs, reader=TextReader(), project=app.notes())
    talks = talking(app, hands.specs, reader=TextReader(), project=app.notes(), filter_above=MANY)
    # Of two skills with one name, that of agents that plan counts: the other one answers by calls.
    skills = {skill.name: skill for skill in (*talks, *plans)}
    return Kit(
        abilities=Abilities((*skills.values(), *map(long_tail, hands.executors))),
        blueprints=tuple(_blueprints(app, team, first, hands.toolbox)),
        closing=hands.close,
        approvals_expire=app.patience(),
    )


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
