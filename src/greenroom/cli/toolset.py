"""The tools of a workspace, and what jobs and organisations run with.

Loaded only when a team runs or a tool is used: tools and skills take half a second to import.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from greenroom.app.conversation.start import model_of
from greenroom.app.custom import equipment_in
from greenroom.app.jobs.kit import Supplies as JobSupplies
from greenroom.app.jobs.kit import job_kit
from greenroom.app.jobs.place import cache
from greenroom.app.jobs.plan import plan_of, setup_of
from greenroom.app.kit import Kit
from greenroom.app.organisation.charter import charters, find_charter
from greenroom.app.organisation.founders import all_staff
from greenroom.app.organisation.kit import Supplies, organisation_kit
from greenroom.app.toolset import toolset as hands
from greenroom.app.toolset.policy import Confirming, persons_rules, policy_for, project_rules
from greenroom.app.toolset.sandbox import Walls, tier_in
from greenroom.app.toolset.toolbox import Copied, Toolbox
from greenroom.app.toolset.toolset import Hands
from greenroom.cli.render.team import MILLION, dollars
from greenroom.cli.resources import Resources
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.sandbox import HOLDING, Tier
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.core.state.world import World

LEAST: Final = (20_000, 2_000)  # tokens that are read and written for a small change
EACH: Final = (40_000, 4_000)  # tokens more for each file, at most


def hands_in(means: Resources, root: Path, copied: Copied | None = None) -> Hands:
    """The tools of a workspace, or of one `copied` from it, under what the person has agreed to there. Nothing secret
    is in what they say. The model that leads a browser is one of ours."""
    settings = means.provisions.loaded.settings
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
        find=means.ended,
        equipment=equipment_in(root),
        unattended=settings.non_interactive,
        secrets=means.provisions.keys(),
        web=settings.web,
        browser=settings.browser,
        models=means,
        walls=walls,
        copied=copied,
    )


def toolbox_of(root: Path) -> Toolbox:
    """The tools of a workspace, only to be looked at."""
    return hands.toolbox_of(root, equipment_in(root))


async def job(means: Resources, team: Team) -> Kit:
    """What a job is done with."""

    async def blob(_: TeamId, digest: str) -> bytes:
        if means.runtime is None:
            raise Bug("A job runs without a runtime.")
        return await means.runtime.log.get_blob(digest)

    make = job_kit(
        JobSupplies(
            models=means,
            notes=means.notes,
            hands=lambda copied: hands_in(means, copied.at, copied),
            plan=lambda root, then: plan_of(root, walls=may_run_checks(means), then=then),
            setup=lambda root: setup_of(root, walls=is_sandboxed(means)),
            history=means.steps,
            blob=blob,
            guess=lambda world, step, files: guess_cost(means, world, step, files),
            patience=means.patience,
            alone=lambda: not means.attended or means.says_yes,
            non_interactive=lambda: not means.attended,
            says_yes=lambda: means.says_yes,
        )
    )
    return await make(team)


async def organisation(means: Resources, team: Team) -> Kit:
    """What an organisation works with."""

    async def world(name: TeamId) -> World:
        if means.runtime is None:
            raise Bug("An organisation runs without a runtime.")
        return await means.runtime.world(name)

    def wanted(its: Team) -> tuple[str, ...]:
        """The blueprints that its charter names; where that is gone, all there are."""
        root = Path(its.workspace)
        return find_charter(root, its.name).blueprints if its.name in charters(root) else ()

    make = organisation_kit(
        Supplies(
            models=means,
            notes=means.notes,
            hands=lambda root: hands_in(means, root),
            staff=lambda language: all_staff(language, means.agents().specs),
            wanted=wanted,
            world=world,
            settled=means.provisions.settled,
            patience=means.patience,
        )
    )
    return await make(team)


@lru_cache(maxsize=1)
def sandbox_tier(means: Resources) -> Tier:
    """What confines commands in this run's worktree. To know it a sandbox is set up, so it is asked once."""
    return tier_in(cache(), means.provisions.loaded.settings.sandbox, at=means.root).tier


def is_sandboxed(means: Resources) -> bool:
    """Whether commands run in a sandbox that holds."""
    return sandbox_tier(means) in HOLDING


def may_run_checks(means: Resources) -> bool:
    """Whether checks run that a person has not approved one by one: in a sandbox, or because they said --yes."""
    return is_sandboxed(means) or means.says_yes


def guess_cost(means: Resources, world: World, step: Step, files: int) -> str:
    """What work on so many files may cost, in words; a guess has no use for more than cents, where there are some."""
    model = means.named(model_of(world.agents[step.agent_id].spec))
    least = model.price(*LEAST)
    most = model.price(LEAST[0] + EACH[0] * max(1, files), LEAST[1] + EACH[1] * max(1, files))
    if not least or not most:
        return ""
    low, high = (f"${money / MILLION:.2f}" if money >= MILLION // 100 else dollars(money) for money in (least, most))
    return f"{low}–{high} (a guess)"
