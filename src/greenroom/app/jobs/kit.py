"""The kit of runs: tools that work in a worktree, record every step, and judge the result; and starting a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.human import Guess, ProposePlan
from greenroom.abilities.tools.run_checks import RunChecks
from greenroom.app.conversation.kits import MANY
from greenroom.app.conversation.names import JOB
from greenroom.app.conversation.start import FIRST, NOTHING_SAID, Cast, Wanted, brought, task_of, turn
from greenroom.app.jobs import checkout as preparing
from greenroom.app.jobs.checker import Baseline, ConfirmUnverified, ProjectChecks, base_of, found_in
from greenroom.app.jobs.checkout import Prepare, Setup, checkouts
from greenroom.app.jobs.delivery import Deliver, recorded
from greenroom.app.jobs.place import History, Place, opened
from greenroom.app.jobs.plan import Plan
from greenroom.app.jobs.verdict import BASELINE, CONFIRM, DELIVER, base_report
from greenroom.app.kit import Kit
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.toolbox import Copied, Quiet
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import Models
from greenroom.core.ports.packs import Pack
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import SCRATCH
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.spec import AgentSpec, Turn
from greenroom.core.state.step import Work
from greenroom.core.state.team import Team

PACK: Final = Pack("greenroom.app.jobs.prompts")
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
        works.insert(0, _step(preparing.NAME, "Prepare the worktree."))
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
        place = await opened(team, supplies.history)
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
