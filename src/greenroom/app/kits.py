"""All kits that this process can run: a team says in its log which one it needs."""

from __future__ import annotations

from collections.abc import Mapping

from greenroom.app.context import AppContext
from greenroom.app.conversation.kits import talk_kits
from greenroom.app.conversation.names import JOB
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.library.results import kits_of_programs
from greenroom.app.organisation.words import KIT
from greenroom.app.toolset.by_hand import by_hand_kits
from greenroom.core.state.team import Team


def all_kits(app: AppContext) -> Mapping[str, KitMaker]:
    """The kits by name. Tools and skills are loaded when a team starts: most commands start none."""

    async def run(team: Team) -> Kit:
        from greenroom.app.runs.kit import run_kit

        return await run_kit(app, team)

    async def organisation(team: Team) -> Kit:
        from greenroom.app.organisation.kit import organisation_kit

        return await organisation_kit(app, team)

    talks = talk_kits(app, app.notes, app.toolset, app.patience)
    return {JOB: run, KIT: organisation, **talks, **by_hand_kits(app.toolset), **kits_of_programs()}
