"""The hands of teams at this door. Loaded by name: the tools take their time, and most commands need none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from greenroom.app.custom.equipment import custom_equipment
from greenroom.app.hands import hands
from greenroom.app.hands.confirming import Confirming
from greenroom.app.hands.equipment import Equipment, together
from greenroom.app.hands.hands import FindEnded, Hands
from greenroom.app.hands.policy import policy_for
from greenroom.app.hands.project_rules import project_rules
from greenroom.app.hands.rules_file import persons_rules
from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.hands.walls import Walls
from greenroom.app.servers.equipment import equipment_of
from greenroom.app.servers.looking import meet
from greenroom.app.settings.layers import load
from greenroom.app.settings.schema import Settings
from greenroom.app.trust.ledger import own_ledger

__all__ = ("equipment_in", "hands_in", "meet_servers", "persons_rules", "toolbox_of")


def hands_in(root: Path, find: FindEnded, secrets: Iterable[str], settings: Settings) -> Hands:
    """The tools of a workspace, under what the person has agreed to there. Nothing secret is in what they say."""
    walls = Walls(root, settings.sandbox)
    policy = policy_for(root, persons_rules().of(root), project_rules(root), walled=walls.hold)
    return Hands(
        root,
        Confirming(policy) if settings.execute_tool_confirm else policy,
        find=find,
        equipment=equipment_in(root),
        unattended=settings.non_interactive,
        secrets=secrets,
        web=settings.web,
        walls=walls,
    )


def toolbox_of(root: Path) -> Toolbox:
    """The same, only to be looked at."""
    return hands.toolbox_of(root, equipment_in(root))


def equipment_in(root: Path) -> Equipment:
    """What comes from elsewhere: of files, of packages, and the tools of MCP servers. None is started for it."""
    settings, trusted = load({}, os.environ, root).settings, own_ledger().trusted(root)
    return together((custom_equipment(root, settings, trusted), equipment_of(root, os.environ, settings, trusted)))


async def meet_servers(root: Path) -> tuple[str, ...]:
    """Before a run: see what servers have that nobody has looked at; a sentence for each that does not work."""
    return await meet(root, os.environ, load({}, os.environ, root).settings, own_ledger().trusted(root))
