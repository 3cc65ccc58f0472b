"""`greenroom pause`, `cancel`, `tell`, `fork`: what is asked of a team, wherever it runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer

from greenroom.app.conversation.send import Delivery
from greenroom.app.conversation.send import tell as deliver
from greenroom.app.conversation.typed import message
from greenroom.app.lookup import Found, find
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.core.base.ids import TaskId
from greenroom.core.rules.intents import CancelTask, PauseTask, PauseTeam
from greenroom.core.state.world import World
from greenroom.interfaces.cli.context import Invocation, command, invoke, refused
from greenroom.interfaces.cli.display.team import Teller
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.options import Id, from_stdin, is_on_stdin, typed
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
    teller = Teller(world=await cli.runtime.world(found.team, head), version=head)
    tasks = _open_tasks(teller.world, found)
    await cli.runtime.ask(found.team, *(CancelTask(task_id=task) for task in tasks))
    dead = True
    try:
        async with asyncio.timeout(CANCEL_TIMEOUT_S):
            await _until_over(cli, found, teller, tasks)
    except TimeoutError:
        dead = False
    told = ", ".join(tasks)
    cli.out.show(f"Cancelled: {told}." if dead else f"Cancelling: {told}. What runs has not ended yet.")
    return cli.out.result("cancelled" if dead else "cancelling", Exit.DONE, team=found.team, tasks=list(tasks))


async def _until_over(cli: Invocation, found: Found, teller: Teller, tasks: tuple[TaskId, ...]) -> None:
    async for told in cli.runtime.events(found.team, after=teller.version, follow=True):
        teller.tell(told)
        if not any(task in teller.world.tasks for task in tasks):
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
    return invoke(context, "change", lambda cli: _tell(cli, name, text))


async def _tell(cli: Invocation, name: str, text: str) -> Exit:
    """Deliver it, and say who will read it and when."""
    found = await find(cli.runtime, name)
    team = (await cli.runtime.world(found.team)).team
    if team.kit == ORGANISATION:
        why = f"{found.team} is an organisation, and you are one of its people."
        raise refused("organisation", why, f'Talk to it: `greenroom talk {team.name} --say "…"`.')
    if team.kit in (KIT, ASKING_KIT):
        why = f"The agents of {found.team} follow a script, and read nothing else."
        raise refused("scripted", why, "Talk with an agent: `greenroom chat`.")
    told = await deliver(cli.runtime, found, message(text))
    cli.out.show(f"{told.reader} in {found.team}/{told.task} will read it {_when(told)}.")
    if told.owner is None or told.paused:
        cli.progress.note(f"Go on with: {command(cli, 'resume', found.team)}")
    return cli.out.result("told", Exit.DONE, team=found.team, task=told.task, agent=told.reader, owner=told.owner)


def _when(told: Delivery) -> str:
    if told.owner is None:
        return "when somebody goes on with it: nobody runs the team"
    return f"when it goes on: it is paused ({told.paused})" if told.paused else "in its next turn"


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
