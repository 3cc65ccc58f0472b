"""The kits that the command line can run: a team says in its log which one it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from greenroom.app.conversation.kits import talk_kits
from greenroom.app.conversation.names import JOB
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.library.results import kits_of_programs
from greenroom.app.organisation.words import KIT
from greenroom.app.toolset.by_hand import by_hand_kits
from greenroom.cli.resources import Resources, demo_pace
from greenroom.core.state.team import Team
from greenroom.testing.demo import demo_kits

if TYPE_CHECKING:
    from greenroom.app.toolset.toolset import Hands


def kits(home: Path, means: Resources) -> Mapping[str, KitMaker]:
    """All kits by name. Tools are loaded when a team uses them: most commands only ask a team for something."""

    def hands(root: Path) -> Hands:
        from greenroom.cli.toolset import hands_in

        return hands_in(means, root)

    async def job(team: Team) -> Kit:
        from greenroom.cli import toolset

        return await toolset.job(means, team)

    async def organisation(team: Team) -> Kit:
        from greenroom.cli import toolset

        return await toolset.organisation(means, team)

    demos = demo_kits(home, pace=demo_pace(), around=means.around)
    talks = talk_kits(means, means.notes, hands, means.patience)
    return {JOB: job, KIT: organisation, **demos, **talks, **by_hand_kits(hands), **kits_of_programs()}
