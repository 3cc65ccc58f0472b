"""`greenroom compare`: finished runs of one request side by side; and following several runs at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.conversation.capability_names import CHANGING_RUNS
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.lookup import resolve_id
from greenroom.app.messages import translate
from greenroom.app.runs.report import build_report
from greenroom.app.runs.workspaces import find_change
from greenroom.app.task_status import format_duration
from greenroom.app.teams.report import count_subtasks
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import Ending, ask_approvals, follow
from greenroom.cli.interactive.report import summarise
from greenroom.cli.options import complete_id
from greenroom.cli.render.output import Column, Console, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.progress import LineProgress, Progress
from greenroom.cli.render.questions import PersonLeft
from greenroom.cli.render.team import TeamHistory, read_history
from greenroom.cli.render.team_progress import find_last_score, find_team_stage
from greenroom.core.base.errors import GreenroomError, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, to_full_dict
from greenroom.runs.comparison import CandidateRun, count_failures, find_difference, judge_outcome, rank_candidates

MIN_RUNS: Final = 2
COLUMNS: Final = (
    Column(name=""),
    Column(name="run"),
    Column(name="verdict"),
    Column(name="checks"),
    Column(name="files", right=True, min_terminal_width=70),
    Column(name="lines", right=True),
    Column(name="review", right=True, min_terminal_width=60),
    Column(name="cost", right=True, min_terminal_width=80),
    Column(name="time", right=True, min_terminal_width=80),
)
OUTCOME_STYLES: Final = {"verified": "green", "failed": "red", "unverified": "yellow", "nothing": "dim"}


async def compare(
    cli: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID ID", help="Start of the id of each run.", autocompletion=complete_id),
    ] = None,
) -> Exit:
    """Compare finished runs of one request; say which to take.

    The first difference decides: verdict, missing subtasks, new failures, the review's score, changed lines, cost.
    The score and the cost count only if every run has one.

    Examples:
      greenroom compare k3f p2q
      greenroom compare k3f p2q x7d --output-format json

    Exit codes: 0; 2; 3.
    """
    teams = list(dict.fromkeys([(await resolve_id(cli.runtime, name)).team for name in names or ()]))
    if len(teams) < MIN_RUNS:
        raise make_refusal("too_few", translate("compare.too_few"))
    runs = [await read_candidate(cli, await read_history(cli.runtime, team)) for team in teams]
    return cli.out.result("ok", Exit.DONE, **show_comparison(cli, rank_candidates(runs)))


async def read_candidate(cli: Invocation, history: TeamHistory) -> CandidateRun:
    """Return what counts about an ended run. Raise `RefusedError` if it has not ended, or changes no files."""
    team = history.state.team
    if team.kit not in CHANGING_RUNS:
        raise make_refusal("no_job", translate("change.no_change", team=team.team_id))
    if history.state.tasks:
        command = render_command(cli, "resume", team.team_id)
        raise make_refusal("unfinished", translate("compare.unfinished", team=team.team_id, command=command))
    change = await find_change(team, cli.app.steps)
    report = await build_report(change, history.steps)
    task, changes, total, stage = history.tasks[-1], report.diff.changes, history.total(), find_team_stage(history)
    done, count = count_subtasks(stage) if stage is not None else (0, 0)
    stopped = sum(until - since for since, until in history.stops)
    return CandidateRun(
        team=team.team_id,
        verdict=judge_outcome(task.state, report.verdict, changes),
        request=task.intention,
        base=await change.workspace.tree(report.base),
        passed=sum(receipt.passed for receipt in report.verdict.receipts),
        new_failures=count_failures(report.verdict),
        missing_subtasks=count - done,
        review_score=find_last_score(history),
        files=len(changes),
        added=sum(change.added for change in changes),
        removed=sum(change.removed for change in changes),
        cost=total.money / MILLIONTHS_PER_DOLLAR if total.money or not total.tokens else None,
        seconds=max((task.ended_at or history.at) - history.began_at - stopped, 0) / 1000,
    )


def show_comparison(cli: Invocation, ranked: Sequence[CandidateRun], *, applies: bool = False) -> Data:
    """Print these runs, best first, which to take and why, and the next commands; return all of it as fields.

    If the command `applies` the best by itself, that is not a next command.
    """
    best, others = ranked[0], ranked[1:]
    reasons = [_explain(best, other, ranked) for other in others]
    cli.out.show(FittedTable(COLUMNS, [_render_row(number, run) for number, run in enumerate(ranked, start=1)]))
    same = {name: len({getattr(run, name) for run in ranked}) == 1 for name in ("request", "base")}
    for name in (name for name, is_same in same.items() if not is_same):
        cli.progress.note(f"! {translate(f'compare.other_{name}')}", style="yellow")
    advice = translate(f"compare.best_{best.verdict}", best=best.team)
    cli.out.show("", Text(advice, style="bold"), *(f"  {reason}" for reason in reasons))
    verb = "apply" if best.verdict in ("verified", "unverified") else "show"
    commands = [render_command(cli, "discard", run.team) for run in others]
    if not applies:
        cli.progress.note(translate(f"compare.next_{verb}", command=render_command(cli, verb, best.team)))
    if commands:
        cli.progress.note("\n  ".join((translate("compare.next_discard"), *commands)))
    rows = [
        {"rank": number, **to_full_dict(run), "why": why}
        for number, (run, why) in enumerate(zip(ranked, (advice, *reasons), strict=True), start=1)
    ]
    return {"best": best.team, "why": advice, "candidates": rows, **{f"same_{name}": same[name] for name in same}}


def _explain(best: CandidateRun, other: CandidateRun, runs: Sequence[CandidateRun]) -> str:
    """Return the sentence about the difference that decides between the best run and another."""
    criterion = find_difference(best, other, runs)
    left, right = (_render_facts(run).get(criterion, "") for run in (best, other))
    return translate(f"compare.by_{criterion}", best=best.team, other=other.team, left=left, right=right)


def _render_facts(run: CandidateRun) -> Mapping[str, str]:
    """Return what counts about a run as texts, by criterion."""
    return {
        "outcome": translate("compare.nothing" if run.verdict == "nothing" else f"states.{run.verdict}"),
        "missing": str(run.missing_subtasks),
        "new_failures": str(run.new_failures),
        "review": "–" if run.review_score is None else f"{run.review_score}/100",
        "lines": str(run.added + run.removed),
        "cost": "–" if run.cost is None else format_dollars(round(run.cost * MILLIONTHS_PER_DOLLAR)),
    }


def _render_row(number: int, run: CandidateRun) -> list[Text]:
    facts, count = _render_facts(run), run.new_failures or run.passed
    checks = translate("compare.failures" if run.new_failures else "compare.passed", count=count) if count else "–"
    verdict = Text(facts["outcome"], style=OUTCOME_STYLES[run.verdict])
    lines, duration = f"+{run.added} −{run.removed}", format_duration(round(run.seconds * 1000))
    row = make_row(str(number), run.team, verdict, checks, str(run.files), lines)
    return [*row, *make_row(facts["review"], facts["cost"], duration)]


# ----------------------------------------------------------------------------------------------- several runs at once


class CandidateProgress(LineProgress):
    """The lines of one of several runs, each with its name."""

    def __init__(self, console: Console, name: str) -> None:
        super().__init__(console)
        self._name = name

    def _print_line(self, text: Text) -> None:
        super()._print_line(Text(f"{self._name}  ", style="dim").append_text(text))


async def follow_candidates(cli: Invocation, teams: Sequence[TeamId]) -> Mapping[TeamId, Ending]:
    """Run teams side by side until each is at rest; return how those ended that had no fault.

    A terminal shows what they do; elsewhere there is a line at the end of each. Ctrl-C pauses all of them and prints
    their ids.
    """
    words = "\n  ".join((translate("compare.paused"), *(render_command(cli, "resume", team) for team in teams)))
    console = Console(stderr=True, highlight=False)
    is_plain = not console.is_terminal or cli.setup.quiet or cli.setup.output_format == "stream-json"
    endings = dict[TeamId, Ending]()

    async def work(number: int, team: TeamId) -> None:
        name, history = f"{number}  {team}", await read_history(cli.runtime, team)
        progress = Progress(console) if is_plain else CandidateProgress(console, name)
        try:
            endings[team] = await follow(replace(cli, progress=progress), team, history, last_words=words)
            ended = translate(f"states.{endings[team].status}")
        except GreenroomError as error:  # the others go on
            ended = explain(error)
        stage = find_team_stage(history)
        done, count = count_subtasks(stage) if stage is not None else (0, 0)
        subtasks = translate("team_view.subtasks", done=done, count=count) if count else ""
        text = " · ".join(filter(None, (ended, subtasks, summarise(history))))
        cli.progress.note(strip_control_characters(f"{name}  {text}"))

    working = asyncio.gather(*(work(number, team) for number, team in enumerate(teams, start=1)))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        cli.progress.note(translate("compare.pausing"), style="yellow")
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        cli.progress.note(words, style="bold")
        cli.out.result("stopped", cli.stop.code, candidates=[{"team": team} for team in teams])
        raise
    return endings


async def follow_attended_candidates(cli: Invocation, teams: Sequence[TeamId]) -> Mapping[TeamId, Ending]:
    """Run teams side by side, and ask the person what they wait for when all are at rest."""
    endings = dict(await follow_candidates(cli, teams))
    while cli.is_attended and (waiting := [team for team in endings if endings[team].status == "waiting"]):
        try:
            for team in waiting:
                cli.progress.note(team, style="bold")
                await ask_approvals(cli, team)
        except PersonLeft:
            break
        endings |= await follow_candidates(cli, waiting)
    return endings
