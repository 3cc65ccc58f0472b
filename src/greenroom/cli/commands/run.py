"""`greenroom ask` and `run`: a question to a model, or a task whose change is checked in a worktree."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.capability_names import ASK, RUN, TEAM_RUN
from greenroom.app.conversation.chat import list_team_models
from greenroom.app.conversation.start import create_single_task_team
from greenroom.app.messages import translate
from greenroom.app.run_plan import RunPlan, describe_limits
from greenroom.app.runs.capabilities import create_run
from greenroom.app.runs.checks import CheckPlan, make_own_check, open_choices, plan_project_checks, read_worktree_setup
from greenroom.app.runs.report import RunReport, build_report
from greenroom.app.runs.workspaces import find_change, open_workspace, refuse_large_folder
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.teams.integration import describe_result, integrate_results
from greenroom.app.teams.integration_report import render_summary
from greenroom.app.teams.start import LEAD, create_planned_run
from greenroom.cli.commands.change import apply as apply_change
from greenroom.cli.commands.change import branch as branch_change
from greenroom.cli.commands.change import diff, discard, report_recovered
from greenroom.cli.commands.compare import follow_attended_candidates, read_candidate, show_comparison
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.interactive.follow import Ending, RunPrompt, follow_attended
from greenroom.cli.interactive.plan_review import NO_TEAM, TeamChoice, TeamOptions
from greenroom.cli.interactive.report import explain_over_limit, report_ending, summarise
from greenroom.cli.options import (
    DEFAULT_OPTIONS,
    AgentName,
    AllowUnverified,
    ApplyMode,
    ApplyOption,
    BranchOption,
    ModelName,
    NonInteractive,
    RunOptions,
    TestsMayChange,
    ToDo,
    TypedRequest,
    Yes,
    read_apply_mode,
    read_request,
)
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.progress import NestedOutput
from greenroom.cli.render.questions import PersonLeft, ask_line
from greenroom.cli.render.team_progress import TeamView, find_unfinished, subtask_fields
from greenroom.cli.start import plan_run, warn
from greenroom.core.base.errors import GreenroomError, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.checks import Check
from greenroom.core.ports.codec import to_json_dict
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.comparison import rank_candidates
from greenroom.runs.workspace import DEFAULT_RUN_FLAGS, RunFlags


def ask(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="The question; `-` (or nothing, after a pipe) reads it from stdin."),
    ] = None,
    *,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Ask a model a question; print its answer.

    The model has no tools and reads no files. Piped input is read as context.

    Examples:
      greenroom ask "Why is the sky blue?"
      git diff | greenroom ask "Write a commit message for this diff."

    Exit codes: 0; 1; 2; 3; 4; 5; 6.
    """
    request = read_request(words)

    async def work(cli: Invocation) -> Exit:
        plan = await plan_run(cli, options, model=model.strip(), tools=False)
        return await _run_question(cli, plan, ASK, request)

    return invoke(context, work)


MAX_CANDIDATES: Final = 8


