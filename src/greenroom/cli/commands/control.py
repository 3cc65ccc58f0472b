"""`greenroom pause`, `resume`, `rewind`, `cancel`, `send`, `fork`: control a team in any process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.capability_names import ASK, CHANGING_RUNS, CHAT
from greenroom.app.conversation.chat import list_team_models
from greenroom.app.conversation.chat_input import build_message
from greenroom.app.conversation.send import send_to_run as deliver
from greenroom.app.library.run_result import REFUSING_FACTORIES, refuse_program_team
from greenroom.app.lookup import TaskReference, resolve_id
from greenroom.app.messages import current_language, translate
from greenroom.app.organisation.phrases import ORGANISATION_KIT as ORGANISATION
from greenroom.app.run_host import cancel_tasks
from greenroom.app.runs.workspaces import RewindPoint, find_rewind_point, list_rewind_points, open_workspace, rewind_run
from greenroom.app.runs.workspaces import tell_run as tell_rewound
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.app.words import shorten, step_words
from greenroom.cli.commands.chat import reopen
from greenroom.cli.commands.run import resume_run
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.interactive.follow import follow_attended
from greenroom.cli.interactive.report import report_ending
from greenroom.cli.options import (
    DEFAULT_OPTIONS,
    ApplyMode,
    ApplyOption,
    BranchOption,
    Id,
    NonInteractive,
    RunOptions,
    Yes,
    is_on_stdin,
    join_words,
    read_apply_mode,
    read_stdin,
)
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.start import ask_trust, new_limits
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.rules.intents import PauseTask, PauseTeam, ResumeTask, ResumeTeam
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import COMMIT_KEY
from greenroom.testing.demo import ASKING_KIT, DEMO_KIT


async def pause(
    cli: Invocation,
    name: Id,
    *,
    now: Annotated[bool, typer.Option("--now", help="Interrupt running steps; they run again on resume.")] = False,
) -> Exit:
    """Pause a run or one of its tasks.

    No new steps start. Running steps finish first, unless --now.

    Examples:
      greenroom pause last
      greenroom pause last --now

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    _open_tasks(await cli.runtime.state(reference.team), reference)
    intent = PauseTeam(now=now) if reference.task is None else PauseTask(task_id=reference.task, now=now)
    await cli.runtime.ask(reference.team, intent)
    cli.out.show(translate("control.paused", reference=reference))
    cli.progress.note(translate("report.continue", command=render_command(cli, "resume", str(reference))))
    return cli.out.result("paused", Exit.DONE, team=reference.team, task=reference.task)


