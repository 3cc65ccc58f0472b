"""`greenroom pause`, `resume`, `rewind`, `cancel`, `tell`, `fork`, `answer`: control a team in any process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.conversation.capability_names import ASK, CHAT, JOB
from greenroom.app.conversation.chat import list_team_models
from greenroom.app.conversation.chat_input import build_message
from greenroom.app.conversation.send import send_to_manager as deliver
from greenroom.app.library.run_result import make_refusing_factories, refuse_program_team
from greenroom.app.lookup import TaskReference, find_short_ids, resolve_id
from greenroom.app.organisation.phrases import ORGANISATION_KIT as ORGANISATION
from greenroom.app.runs.workspaces import RewindPoint, find_rewind_point, list_rewind_points, open_workspace, rewind_run
from greenroom.app.runs.workspaces import tell_run as tell_rewound
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.cli.commands.chat import reopen
from greenroom.cli.commands.run import resume_run
from greenroom.cli.commands.runs import format_ago, format_ahead, team_label
from greenroom.cli.context import Invocation, invoke, make_refusal, render_command
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.interactive.approvals import (
    is_confirmation,
    is_plan,
    keep_rule,
    pending_approvals,
    quote_question,
    words_to_type,
)
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
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.words import shorten, step_words
from greenroom.cli.start import ask_trust, new_limits
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import AnswerApproval, CancelTask, PauseTask, PauseTeam, ResumeTask, ResumeTeam
from greenroom.core.state.approval import Approval, ApprovalScope
from greenroom.core.state.task import TaskEnded
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import COMMIT_KEY
from greenroom.testing.demo import ASKING_KIT, DEMO_KIT

CANCEL_TIMEOUT_S: Final = 20.0
"""How long to wait for cancelled steps to end before reporting that they still run."""


async def pause(
    cli: Invocation,
    name: Id,
    *,
    now: Annotated[bool, typer.Option("--now", help="Interrupt running steps; they run again on resume.")] = False,
) -> Exit:
    """Pause a team or a task: no new steps start. Running steps finish first, unless --now."""
    reference = await resolve_id(cli.runtime, name)
    _open_tasks(await cli.runtime.world(reference.team), reference)
    intent = PauseTeam(now=now) if reference.task is None else PauseTask(task_id=reference.task, now=now)
    await cli.runtime.ask(reference.team, intent)
    cli.out.show(f"{reference} is paused: no new steps start.")
    cli.progress.note(f"Continue with: {render_command(cli, 'resume', str(reference))}")
    return cli.out.result("paused", Exit.DONE, team=reference.team, task=reference.task)


async def cancel(cli: Invocation, name: Id) -> Exit:
    """Cancel a task, or all open tasks of a team. Running steps are stopped."""
    reference = await resolve_id(cli.runtime, name)
    head = (await cli.runtime.log.head(reference.team)).version
    tasks = _open_tasks(await cli.runtime.world(reference.team, head), reference)
    await cli.runtime.ask(reference.team, *(CancelTask(task_id=task) for task in tasks))
    is_ended = True
    try:
        async with asyncio.timeout(CANCEL_TIMEOUT_S):
            await _wait_until_over(cli, reference.team, head, set(tasks))
    except TimeoutError:
        is_ended = False
    names = ", ".join(tasks)
    cli.out.show(f"Cancelled: {names}." if is_ended else f"Cancelling: {names}. Some steps are still running.")
    return cli.out.result("cancelled" if is_ended else "cancelling", Exit.DONE, team=reference.team, tasks=list(tasks))


async def _wait_until_over(cli: Invocation, team: TeamId, version: int, tasks: set[TaskId]) -> None:
    async for logged_event in cli.runtime.events(team, after=version, follow=True):
        if isinstance(logged_event.event, TaskEnded):
            tasks.discard(logged_event.event.task_id)
        if not tasks:
            return


def _open_tasks(world: TeamState, reference: TaskReference) -> tuple[TaskId, ...]:
    tasks = tuple(task for task in world.tasks if reference.task in (None, task))
    if not tasks:
        raise make_refusal("nothing_open", f"{reference} has no open tasks.", "List all tasks: `greenroom runs --all`")
    return tasks


def send(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="The message; `-` (or nothing, after a pipe) reads it from stdin."),
    ] = None,
) -> int:
    """Send a message to the agent that manages a team's task. It is read in the agent's next turn, in any terminal."""
    text = join_words([read_stdin("text")] if is_on_stdin(words) else words or [], "text")
    return invoke(context, lambda cli: _send(cli, name, text))


async def _send(cli: Invocation, name: str, text: str) -> Exit:
    """Deliver the message; print which agent will read it and when."""
    reference = await resolve_id(cli.runtime, name)
    team = (await cli.runtime.world(reference.team)).team
    if team.kit == ORGANISATION:
        why = f"{reference.team} is an organisation, which you write to from your inbox."
        raise make_refusal("organisation", why, f'Send a message: `greenroom inbox {team.name} --say "…"`.')
    if team.kit in (DEMO_KIT, ASKING_KIT):
        why = f"The agents of {reference.team} follow a script and read no messages."
        raise make_refusal("scripted", why, "Chat with an agent: `greenroom chat`.")
    delivery = await deliver(cli.runtime, reference, build_message(text))
    when = "when the team is resumed: no process runs it"
    if delivery.owner is not None:
        when = f"when it is resumed: it is paused ({delivery.paused})" if delivery.paused else "in its next turn"
    cli.out.show(f"{delivery.reader} in {reference.team}/{delivery.task} will read it {when}.")
    if delivery.owner is None or delivery.paused:
        cli.progress.note(f"Continue with: {render_command(cli, 'resume', reference.team)}")
    return cli.out.result(
        "told", Exit.DONE, team=reference.team, task=delivery.task, agent=delivery.reader, owner=delivery.owner
    )


async def fork(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", min=1, metavar="N", help="Start from version N, or the commit before it. [default: the newest]"
        ),
    ] = None,
) -> Exit:
    """Create a new team from a version of another one, which stays as it is."""
    reference = await resolve_id(cli.runtime, name)
    if reference.task is not None:
        raise make_refusal("whole_teams", "Only whole teams can be forked.", f"Use {reference.team}.")
    new = await cli.runtime.fork(reference.team, at)
    cli.out.show(new)
    origin = (await cli.runtime.world(new)).team.origin
    start_version = origin.version if origin else at
    if at is not None and start_version != at:
        cli.progress.note(f"Version {at} is in the middle of a commit; the new team starts at version {start_version}.")
    cli.progress.note(f"Show it: {render_command(cli, 'show', new)}   Run it: {render_command(cli, 'resume', new)}")
    return cli.out.result("forked", Exit.DONE, team=new, origin=reference.team, at=start_version)


# -------------------------------------------------------------------------------------------------------------- resume


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
    """Resume a team; if no process runs it, run it here to its end. A new limit replaces the old one. Repeat --yes,
    --non-interactive, --apply or --branch if the run had them."""
    apply_mode = read_apply_mode(branch, apply=apply)
    cli.app.set_attendance(yes=yes, non_interactive=non_interactive)
    return await _resume_team(cli, name, options, apply_mode)


async def _resume_team(cli: Invocation, name: str, options: RunOptions, apply_mode: ApplyMode = None) -> Exit:
    """Ask the owner of a team to resume it, or become the owner."""
    reference = await resolve_id(cli.runtime, name)
    world = await cli.runtime.world(reference.team)
    if world.team.kit in make_refusing_factories():
        refuse_program_team(world.team)
    if world.team.kit == ORGANISATION and reference.task is None:
        start = render_command(cli, "org", "start", reference.team)
        raise make_refusal("organisation", f"{reference.team} is an organisation.", f"Run it: `{start}`.")
    paused = [
        task for task in world.tasks.values() if reference.task in (None, task.task_id) and task.paused is not None
    ]
    team = [ResumeTeam()] if reference.task is None and world.team.paused is not None else []
    intents: list[ResumeTeam | ResumeTask] = [*team, *(ResumeTask(task_id=task.task_id) for task in paused)]
    holder = await cli.runtime.log.holder(reference.team)
    if apply_mode is not None:
        _refuse_to_apply(cli, reference, world, is_running=holder is not None)
    limits = new_limits(cli, world, options)
    cli.out.begin(team=reference.team)
    if holder is None and not world.tasks:
        return await _report_over(cli, reference)
    if holder is None and world.team.kit == CHAT:
        return await reopen(cli, reference.team, options)
    if holder is not None and not intents and not limits:
        raise WorldFault(
            f"Team {reference.team!r} runs already in {holder.owner} and is not paused. "
            f"Watch it with `{render_command(cli, 'events', reference.team, '--follow')}`."
        )
    if holder is None:  # refuse or ask for trust before anything runs here
        cli.app.use_recording(options.record, options.replay)
        for model in list_team_models(world):
            cli.app.get_model(model)
        if world.team.workspace:
            ask_trust(cli, Path(world.team.workspace))
    if limits or intents:
        await cli.runtime.ask(reference.team, *limits, *intents)
    if holder is not None:
        cli.out.show(f"{reference} is resumed in {holder.owner}.")
        return cli.out.result("resumed", Exit.DONE, team=reference.team, owner=holder.owner)
    return await _follow_here(cli, reference.team, world, apply_mode)


def _refuse_to_apply(cli: Invocation, reference: TaskReference, world: TeamState, *, is_running: bool) -> None:
    """Refuse --apply and --branch, unless the run ends in this process."""
    if world.team.kit == JOB and world.tasks and not is_running:
        return
    if world.team.kit != JOB:
        why, hint = (
            f"{reference.team} has no worktree, so there is nothing to apply.",
            "Remove --apply and --branch.",
        )
    else:
        why = (
            f"{reference.team} runs in another process." if is_running else f"{reference.team} has nothing left to do."
        )
        apply, branch = (
            render_command(cli, "apply", reference.team),
            render_command(cli, "branch", reference.team, "NAME"),
        )
        hint = f"Apply it {'when it has ended' if is_running else 'now'}: `{apply}` or `{branch}`."
    raise make_refusal("nothing_to_take", why, hint)


async def _follow_here(cli: Invocation, team: TeamId, world: TeamState, apply_mode: ApplyMode) -> Exit:
    if not list_team_models(world):
        return report_ending(cli, team, await follow_attended(cli, team))
    if not cli.app.is_attended:
        await answer_pending(await cli.runtime.start(team))
    if world.team.kit == JOB:
        return await resume_run(cli, world, apply_mode)
    view = RunView(cli.setup, cli.out)
    view.note(", ".join(list_team_models(world)), style="dim")
    inner_cli = replace(cli, progress=view)
    return report_ending(inner_cli, team, await follow_attended(inner_cli, team), printed=view.printed_answer)


async def _report_over(cli: Invocation, reference: TaskReference) -> Exit:
    tasks = [task for task in await cli.runtime.ended_tasks(reference.team) if reference.task in (None, task.task_id)]
    code = exit_for_statuses(task.state for task in tasks)
    ended = ", ".join(f"{task.task_id} {task.state}" for task in tasks) or "there are no tasks"
    cli.out.show(f"{reference} has nothing left to do: {ended}.")
    cli.progress.note(f"Run it again from a version: {render_command(cli, 'fork', reference.team, '--at', 'VERSION')}")
    return cli.out.result(tasks[-1].state if tasks else "finished", code, team=reference.team)


# -------------------------------------------------------------------------------------------------------------- rewind

STEPS_SHOWN: Final = 40  # newest steps listed; of the others only their number
MAX_STEP_CHARS: Final = 70
FILES_STAY: Final = "Your files are not rewound: this run works in them directly and keeps no versions of them."


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
    """Continue from the end of an earlier step, with its conversation, files and board, as a new run. The old run
    stays."""
    if to is not None and not to.strip():
        raise typer.BadParameter("--to is empty. Name a step, or remove --to to list the steps.")
    text, reference = " ".join(words or ()).strip(), await resolve_id(cli.runtime, name)
    if to is None:
        return await _list_steps(cli, reference, text)
    world = await cli.runtime.world(reference.team)
    await _refuse_rewind(cli, reference, world.team, text)
    target = await find_rewind_point(cli.runtime, reference.team, to.strip())
    for model in () if no_run else list_team_models(world):
        cli.app.get_model(model)
    new = await rewind_run(cli.runtime, cli.app.steps, reference.team, target)
    await tell_rewound(cli.runtime, new, build_message(text) if text else "")
    await _note_rewound(cli, reference.team, world.team, target, new)
    if not no_run:
        cli.app.set_attendance(yes=False, non_interactive=non_interactive)
        return await _resume_team(cli, new, RunOptions())
    cli.out.show(new)
    cli.progress.note(f"Continue with: {render_command(cli, 'resume', new)}")
    fields = {"origin": reference.team, "step": target.step.step_id, "version": target.version}
    return cli.out.result("rewound", Exit.DONE, team=new, **fields)


async def _refuse_rewind(cli: Invocation, reference: TaskReference, team: Team, text: str) -> None:
    if reference.task is not None:
        raise make_refusal("whole_teams", "Only whole teams can be rewound.", f"Use {reference.team}.")
    if team.kit in make_refusing_factories():
        refuse_program_team(team)
    if text and team.kit in (DEMO_KIT, ASKING_KIT):
        why = f"The agents of {reference.team} follow a script and read no messages."
        raise make_refusal("scripted", why, "Rewind it without a message.")
    holder = await cli.runtime.log.holder(reference.team)
    if holder is not None:
        raise WorldFault(
            f"Team {reference.team!r} runs in {holder.owner}, and both would do the same work. Stop "
            "it with Ctrl-C there; "
            "nothing is lost. Then rewind it."
        )


async def _note_rewound(cli: Invocation, old: TeamId, team: Team, target: RewindPoint, new: str) -> None:
    cli.progress.note(f"{new} starts as {old} was at the end of {target.step.step_id}. {old} is not changed.")
    if team.kit != JOB:
        if team.kit != ASK:
            cli.progress.note(FILES_STAY, style="yellow")
        return
    user_workspace = await open_workspace(Path(team.workspace))
    if any(application.state == "applied" for application in await user_workspace.list_applied(old)):
        back = render_command(cli, "undo", old)
        cli.progress.note(f"The change of {old} is applied to your files. Before you apply {new}, undo it: {back}")


async def _list_steps(cli: Invocation, reference: TaskReference, text: str) -> Exit:
    if text:
        raise make_refusal("no_step", "The step to rewind to is missing.", "Add --to STEP.")
    points = await list_rewind_points(cli.runtime, reference.team)
    cli.out.begin(team=reference.team)
    if not points:
        raise make_refusal("no_steps", f"No step of {reference.team} has ended, so there is nothing to rewind to.")
    if len(points) > STEPS_SHOWN:
        cli.out.show(f"… {len(points) - STEPS_SHOWN} earlier steps")
    width = max(len(point.step.step_id) for point in points[-STEPS_SHOWN:])
    for point in points[-STEPS_SHOWN:]:
        cli.out.show(f"{point.step.step_id:<{width}}  {_describe_point(point)}")
    candidates = [point for point in points[:-1] if _commit_of(point)] or points[:-1] or points
    cli.progress.note(
        f"Rewind to one: {render_command(cli, 'rewind', reference.team, '--to', candidates[-1].step.step_id)}"
    )
    rows = [{"step": point.step.step_id, "version": point.version, "commit": _commit_of(point)} for point in points]
    return cli.out.result("listed", Exit.DONE, team=reference.team, steps=rows)


def _describe_point(point: RewindPoint) -> str:
    how = "" if point.step.state == "finished" else f" ({point.step.state})"
    text = str((point.step.result or {}).get("text", "")) if point.step.work.type == "skill" else ""
    what = f"{step_words(point.step)}: {' '.join(text.split())}" if text.strip() else step_words(point.step)
    return (
        strip_control_characters(shorten(what, MAX_STEP_CHARS))
        + how
        + (" · files changed" if _commit_of(point) else "")
    )


def _commit_of(point: RewindPoint) -> str:
    return str((point.step.result or {}).get(COMMIT_KEY, ""))


# ----------------------------------------------------------------------------------------------------------- approvals

APPROVAL_COLUMNS: Final = (
    Column(name="id"),
    Column(name="question", can_shrink=True),
    Column(name="since", min_terminal_width=50),
)
MAX_QUESTION_CHARS: Final = 300  # characters of a question


async def approvals_list(cli: Invocation) -> None:
    """List everything that waits for a person: the question, since when, and how to answer it."""
    infos = [info for info in await cli.runtime.log.streams() if info.head.version]
    asking = [TeamId(info.stream) for info in infos if info.questions != 0]  # teams without open requests are not read
    worlds = dict[TeamId, TeamState]()
    for team in asking:
        try:
            worlds[team] = await cli.runtime.world(team)
        except StoreFault as error:  # a damaged log must not hide the others
            cli.progress.note(str(error), style="red")
    pending = [(team, approval) for team, world in worlds.items() for approval in pending_approvals(world)]
    cli.out.listing("approval", (_approval_fields(team, approval) for team, approval in pending))
    if not pending:
        cli.progress.note("Nothing waits for you.")
        return
    if cli.out.is_text:
        short = find_short_ids([TeamId(info.stream) for info in infos])
        rows = [_approval_row(team_label(team, short[team]), approval) for team, approval in pending]
        cli.out.show(FittedTable(APPROVAL_COLUMNS, rows))
    team, approval = pending[0]
    answer_words, other = words_to_type(worlds[team], approval)
    is_ambiguous = sum(other_team == team for other_team, _ in pending) > 1
    which = (f" --approval {approval.approval_id}" if is_ambiguous else "") + (f"   ({other})" if other else "")
    cli.progress.note(f"\nAnswer one: {render_command(cli, 'answer', team, answer_words)}{which}")


def _approval_row(label: Text, approval: Approval) -> list[Text]:
    asked = Text(strip_control_characters(quote_question(approval)))
    for title, text in (("always", approval.grant), ("for this run", approval.release)):
        if text:
            asked.append(strip_control_characters(f"\n{title}: {text}"), style="dim")
    if approval.expires_at is not None:
        left = format_ahead(approval.expires_at)
        expiry = f"expires {left}" if left != "now" else "has expired: it is denied when the team is resumed"
        asked.append(f"\n{expiry}", style="yellow")
    return make_row(label, asked, format_ago(approval.asked_at))


def _approval_fields(team: TeamId, approval: Approval) -> Data:
    return {
        "team": team,
        "approval": approval.approval_id,
        "agent": approval.agent_id,
        "task": approval.task_id,
        "question": approval.question,
        "wants": "words" if approval.words else "yes or no",
        "always": approval.grant,
        "release": approval.release,
        "asked_at": approval.asked_at,
        "expires_at": approval.expires_at,
    }


async def answer(
    cli: Invocation,
    name: Id,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="yes|no|TEXT",
            help="Approve or deny the step, or answer a question.",
            autocompletion=lambda: ["yes", "no"],
        ),
    ],
    *,
    approval: Annotated[
        str | None,
        typer.Option("--approval", help="Which request, if several wait: the start of its id."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Reason for the agent.")] = "",
    scope: Annotated[
        ApprovalScope,
        typer.Option("--for", metavar="once|run|always", help="Scope of a yes, by the rule shown."),
    ] = "once",
) -> Exit:
    """Approve or deny a step that waits for you, or answer an agent's question in words."""
    reference = await resolve_id(cli.runtime, name)
    world = await cli.runtime.world(reference.team)
    pending = _find_approval(world, reference, approval)
    text = " ".join(words).strip()
    if text and (is_plan(world, pending) or is_confirmation(world, pending)):  # here yes and no are text like any other
        decision = AnswerApproval(approval_id=pending.approval_id, answer="approved", reason=f"{text} {reason}".strip())
    else:
        decision = _make_answer(pending, text, reason, scope)
    await cli.runtime.ask(reference.team, decision)
    cli.progress.note(keep_rule(world, pending, decision))
    done = "Answered" if pending.words and decision.answer == "approved" else decision.answer.capitalize()
    cli.out.show(f"{done}: {shorten(strip_control_characters(pending.question), MAX_QUESTION_CHARS)}")
    if await cli.runtime.log.holder(reference.team) is None:
        cli.progress.note(f"No process runs the team. Continue with: {render_command(cli, 'resume', reference.team)}")
    return cli.out.result(decision.answer, Exit.DONE, team=reference.team, approval=pending.approval_id)


