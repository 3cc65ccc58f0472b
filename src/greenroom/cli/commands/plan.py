"""`greenroom plan`, `replan` and `report`: what a team would do, another plan while it runs, and what it did."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.lookup import resolve_id
from greenroom.app.messages import translate
from greenroom.app.run_plan import make_parser
from greenroom.app.settings.home import create_file
from greenroom.app.teams.analysis import TeamProposal, complete_plan, refuse_disabled
from greenroom.app.teams.integration import IntegratedResult, describe_result, integrate_results, plan_follow_up
from greenroom.app.teams.integration_report import render_markdown, render_text
from greenroom.app.teams.replan import build_replan, read_plan
from greenroom.cli.commands.run import start_team
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.plan_review import (
    PlannerOption,
    TeamChoice,
    edit_plan,
    keep_draft,
    open_analyst,
    read_named_file,
    render_proposal,
)
from greenroom.cli.options import (
    DEFAULT_OPTIONS,
    AllowUnverified,
    ApplyOption,
    BranchOption,
    Id,
    ModelName,
    NonInteractive,
    RunOptions,
    ToDo,
    Yes,
    read_apply_mode,
    read_request,
)
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.questions import PersonLeft, ask_line
from greenroom.core.base.errors import RefusedError, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve, to_full_dict
from greenroom.core.ports.codec import to_json_dict
from greenroom.core.state.stage import Stage
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import HAND_IN
from greenroom.runs.workspace import RunFlags
from greenroom.teamwork.plan import Plan
from greenroom.teamwork.plan_text import render_plan_text


def plan(
    context: typer.Context,
    words: ToDo = None,
    *,
    planner: PlannerOption = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the plan to this new file.", show_default=False)
    ] = None,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Analyse a task and plan its team; start nothing.

    Shows the specialists, the subtasks, the estimated time and cost, and whether a team is worth it. A model is asked
    only if the rules are not sure, or with --planner model or manager.

    Examples:
      greenroom plan "add OAuth login, with tests and docs"
      greenroom plan --planner model --save login.toml "add OAuth login"
      greenroom plan --output-format json "fix the crash in the parser"

    Exit codes: 0; 2; 3; 4.
    """
    request = read_request(words, "task").text

    async def work(cli: Invocation) -> Exit:
        refuse_disabled(cli.app.settings.team)
        options.apply(cli.app)
        if save is not None and save.exists():
            raise make_refusal("file_exists", translate("plan.file_exists", path=save))
        analyst = await open_analyst(cli, model.strip())
        proposal = await analyst.propose(request, planner)
        for line in render_proposal(proposal, cli.out.console.width):
            cli.out.write(f"{strip_control_characters(line)}\n")
        if save is not None:
            create_file(save, render_plan_text(proposal.plan))
            cli.out.write(f"{translate('plan.saved', path=save)}\n")
        return cli.out.result("ok", Exit.DONE, **describe_proposal(proposal))

    return invoke(context, work)


async def replan(
    cli: Invocation,
    name: Id,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Read the new plan from this file.", show_default=False),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the plan; change nothing.")] = False,
) -> Exit:
    """Change the plan of a team that runs or is paused.

    Opens the plan in $VISUAL or $EDITOR. Subtasks that run or have ended stay; others can change, go or be added. The
    change is made at once, also in another process.

    Examples:
      greenroom replan last
      greenroom replan last --show > plan.toml
      greenroom replan last --file plan.toml

    Exit codes: 0; 1 cancelled; 2; 3.
    """
    team = (await resolve_id(cli.runtime, name)).team
    state, stage = await _find_stage(cli, team)
    old = read_plan(state, stage)
    text = mark_states(render_plan_text(old), stage)
    if show:
        cli.out.write(text)
        return cli.out.result("ok", Exit.DONE, team=team, plan=text)
    analyst = await open_analyst(cli)
    if file is None and not cli.is_attended:
        raise make_refusal("no_terminal", translate("teams.no_terminal"), translate("teams.add_file"))
    for agent in state.agents.values():  # a program can have registered profiles that no file has
        if agent.spec.proof == HAND_IN:
            analyst.profiles.register(agent.spec)
    most = max(analyst.settings.max_subtasks, len(old.subtasks))  # a batch has more
    analyst.settings = evolve(analyst.settings, max_subtasks=most)
    parse = make_parser(analyst, old)
    plan = parse(read_named_file(file)) if file is not None else await edit_plan(cli, text, parse)
    if plan is None:
        cli.progress.note(translate("teams.not_replanned"), style="bold")
        return cli.out.result("cancelled", Exit.FAILED, team=team)
    try:
        now = await _find_stage(cli, team)
        if added := {part.name for part in now[1].subtasks} - {part.name for part in stage.subtasks}:
            raise make_refusal("changed", translate("teams.plan_changed", names=", ".join(sorted(added))))
        await cli.runtime.ask(team, build_replan(*now, complete_plan(plan)))
    except RefusedError:
        if file is None:
            cli.progress.note(translate("plan.kept", path=keep_draft(render_plan_text(plan))), style="bold")
        raise
    cli.out.show(translate("teams.replanned", team=team, subtasks=", ".join(part.id for part in plan.subtasks)))
    if kept := _find_kept(await cli.runtime.state(team), complete_plan(plan)):
        cli.progress.note(translate("teams.kept_as_is", names=", ".join(kept)), style="yellow")
    if await cli.runtime.log.holder(team) is None:
        cli.progress.note(translate("report.continue", command=render_command(cli, "resume", team)))
    parts = [to_full_dict(part) for part in plan.subtasks]
    return cli.out.result("ok", Exit.DONE, team=team, subtasks=parts, kept=kept)