async def cancel(cli: Invocation, name: Id) -> Exit:
    """Cancel a run or one of its tasks.

    Running steps are stopped. A cancelled task cannot be resumed.

    Examples:
      greenroom cancel last
      greenroom cancel last/t1

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    tasks = _open_tasks(await cli.runtime.state(reference.team), reference)
    is_ended = await cancel_tasks(cli.runtime, reference.team, tasks)
    cli.out.show(translate("control.cancelled" if is_ended else "control.cancelling", tasks=", ".join(tasks)))
    return cli.out.result("cancelled" if is_ended else "cancelling", Exit.DONE, team=reference.team, tasks=list(tasks))


def _open_tasks(state: TeamState, reference: TaskReference) -> tuple[TaskId, ...]:
    tasks = tuple(task for task in state.tasks if reference.task in (None, task))
    if not tasks:
        raise make_refusal(
            "nothing_open", translate("control.no_open_tasks", reference=reference), translate("control.list_all_tasks")
        )
    return tasks


def send(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="The message; `-` (or nothing, after a pipe) reads it from stdin."),
    ] = None,
) -> int:
    """Send a message to the agent that works on a run.

    The agent reads it in its next turn, even if the run is in another terminal. In a team run all specialists read it,
    also those that start later, or only the one that it names first.

    Examples:
      greenroom send last "keep CSV as the default"
      greenroom send last "@code-writer-1 keep CSV as the default"
      git diff | greenroom send last -

    Exit codes: 0; 2; 3.
    """
    text = join_words([read_stdin("text")] if is_on_stdin(words) else words or [], "text")
    return invoke(context, lambda cli: _send(cli, name, text))


async def _send(cli: Invocation, name: str, text: str) -> Exit:
    """Deliver the message; print which agent will read it and when."""
    reference = await resolve_id(cli.runtime, name)
    state = await cli.runtime.state(reference.team)
    team = state.team
    if team.kit == ORGANISATION:
        why = translate("control.organisation_uses_inbox", team=reference.team)
        people = sorted(name for name, agent in state.agents.items() if agent.spec.kind == "human")
        person = ("--as", people[0]) if len(people) > 1 else ()
        command = render_command(cli, "inbox", team.name, *person, "--say", '"…"')
        raise make_refusal("organisation", why, translate("control.send_to_inbox", command=command))
    if team.kit in (DEMO_KIT, ASKING_KIT):
        why = translate("control.agents_are_scripted", team=reference.team)
        raise make_refusal("scripted", why, translate("control.chat_instead"))
    delivery = await deliver(cli.runtime, reference, build_message(text))
    where = {"reader": delivery.reader, "task": f"{reference.team}/{delivery.task}"}
    if delivery.owner is None:
        cli.out.show(translate("control.read_when_run", **where))
    elif delivery.paused:
        cli.out.show(translate("control.read_when_resumed", why=delivery.paused, **where))
    else:
        cli.out.show(translate("control.read_next_turn", **where))
    if delivery.owner is None or delivery.paused:
        cli.progress.note(translate("report.continue", command=render_command(cli, "resume", reference.team)))
    return cli.out.result(
        "told",
        Exit.DONE,
        team=reference.team,
        task=delivery.task,
        agent=next(iter(delivery.readers), ""),
        agents=list(delivery.readers),
        owner=delivery.owner,
    )


async def fork(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[
        int | None,
        typer.Option("--at", min=1, metavar="N", help="Start at version N. [default: newest]"),
    ] = None,
) -> Exit:
    """Create a run from a version of another one.

    The other run stays as it is. The new one starts with `greenroom resume`.

    Examples:
      greenroom fork last
      greenroom fork last --at 20

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    if reference.task is not None:
        raise make_refusal(
            "whole_teams", translate("control.fork_whole_team"), translate("control.use", team=reference.team)
        )
    new = await cli.runtime.fork(reference.team, at)
    cli.out.show(new)
    origin = (await cli.runtime.state(new)).team.origin
    start_version = origin.version if origin else at
    if at is not None and start_version != at:
        cli.progress.note(translate("control.fork_version", at=at, version=start_version))
    show, run = render_command(cli, "show", new), render_command(cli, "resume", new)
    cli.progress.note(translate("control.forked", show=show, run=run))
    return cli.out.result("forked", Exit.DONE, team=new, origin=reference.team, at=start_version)