approvals_answer = answer


def _make_answer(approval: Approval, text: str, reason: str, scope: ApprovalScope) -> AnswerApproval:
    """Make the answer from the typed text; raise `RefusedError` if it does not fit the question."""
    name = approval.approval_id
    if text.lower() == "no":
        return AnswerApproval(approval_id=name, answer="denied", reason=reason)
    if approval.words:
        words = reason or ("" if text.lower() == "yes" else text)
        if not words:
            why = (
                f"{approval.agent_id} needs an answer in words: "
                f"{shorten(strip_control_characters(approval.question), MAX_QUESTION_CHARS)}"
            )
            raise make_refusal("no_words", why, 'Type: greenroom answer ID "your answer".')
        return AnswerApproval(approval_id=name, answer="approved", reason=words)
    if text.lower() != "yes":
        raise make_refusal("bad_answer", f"{text!r} is neither yes nor no.", "Give a reason with --reason.")
    return AnswerApproval(approval_id=name, answer="approved", reason=reason, scope=scope)


def _find_approval(world: TeamState, reference: TaskReference, wanted: str | None) -> Approval:
    pending = [approval for approval in pending_approvals(world) if reference.task in (None, approval.task_id)]
    matches = [approval for approval in pending if wanted is None or approval.approval_id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    listed = "; ".join(
        f"{candidate.approval_id}: {shorten(strip_control_characters(candidate.question), 80)}"
        for candidate in matches or pending
    )
    if not pending:
        raise make_refusal("nothing_asked", f"Nothing in {reference} waits for an answer.")
    why = f"{len(matches)} requests wait." if matches else f"No request starts with {wanted!r}."
    raise make_refusal("which_approval", why, f"Choose one with --approval. {listed}")
