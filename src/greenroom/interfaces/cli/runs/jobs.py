"""Jobs at this door: what they are made with. Loaded by name: git, checks and tools take their time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

from greenroom.app.conversation.start import Wanted, model_of
from greenroom.app.jobs.kit import Supplies, coder, found_job, job_kit
from greenroom.app.jobs.place import cache, outcome, refuse_too_wide, workspace
from greenroom.app.jobs.plan import plan_of, setup_of
from greenroom.app.jobs.report import JobReport, report_of
from greenroom.app.kit import Kit
from greenroom.app.toolset.sandbox import tier_in
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.sandbox import HOLDING, Tier
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.rows import dollars
from greenroom.interfaces.cli.runs.beginning import Begun
from greenroom.interfaces.cli.runs.confirming import settled
from greenroom.interfaces.cli.runs.ending import MILLION
from greenroom.interfaces.cli.runs.means import Means
from greenroom.interfaces.cli.runs.over import say_recovered
from greenroom.interfaces.cli.runs.session import Door

__all__ = ("coder", "founded", "guess", "kit_of", "reported", "sure_of_checks", "tier")

LEAST: Final = (20_000, 2_000)
"""Tokens that are read and written for a small change."""

EACH: Final = (40_000, 4_000)
"""Tokens more for each file, at most."""


def kit_of(means: Means) -> Callable[[Team], Awaitable[Kit]]:
    """The kit of jobs, with what this door has."""

    async def blob(_: TeamId, digest: str) -> bytes:
        if means.runtime is None:
            raise Bug("A job runs without a runtime.")
        return await means.runtime.log.get_blob(digest)

    return job_kit(
        Supplies(
            models=means,
            notes=means.notes,
            hands=lambda copied: means.hands(copied.at, copied),
            plan=lambda root, then: plan_of(root, walls=may_run(means), then=then),
            setup=lambda root: setup_of(root, walls=walled(means)),
            history=means.steps,
            blob=blob,
            guess=lambda world, step, files: guess(means, world, step, files),
            patience=means.patience,
            alone=lambda: not means.attended or means.says_yes,
            non_interactive=lambda: not means.attended,
            says_yes=lambda: means.says_yes,
        )
    )


def guess(means: Means, world: World, step: Step, files: int) -> str:
    """What work on so many files may cost, in words."""
    model = means.named(model_of(world.agents[step.agent_id].spec))
    least = model.price(*LEAST)
    most = model.price(LEAST[0] + EACH[0] * max(1, files), LEAST[1] + EACH[1] * max(1, files))
    return f"{_cents(least)}–{_cents(most)} (a guess)" if least and most else ""


def _cents(money: int) -> str:
    """A guess has no use for more than cents, where there are some."""
    return f"${money / MILLION:.2f}" if money >= MILLION // 100 else dollars(money)


def walled(means: Means) -> bool:
    """Whether commands run in a sandbox that holds."""
    return _chosen(means) in HOLDING


def may_run(means: Means) -> bool:
    """Whether checks run that a person has not approved one by one: in a sandbox, or because they said --yes."""
    return walled(means) or means.says_yes


def tier(means: Means) -> str:
    """What commands run in, in words."""
    found = _chosen(means)
    return {"none": "no sandbox: every command asks"}.get(found, f"sandbox: {found}")


@lru_cache(maxsize=1)
def _chosen(means: Means) -> Tier:
    """What commands in this run's worktree get. To know it a sandbox is put up, so it is asked once."""
    return tier_in(cache(), means.provisions.loaded.settings.sandbox, at=means.root).tier


async def founded(door: Door, begun: Begun, question: str, typed: str, wanted: Wanted) -> TeamId:
    """The team of a job, which does not work yet."""
    await refuse_too_wide(door.means.root)
    theirs = await workspace(door.means.root)
    await theirs.recover()
    say_recovered(door, theirs)
    limits = begun.caps.limits
    setup = bool(setup_of(door.means.root, walls=walled(door.means)).line)
    return await found_job(door.runtime, begun.cast, question, typed=typed, limits=limits, setup=setup, wanted=wanted)


def sure_of_checks(door: Door, root: Path) -> bool:
    """Say which checks will prove the work, after a person was asked about new ones; False when they went away."""
    return settled(door, root, walls=may_run(door.means)) is not None


async def reported(door: Door, team: TeamId) -> JobReport:
    """What came of a job."""
    came = await outcome((await door.runtime.world(team)).team, door.means.steps)
    language = door.means.provisions.loaded.settings.language
    return await report_of(came, await door.means.steps(team), language)
