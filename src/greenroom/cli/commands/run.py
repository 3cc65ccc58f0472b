"""`greenroom ask` and `run`: a question to a model, or a job whose change is checked in a copy of the files."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import RenderableType

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.names import ASK, RUN
from greenroom.app.conversation.start import found_alone
from greenroom.app.runs.checks import Plan, own_check, own_choices, plan_of, setup_of
from greenroom.app.runs.kit import found_job
from greenroom.app.runs.report import JobReport, report_of
from greenroom.app.runs.workspaces import outcome, refuse_too_wide, workspace
from greenroom.cli.commands.change import apply as apply_change
from greenroom.cli.commands.change import branch as branch_change
from greenroom.cli.commands.change import diff, discard, say_recovered
from greenroom.cli.context import Invocation, command, invoke, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import Ending, Hearing, follow_attended
from greenroom.cli.interactive.report import report_ending, summarise
from greenroom.cli.options import (
    DEFAULTS,
    AgentName,
    AtOnce,
    ModelName,
    NonInteractive,
    OnBranch,
    Request,
    RunOptions,
    Take,
    Yes,
    read_request,
    take,
)
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.output import Output, harmless
from greenroom.cli.render.progress import Progress
from greenroom.cli.render.questions import Gone, ask_line
from greenroom.cli.start import RunPlan, plan_run
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.checks import Check
from greenroom.core.ports.codec import plain
from greenroom.core.state.step import Step
from greenroom.core.state.world import World
from greenroom.runs.workspace import NOTHING_SAID, Wanted

NO_TOOLS: Final = (
    "It has no tools, so it answers from what it is told. Add tools in its file, or pass --no-tools to hide this note."
)
UNTOUCHED: Final = "your files stay untouched"


def ask(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="What to ask; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
    *,
    model: ModelName = "",
    options: RunOptions = DEFAULTS,
) -> int:
    """Ask a model. The answer comes on stdout; what is piped in is read as context. Everything is logged; a crash loses
    nothing."""
    request = read_request(words)

    async def work(cli: Invocation) -> Exit:
        plan = await plan_run(cli, options, model=model.strip(), tools=False)
        return await _answer(cli, plan, ASK, request)

    return invoke(context, work)


def run(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to do; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
    *,
    agent: AgentName = "",
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Let it answer from what it is told only.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Work in your files themselves, not in a copy of them.")
    ] = False,
    yes: Yes = False,
    apply: AtOnce = False,
    branch: OnBranch = None,
    question: Annotated[
        bool, typer.Option("--question", help="An answer is all that is wanted: it counts though nothing is changed.")
    ] = False,
    tests_may_change: Annotated[
        bool,
        typer.Option("--tests-may-change", help="Old tests may fail: they are named, and the run can be verified."),
    ] = False,
    allow_unverified: Annotated[
        bool, typer.Option("--allow-unverified", help="Go on when no check can verify the change, without asking.")
    ] = False,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    options: RunOptions = DEFAULTS,
) -> int:
    """Give an agent something to do; without --agent a coder does it. Agents that can edit files work in a copy. You
    decide whether to apply the result. The answer comes on stdout; what is piped in is read as context.
    Exit codes: 0 verified, or a question answered; 1 a check newly fails, or the run failed; 2 wrong usage; 3 settings
    or store; 4 provider; 5 limit; 6 waits for a person; 7 finished, but not verified."""
    request, in_copy = read_request(words, "task"), not (in_place or no_tools)
    taken = take(branch, apply=apply, in_copy=in_copy)
    if question and taken is not None:
        raise typer.BadParameter("--question wants an answer, so there is nothing to take over. Leave one of them out.")
    if tests_may_change and not in_copy:
        raise typer.BadParameter("--tests-may-change is for work in a copy, which checks judge. Leave it out.")
    wanted = Wanted(question=question, tests_may_change=tests_may_change, allow_unverified=allow_unverified)

    async def work(cli: Invocation) -> Exit:
        cli.means.set_attendance(yes=yes, non_interactive=non_interactive)
        plan = await plan_run(cli, options, agent=agent.strip(), model=model.strip(), tools=not no_tools, job=in_copy)
        if in_copy and plan.writers:
            return await _start_job(cli, request, plan, wanted, taken)
        if taken is not None:
            why = f"{plan.cast.first!r} has no tools that change files, so there will be nothing to take over."
            raise refused("nothing_to_take", why, "Leave --apply and --branch out.")
        notes = [*plan.notes, *((NO_TOOLS,) if not no_tools and not plan.cast.workspace else ())]
        return await _answer(cli, plan, RUN, request, *notes, wanted=Wanted(question=question))

    return invoke(context, work)


async def _answer(
    cli: Invocation, plan: RunPlan, kit: str, request: Request, *notes: str, wanted: Wanted = NOTHING_SAID
) -> Exit:
    """A team whose answer ends its task: create it, follow it, and print what came of it."""
    view, cast, limits = RunView(cli.setup, cli.out), plan.cast, plan.caps.limits
    text = plan.message(request)
    team = await found_alone(cli.runtime, kit, cast, text, typed=request.text, limits=limits, wanted=wanted)
    cli.out.begin(team=team, model=cast.models[0], agent=cast.first)
    for note in (plan.line, *notes):
        view.note(note, style="dim")
    inside = replace(cli, progress=view)
    ending = await follow_attended(inside, team, new=True)
    return report_ending(inside, team, ending, name="last", spoken=view.spoken)


# --------------------------------------------------------------------------------------------------------------- a job


async def _start_job(cli: Invocation, request: Request, plan: RunPlan, wanted: Wanted, taken: Take) -> Exit:
    """Create the team, follow it, and hand over what came of it; if that was ordered, take it over at once."""
    root, cast = cli.means.root, plan.cast
    await refuse_too_wide(root)
    theirs = await workspace(root)
    if taken:
        await theirs.expect(branch=taken)
    await theirs.recover()
    say_recovered(cli, theirs)
    setup = bool(setup_of(root, walls=cli.means.is_sandboxed).line)
    text, limits = plan.message(request), plan.caps.limits
    team = await found_job(cli.runtime, cast, text, typed=request.text, limits=limits, setup=setup, wanted=wanted)
    view = RunView(cli.setup, cli.out)
    cli.out.begin(team=team, model=cast.models[0], agent=cast.first)
    view.own = request.text
    view.note(f"run {team} · {plan.line} · {_tier(cli)} · {UNTOUCHED}", style="dim")
    for note in filter(None, (*plan.notes, plan.outside)):
        view.note(note, style="dim")
    return await _work(replace(cli, progress=view), view, team, root, taken, new=True)


async def resume_job(cli: Invocation, world: World, taken: Take = None) -> Exit:
    """Go on with a job that no process runs: the same row, and the same end."""
    view, team, root = RunView(cli.setup, cli.out), world.team.team_id, Path(world.team.workspace)
    if taken:
        await (await workspace(root)).expect(branch=taken)
    view.note(f"run {team} goes on · {', '.join(models_of(world))} · {_tier(cli)} · {UNTOUCHED}", style="dim")
    return await _work(replace(cli, progress=view), view, team, root, taken, new=False)


async def _work(cli: Invocation, view: RunView, team: TeamId, root: Path, taken: Take, *, new: bool) -> Exit:
    """Settle the checks, then work to the end."""
    if not settle_checks(cli, root, walls=cli.means.may_run_checks):
        cli.progress.note(f"Nothing has begun. Go on with: {command(cli, 'resume', team)}", style="bold")
        return cli.out.result("paused", Exit.WAITING, team=team)
    ending = await follow_attended(cli, team, new=new, ear=Hearing(cli, team, view).open)
    return await _hand_over(cli, team, ending, name="last" if new else team, spoken=view.spoken, taken=taken)


def _tier(cli: Invocation) -> str:
    found = cli.means.sandbox_tier
    return "no sandbox: every command asks" if found == "none" else f"sandbox: {found}"


# -------------------------------------------------------------------------------------------------------- the checks

QUESTION: Final = "[y] use all  [n] use none  [2 3] leave these out  or type a command line: "
NO_CHECKS: Final = "Checks: none found, so nothing can verify the change."
NUMBERS: Final = re.compile(r"\d{1,2}(?:[ ,]+\d{1,2})*")
PLAIN: Final = re.compile(r"[^\s/=$(){}\"'`|&;<>\\]+")
"""A word that can only be the name of a program: no variable, no path, nothing that a shell reads."""


def settle_checks(cli: Invocation, root: Path, *, walls: bool) -> Plan | None:
    """Say which checks will verify the work, after a person was asked about new ones; None when they went away."""
    plan = plan_of(root, walls=walls)
    if plan.open and cli.attended:
        try:
            chosen = _choose_checks(cli, plan, root)
        except Gone:
            return None
        if chosen is not None:
            own_choices().save(root, chosen, plan.open)
            plan = plan_of(root, walls=walls)
    else:
        for check in plan.run:
            cli.progress.note(harmless(f"Checks: {check.name}: {check.line}   ({check.why})"))
    if not plan.run:
        cli.progress.note(NO_CHECKS, style="yellow")
    for why in plan.left:
        cli.progress.note(f"! {harmless(why)}", style="yellow")
    return plan


def _choose_checks(cli: Invocation, plan: Plan, root: Path) -> Sequence[Check] | None:
    """What they chose; None if they would not say. `Gone` if they are."""
    kept = [check for check in plan.run if check.name in plan.confirmed]
    cli.progress.note("Checks found here:")
    for number, check in enumerate(plan.open, start=1):
        cli.progress.note(harmless(f"  {number}. {check.name}: {check.line}   ({check.why})"))
    said = ask_line(QUESTION).strip()
    if said.lower() in ("y", "yes"):
        return [*kept, *plan.open]
    if said.lower() in ("n", "no", "none"):
        return kept
    left_out = {int(word) for word in said.replace(",", " ").split()} if NUMBERS.fullmatch(said) else set()
    if left_out:
        return [*kept, *(check for number, check in enumerate(plan.open, start=1) if number not in left_out)]
    if not said:
        return None
    first, path = said.split(maxsplit=1)[0], f"{root}:{os.environ.get('PATH', os.defpath)}"
    if PLAIN.fullmatch(first) and shutil.which(first, path=path) is None:  # typed by mistake, it would fail for good
        cli.progress.note(f"There is no program {first!r}: type y, n, numbers or a command line.", style="yellow")
        return _choose_checks(cli, plan, root)
    return [*kept, own_check(said, plan.open)]


# -------------------------------------------------------------------------------------------------------- the result

HEADS: Final = {
    "verified": ("✓ Verified", "bold green"),
    "failed": ("✗ Failed", "bold red"),
    "unverified": ("? Unverified", "bold yellow"),
}
STYLES: Final = {"!": "yellow", "failed": "red", "unverified": "yellow"}
UNVERIFIED: Final = "Not applied: it is not verified."
UNFINISHED: Final = "Not applied: the run is not over yet. When it is, use `greenroom apply` or `greenroom branch`."
NOTHING: Final = "Nothing was changed, so there is nothing to apply."
FAILED: Final = "Verified, but not applied"
HALF: Final = "Verified and applied, but not committed"


async def _hand_over(cli: Invocation, team: TeamId, ending: Ending, *, name: str, spoken: str, taken: Take) -> Exit:
    """Say what came of a job that is over, take it over if that was ordered, and report how the run ended."""
    states = {standing.word for _, standing in ending.standings}
    if states & {"waiting", "paused", "limit", "provider"}:
        if "limit" in states:  # what is there is not lost, and not verified
            report = await _report(cli, ending)
            cli.progress.note("\n".join(("\nSo far, and not verified:", *report.lines)))
            if report.diff.changes:
                cli.progress.note(f"Look at it with: {command(cli, 'diff', name)}")
        told = {"taken": _not_taken(cli, UNFINISHED).fields} if taken is not None else {}
        more = {"verified": False, "answered": False, **told}
        return report_ending(cli, team, ending, name=name, spoken=spoken, more=more)
    report = await _report(cli, ending)
    head, style = HEADS["failed" if ending.code == Exit.FAILED else report.verdict.state]
    if report.verified and not report.diff.changes:
        head = "✓ Answered"
    cli.progress.note(f"\n{head}: {summarise(ending)}", style=style)
    for line in report.lines:
        cli.progress.note(line, style=STYLES.get(line.partition(":")[0].partition(" ")[0], ""))
    came = await _take(cli, team, taken, report) if taken is not None else None
    if report.diff.changes and (came is None or not came.done):
        await _offer(cli, team, name)
    more = {**_report_fields(report), **({"taken": came.fields} if came is not None else {})}
    # Good only if it is verified, and was applied if that was ordered. A run that failed by itself says why.
    reasons, fault = report.verdict.reasons, came.fault if came is not None else ""
    code = reasons[0].code if report.verdict.state == "unverified" and reasons else ""
    why = "" if code and "failed" in states else "; ".join(report.reasons)
    judged = evolve(ending, fault=fault, unverified=code, why=why)
    return report_ending(cli, team, judged, name=name, spoken=spoken, more=more, headed=True)


async def _report(cli: Invocation, ending: Ending) -> JobReport:
    """What came of it, by the steps that were followed and the repository."""

    async def steps(_: TeamId) -> list[Step]:
        return ending.history.steps

    came = await outcome(ending.history.world.team, steps)
    return await report_of(came, ending.history.steps, cli.means.language)


def _report_fields(report: JobReport) -> Data:
    """The same for programs; `report` has the lines that people read. An answer is no change that checks have seen."""
    answered = report.verified and not report.diff.changes
    return {
        "verified": report.verified and not answered,
        "answered": answered,
        "verdict": {**report.kept, **({"state": "answered"} if answered else {})},
        "base": report.base,
        "tip": report.tip,
        "changes": [plain(change) for change in report.diff.changes],
        "diff": report.diff.text,
        "diff_cut": report.diff.cut,
        "report": list(report.lines),
    }


# ------------------------------------------------------------------------------------------------ what becomes of it

OFFER: Final = "[a] apply  [b NAME] on a branch  [d] show the diff  [x] discard  [Enter] later: "


@record
class Taken:
    """`fields` say for programs what was done. `done` says that nothing is left to be decided; `fault` why it failed
    although the work is good."""

    fields: Data
    done: bool = False
    fault: str = ""


class Aside(Output):
    """What a command says that is done inside another one: people hear it as progress, and its result is kept."""

    def __init__(self, progress: Progress) -> None:
        super().__init__("text", io.StringIO())
        self.fields: Data = {}
        self._progress = progress

    def show(self, *what: RenderableType) -> None:
        """Tell it beside the answer."""
        for text in what:
            self._progress.note(str(text))

    def result(self, status: str, code: Exit, /, **fields: object) -> Exit:
        """Keep it: the whole has a result of its own."""
        self.fields = {"status": status, **fields}
        return code


async def _take(cli: Invocation, team: TeamId, name: str, report: JobReport) -> Taken:
    """Apply it, or put it on a branch of this name, if that may be done, and say what came of that."""
    if not report.diff.changes:
        return Taken(fields={"status": "not_taken", "why": NOTHING}, done=True)
    if not report.verified:
        return _not_taken(cli, UNVERIFIED)
    aside = Aside(cli.progress)
    inside = replace(cli, out=aside)
    try:
        code = await (branch_change(inside, team, name) if name else apply_change(inside, team))
    except GreenroomError as error:
        return Taken(fields={"status": "not_taken", "why": str(error)}, fault=f"{FAILED}: {error}")
    if "reason" in aside.fields:
        return Taken(fields=aside.fields, done=True, fault=f"{HALF}: {aside.fields['why']}")
    return Taken(fields=aside.fields, done=code == Exit.DONE, fault="" if code == Exit.DONE else f"{FAILED}.")


def _not_taken(cli: Invocation, why: str) -> Taken:
    cli.progress.note(why, style="yellow")
    return Taken(fields={"status": "not_taken", "why": why})


async def _offer(cli: Invocation, team: TeamId, name: str) -> None:
    """What can be done with it: there and then if a person is there, else how to do it."""
    done = False
    while cli.attended and not done:
        try:
            said = ask_line(OFFER).strip()
        except Gone:
            break
        if said.lower() in ("", "l", "later"):
            break
        done = await _do(cli, team, said)
    if not done:
        verbs = "   ".join(command(cli, verb, name) for verb in ("apply", "diff", "discard"))
        cli.progress.note(f"Apply, view or discard it: {verbs}", style="bold")


async def _do(cli: Invocation, team: TeamId, said: str) -> bool:
    """Do what was said; whether nothing is left to be decided."""
    word, _, rest = said.partition(" ")
    work: Awaitable[Exit]
    match word.lower(), rest.strip():
        case "a" | "apply", "":
            work = apply_change(cli, team)
        case "d" | "diff", "":
            work = diff(cli, team)
        case "x" | "discard", "":
            work = discard(cli, team)
        case "b" | "branch", name if name:
            work = branch_change(cli, team, name)
        case _:
            cli.progress.note("Unknown choice. Type a, b NAME, d, x or Enter.", style="yellow")
            return False
    try:
        return await work == Exit.DONE and word.lower() not in ("d", "diff")
    except GreenroomError as error:
        cli.progress.note(str(error), style="yellow")
        return False