async def resume(
    cli: Invocation,
    name: Id,
    *,
    yes: Yes = False,
    apply: ApplyOption = False,
    branch: BranchOption = None,
    non_interactive: NonInteractive = False,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Exit:
    """Resume a run; run it here if no process does.

    A new limit replaces the old one. Repeat --yes, --non-interactive, --apply or --branch if the run had them.

    Examples:
      greenroom resume last
      greenroom resume last --max-cost 10 --apply

    Exit codes: 0; 1 the run failed, or a check did; 2; 3; 4; 5; 6; 7.
    """
    apply_mode = read_apply_mode(branch, apply=apply)
    cli.app.set_attendance(yes=yes, non_interactive=non_interactive)
    return await _resume_team(cli, name, options, apply_mode)


async def _resume_team(cli: Invocation, name: str, options: RunOptions, apply_mode: ApplyMode = None) -> Exit:
    """Ask the owner of a team to resume it, or become the owner."""
    reference = await resolve_id(cli.runtime, name)
    state = await cli.runtime.state(reference.team)
    if state.team.kit in REFUSING_FACTORIES:
        refuse_program_team(state.team)
    if state.team.kit == ORGANISATION and reference.task is None:
        start = render_command(cli, "org", "start", reference.team)
        why = translate("control.is_organisation", team=reference.team)
        raise make_refusal("organisation", why, translate("control.run_it", command=start))
    paused = [
        task for task in state.tasks.values() if reference.task in (None, task.task_id) and task.paused is not None
    ]
    team = [ResumeTeam()] if reference.task is None and state.team.paused is not None else []
    intents: list[ResumeTeam | ResumeTask] = [*team, *(ResumeTask(task_id=task.task_id) for task in paused)]
    holder = await cli.runtime.log.holder(reference.team)
    if apply_mode is not None:
        _refuse_to_apply(cli, reference, state, is_running=holder is not None)
    limits = new_limits(cli, state, options)
    cli.out.begin(team=reference.team)
    if holder is None and not state.tasks:
        return await _report_over(cli, reference)
    if holder is None and state.team.kit == CHAT:
        return await reopen(cli, reference.team, options)
    if holder is not None and not intents and not limits:
        raise WorldFault(
            "control.already_runs",
            team=reference.team,
            owner=holder.owner,
            command=render_command(cli, "events", reference.team, "--follow"),
        )
    if holder is None:  # refuse or ask for trust before anything runs here
        cli.app.use_recording(options.record, options.replay)
        for model in list_team_models(state):
            cli.app.get_model(model)
        if state.team.workspace:
            ask_trust(cli, Path(state.team.workspace))
    if limits or intents:
        await cli.runtime.ask(reference.team, *limits, *intents)
    if holder is not None:
        cli.out.show(translate("control.resumed", reference=reference, owner=holder.owner))
        return cli.out.result("resumed", Exit.DONE, team=reference.team, owner=holder.owner)
    return await _follow_here(cli, reference.team, state, apply_mode)


def _refuse_to_apply(cli: Invocation, reference: TaskReference, state: TeamState, *, is_running: bool) -> None:
    """Refuse --apply and --branch, unless the run ends in this process."""
    if state.team.kit in CHANGING_RUNS and state.tasks and not is_running:
        return
    if state.team.kit not in CHANGING_RUNS:
        why = translate("control.no_worktree", team=reference.team)
        hint = translate("control.remove_apply_branch")
    else:
        why = translate("control.runs_in_other_process" if is_running else "control.nothing_left", team=reference.team)
        apply = render_command(cli, "apply", reference.team)
        branch = render_command(cli, "branch", reference.team, "NAME")
        key = "control.apply_when_ended" if is_running else "control.apply_now"
        hint = translate(key, apply=apply, branch=branch)
    raise make_refusal("nothing_to_take", why, hint)


async def _follow_here(cli: Invocation, team: TeamId, state: TeamState, apply_mode: ApplyMode) -> Exit:
    if not list_team_models(state):
        return report_ending(cli, team, await follow_attended(cli, team))
    if not cli.app.is_attended:
        await answer_pending(await cli.runtime.start(team))
    if state.team.kit in CHANGING_RUNS:
        return await resume_run(cli, state, apply_mode)
    view = RunView(cli.setup, cli.out)
    view.note(", ".join(list_team_models(state)), style="dim")
    inner_cli = replace(cli, progress=view)
    return report_ending(inner_cli, team, await follow_attended(inner_cli, team), printed=view.printed_answer)


async def _report_over(cli: Invocation, reference: TaskReference) -> Exit:
    tasks = [task for task in await cli.runtime.ended_tasks(reference.team) if reference.task in (None, task.task_id)]
    code = exit_for_statuses(task.state for task in tasks)
    ended = ", ".join(f"{task.task_id} {translate(f'states.{task.state}')}" for task in tasks)
    ended = ended or translate("states.no_task")
    cli.out.show(translate("control.over", reference=reference, ended=ended))
    command = render_command(cli, "fork", reference.team, "--at", "VERSION")
    cli.progress.note(translate("control.run_from_version", command=command))
    return cli.out.result(tasks[-1].state if tasks else "finished", code, team=reference.team)


STEPS_SHOWN: Final = 40  # newest steps listed; of the others only their number
MAX_STEP_CHARS: Final = 70


async def rewind(
    cli: Invocation,
    name: Id,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Message to the agent before it continues.")
    ] = None,
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="STEP", help="Rewind to the end of this step. [default: list them]"),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Create the run, but do not start it.")] = False,
    non_interactive: NonInteractive = False,
) -> Exit:
    """Continue from an earlier step as a new run.

    The new run has the conversation, the files and the board of that step. The old run stays. Without --to it lists
    the steps.

    Examples:
      greenroom rewind last
      greenroom rewind last --to coder#5 "keep CSV as the default"

    Exit codes: 0; 1; 2; 3; 4; 5; 6; 7.
    """
    if to is not None and not to.strip():
        raise typer.BadParameter(translate("control.empty_rewind_step"))
    text, reference = " ".join(words or ()).strip(), await resolve_id(cli.runtime, name)
    if to is None:
        return await _list_steps(cli, reference, text)
    state = await cli.runtime.state(reference.team)
    await _refuse_rewind(cli, reference, state.team, text)
    target = await find_rewind_point(cli.runtime, reference.team, to.strip())
    for model in () if no_run else list_team_models(state):
        cli.app.get_model(model)
    new = await rewind_run(cli.runtime, cli.app.steps, reference.team, target)
    await tell_rewound(cli.runtime, new, build_message(text) if text else "")
    await _note_rewound(cli, reference.team, state.team, target, new)
    if not no_run:
        cli.app.set_attendance(yes=False, non_interactive=non_interactive)
        return await _resume_team(cli, new, RunOptions())
    cli.out.show(new)
    cli.progress.note(translate("report.continue", command=render_command(cli, "resume", new)))
    fields = {"origin": reference.team, "step": target.step.step_id, "version": target.version}
    return cli.out.result("rewound", Exit.DONE, team=new, **fields)


