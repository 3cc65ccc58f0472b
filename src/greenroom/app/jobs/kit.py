"""The kit of jobs: tools that work in a copy of the person's files, record every step, and have the last word."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath

from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.checks.run_checks import RunChecks
from greenroom.abilities.tools.propose_plan import Guess, ProposePlan
from greenroom.app.checks.checker import ProjectChecks, base_of
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.planning import Plan
from greenroom.app.checks.receipts import base_report
from greenroom.app.hands.copied import Copied, Quiet
from greenroom.app.hands.hands import Hands
from greenroom.app.jobs import baseline, delivering, preparing
from greenroom.app.jobs.baseline import Baseline, found_in, litter_in
from greenroom.app.jobs.delivering import Deliver
from greenroom.app.jobs.judging import judges
from greenroom.app.jobs.place import History, Place, opened
from greenroom.app.jobs.planning import checks_then
from greenroom.app.jobs.preparing import Prepare, Setup
from greenroom.app.jobs.recording import recorded
from greenroom.app.kit import Kit
from greenroom.app.reading import TextReader
from greenroom.app.talks.kits import MANY
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.checks import Check
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import Models
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import SCRATCH
from greenroom.core.state.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """What a door gives to jobs. `alone` says that nobody is asked about a plan, `patience` how long a question is
    open."""

    models: Models
    notes: Callable[[], str]
    hands: Callable[[Copied], Hands]
    plan: Callable[[Path, Sequence[Check]], Plan]
    setup: Callable[[Path], Setup]
    history: History
    blob: Callable[[TeamId, str], Awaitable[bytes]]
    guess: Guess
    alone: Callable[[], bool]
    patience: Callable[[], int | None]


def job_kit(supplies: Supplies) -> Callable[[Team], Awaitable[Kit]]:
    """The kit: the copy is made, or found again, when the team is to run."""

    async def made(team: Team) -> Kit:
        root = Path(team.workspace)
        place = await lending(await opened(team, supplies.history), supplies.setup(root))
        await place.workspace.close(team.team_id, SCRATCH)  # what a life that was killed left
        hands = await _hands(supplies, team.team_id, root, place)
        skills = talking(
            supplies.models,
            hands.specs,
            solo=True,
            reader=TextReader(),
            project=supplies.notes(),
            filter_above=MANY,
        )
        return Kit(
            abilities=Abilities((*skills, *hands.executors)),
            closing=hands.close,
            approvals_expire=supplies.patience(),
        )

    return made


async def _hands(supplies: Supplies, team: TeamId, root: Path, place: Place) -> Hands:
    setup, steps = supplies.setup(root), await supplies.history(team)
    then = found_in(steps)
    plan = supplies.plan(root, checks_then(root, await place.began(), begun=bool(steps)) if then is None else then)
    base = base_report(steps)
    await place.worktree.pass_over(litter_in(steps))  # the copy may be a new one
    turn, blob = asyncio.Lock(), partial(supplies.blob, team)
    known = await base_of(base, blob) if base is not None else {}

    def more(commands: Commands, quiet: Quiet) -> Sequence[ToolExecutor]:
        checker = ProjectChecks(
            plan.run, commands, place.worktree.tree, look=FolderLook(place.folder), base=known, left=plan.left
        )
        judged = judges(place, checker, setup, supplies.hands)
        return (
            RunChecks(checker),
            Baseline(checker, place.worktree, plan.found),
            Prepare(setup, commands),
            ProposePlan(supplies.guess, alone=supplies.alone()),
            Deliver(place, plan, supplies.history, judges=judged, quiet=quiet, blob=blob, prepares=setup.runs),
        )

    return supplies.hands(
        Copied(
            folder=place.folder,
            at=root,
            lent=place.shown,
            wrap=lambda tool: recorded(
                tool, place.worktree, turn, within=place.snapshot.within, by_itself=(delivering.NAME,)
            ),
            more=more,
            known=(preparing.NAME, baseline.NAME, delivering.NAME),
        )
    )


async def lending(place: Place, setup: Setup) -> Place:
    """The place with what is lent to it. What is prepared there has packages of its own: the person's, which nobody can
    write to, would be in the way."""
    every = await place.workspace.lent(setup.lend) if setup.lend else place.lent
    kept = (one for one in every if not setup.runs or one.kind != "packages" or PurePath(one.path).name in setup.lend)
    return replace(place, lent=tuple(kept))
