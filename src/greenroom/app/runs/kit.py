"""The kit of runs: tools that work in a worktree, record every step, and judge the result; and starting a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.human import ProposePlan
from greenroom.abilities.tools.run_checks import RunChecks
from greenroom.app.context import AppContext
from greenroom.app.conversation.kits import MANY
from greenroom.app.conversation.names import JOB
from greenroom.app.conversation.start import FIRST, Cast, brought, model_of, task_of, turn
from greenroom.app.cost import MILLION, dollars
from greenroom.app.kit import Kit
from greenroom.app.messages.findings import sentence
from greenroom.app.reading import TextReader
from greenroom.app.runs.checks import plan_of, setup_of
from greenroom.app.runs.workspaces import opened
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.packs import Pack
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import SCRATCH
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.spec import AgentSpec, Turn
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.runs import checkout
from greenroom.runs.checker import Baseline, ConfirmUnverified, ProjectChecks, base_of, found_in
from greenroom.runs.checkout import Prepare, checkouts
from greenroom.runs.delivery import Deliver, recorded
from greenroom.runs.verdict import BASELINE, CONFIRM, DELIVER, base_report
from greenroom.runs.workspace import NOTHING_SAID, Copied, Place, Quiet, Wanted

PACK: Final = Pack("greenroom.app.runs.prompts")
TOOLS: Final = (
    "read_code",
    "list_files",
    "search_files",
    "patch",
    "rewrite",
    "execute_script",
    "command_output",
    "stop_command",
    "run_checks",
    "propose_plan",
    "ask_user",
    "read_output",
)
"""Few, and each for something that the others are not for."""

CODER: Final = AgentSpec(name="coder", role="a software engineer", tools=TOOLS, manager=True, turn=Turn(ends="finish"))


def coder(language: str) -> AgentSpec:
    """Somebody who changes a repository, told how in their language."""
    return evolve(CODER, prompt=PACK.render(language, "coder", {}), language=language)


def proven(spec: AgentSpec) -> AgentSpec:
    """An agent on whose work the house has the last word."""
    return evolve(spec, proof=DELIVER)


Members: TypeAlias = tuple[tuple[AgentId, AgentSpec], ...]


async def found_job(
    runtime: Runtime,
    cast: Cast,
    question: str,
    *,
    typed: str = "",
    limits: Limits,
    setup: bool = False,
    wanted: Wanted = NOTHING_SAID,
) -> TeamId:
    """A team whose work is judged by checks; it does not work yet. With `setup` its worktree is prepared first; then
    the checks run on the base, and a person is asked where nothing can judge and an answer is not all they want."""
    works = [turn(question, typed, wanted)]
    if not wanted.question:
        works.insert(0, _step(CONFIRM, "See whether anything can verify the change."))
        works.insert(0, _step(BASELINE, "Run the checks before any change."))
    if setup:
        works.insert(0, _step(checkout.NAME, "Prepare the worktree."))
    queued = QueueSteps(agent_id=cast.first, works=tuple(works), task_id=FIRST, origins=brought(question, typed))
    begin = (task_of(typed or question, cast), queued)
    return await runtime.create(JOB, judged(cast), kit=JOB, workspace=cast.workspace, limits=limits, begin=begin)


def _step(executor: str, intention: str) -> Work:
    return Work(type="tool", executor=executor, intention=intention, instruction_content={})


def judged(cast: Cast) -> Members:
    """Its members; on the work of the one that is talked to the house has the last word. Whoever that one calls only
    answers it, so their work is judged with its own."""
    (name, first), *others = cast.members
    return ((name, proven(first)), *others)


async def run_kit(app: AppContext, team: Team) -> Kit:
    """The kit of a run: its worktree is made, or found again, when the team is to run."""
    place = await opened(team, app.steps)
    await place.workspace.close(team.team_id, SCRATCH)  # left by a process that was killed
    hands = await _toolset(app, team.team_id, place)
    skills = talking(app, hands.specs, solo=True, reader=TextReader(), project=app.notes(), filter_above=MANY)
    abilities = Abilities((*skills, *hands.executors))
    return Kit(abilities=abilities, closing=hands.close, approvals_expire=app.patience())


async def _toolset(app: AppContext, team: TeamId, place: Place) -> Hands:
    root, steps = place.at, await app.steps(team)
    setup = setup_of(root, walls=app.is_sandboxed)
    plan = plan_of(root, walls=app.may_run_checks, then=found_in(steps))
    base = base_report(steps)
    turn = asyncio.Lock()
    known = await base_of(base, app.blob) if base is not None else {}
    fresh = checkouts(place, setup, lambda copied: app.toolset(copied.at, copied))
    checker = ProjectChecks(plan.run, fresh, base=known, left=plan.left)
    unattended = not app.attended
    guess = partial(estimate, app)

    def more(commands: Commands, quiet: Quiet) -> Sequence[ToolExecutor]:
        return (
            RunChecks(checker),
            Baseline(checker, plan.found),
            ConfirmUnverified(checker, allowed=app.says_yes and not unattended, alone=unattended),
            Prepare(setup, commands),
            ProposePlan(guess, alone=unattended or app.says_yes),
            Deliver(place, checker, fresh, app.steps, quiet=quiet, describe=sentence, prepares=setup.runs),
        )

    return app.toolset(
        root,
        Copied(
            folder=place.folder,
            at=root,
            lent=place.shown,
            wrap=lambda tool: recorded(tool, place.worktree, turn, by_itself=(DELIVER, BASELINE)),
            more=more,
            known=(checkout.NAME, BASELINE, CONFIRM, DELIVER),
        ),
    )


def estimate(app: AppContext, world: World, step: Step, files: int) -> str:
    """What work on so many files may cost, in words; empty when no price is known. Cents are exact enough."""
    costs = app.estimate_cost(model_of(world.agents[step.agent_id].spec), files)
    if costs is None:
        return ""
    low, high = (f"${money / MILLION:.2f}" if money >= MILLION // 100 else dollars(money) for money in costs)
    return f"{low}–{high} (a guess)"