async def _refuse_rewind(cli: Invocation, reference: TaskReference, team: Team, text: str) -> None:
    if reference.task is not None:
        raise make_refusal(
            "whole_teams", translate("control.rewind_whole_team"), translate("control.use", team=reference.team)
        )
    if team.kit in REFUSING_FACTORIES:
        refuse_program_team(team)
    if text and team.kit in (DEMO_KIT, ASKING_KIT):
        why = translate("control.agents_are_scripted", team=reference.team)
        raise make_refusal("scripted", why, translate("control.rewind_without_message"))
    holder = await cli.runtime.log.holder(reference.team)
    if holder is not None:
        raise WorldFault("control.stop_before_rewind", team=reference.team, owner=holder.owner)


async def _note_rewound(cli: Invocation, old: TeamId, team: Team, target: RewindPoint, new: str) -> None:
    cli.progress.note(translate("control.rewound", new=new, old=old, step=target.step.step_id))
    if team.kit not in CHANGING_RUNS:
        if team.kit != ASK:
            cli.progress.note(translate("control.files_stay"), style="yellow")
        return
    user_workspace = await open_workspace(Path(team.workspace))
    if any(application.state == "applied" for application in await user_workspace.list_applied(old)):
        back = render_command(cli, "undo", old)
        cli.progress.note(translate("control.undo_first", old=old, new=new, command=back))


async def _list_steps(cli: Invocation, reference: TaskReference, text: str) -> Exit:
    if text:
        raise make_refusal("no_step", translate("control.rewind_step_missing"), translate("control.add_rewind_step"))
    points = await list_rewind_points(cli.runtime, reference.team)
    cli.out.begin(team=reference.team)
    if not points:
        raise make_refusal("no_steps", translate("control.no_step_ended", team=reference.team))
    if len(points) > STEPS_SHOWN:
        cli.out.show(translate("control.earlier_steps", count=len(points) - STEPS_SHOWN))
    width = max(len(point.step.step_id) for point in points[-STEPS_SHOWN:])
    for point in points[-STEPS_SHOWN:]:
        cli.out.show(f"{point.step.step_id:<{width}}  {_describe_point(point)}")
    candidates = [point for point in points[:-1] if _commit_of(point)] or points[:-1] or points
    command = render_command(cli, "rewind", reference.team, "--to", candidates[-1].step.step_id)
    cli.progress.note(translate("control.rewind_to_one", command=command))
    rows = [{"step": point.step.step_id, "version": point.version, "commit": _commit_of(point)} for point in points]
    return cli.out.result("listed", Exit.DONE, team=reference.team, steps=rows)


def _describe_point(point: RewindPoint) -> str:
    how = "" if point.step.state == "finished" else f" ({translate(f'states.{point.step.state}')})"
    text = str((point.step.result or {}).get("text", "")) if point.step.work.type == "skill" else ""
    name = step_words(point.step, current_language())
    what = f"{name}: {' '.join(text.split())}" if text.strip() else name
    return (
        strip_control_characters(shorten(what, MAX_STEP_CHARS))
        + how
        + (f" · {translate('control.files_changed')}" if _commit_of(point) else "")
    )


def _commit_of(point: RewindPoint) -> str:
    return str((point.step.result or {}).get(COMMIT_KEY, ""))
