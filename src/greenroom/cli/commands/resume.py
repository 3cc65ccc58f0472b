"""`greenroom resume` and `rewind`: let a team go on, from where it stopped or from an earlier step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.names import ASK, CHAT, JOB
from greenroom.app.conversation.typed import message
from greenroom.app.library.results import kits_of_programs, refuse
from greenroom.app.lookup import Found, find
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.app.runs.workspaces import Moment, moment, moments, rewound, told, workspace
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.cli.commands.chat import reopen
from greenroom.cli.context import Invocation, command, refused
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.options import DEFAULTS, AtOnce, Id, NonInteractive, OnBranch, RunOptions, Take, Yes, take
from greenroom.cli.render.output import harmless
from greenroom.cli.render.talk import Talk
from greenroom.cli.render.words import shorten, step_words
from greenroom.cli.runs.follow import attended
from greenroom.cli.runs.result import close
from greenroom.cli.runs.start import new_limits, see_what_is_brought
from greenroom.core.base.errors import WorldFault
from greenroom.core.rules.intents import ResumeTask, ResumeTeam
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.runs.verdict import COMMIT
from greenroom.testing.demo import ASKING_KIT, KIT


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
    return await go_on(cli, name, options, taken)


async def go_on(cli: Invocation, name: str, options: RunOptions, taken: Take = None) -> Exit:
    """Ask its owner to go on, or become the owner."""
    found = await find(cli.runtime, name)
    world = await cli.runtime.world(found.team)
    if world.team.kit in kits_of_programs():
        refuse(world.team)
    if world.team.kit == ORGANISATION and found.task is None:
        start = command(cli, "team", "start", found.team)
        raise refused("organisation", f"{found.team} is an organisation.", f"Let it work: `{start}`.")
    tasks = [task for task in world.tasks.values() if found.task in (None, task.task_id) and task.paused is not None]
    wanted: list[ResumeTeam | ResumeTask] = [ResumeTask(task_id=task.task_id) for task in tasks]
    if found.task is None and world.team.paused is not None:
        wanted.insert(0, ResumeTeam())
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
    if holder is None:
        _prepare(cli, options, world)
    if limits or wanted:
        await cli.runtime.ask(found.team, *limits, *wanted)
    if holder is not None:
        cli.out.show(f"{found} goes on, in {holder.owner}.")
        return cli.out.result("resumed", Exit.DONE, team=found.team, owner=holder.owner)
    return await _follow(cli, found, world, taken)


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


async def _follow(cli: Invocation, found: Found, world: World, taken: Take) -> Exit:
    """Run it here, and say what comes of it."""
    if not models_of(world):
        return close(cli, found.team, await attended(cli, found.team))
    if not cli.means.attended:
        await answer_pending(await cli.runtime.start(found.team))
    if world.team.kit == JOB:
        from greenroom.cli.commands.job import resume_job

        return await resume_job(cli, world, taken)
    talk = Talk(cli.setup, cli.out)
    talk.note(", ".join(models_of(world)), style="dim")
    inside = replace(cli, progress=talk)
    return close(inside, found.team, await attended(inside, found.team), spoken=talk.spoken)


def _prepare(cli: Invocation, options: RunOptions, world: World) -> None:
    """All that can be refused, or has to be agreed to, before anything goes on here."""
    cli.means.use_recording(options.record, options.replay)
    for model in models_of(world):
        cli.means.named(model)
    if world.team.workspace:
        see_what_is_brought(cli, Path(world.team.workspace))


async def _over(cli: Invocation, found: Found) -> Exit:
    """Nothing is left to do: say how it ended."""
    tasks = [task for task in await cli.runtime.ended_tasks(found.team) if found.task in (None, task.task_id)]
    code = of_standings(task.state for task in tasks)
    told = ", ".join(f"{task.task_id} {task.state}" for task in tasks) or "it has no tasks"
    cli.out.show(f"Nothing is left to do in {found}: {told}.")
    cli.progress.note(f"To run it again from some moment: {command(cli, 'fork', found.team, '--at', 'VERSION')}")
    return cli.out.result(tasks[-1].state if tasks else "finished", code, team=found.team)


SHOWN: Final = 40  # steps that are listed, the newest; of more, how many there are
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
        return await _list(cli, found, text)
    world = await cli.runtime.world(found.team)
    await _refuse(cli, found, world.team, text)
    target = await moment(cli.runtime, found.team, to.strip())
    for model in () if no_run else models_of(world):
        cli.means.named(model)
    new = await rewound(cli.runtime, cli.means.steps, found.team, target)
    await told(cli.runtime, new, message(text) if text else "")
    await _note(cli, found, world.team, target, new)
    if not no_run:
        cli.means.set_attendance(yes=False, non_interactive=non_interactive)
        return await go_on(cli, new, RunOptions())
    cli.out.show(new)
    cli.progress.note(f"Go on with: {command(cli, 'resume', new)}")
    return cli.out.result(
        "rewound", Exit.DONE, team=new, origin=found.team, step=target.step.step_id, version=target.version
    )


async def _refuse(cli: Invocation, found: Found, team: Team, text: str) -> None:
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


async def _note(cli: Invocation, found: Found, team: Team, target: Moment, new: str) -> None:
    step = target.step.step_id
    cli.progress.note(f"{new} begins as {found.team} was when {step} had ended. {found.team} stays as it is.")
    if team.kit != JOB:
        if team.kit != ASK:
            cli.progress.note(IN_PLACE, style="yellow")
        return
    theirs = await workspace(Path(team.workspace))
    if any(each.state == "applied" for each in await theirs.applied(found.team)):
        back = command(cli, "undo", found.team)
        cli.progress.note(
            f"What {found.team} has changed is in your files. Before you apply {new}, take it back: {back}"
        )


async def _list(cli: Invocation, found: Found, text: str) -> Exit:
    """The steps that one can go back to."""
    if text:
        raise refused("no_step", "It is not said how far to go back.", "Say --to STEP.")
    every = await moments(cli.runtime, found.team)
    cli.out.begin(team=found.team)
    if not every:
        raise refused("no_steps", f"No step of {found.team} has ended, so there is no way back.")
    if len(every) > SHOWN:
        cli.out.show(f"… {len(every) - SHOWN} before these")
    wide = max(len(each.step.step_id) for each in every[-SHOWN:])
    for each in every[-SHOWN:]:
        cli.out.show(f"{each.step.step_id:<{wide}}  {_words(each)}")
    some = [each for each in every[:-1] if _commit(each)] or every[:-1] or every
    cli.progress.note(f"Go back to one: {command(cli, 'rewind', found.team, '--to', some[-1].step.step_id)}")
    rows = [{"step": each.step.step_id, "version": each.version, "commit": _commit(each)} for each in every]
    return cli.out.result("listed", Exit.DONE, team=found.team, steps=rows)


def _words(each: Moment) -> str:
    how = "" if each.step.state == "finished" else f" ({each.step.state})"
    said = str((each.step.result or {}).get("text", "")) if each.step.work.type == "skill" else ""
    what = f"{step_words(each.step)}: {' '.join(said.split())}" if said.strip() else step_words(each.step)
    return harmless(shorten(what, WIDE)) + how + (" · files changed" if _commit(each) else "")


def _commit(each: Moment) -> str:
    return str((each.step.result or {}).get(COMMIT, ""))
