"""A job: a request becomes a change in a copy of the person's files; its result, and what becomes of it."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import RenderableType

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.names import JOB
from greenroom.app.runs.checks import Plan, own_check, own_choices, plan_of, setup_of
from greenroom.app.runs.kit import found_job
from greenroom.app.runs.report import JobReport, report_of
from greenroom.app.runs.workspaces import outcome, refuse_too_wide, workspace
from greenroom.cli.commands.change import apply, branch, diff, discard, say_recovered
from greenroom.cli.context import Invocation, command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Request, Take
from greenroom.cli.render.output import Output, harmless
from greenroom.cli.render.progress import Progress
from greenroom.cli.render.questions import Gone, ask_line
from greenroom.cli.render.talk import Work
from greenroom.cli.runs.follow import Ending, Hearing, attended
from greenroom.cli.runs.result import close, summary
from greenroom.cli.runs.start import Begun, with_context
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.checks import Check
from greenroom.core.ports.codec import plain
from greenroom.core.state.world import World
from greenroom.runs.workspace import Wanted

UNTOUCHED: Final = "your files stay untouched"
QUESTION: Final = "[y] use all  [n] use none  [2 3] leave these out  or type a command line: "
NO_CHECKS: Final = "Checks: none found, so nothing can verify the change."
NUMBERS: Final = re.compile(r"\d{1,2}(?:[ ,]+\d{1,2})*")
PLAIN: Final = re.compile(r"[^\s/=$(){}\"'`|&;<>\\]+")
"""A word that can only be the name of a program: no variable, no path, nothing that a shell reads."""


async def start_job(cli: Invocation, request: Request, begun: Begun, wanted: Wanted, take: Take) -> Exit:
    """Create the team, follow it, and hand over what came of it; if that was ordered, take it over at once."""
    root = cli.means.root
    if take:
        await (await workspace(root)).expect(branch=take)
    talk, cast = Work(cli.setup, cli.out), begun.cast
    team = await _created(cli, begun, request, wanted)
    cli.out.begin(team=team, model=cast.models[0], agent=cast.first)
    talk.own = request.text
    talk.facts(f"run {team}", begun.line, _tier(cli), UNTOUCHED)
    for note in filter(None, (*begun.notes, begun.outside)):
        talk.note(note, style="dim")
    return await _work(replace(cli, progress=talk), talk, team, root, take, new=True)


async def resume_job(cli: Invocation, world: World, take: Take = None) -> Exit:
    """Go on with a job that no process runs: the same row, and the same end."""
    talk, team, root = Work(cli.setup, cli.out), world.team.team_id, Path(world.team.workspace)
    if take:
        await (await workspace(root)).expect(branch=take)
    talk.facts(f"run {team} goes on", ", ".join(models_of(world)), _tier(cli), UNTOUCHED)
    return await _work(replace(cli, progress=talk), talk, team, root, take, new=False)


async def _created(cli: Invocation, begun: Begun, request: Request, wanted: Wanted) -> TeamId:
    """The team of a job, which does not work yet."""
    root = cli.means.root
    await refuse_too_wide(root)
    theirs = await workspace(root)
    await theirs.recover()
    say_recovered(cli, theirs)
    setup = bool(setup_of(root, walls=cli.means.is_sandboxed).line)
    whole, limits = with_context(request.text, request.context, begun.language), begun.caps.limits
    return await found_job(
        cli.runtime, begun.cast, whole, typed=request.text, limits=limits, setup=setup, wanted=wanted
    )


async def _work(cli: Invocation, talk: Work, team: TeamId, root: Path, take: Take, *, new: bool) -> Exit:
    """Settle the checks, then work to the end."""
    if not settle_checks(cli, root, walls=cli.means.may_run_checks):
        cli.progress.note(f"Nothing has begun. Go on with: {command(cli, 'resume', team)}", style="bold")
        return cli.out.result("paused", Exit.WAITING, team=team)
    ending = await attended(cli, team, new=new, ear=Hearing(cli, team, talk).open)
    return await hand_over(cli, team, ending, name="last" if new else None, spoken=talk.spoken, take=take)


def _tier(cli: Invocation) -> str:
    found = cli.means.sandbox_tier
    return "no sandbox: every command asks" if found == "none" else f"sandbox: {found}"


# -------------------------------------------------------------------------------------------------------- the checks


def settle_checks(cli: Invocation, root: Path, *, walls: bool) -> Plan | None:
    """Say which checks will verify the work, after a person was asked about new ones; None when they went away."""
    plan = plan_of(root, walls=walls)
    if plan.open and cli.attended:
        try:
            chosen = _chosen(cli, plan, root)
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


def _chosen(cli: Invocation, plan: Plan, root: Path) -> Sequence[Check] | None:
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
        return _chosen(cli, plan, root)
    return [*kept, own_check(said, plan.open)]


# -------------------------------------------------------------------------------------------------------- the result

ANSWERED: Final = "answered"
"""What programs read in the place of *verified* where nothing was changed, so that no check had anything to judge."""

HEADS: Final = {
    "verified": ("✓ Verified", "bold green"),
    "failed": ("✗ Failed", "bold red"),
    "unverified": ("? Unverified", "bold yellow"),
}
STYLES: Final = {"!": "yellow", "failed": "red", "unverified": "yellow"}
OFFER: Final = "[a] apply  [b NAME] on a branch  [d] show the diff  [x] discard  [Enter] later: "
UNVERIFIED: Final = "Not applied: it is not verified."
UNFINISHED: Final = "Not applied: the run is not over yet. When it is, use `greenroom apply` or `greenroom branch`."
NOTHING: Final = "Nothing was changed, so there is nothing to apply."
FAILED: Final = "Verified, but not applied"
HALF: Final = "Verified and applied, but not committed"


async def hand_over(
    cli: Invocation,
    team: TeamId,
    ending: Ending,
    *,
    name: str | None = None,
    spoken: str = "",
    take: Take = None,
) -> Exit:
    """Close the run; of a job that is over, first say what came of it, and take it over if that was ordered."""
    if ending.teller.world.team.kit != JOB:
        return close(cli, team, ending, name=name, spoken=spoken)
    states = {standing.word for _, standing in ending.standings}
    if states & {"waiting", "paused", "limit", "provider"}:
        if "limit" in states:  # what is there is not lost, and not verified
            report = await _report(cli, team)
            cli.progress.note("\n".join(("\nSo far, and not verified:", *report.lines)))
            if report.diff.changes:
                cli.progress.note(f"Look at it with: {command(cli, 'diff', name or team)}")
        told = {"taken": _not_taken(cli, UNFINISHED).fields} if take is not None else {}
        return close(cli, team, ending, name=name, spoken=spoken, more={"verified": False, "answered": False, **told})
    report = await _report(cli, team)
    head, style = HEADS["failed" if ending.code == Exit.FAILED else report.verdict.state]
    if report.verified and not report.diff.changes:
        head = "✓ Answered"
    cli.progress.note(f"\n{head}: {summary(ending)}", style=style)
    for line in report.lines:
        cli.progress.note(line, style=STYLES.get(line.partition(":")[0].partition(" ")[0], ""))
    taken = await _take(cli, team, take, report) if take is not None else None
    if report.diff.changes and (taken is None or not taken.done):
        await _offer(cli, team, name or team)
    more = {**report_fields(report), **({"taken": taken.fields} if taken is not None else {})}
    # Good only if it is verified, and was applied if that was ordered. A run that failed by itself says why.
    reasons, fault = report.verdict.reasons, taken.fault if taken is not None else ""
    code = reasons[0].code if report.verdict.state == "unverified" and reasons else ""
    by_itself = code and any(standing.word == "failed" for _, standing in ending.standings)
    judged = evolve(ending, fault=fault, unverified=code, why="" if by_itself else "; ".join(report.reasons))
    return close(cli, team, judged, name=name, spoken=spoken, more=more, headed=True)


async def _report(cli: Invocation, team: TeamId) -> JobReport:
    came = await outcome((await cli.runtime.world(team)).team, cli.means.steps)
    return await report_of(came, await cli.means.steps(team), cli.means.language)


def report_fields(report: JobReport) -> Data:
    """The same for programs; `report` has the lines that people read. An answer is no change that checks have seen."""
    answered = report.verified and not report.diff.changes
    return {
        "verified": report.verified and not answered,
        ANSWERED: answered,
        "verdict": {**report.kept, **({"state": ANSWERED} if answered else {})},
        "base": report.base,
        "tip": report.tip,
        "changes": [plain(change) for change in report.diff.changes],
        "diff": report.diff.text,
        "diff_cut": report.diff.cut,
        "report": list(report.lines),
    }


# ------------------------------------------------------------------------------------------------ what becomes of it


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


async def _take(cli: Invocation, team: TeamId, take: str, report: JobReport) -> Taken:
    """Apply it or put it on a branch, if that may be done, and say what came of that."""
    if not report.diff.changes:
        return Taken(fields={"status": "not_taken", "why": NOTHING}, done=True)
    if not report.verified:
        return _not_taken(cli, UNVERIFIED)
    aside = Aside(cli.progress)
    inside = replace(cli, out=aside)
    try:
        code = await (branch(inside, team, take) if take else apply(inside, team))
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
            work = apply(cli, team)
        case "d" | "diff", "":
            work = diff(cli, team)
        case "x" | "discard", "":
            work = discard(cli, team)
        case "b" | "branch", name if name:
            work = branch(cli, team, name)
        case _:
            cli.progress.note("Unknown choice. Type a, b NAME, d, x or Enter.", style="yellow")
            return False
    try:
        return await work == Exit.DONE and word.lower() not in ("d", "diff")
    except GreenroomError as error:
        cli.progress.note(str(error), style="yellow")
        return False
