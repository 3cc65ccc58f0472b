"""The kits of programs: their tools are Python, so only the program itself can run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

from greenroom.app.kit import KitMaker
from greenroom.core.base.errors import WorldFault
from greenroom.core.state.team import Team

RUN: Final = "library"
TALK: Final = "library-chat"


def kits_of_programs() -> Mapping[str, KitMaker]:
    """For doors that cannot run them: who tries is told what to do instead."""
    return {RUN: refuse, TALK: refuse}


def refuse(team: Team) -> NoReturn:
    """Say where it can go on."""
    name = team.team_id
    call = f"house.chat(agent, resume={name!r})" if team.kit == TALK else f"house.resume(agent, {name!r})"
    what = "conversation" if team.kit == TALK else "run"
    raise WorldFault(f"The {what} {name!r} belongs to a program. Go on with it in Python: `{call}`.")
