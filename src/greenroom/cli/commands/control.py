"""`greenroom pause`, `resume`, `rewind`, `cancel`, `tell`, `fork`, `answer`: steering a team, wherever it runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.names import ASK, CHAT, JOB
from greenroom.app.conversation.send import tell as deliver
from greenroom.app.conversation.typed import message
from greenroom.app.library.results import kits_of_programs, refuse
from greenroom.app.lookup import Found, find, shortest
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.app.runs.workspaces import Moment, moment, moments, rewound, workspace
from greenroom.app.runs.workspaces import told as tell_rewound
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.cli.commands.chat import reopen
from greenroom.cli.commands.run import resume_job
from greenroom.cli.commands.tasks import ago, ahead, team_label
from greenroom.cli.context import Invocation, command, invoke, refused
from greenroom.cli.exit_codes import Exit, of_standings
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
    DEFAULTS,
    AtOnce,
    Id,
    NonInteractive,
    OnBranch,
    RunOptions,
    Take,
    Yes,
    from_stdin,
    is_on_stdin,
    take,
    typed,
)
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.words import shorten, step_words
from greenroom.cli.start import ask_trust, new_limits
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import AnswerApproval, CancelTask, PauseTask, PauseTeam, ResumeTask, ResumeTeam
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.task import TaskEnded
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.runs.verdict import COMMIT
from greenroom.testing.demo import ASKING_KIT, KIT

CANCEL_TIMEOUT_S: Final = 20.0
"""How long to wait until cancelled effects are seen dead, before saying that they are not yet."""


async def pause(
    cli: Invocation,
    name: Id,
    *,
    now: Annotated[bool, typer.Option("--now", help="Interrupt what runs; it is run again on resume.")] = False,
) -> Exit:
    """Start nothing new in a team or task. What runs is finished first, unless --now."""
    found = await find(cli.runtime, name)
    _open_tasks(await cli.runtime.world(found.team), found)
    intent = PauseTeam(now=now) if found.task is None else PauseTask(task_id=found.task, now=now)
    await cli.runtime.ask(found.team, intent)
    cli.out.show(f"{found} is paused: nothing new starts.")
    cli.progress.note(f"Go on with: {command(cli, 'resume', str(found))}")
    return cli.out.result("paused", Exit.DONE, team=found.team, task=found.task)


async def cancel(cli: Invocation, name: Id) -> Exit:
    """End a task, or all open tasks of a team; what runs is stopped and seen dead."""
    found = await find(cli.runtime, name)
    head = (await cli.runtime.log.head(found.team)).version
    tasks = _open_tasks(await cli.runtime.world(found.team, head), found)
    await cli.runtime.ask(found.team, *(CancelTask(task_id=task) for task in tasks))
    dead = True
    try:
        async with asyncio.timeout(CANCEL_TIMEOUT_S):
            await _until_over(cli, found.team, head, set(tasks))
    except TimeoutError:
        dead = False
    names = ", ".join(tasks)
    cli.out.show(f"Cancelled: {names}." if dead else f"Cancelling: {names}. What runs has not ended yet.")
    return cli.out.result("cancelled" if dead else "cancelling", Exit.DONE, team=found.team, tasks=list(tasks))


async def _until_over(cli: Invocation, team: TeamId, version: int, tasks: set[TaskId]) -> None:
    async for told in cli.runtime.events(team, after=version, follow=True):
        if isinstance(told.event, TaskEnded):
            tasks.discard(told.event.task_id)
        if not tasks:
            return


def _open_tasks(world: World, found: Found) -> tuple[TaskId, ...]:
    tasks = tuple(task for task in world.tasks if found.task in (None, task))
    if not tasks:
        raise refused("nothing_open", f"Nothing is being worked on in {found}.", "`greenroom tasks --all`.")
    return tasks


def tell(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to say; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
) -> int:
    """Say something to whoever manages a team's task. It is read in their next turn, also in another terminal."""
    text = typed([from_stdin("text")] if is_on_stdin(words) else words or [], "text")
    return invoke(context, lambda cli: _tell(cli, name, text))


