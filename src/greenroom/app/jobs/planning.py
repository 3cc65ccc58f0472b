"""Which checks count in a workspace, and what its copies need, by what its people have and what the person said."""

from __future__ import annotations

import os
from pathlib import Path

from greenroom.abilities.checks.finding.below import projects_below
from greenroom.abilities.checks.finding.found import found
from greenroom.abilities.checks.looking import Look
from greenroom.app.checks.choices import own_choices
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.planning import Plan, planned, proposed, together
from greenroom.app.jobs.preparing import Setup
from greenroom.app.settings.layers import load
from greenroom.app.trust.ledger import own_ledger
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check


def plan_of(root: Path, *, walls: bool) -> Plan:
    """The plan; `walls` say that commands run behind some that hold."""
    loaded = load({}, os.environ, root)
    every = _every(proposed(loaded.settings.checks, loaded), FolderLook(root))
    return planned(every, own_choices().of(root), own_ledger().trusted(root), walls=walls)


def without_own(plan: Plan, root: Path, began: Look) -> Plan:
    """The plan without what the work itself has brought into the folder, which is there once it is applied: that is no
    judge of it. `began` sees the folder as it was when the work began."""
    came = _names(FolderLook(root)) - _names(began)
    own = [one for one in plan.run if not one.own and (one.name, one.folder) in came]
    return evolve(
        plan,
        run=tuple(one for one in plan.run if one not in own),
        open=tuple(one for one in plan.open if one not in own),
        left=(*plan.left, *(f"{one.name!r} was not run: it came with the work, which it cannot prove." for one in own)),
    )


def _names(look: Look) -> set[tuple[str, str]]:
    """By name: the lines may differ where packages are lent to a copy."""
    return {(one.name, one.folder) for one in found(look, (".", *projects_below(look)))}


def _every(proposals: tuple[Check, ...], look: FolderLook) -> tuple[Check, ...]:
    """What is proposed and what the root has; where no test is among that, what the projects below it have too."""
    above = together(proposals, found(look))
    if any(one.kind == "test" for one in above):
        return above
    return together(proposals, found(look, (".", *projects_below(look))))


def setup_of(root: Path, *, walls: bool) -> Setup:
    """What a copy needs. A line that comes with the project is a stranger's: without walls it is not run."""
    loaded = load({}, os.environ, root)
    wanted, origin = loaded.settings.workspace, loaded.origin("workspace.setup")
    own = origin.layer not in ("project", "local")
    left = "" if own or walls else _left(wanted.setup, origin.source)
    return Setup(line=wanted.setup, seconds=wanted.seconds, lend=wanted.lend, left=left)


def _left(line: str, source: str) -> str:
    return (
        f"`{line}` was not run: {source} names it, and there are no walls around commands here. If you want it, put it "
        "below [workspace] into your own settings file (`greenroom config path`)."
    )