async def report(
    cli: Invocation,
    name: Id,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print it as Markdown.")] = False,
    apply_suggestions: Annotated[
        bool, typer.Option("--apply-suggestions", help="Start a run that applies the review's suggestions.")
    ] = False,
    yes: Yes = False,
    apply: ApplyOption = False,
    branch: BranchOption = None,
    allow_unverified: AllowUnverified = False,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> Exit:
    """Report what a team did, and what was not verified.

    Contributions, checks, coverage, conflicts, reviews, cost and time. With --apply-suggestions a new run begins with
    the change and applies what the review suggests; apply that run instead.

    Examples:
      greenroom report last
      greenroom report last --markdown > report.md
      greenroom report last --apply-suggestions

    Exit codes: 0; 1 the new run failed, or a check did; 2; 3; 4; 5; 6; 7.
    """
    cli.app.set_attendance(yes=yes, non_interactive=non_interactive)
    apply_mode = read_apply_mode(branch, apply=apply)
    team, least = (await resolve_id(cli.runtime, name)).team, cli.app.settings.team.min_coverage
    result = await integrate_results(cli.app, team)
    if not apply_suggestions:
        asks = cli.is_attended and not markdown
        text = render_markdown(result, least) if markdown else render_text(result, least, is_detailed=not asks)
        cli.out.write(strip_control_characters(text))
        if not asks or not _choose_action(cli, result, least):
            return cli.out.result("ok", Exit.DONE, team=team, **describe_result(result))
    plan, workspace = plan_follow_up(result.report), (await cli.runtime.state(team)).team.workspace
    if workspace != str(cli.app.root):
        raise make_refusal("other_folder", translate("integration.other_folder", team=team, workspace=workspace))
    options.apply(cli.app)
    analyst = await open_analyst(cli, model.strip())
    choice = TeamChoice(analyst=analyst, plan=analyst.assess(plan).plan)
    return await start_team(cli, choice, RunFlags(allow_unverified=allow_unverified), apply_mode, follows=team)


def _choose_action(cli: Invocation, result: IntegratedResult, least: int) -> bool:
    """Ask what to do with a report, and show the detail; return whether the review's suggestions are to be applied."""
    offer = translate("integration.offer_suggestions") if result.report.suggestions else ""
    question = translate("integration.choose", suggestions=offer)
    with suppress(PersonLeft):
        while (word := ask_line(question).strip().lower()) not in ("", "c", "close"):
            if offer and word in ("s", "suggestions"):
                return True
            if word in ("d", "detail"):
                cli.out.write(strip_control_characters(render_text(result, least)))
            else:
                cli.progress.note(translate("approvals.unknown_answer"), style="yellow")
    return False


def _find_kept(state: TeamState, plan: Plan) -> list[str]:
    """Return the subtasks that have started and so are not as the new plan has them."""
    stage = next(iter(state.stages.values()), None)
    started = {part.name for part in stage.subtasks if part.state != "init"} if stage is not None else set()
    known = {part.id: part for part in read_plan(state, stage).subtasks} if stage is not None else {}
    return [part.id for part in plan.subtasks if part.id in started and part != known.get(part.id)]


async def _find_stage(cli: Invocation, team: TeamId) -> tuple[TeamState, Stage]:
    """Return the state of a team run and its stage, as they are now."""
    state = await cli.runtime.state(team)
    stage = next(iter(state.stages.values()), None)
    if state.team.kit != TEAM_RUN or stage is None:
        raise make_refusal("no_plan", translate("teams.nothing_to_replan", team=team))
    return state, stage


def mark_states(text: str, stage: Stage) -> str:
    """Add a comment above each subtask that has started."""
    for subtask in stage.subtasks:
        if subtask.state != "init":
            head = f'[[subtasks]]\nid = "{subtask.name}"\n'
            text = text.replace(
                head, f"# {translate('teams.stays', state=translate(f'states.{subtask.state}'))}\n{head}"
            )
    return text


def describe_proposal(proposal: TeamProposal) -> Data:
    """Return a proposal as fields for programs."""
    analysis, estimate = proposal.analysis, proposal.analysis.estimate
    ranges = {"seconds": estimate.seconds, "tokens": estimate.tokens, "cost": estimate.cost}
    return {
        "request": proposal.request,
        "task_types": list(analysis.task_types),
        "source": analysis.source,
        "is_sure": analysis.is_sure,
        "recommended": [to_json_dict(advice) for advice in analysis.recommended],
        "can_parallelize": analysis.can_parallelize,
        "estimate": {
            **to_full_dict(estimate),
            **{key: value and to_json_dict(value) for key, value in ranges.items()},
        },
        "team": to_full_dict(proposal.decision),
        "subtasks": [to_full_dict(subtask) for subtask in proposal.plan.subtasks],
        "phases": [to_full_dict(phase) for phase in proposal.phases],
        "critical_path": list(proposal.critical_path),
        "model": proposal.model,
        "notes": list(proposal.notes),
        "runs": list(proposal.runs),
        "past_merges": {**to_full_dict(proposal.past), "unplanned": dict(proposal.past.unplanned)},
    }