async def _tell(cli: Invocation, name: str, text: str) -> Exit:
    """Deliver it, and say which agent will read it and when."""
    found = await find(cli.runtime, name)
    team = (await cli.runtime.world(found.team)).team
    if team.kit == ORGANISATION:
        why = f"{found.team} is an organisation, and you are one of its people."
        raise refused("organisation", why, f'Talk to it: `greenroom talk {team.name} --say "…"`.')
    if team.kit in (KIT, ASKING_KIT):
        why = f"The agents of {found.team} follow a script, and read nothing else."
        raise refused("scripted", why, "Talk with an agent: `greenroom chat`.")
    told = await deliver(cli.runtime, found, message(text))
    when = "when somebody goes on with it: nobody runs the team"
    if told.owner is not None:
        when = f"when it goes on: it is paused ({told.paused})" if told.paused else "in its next turn"
    cli.out.show(f"{told.reader} in {found.team}/{told.task} will read it {when}.")
    if told.owner is None or told.paused:
        cli.progress.note(f"Go on with: {command(cli, 'resume', found.team)}")
    return cli.out.result("told", Exit.DONE, team=found.team, task=told.task, agent=told.reader, owner=told.owner)


async def fork(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", min=1, metavar="N", help="Begin as it was at version N, or at the commit before it. [default: now]"
        ),
    ] = None,
) -> Exit:
    """Begin a new team as another one was at some version; the old one is not touched."""
    found = await find(cli.runtime, name)
    if found.task is not None:
        raise refused("whole_teams", "Only whole teams are forked.", f"Say {found.team}.")
    new = await cli.runtime.fork(found.team, at)
    cli.out.show(new)
    origin = (await cli.runtime.world(new)).team.origin
    begun = origin.version if origin else at
    if at is not None and begun != at:
        cli.progress.note(f"Version {at} is in the middle of a commit; the new team begins at version {begun}.")
    cli.progress.note(f"Look at it: {command(cli, 'show', new)}   Let it work: {command(cli, 'resume', new)}")
    return cli.out.result("forked", Exit.DONE, team=new, origin=found.team, at=begun)


# -------------------------------------------------------------------------------------------------------------- resume


async def resume(
    cli: Invocation,
    name: Id,
    *,
    yes: Yes = False,
    apply: AtOnce = False,
    branch: OnBranch = None,
    non_interactive: NonInteractive = False,
    options: RunOptions = DEFAULTS,
) -> Exit:
    """Let a team go on; if nobody runs it, run it here to its end. A new limit replaces the team's old one; what a job
    was told with --yes, --non-interactive, --apply or --branch is said again."""
    taken = take(branch, apply=apply)
    cli.means.set_attendance(yes=yes, non_interactive=non_interactive)
    return await _go_on(cli, name, options, taken)


async def _go_on(cli: Invocation, name: str, options: RunOptions, taken: Take = None) -> Exit:
    """Ask its owner to go on, or become the owner."""
    found = await find(cli.runtime, name)
    world = await cli.runtime.world(found.team)
    if world.team.kit in kits_of_programs():
        refuse(world.team)
    if world.team.kit == ORGANISATION and found.task is None:
        start = command(cli, "team", "start", found.team)
        raise refused("organisation", f"{found.team} is an organisation.", f"Let it work: `{start}`.")
    paused = [task for task in world.tasks.values() if found.task in (None, task.task_id) and task.paused is not None]
    team = [ResumeTeam()] if found.task is None and world.team.paused is not None else []
    wanted: list[ResumeTeam | ResumeTask] = [*team, *(ResumeTask(task_id=task.task_id) for task in paused)]
    holder = await cli.runtime.log.holder(found.team)
    if taken is not None:
        _refuse_to_take(cli, found, world, runs=holder is not None)
    limits = new_limits(cli, world, options)
    cli.out.begin(team=found.team)
    if holder is None and not world.tasks:
        return await _over(cli, found)
    if holder is None and world.team.kit == CHAT:
        return await reopen(cli, found.team, options)
    if holder is not None and not wanted and not limits:
        raise WorldFault(
            f"Team {found.team!r} runs already, in {holder.owner}, and is not paused. "
            f"Watch it with `{command(cli, 'events', found.team, '--follow')}`."
        )
    if holder is None:  # all that can be refused, or has to be agreed to, before anything goes on here
        cli.means.use_recording(options.record, options.replay)
        for model in models_of(world):
            cli.means.named(model)
        if world.team.workspace:
            ask_trust(cli, Path(world.team.workspace))
    if limits or wanted:
        await cli.runtime.ask(found.team, *limits, *wanted)
    if holder is not None:
        cli.out.show(f"{found} goes on, in {holder.owner}.")
        return cli.out.result("resumed", Exit.DONE, team=found.team, owner=holder.owner)
    return await _follow(cli, found.team, world, taken)