def run(
    context: typer.Context,
    words: ToDo = None,
    *,
    agent: AgentName = "",
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Answer from the request only.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Work in your own files, not in a worktree.")] = False,
    yes: Yes = False,
    apply: ApplyOption = False,
    branch: BranchOption = None,
    question: Annotated[bool, typer.Option("--question", help="Accept an answer without file changes.")] = False,
    tests_may_change: TestsMayChange = False,
    allow_unverified: AllowUnverified = False,
    teamwork: TeamOptions = NO_TEAM,
    candidates: Annotated[
        int | None,
        typer.Option("--candidates", min=2, max=MAX_CANDIDATES, metavar="N", help="Make N changes; compare them."),
    ] = None,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Give an agent a task; decide about its change.

    Agents that can edit files work in a separate worktree. You apply the change at the end, or later. The answer is
    printed on stdout. Piped input is read as context. A task that is not worth a team is left to one agent.

    Examples:
      greenroom run "add --json to the export command, with tests"
      greenroom run --team "add OAuth login, with tests and docs"
      greenroom run --candidates 3 "make the parser twice as fast"
      greenroom run --question "where is the retry limit set?"
      greenroom run --team-file ship "add a --version option, and review it"
      pytest 2>&1 | greenroom run --apply "fix the failing tests"

    Exit codes: 0 verified, or a question was answered; 1 the run failed, or a check did; 2; 3; 4; 5; 6; 7.
    """
    in_worktree = not (in_place or no_tools)
    request = teamwork.read_request(words, agent, is_alone=question or not in_worktree)
    apply_mode = read_apply_mode(branch, apply=apply, in_worktree=in_worktree)
    wanted = RunFlags(question=question, tests_may_change=tests_may_change, allow_unverified=allow_unverified)
    _refuse_flags(wanted, apply_mode, in_worktree=in_worktree, count=candidates)

    async def work(cli: Invocation) -> Exit:
        cli.app.set_attendance(yes=yes, non_interactive=non_interactive)
        choice = await teamwork.choose(cli, options, request, model.strip())
        if isinstance(choice, TeamChoice):
            return await start_team(cli, choice, wanted, apply_mode, candidates)
        names = {"agent": agent.strip(), "model": model.strip(), "team_file": (teamwork.team_file or "").strip()}
        run_plan = await plan_run(cli, options, tools=not no_tools, in_worktree=in_worktree, **names)
        run_plan = evolve(run_plan, spent=choice)
        if in_worktree and run_plan.writers:
            return await _start_run(cli, request, run_plan, wanted, apply_mode, candidates)
        if candidates:
            raise make_refusal("nothing_to_take", translate("run.no_editing_tools", first=run_plan.participants.first))
        return await _start_without_worktree(cli, request, run_plan, wanted, apply_mode, tools=not no_tools)

    return invoke(context, work)


async def _start_without_worktree(
    cli: Invocation, request: TypedRequest, plan: RunPlan, wanted: RunFlags, apply_mode: ApplyMode, *, tools: bool
) -> Exit:
    if apply_mode is not None:
        why = translate("run.no_editing_tools", first=plan.participants.first)
        raise make_refusal("nothing_to_take", why, translate("run.remove_apply_branch"))
    notes = [*plan.notes, *((translate("run.no_tools"),) if tools and not plan.participants.workspace else ())]
    return await _run_question(cli, plan, RUN, request, *notes, wanted=RunFlags(question=wanted.question))


def _refuse_flags(wanted: RunFlags, apply_mode: ApplyMode, *, in_worktree: bool, count: int | None) -> None:
    """Raise `BadParameter` if options contradict each other."""
    if count and (wanted.question or not in_worktree):
        raise typer.BadParameter(translate("compare.needs_changes"))
    if wanted.question and apply_mode is not None:
        raise typer.BadParameter(translate("run.question_applies_nothing"))
    if wanted.tests_may_change and not in_worktree:
        raise typer.BadParameter(translate("run.tests_option_needs_checks"))


async def _run_question(
    cli: Invocation, plan: RunPlan, kit: str, request: TypedRequest, *notes: str, wanted: RunFlags = DEFAULT_RUN_FLAGS
) -> Exit:
    """Create a team that answers without a worktree, follow it, and print the answer."""
    view, participants, limits = RunView(cli.setup, cli.out), plan.participants, plan.limits
    text, media = await plan.make_message(cli.app, *request, note=warn(cli))
    team = await create_single_task_team(
        cli.runtime, kit, participants, text, typed=request.text, media=media, limits=limits, wanted=wanted
    )
    cli.out.begin(team=team, model=participants.models[0], agent=participants.first)
    for note in (plan.line, *notes):
        view.note(note, style="dim")
    inner_cli = replace(cli, progress=view)
    ending = await follow_attended(inner_cli, team, new=True)
    return report_ending(inner_cli, team, ending, printed=view.printed_answer)


async def _start_run(
    cli: Invocation, request: TypedRequest, plan: RunPlan, wanted: RunFlags, apply_mode: ApplyMode, count: int | None
) -> Exit:
    root, participants = cli.app.root, plan.participants
    setup = await _open_workspace(cli, root, apply_mode)
    text, media = await plan.make_message(cli.app, *request, note=warn(cli))
    create_prepared = partial(create_run, cli.runtime, participants, text, typed=request.text, media=media)
    create = partial(create_prepared, limits=plan.limits, setup=setup, wanted=wanted)
    if count:
        return await _start_candidates(cli, [create] * count, plan.who, plan.caps, apply_mode)
    team = await create()
    view = RunView(cli.setup, cli.out)
    cli.out.begin(team=team, model=participants.models[0], agent=participants.first)
    view.own_text = request.text
    view.note(translate("run.heading", team=team, who=plan.who), style="dim")
    view.note(_describe_limits(cli, describe_limits(plan.caps)), style="dim")
    for note in filter(None, (*plan.notes, plan.outside)):
        view.note(note, style="dim")
    return await _run_to_end(replace(cli, progress=view), view, team, root, apply_mode, new=True)


async def _open_workspace(cli: Invocation, root: Path, apply_mode: ApplyMode) -> bool:
    """Check and recover the person's workspace; return whether a new worktree needs preparation."""
    await refuse_large_folder(root)
    user_workspace = await open_workspace(root)
    if apply_mode:
        await user_workspace.check_can_commit(branch=apply_mode)
    await user_workspace.recover()
    if recovered := user_workspace.take_recovered():
        report_recovered(cli, recovered)
    return bool(read_worktree_setup(root, sandboxed=cli.app.is_sandboxed).line)


async def start_team(
    cli: Invocation,
    choice: TeamChoice,
    wanted: RunFlags,
    apply_mode: ApplyMode,
    count: int | None = None,
    *,
    follows: TeamId | None = None,
) -> Exit:
    """Start the team of a plan, follow it, and report its change; with a `count`, so many teams, and compare them.

    If it `follows` another run, it begins with the change of that one.
    """
    if choice.plan is None:
        cli.progress.note(translate("run.plan_cancelled"), style="bold")
        return cli.out.result("cancelled", Exit.FAILED)
    root, limits = cli.app.root, cli.app.settings.limits
    await _open_workspace(cli, root, apply_mode)
    create = partial(create_planned_run, cli.app, choice.analyst, choice.plan, limits.limits, wanted, follows=follows)
    if count:
        return await _start_candidates(cli, [create] * count, choice.analyst.model, limits, apply_mode)
    team = await create()
    view = make_view(cli, TEAM_RUN)
    cli.out.begin(team=team, model=choice.analyst.model, agent=LEAD)
    view.own_text = choice.plan.request
    view.note(translate("run.heading", team=team, who=choice.analyst.model), style="dim")
    view.note(_describe_limits(cli, describe_limits(limits)), style="dim")
    return await _run_to_end(replace(cli, progress=view), view, team, root, apply_mode, new=True)


async def _start_candidates(
    cli: Invocation,
    creations: Sequence[Callable[[], Awaitable[TeamId]]],
    who: str,
    caps: LimitSettings,
    mode: ApplyMode,
) -> Exit:
    """Create runs of one request, follow them side by side, and compare those that ended. `caps` are for each."""
    view = RunView(cli.setup, cli.out)
    cli = replace(cli, progress=view)
    if not settle_checks(cli, cli.app.root, sandboxed=cli.app.may_run_checks):
        view.note(translate("run.plan_cancelled"), style="bold")
        return cli.out.result("cancelled", Exit.FAILED)
    known = {name: value for name in ("cost", "tokens", "time") if (value := getattr(caps, name)) is not None}
    total = evolve(caps, **{name: value * len(creations) for name, value in known.items()})
    each, all_of_them = describe_limits(caps), describe_limits(total)
    view.note(translate("compare.heading", count=len(creations), who=who, each=each, total=all_of_them), style="dim")
    view.note(_describe_limits(cli), style="dim")
    teams = [await create() for create in creations]
    cli.out.begin(candidates=teams)
    return await _report_candidates(cli, await follow_attended_candidates(cli, teams), mode)


async def _report_candidates(cli: Invocation, endings: Mapping[TeamId, Ending], mode: ApplyMode) -> Exit:
    """Compare the runs that ended, and apply the best if that is wanted and it is verified."""
    open_runs = {team: ending for team, ending in endings.items() if ending.history.state.tasks}
    for team, ending in open_runs.items():
        state, command = translate(f"states.{ending.status}"), render_command(cli, "resume", team)
        cli.progress.note(translate("compare.not_over", team=team, state=state, command=command), style="yellow")
    unfinished = [{"team": team, "state": ending.status} for team, ending in open_runs.items()]
    runs = [await read_candidate(cli, endings[team].history) for team in endings if team not in open_runs]
    if not runs:
        words = [ending.status for ending in open_runs.values()] or ["failed"]
        code = exit_for_statuses(words)
        status = next(word for word in words if exit_for_statuses([word]) == code)
        return cli.out.result(status, code, unfinished=unfinished)
    ranked = rank_candidates(runs)
    best, applies = ranked[0], mode is not None and ranked[0].verdict == "verified"
    fields = {**show_comparison(cli, ranked, applies=applies), "unfinished": unfinished}
    status = {"verified": "finished", "failed": "failed"}.get(best.verdict, "unverified")
    status = "failed" if best.missing_subtasks else status
    if mode is not None:
        report = await _build_report(cli, endings[TeamId(best.team)])
        applied = await _apply_verified(cli, TeamId(best.team), mode, report) if applies else None
        applied = applied or _report_not_applied(cli, translate("run.not_verified"))
        fields["taken"], status = applied.fields, "failed" if applied.fault else status
        cli.progress.note(applied.fault, style="red")
    return cli.out.result(status, exit_for_statuses([status]), **fields)


async def resume_run(cli: Invocation, state: TeamState, apply_mode: ApplyMode = None) -> Exit:
    """Resume a run that no process runs, with the same display and the same report."""
    view, team, root = make_view(cli, state.team.kit), state.team.team_id, Path(state.team.workspace)
    if apply_mode:
        await (await open_workspace(root)).check_can_commit(branch=apply_mode)
    view.note(translate("run.heading_resumed", team=team, who=", ".join(list_team_models(state))), style="dim")
    view.note(_describe_limits(cli), style="dim")
    return await _run_to_end(replace(cli, progress=view), view, team, root, apply_mode, new=False)


def make_view(cli: Invocation, kit: str) -> RunView:
    """Return the view of a run: a table if it is a team run."""
    return TeamView(cli.setup, cli.out, cli.app.settings.team) if kit == TEAM_RUN else RunView(cli.setup, cli.out)


async def _run_to_end(
    cli: Invocation, view: RunView, team: TeamId, root: Path, apply_mode: ApplyMode, *, new: bool
) -> Exit:
    has_types = cli.app.settings.team.validate_types or not isinstance(view, TeamView)
    if not settle_checks(cli, root, sandboxed=cli.app.may_run_checks, has_types=has_types):
        cli.progress.note(translate("run.not_started", command=render_command(cli, "resume", team)), style="bold")
        return cli.out.result("paused", Exit.WAITING, team=team)
    listen = RunPrompt(cli, team, view).open if cli.is_attended else nullcontext
    ending = await follow_attended(cli, team, new=new, listen=listen)
    return await _report_run(cli, view, team, ending, apply_mode=apply_mode)


def _describe_limits(cli: Invocation, limits: str = "") -> str:
    """Describe what a run may spend and touch, as the second line of its heading."""
    tier, prefix = cli.app.sandbox_tier, f"  {limits} · " if limits else "  "
    if tier == "none":
        return translate("run.heading_no_sandbox", limits=prefix)
    return translate("run.heading_sandbox", limits=prefix, tier=tier)


NUMBER_LIST: Final = re.compile(r"\d{1,2}(?:[ ,]+\d{1,2})*")
PROGRAM_NAME: Final = re.compile(r"[^\s/=$(){}\"'`|&;<>\\]+")
"""A word that can only be the name of a program: not a variable, a path or shell syntax."""


def settle_checks(cli: Invocation, root: Path, *, sandboxed: bool, has_types: bool = True) -> CheckPlan | None:
    """Print the checks of the change, after asking about new ones, unless with --yes; None if the person left."""
    plan = plan_project_checks(root, sandboxed=sandboxed, has_types=has_types)
    if plan.unapproved and cli.is_attended and not cli.app.is_auto_approved:
        try:
            chosen = _choose_checks(cli, plan, root)
        except PersonLeft:
            return None
        if chosen is not None:
            open_choices().save(root, chosen, plan.unapproved)
            plan = plan_project_checks(root, sandboxed=sandboxed, has_types=has_types)
    else:
        for check in plan.run:
            text = translate("run.check", name=check.name, line=check.line, why=check.why.rstrip("."))
            cli.progress.note(strip_control_characters(text))
    if not plan.run:
        cli.progress.note(translate("run.no_checks"), style="yellow")
    for why in plan.skip_reasons:
        cli.progress.note(f"! {strip_control_characters(why)}", style="yellow")
    return plan


def _choose_checks(cli: Invocation, plan: CheckPlan, root: Path) -> Sequence[Check] | None:
    """Ask which checks to use; None without an answer. Raise `PersonLeft` if the person left."""
    approved = [check for check in plan.run if check.name in plan.confirmed]
    cli.progress.note(translate("run.checks_found"))
    for number, check in enumerate(plan.unapproved, start=1):
        cli.progress.note(strip_control_characters(f"  {number}. {check.name}: {check.line}   ({check.why})"))
    line = ask_line(translate("run.choose_checks")).strip()
    if line.lower() in ("y", "yes"):
        return [*approved, *plan.unapproved]
    if line.lower() in ("n", "no", "none"):
        return approved
    left_out = {int(word) for word in line.replace(",", " ").split()} if NUMBER_LIST.fullmatch(line) else set()
    if left_out:
        return [*approved, *(check for number, check in enumerate(plan.unapproved, start=1) if number not in left_out)]
    if not line:
        return None
    first, path = line.split(maxsplit=1)[0], f"{root}:{os.environ.get('PATH', os.defpath)}"
    if (
        PROGRAM_NAME.fullmatch(first) and shutil.which(first, path=path) is None
    ):  # a typo would be saved and fail in every run
        cli.progress.note(translate("run.no_program", name=first), style="yellow")
        return _choose_checks(cli, plan, root)
    return [*approved, make_own_check(line, plan.unapproved)]


VERDICT_STYLES: Final = {"verified": "green", "failed": "red", "unverified": "yellow", "cancelled": "red"}


async def _report_run(cli: Invocation, view: RunView, team: TeamId, ending: Ending, *, apply_mode: ApplyMode) -> Exit:
    """Report the change of a run, apply it if requested, and report how the run ended."""
    states, printed = {standing.state for _, standing in ending.standings}, view.printed_answer
    team_fields = subtask_fields(ending.history)
    if isinstance(view, TeamView):
        view.show_results(ending.history)
    if states & {"waiting", "paused", "limit", "provider"}:
        if "limit" in states:  # the change so far is kept, but not verified
            report = await _build_report(cli, ending)
            cli.progress.note("\n".join(("", translate("run.so_far"), *report.lines)))
            if report.diff.changes:
                cli.progress.note(translate("run.view", command=render_command(cli, "diff", team)))
        else:
            view.show_verdict()
        apply_fields = (
            {"taken": _report_not_applied(cli, translate("run.not_finished")).fields} if apply_mode is not None else {}
        )
        extra_fields = {"verified": False, "answered": False, **team_fields, **apply_fields}
        return report_ending(cli, team, ending, printed=printed, extra_fields=extra_fields)
    report = await _build_report(cli, ending)
    ended = "cancelled" if ending.status == "cancelled" else "failed"
    state = ended if ending.code == Exit.FAILED else report.verdict.state
    key = "run.answered" if report.is_verified and not report.diff.changes else f"run.{state}"
    cli.progress.note("")
    head = translate(key, figures=summarise(ending.history))
    head = head.replace("✓", "!") if explain_over_limit(ending.history) else head
    cli.progress.note(head, style=f"bold {VERDICT_STYLES[state]}")
    line_styles = {"!": "yellow", **{translate(f"states.{name}"): style for name, style in VERDICT_STYLES.items()}}
    for line in report.lines:
        cli.progress.note(line, style=next((line_styles[word] for word in line_styles if line.startswith(word)), ""))
    if isinstance(view, TeamView):
        team_fields |= await _report_integration(cli, team)
    apply_result = await _apply_verified(cli, team, apply_mode, report) if apply_mode is not None else None
    if report.diff.changes and (apply_result is None or not apply_result.done):
        await _offer_change(cli, team)
    extra_fields = {
        **_report_fields(report),
        **team_fields,
        **({"taken": apply_result.fields} if apply_result is not None else {}),
    }
    # Successful only if it is verified and, if requested, applied. A failed run has its own reason.
    reasons, fault = report.verdict.reasons, apply_result.fault if apply_result is not None else ""
    code = reasons[0].code if report.verdict.state == "unverified" and reasons else ""
    why = "" if code and "failed" in states else "; ".join(report.reasons)
    unfinished = find_unfinished(ending.history)
    if unfinished and apply_result is not None and apply_result.done and report.diff.changes:
        unfinished += translate("run.rest_on_branch" if apply_mode else "run.rest_applied", name=apply_mode)
    final_ending = evolve(ending, fault=fault or unfinished, unverified=code, why=why)
    return report_ending(cli, team, final_ending, printed=printed, extra_fields=extra_fields, has_head=True)


async def _report_integration(cli: Invocation, team: TeamId) -> dict[str, object]:
    """Show the integration report of a team run in short; return it as a field for programs."""
    result = await integrate_results(cli.app, team)
    for line in render_summary(result, cli.app.settings.team.min_coverage):
        cli.progress.note(strip_control_characters(line))
    cli.progress.note(translate("integration.more", command=render_command(cli, "report", team)))
    return {"integration": describe_result(result)}


async def _build_report(cli: Invocation, ending: Ending) -> RunReport:
    async def steps(_: TeamId) -> list[Step]:
        return ending.history.steps

    run_change = await find_change(ending.history.state.team, steps)
    return await build_report(run_change, ending.history.steps)


def _report_fields(report: RunReport) -> Data:
    """Return the report as fields; `report` has the lines for people. An answer without a change is not verified."""
    answered = report.is_verified and not report.diff.changes
    return {
        "verified": report.is_verified and not answered,
        "answered": answered,
        "verdict": {**report.verdict_data, **({"state": "answered"} if answered else {})},
        "base": report.base,
        "tip": report.tip,
        "changes": [to_json_dict(change) for change in report.diff.changes],
        "diff": report.diff.text,
        "diff_cut": report.diff.cut,
        "report": list(report.lines),
    }


@record
class ApplyResult:
    """What happened to a change. `fields` are for programs; `done` says that nothing is left to decide.

    `fault` says why applying a verified change failed.
    """

    fields: Data
    done: bool = False
    fault: str = ""


async def _apply_verified(cli: Invocation, team: TeamId, name: str, report: RunReport) -> ApplyResult:
    """Apply the change, or put it on a branch of this name, if it is verified."""
    if not report.diff.changes:
        return ApplyResult(fields={"status": "not_taken", "why": translate("run.nothing_to_apply")}, done=True)
    if not report.is_verified:
        return _report_not_applied(cli, translate("run.not_verified"))
    nested_output = NestedOutput(cli.progress)
    inner_cli = replace(cli, out=nested_output)
    try:
        code = await (branch_change(inner_cli, team, name) if name else apply_change(inner_cli, team))
    except GreenroomError as error:
        fault = translate("run.apply_failed", why=error)
        return ApplyResult(fields={"status": "not_taken", "why": str(error)}, fault=fault)
    if "reason" in nested_output.fields:
        fault = translate("run.commit_failed", why=nested_output.fields["why"])
        return ApplyResult(fields=nested_output.fields, done=True, fault=fault)
    fault = "" if code == Exit.DONE else translate("run.apply_conflict")
    return ApplyResult(fields=nested_output.fields, done=code == Exit.DONE, fault=fault)


def _report_not_applied(cli: Invocation, why: str) -> ApplyResult:
    cli.progress.note(why, style="yellow")
    return ApplyResult(fields={"status": "not_taken", "why": why})


async def _offer_change(cli: Invocation, team: TeamId) -> None:
    """Ask what to do with the change; without a person, print the commands."""
    done = False
    while cli.is_attended and not done:
        try:
            choice = ask_line(translate("run.choose_change")).strip()
        except PersonLeft:
            break
        if choice.lower() in ("", "l", "later"):
            break
        done = await _do_choice(cli, team, choice)
    if not done:
        commands = {verb: render_command(cli, verb, team) for verb in ("apply", "diff", "discard")}
        cli.progress.note(translate("run.decide_later", **commands), style="bold")


async def _do_choice(cli: Invocation, team: TeamId, choice: str) -> bool:
    word, _, rest = choice.partition(" ")
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
            cli.progress.note(translate("run.unknown_choice"), style="yellow")
            return False
    try:
        return await work == Exit.DONE and word.lower() not in ("d", "diff")
    except GreenroomError as error:
        cli.progress.note(str(error), style="yellow")
        return False
