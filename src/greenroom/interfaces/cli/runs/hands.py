"""The hands of teams at this door. Loaded by name: the tools take their time, and most commands need none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from greenroom.app.custom import equipment_in, meet_servers
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset import toolset as hands
from greenroom.app.toolset.policy import Confirming, persons_rules, policy_for, project_rules
from greenroom.app.toolset.sandbox import Walls
from greenroom.app.toolset.toolbox import Copied, Toolbox
from greenroom.app.toolset.toolset import FindEnded, Hands
from greenroom.core.ports.model import Models

__all__ = ("equipment_in", "hands_in", "meet_servers", "persons_rules", "toolbox_of")


def hands_in(
    root: Path,
    find: FindEnded,
    secrets: Iterable[str],
    settings: Settings,
    models: Models,
    copied: Copied | None = None,
) -> Hands:
    """The tools of a workspace, or of one `copied` from it, under what the person has agreed to there. Nothing secret
    is in what they say. What leads a browser is one of the models."""
    folder = copied.folder if copied is not None else root
    lent = copied.lent if copied is not None else ()
    walls = Walls(folder, settings.sandbox, at=root, lent=lent, web=settings.web)
    policy = policy_for(
        root,
        persons_rules().of(root),
        project_rules(root),
        brought=copied.known if copied is not None else (),
        walled=walls.hold,
        lies=folder,
    )
    return Hands(
        folder,
        Confirming(policy) if settings.execute_tool_confirm else policy,
        find=find,
        equipment=equipment_in(root),
        unattended=settings.non_interactive,
        secrets=secrets,
        web=settings.web,
        browser=settings.browser,
        models=models,
        walls=walls,
        copied=copied,
    )


def toolbox_of(root: Path) -> Toolbox:
    """The same, only to be looked at."""
    return hands.toolbox_of(root, equipment_in(root))