def _refuse_to_take(cli: Invocation, found: Found, world: World, *, runs: bool) -> None:
    """Only of a job that ends here something can be taken over here."""
    if world.team.kit == JOB and world.tasks and not runs:
        return
    if world.team.kit != JOB:
        why, hint = f"{found.team} is no job, and there is nothing to be taken over.", "Leave --apply and --branch out."
    else:
        why = f"{found.team} runs elsewhere." if runs else f"Nothing is left to do in {found.team}."
        apply, branch = command(cli, "apply", found.team), command(cli, "branch", found.team, "NAME")
        hint = f"Take it over {'when it has ended' if runs else 'now'}: `{apply}` or `{branch}`."
    raise refused("nothing_to_take", why, hint)


async def _follow(cli: Invocation, team: TeamId, world: World, taken: Take) -> Exit:
    """Run it here, and say what comes of it."""
    if not models_of(world):
        return report_ending(cli, team, await follow_attended(cli, team))
    if not cli.means.attended:
        await answer_pending(await cli.runtime.start(team))
    if world.team.kit == JOB:
        return await resume_job(cli, world, taken)
    view = RunView(cli.setup, cli.out)
    view.note(", ".join(models_of(world)), style="dim")
    inside = replace(cli, progress=view)
    return report_ending(inside, team, await follow_attended(inside, team), spoken=view.spoken)


async def _over(cli: Invocation, found: Found) -> Exit:
    """Nothing is left to do: say how it ended."""
    tasks = [task for task in await cli.runtime.ended_tasks(found.team) if found.task in (None, task.task_id)]
    code = of_standings(task.state for task in tasks)
    ended = ", ".join(f"{task.task_id} {task.state}" for task in tasks) or "it has no tasks"
    cli.out.show(f"Nothing is left to do in {found}: {ended}.")
    cli.progress.note(f"To run it again from some moment: {command(cli, 'fork', found.team, '--at', 'VERSION')}")
    return cli.out.result(tasks[-1].state if tasks else "finished", code, team=found.team)


# -------------------------------------------------------------------------------------------------------------- rewind

STEPS_SHOWN: Final = 40  # steps that are listed, the newest; of more, how many there are
WIDE: Final = 70
IN_PLACE: Final = "The files stay as they are: it works in them itself, and nobody keeps what they were."


async def rewind(
    cli: Invocation,
    name: Id,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="What to say to the agent before it goes on.")
    ] = None,
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="STEP", help="As it was when this step had ended; without it, list them."),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Do not go on yet.")] = False,
    non_interactive: NonInteractive = False,
) -> Exit:
    """Go back to the end of a step, with conversation, files and board, and on from there as a new run. The old one
    stays as it is."""
    if to is not None and not to.strip():
        raise typer.BadParameter("--to names no step. Without it, all steps are listed that one can go back to.")
    text, found = " ".join(words or ()).strip(), await find(cli.runtime, name)
    if to is None:
        return await _list_steps(cli, found, text)
    world = await cli.runtime.world(found.team)
    await _refuse_rewind(cli, found, world.team, text)
    target = await moment(cli.runtime, found.team, to.strip())
    for model in () if no_run else models_of(world):
        cli.means.named(model)
    new = await rewound(cli.runtime, cli.means.steps, found.team, target)
    await tell_rewound(cli.runtime, new, message(text) if text else "")
    await _note_rewound(cli, found.team, world.team, target, new)
    if not no_run:
        cli.means.set_attendance(yes=False, non_interactive=non_interactive)
        return await _go_on(cli, new, RunOptions())
    cli.out.show(new)
    cli.progress.note(f"Go on with: {command(cli, 'resume', new)}")
    fields = {"origin": found.team, "step": target.step.step_id, "version": target.version}
    return cli.out.result("rewound", Exit.DONE, team=new, **fields)


