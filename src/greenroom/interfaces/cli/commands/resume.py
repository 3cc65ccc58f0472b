"""`greenroom resume`: a paused team goes on; a team that nobody runs is taken over here and followed to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.names import CHAT, JOB
from greenroom.app.library.results import kits_of_programs, refuse
from greenroom.app.lookup import Found, find
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.rules.intents import ResumeTask, ResumeTeam
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Chat, Resume
from greenroom.interfaces.cli.asked.taking import Apply, Branch
from greenroom.interfaces.cli.display.talk import Talk
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.attending import attended
from greenroom.interfaces.cli.runs.beginning import new_limits, see_what_is_brought
from greenroom.interfaces.cli.runs.ending import close
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

Again: TypeAlias = Callable[[Door, World, Apply | Branch | None], Awaitable[Exit]]


async def resume(door: Door, order: Resume) -> Exit:
    """Ask its owner to go on, or become the owner."""
    found = await find(door.runtime, order.name)
    world = await door.runtime.world(found.team)
    if world.team.kit in kits_of_programs():
        refuse(world.team)
    if world.team.kit == ORGANISATION and found.task is None:
        told = command(door, "team", "start", found.team)
        raise Refused(
            Rejected(code="organisation", why=f"{found.team} is an organisation.", hint=f"Let it work: `{told}`.")
        )
    wanted = _paused(world, found)
    holder = await door.runtime.log.holder(found.team)
    if order.take is not None:
        _refuse_to_take(door, found, world, runs=holder is not None)
    door.means.leave_alone(said=order.alone)
    door.means.agree(said=order.yes)
    limits = new_limits(door, world, order.caps)
    door.out.begin(team=found.team, command="resume", home=str(door.home))
    if holder is None and not world.tasks:
        return await _over(door, found)
    if holder is None and world.team.kit == CHAT:
        return await _talk_again(door, order, found)
    if holder is not None and not wanted and not limits:
        raise WorldFault(
            f"Team {found.team!r} runs already, in {holder.owner}, and is not paused. "
            f"Watch it with `{command(door, 'events', found.team, '--follow')}`."
        )
    if holder is None:
        _see_to(door, order, world)
    if limits or wanted:
        await door.runtime.ask(found.team, *limits, *wanted)
    if holder is not None:
        door.out.show(f"{found} goes on, in {holder.owner}.")
        return door.out.result("resumed", Exit.DONE, team=found.team, owner=holder.owner)
    return await _followed(door, order, found, world)


def _refuse_to_take(door: Door, found: Found, world: World, *, runs: bool) -> None:
    """Only of a job that ends here something can be taken over here."""
    if world.team.kit == JOB and world.tasks and not runs:
        return
    if world.team.kit != JOB:
        why, hint = f"{found.team} is no job, and there is nothing to be taken over.", "Leave --apply and --branch out."
    else:
        why = f"{found.team} runs elsewhere." if runs else f"Nothing is left to do in {found.team}."
        apply, branch = command(door, "apply", found.team), command(door, "branch", found.team, "NAME")
        hint = f"Take it over {'when it has ended' if runs else 'now'}: `{apply}` or `{branch}`."
    raise Refused(Rejected(code="nothing_to_take", why=why, hint=hint))


async def _followed(door: Door, order: Resume, found: Found, world: World) -> Exit:
    """Run it here, and say what comes of it."""
    if not models_of(world):
        return close(door, found.team, await attended(door, found.team))
    if not door.means.attended:
        await answer_pending(await door.runtime.start(found.team))
    if world.team.kit == JOB:
        again = cast(
            "Callable[[Door, World, Apply | Branch | None], Awaitable[Exit]]", load("commands.job", "job_again")
        )
        return await again(door, world, order.take)
    talk = Talk(door.setup, door.out)
    talk.note(", ".join(models_of(world)), style="dim")
    ending = await attended(replace(door, progress=talk), found.team)
    return close(replace(door, progress=talk), found.team, ending, spoken=talk.spoken)


def _see_to(door: Door, order: Resume, world: World) -> None:
    """All that can be refused, or has to be agreed to, before anything goes on here."""
    door.means.tape(order.tape)
    for model in models_of(world):
        door.means.named(model)
    if world.team.workspace:
        see_what_is_brought(door, Path(world.team.workspace))


def _paused(world: World, found: Found) -> list[ResumeTeam | ResumeTask]:
    """What holds it up: the team's pause, and that of its tasks."""
    wanted: list[ResumeTeam | ResumeTask] = []
    if found.task is None and world.team.paused is not None:
        wanted.append(ResumeTeam())
    tasks = [task for task in world.tasks.values() if found.task in (None, task.task_id)]
    return wanted + [ResumeTask(task_id=task.task_id) for task in tasks if task.paused is not None]


async def _talk_again(door: Door, order: Resume, found: Found) -> Exit:
    """A chat is opened again: where nobody can type, only to end what was begun."""
    again = Chat(first="", context="", agent="", model="", resume=found.team, caps=order.caps, tape=order.tape)
    reopen = cast("Callable[[Door, Chat], Awaitable[Exit]]", load("commands.chat", "reopen"))
    return await reopen(door, again)


async def _over(door: Door, found: Found) -> Exit:
    """Nothing is left to do: say how it ended."""
    tasks = [task for task in await door.runtime.ended_tasks(found.team) if found.task in (None, task.task_id)]
    code = of_standings(task.state for task in tasks)
    told = ", ".join(f"{task.task_id} {task.state}" for task in tasks) or "it has no tasks"
    door.out.show(f"Nothing is left to do in {found}: {told}.")
    door.progress.note(f"To run it again from some moment: {command(door, 'fork', found.team, '--at', 'VERSION')}")
    return door.out.result(tasks[-1].state if tasks else "finished", code, team=found.team)
