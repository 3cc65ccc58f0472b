"""The kit of runs: tools that work in a worktree of the person's files, record every step, and judge the result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.human import Guess, ProposePlan
from greenroom.abilities.tools.run_checks import RunChecks
from greenroom.app.hands.copied import Copied, Quiet
from greenroom.app.hands.hands import Hands
from greenroom.app.jobs import setup as preparing
from greenroom.app.jobs.baseline import Baseline, ConfirmUnverified, found_in
from greenroom.app.jobs.checker import ProjectChecks, base_of
from greenroom.app.jobs.checkout import checkouts
from greenroom.app.jobs.delivery import Deliver
from greenroom.app.jobs.place import History, Place, opened
from greenroom.app.jobs.plan import Plan
from greenroom.app.jobs.record import recorded
from greenroom.app.jobs.setup import Prepare, Setup
from greenroom.app.jobs.verdict import BASELINE, CONFIRM, DELIVER, base_report
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
    """What the command line gives to runs. `alone` says that nobody is asked about a plan, `says_yes` that a person has
    agreed to everything beforehand, `patience` how long a question is open."""

    models: Models
    notes: Callable[[], str]
    hands: Callable[[Copied], Hands]
    plan: Callable[[Path, Sequence[Check] | None], Plan]
    setup: Callable[[Path], Setup]
    history: History
    blob: Callable[[TeamId, str], Awaitable[bytes]]
    guess: Guess
    alone: Callable[[], bool]
    non_interactive: Callable[[], bool]
    says_yes: Callable[[], bool]
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
    plan = supplies.plan(root, found_in(steps))
    base = base_report(steps)
    turn, blob = asyncio.Lock(), partial(supplies.blob, team)
    known = await base_of(base, blob) if base is not None else {}
    fresh = checkouts(place, setup, supplies.hands)
    checker = ProjectChecks(plan.run, fresh, base=known, left=plan.left)
    alone = supplies.non_interactive()
    allowed = supplies.says_yes() and not alone

    def more(commands: Commands, quiet: Quiet) -> Sequence[ToolExecutor]:
        return (
            RunChecks(checker),
            Baseline(checker, plan.found),
            ConfirmUnverified(checker, allowed=allowed, alone=alone),
            Prepare(setup, commands),
            ProposePlan(supplies.guess, alone=supplies.alone()),
            Deliver(place, checker, fresh, supplies.history, quiet=quiet, prepares=setup.runs),
        )

    return supplies.hands(
        Copied(
            folder=place.folder,
            at=root,
            lent=place.shown,
            wrap=lambda tool: recorded(tool, place.worktree, turn, by_itself=(DELIVER, BASELINE)),
            more=more,
            known=(preparing.NAME, BASELINE, CONFIRM, DELIVER),
        )
    )


async def lending(place: Place, setup: Setup) -> Place:
    """The place with the folders that are lent to it on top of what git ignores."""
    return replace(place, lent=tuple(await place.workspace.lent(setup.lend))) if setup.lend else place