async def _refuse_rewind(cli: Invocation, found: Found, team: Team, text: str) -> None:
    """All that can be said before anything is made."""
    if found.task is not None:
        raise refused("whole_teams", "Only whole teams are rewound.", f"Say {found.team}.")
    if team.kit in kits_of_programs():
        refuse(team)
    if text and team.kit in (KIT, ASKING_KIT):
        why = f"The agents of {found.team} follow a script, and read nothing else."
        raise refused("scripted", why, "Rewind it without words.")
    holder = await cli.runtime.log.holder(found.team)
    if holder is not None:
        raise WorldFault(
            f"Team {found.team!r} runs, in {holder.owner}: two would do the same work. End that first (Ctrl-C there); "
            "nothing is lost. Then rewind it."
        )


async def _note_rewound(cli: Invocation, old: TeamId, team: Team, target: Moment, new: str) -> None:
    cli.progress.note(f"{new} begins as {old} was when {target.step.step_id} had ended. {old} stays as it is.")
    if team.kit != JOB:
        if team.kit != ASK:
            cli.progress.note(IN_PLACE, style="yellow")
        return
    theirs = await workspace(Path(team.workspace))
    if any(each.state == "applied" for each in await theirs.applied(old)):
        back = command(cli, "undo", old)
        cli.progress.note(f"What {old} has changed is in your files. Before you apply {new}, take it back: {back}")


async def _list_steps(cli: Invocation, found: Found, text: str) -> Exit:
    """The steps that one can go back to."""
    if text:
        raise refused("no_step", "It is not said how far to go back.", "Say --to STEP.")
    every = await moments(cli.runtime, found.team)
    cli.out.begin(team=found.team)
    if not every:
        raise refused("no_steps", f"No step of {found.team} has ended, so there is no way back.")
    if len(every) > STEPS_SHOWN:
        cli.out.show(f"… {len(every) - STEPS_SHOWN} before these")
    wide = max(len(each.step.step_id) for each in every[-STEPS_SHOWN:])
    for each in every[-STEPS_SHOWN:]:
        cli.out.show(f"{each.step.step_id:<{wide}}  {_moment_words(each)}")
    some = [each for each in every[:-1] if _commit(each)] or every[:-1] or every
    cli.progress.note(f"Go back to one: {command(cli, 'rewind', found.team, '--to', some[-1].step.step_id)}")
    rows = [{"step": each.step.step_id, "version": each.version, "commit": _commit(each)} for each in every]
    return cli.out.result("listed", Exit.DONE, team=found.team, steps=rows)


def _moment_words(each: Moment) -> str:
    how = "" if each.step.state == "finished" else f" ({each.step.state})"
    said = str((each.step.result or {}).get("text", "")) if each.step.work.type == "skill" else ""
    what = f"{step_words(each.step)}: {' '.join(said.split())}" if said.strip() else step_words(each.step)
    return harmless(shorten(what, WIDE)) + how + (" · files changed" if _commit(each) else "")


def _commit(each: Moment) -> str:
    return str((each.step.result or {}).get(COMMIT, ""))


# ----------------------------------------------------------------------------------------------------------- approvals

COLUMNS: Final = (
    Column(name="id"),
    Column(name="what is asked", gives=True),
    Column(name="since", needs=50),
)
SHOWN: Final = 300  # characters of a question


async def approvals_list(cli: Invocation) -> None:
    """List all that waits for a person, in whichever team: what is asked, since when, and how to answer it."""
    infos = [info for info in await cli.runtime.log.streams() if info.head.version]
    asking = [TeamId(info.stream) for info in infos if info.questions != 0]  # a team in which nothing waits is not read
    worlds = dict[TeamId, World]()
    for team in asking:
        try:
            worlds[team] = await cli.runtime.world(team)
        except StoreFault as error:  # one log that cannot be read does not hide the others
            cli.progress.note(str(error), style="red")
    found = [(team, approval) for team, world in worlds.items() for approval in pending_approvals(world)]
    cli.out.listing("approval", (_approval_fields(team, approval) for team, approval in found))
    if not found:
        cli.progress.note("Nothing waits for you.")
        return
    if cli.out.text:
        short = shortest([TeamId(info.stream) for info in infos])
        rows = [_approval_row(team_label(team, short[team]), approval) for team, approval in found]
        cli.out.show(Fitted(COLUMNS, rows))
    team, approval = found[0]
    said, other = words_to_type(worlds[team], approval)
    several = sum(other_team == team for other_team, _ in found) > 1
    which = (f" --approval {approval.approval_id}" if several else "") + (f"   ({other})" if other else "")
    cli.progress.note(f"\nAnswer one: {command(cli, 'answer', team, said)}{which}")


