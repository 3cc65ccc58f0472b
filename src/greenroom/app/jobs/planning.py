"""Which checks count in a workspace, and what its copies need, by what its people have and what the person said."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
from greenroom.core.ports.checks import Check


def plan_of(root: Path, *, walls: bool, then: Sequence[Check] | None = None) -> Plan:
    """The plan; `walls` say that commands run behind some that hold. `then` are the checks that the project had when
    the work began: they are its judges, whatever lies in the folder now. A person's own are those that they want now.
    """
    loaded = load({}, os.environ, root)
    proposals = proposed(loaded.settings.checks, loaded)
    own = tuple(one for one in proposals if one.own)
    every = _every(proposals, FolderLook(root)) if then is None else together(own, then)
    return planned(every, own_choices().of(root), own_ledger().trusted(root), walls=walls)


def checks_then(root: Path, began: Look, *, begun: bool) -> tuple[Check, ...]:
    """The checks that a project had when the work began, where nobody has written them down. `began` sees the folder as
    it was; what has come into it since, with the work or otherwise, is no judge of work that had `begun`.

    A check that is still there is the one of now: its line may name packages, which are in no copy.
    """
    loaded = load({}, os.environ, root)
    now, there = FolderLook(root), {_key(one): one for one in _all(began)}
    here = {_key(one) for one in _all(now)}
    came = here - there.keys() if begun else set()
    kept = [one for one in _every(proposed(loaded.settings.checks, loaded), now) if _key(one) not in came]
    gone = [one for one in _every((), began) if _key(one) not in here]
    return tuple(one for one in together(kept, gone) if not one.own)


def _key(one: Check) -> tuple[str, str]:
    return (one.name, one.folder)


def _all(look: Look) -> tuple[Check, ...]:
    return found(look, (".", *projects_below(look)))


def _every(proposals: Sequence[Check], look: Look) -> tuple[Check, ...]:
    """What is proposed and what the root has; where no test is among that, what the projects below it have too."""
    above = together(proposals, found(look))
    if any(one.kind == "test" for one in above):
        return above
    return together(proposals, _all(look))


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