def _approval_row(label: Text, approval: Approval) -> list[Text]:
    asked = Text(harmless(quote_question(approval)))
    for title, text in (("always", approval.grant), ("for this run", approval.release)):
        if text:
            asked.append(harmless(f"\n{title}: {text}"), style="dim")
    if approval.expires_at is not None:
        left = ahead(approval.expires_at)
        told = f"expires {left}" if left != "now" else "has expired: it is denied when the team goes on"
        asked.append(f"\n{told}", style="yellow")
    return row(label, asked, ago(approval.asked_at))


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
            help="May the step run? Or the answer to a question.",
            autocompletion=lambda: ["yes", "no"],
        ),
    ],
    *,
    approval: Annotated[
        str | None,
        typer.Option("--approval", help="Which question, when several wait: an agent's name or more of the id."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; the agent reads it.")] = "",
    scope: Annotated[
        Scope, typer.Option("--for", metavar="once|run|always", help="How far a yes goes: the rule that was shown.")
    ] = "once",
) -> Exit:
    """Say yes or no to a step that waits for a person, or answer an agent's question in words."""
    found = await find(cli.runtime, name)
    world = await cli.runtime.world(found.team)
    asked = _pending(world, found, approval)
    said = " ".join(words).strip()
    if said and (is_plan(world, asked) or is_confirmation(world, asked)):  # there yes and no are words as good as any
        decided = AnswerApproval(approval_id=asked.approval_id, answer="approved", reason=f"{said} {reason}".strip())
    else:
        decided = _decision(asked, said, reason, scope)
    await cli.runtime.ask(found.team, decided)
    cli.progress.note(keep_rule(world, asked, decided))
    done = "Answered" if asked.words and decided.answer == "approved" else decided.answer.capitalize()
    cli.out.show(f"{done}: {shorten(harmless(asked.question), SHOWN)}")
    if await cli.runtime.log.holder(found.team) is None:
        cli.progress.note(f"Nobody runs the team. Go on with: {command(cli, 'resume', found.team)}")
    return cli.out.result(decided.answer, Exit.DONE, team=found.team, approval=asked.approval_id)


approvals_answer = answer


def _decision(approval: Approval, said: str, reason: str, scope: Scope) -> AnswerApproval:
    """What was said; `Refused` when it answers nothing."""
    name = approval.approval_id
    if said.lower() == "no":
        return AnswerApproval(approval_id=name, answer="denied", reason=reason)
    if approval.words:
        words = reason or ("" if said.lower() == "yes" else said)
        if not words:
            why = f"{approval.agent_id} wants an answer in words: {shorten(harmless(approval.question), SHOWN)}"
            raise refused("no_words", why, 'Say it: greenroom answer ID "what you say".')
        return AnswerApproval(approval_id=name, answer="approved", reason=words)
    if said.lower() != "yes":
        raise refused("bad_answer", f"{said!r} is neither yes nor no.", "A reason goes behind --reason.")
    return AnswerApproval(approval_id=name, answer="approved", reason=reason, scope=scope)


def _pending(world: World, found: Found, wanted: str | None) -> Approval:
    asked = [approval for approval in pending_approvals(world) if found.task in (None, approval.task_id)]
    fits = [approval for approval in asked if wanted is None or approval.approval_id.startswith(wanted)]
    if len(fits) == 1:
        return fits[0]
    listed = "; ".join(f"{each.approval_id}: {shorten(harmless(each.question), 80)}" for each in fits or asked)
    if not asked:
        raise refused("nothing_asked", f"Nothing in {found} waits for an answer.")
    why = f"{len(fits)} questions wait." if fits else f"No question begins with {wanted!r}."
    raise refused("which_approval", why, f"Say which with --approval. {listed}")
