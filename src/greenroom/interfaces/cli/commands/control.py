"""`greenroom pause`, `cancel`: changes that are asked for, wherever the team runs."""

from __future__ import annotations

import asyncio
from typing import Final

from greenroom.app.lookup import Found, find
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import TaskId
from greenroom.core.rules.intents import CancelTask, PauseTask, PauseTeam
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Cancel, Pause
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

PATIENCE: Final = 20.0
"""Seconds to wait until cancelled effects are seen dead, before saying that they are not yet."""


async def pause(door: Door, order: Pause) -> Exit:
    """Ask for a pause."""
    found = await find(door.runtime, order.name)
    _open_tasks(await door.runtime.world(found.team), found)
    intent = PauseTeam(now=order.now) if found.task is None else PauseTask(task_id=found.task, now=order.now)
    await door.runtime.ask(found.team, intent)
    door.out.show(f"{found} is paused: nothing new starts.")
    door.progress.note(f"Go on with: {command(door, 'resume', str(found))}")
    return door.out.result("paused", Exit.DONE, team=found.team, task=found.task)


async def cancel(door: Door, order: Cancel) -> Exit:
    """Ask for the end, and wait for it."""
    found = await find(door.runtime, order.name)
    head = (await door.runtime.log.head(found.team)).version
    teller = Teller(world=await door.runtime.world(found.team, head), version=head)
    tasks = _open_tasks(teller.world, found)
    await door.runtime.ask(found.team, *(CancelTask(task_id=task) for task in tasks))
    dead = await _dead(door, found, teller, tasks)
    told = ", ".join(tasks)
    door.out.show(f"Cancelled: {told}." if dead else f"Cancelling: {told}. What runs has not ended yet.")
    return door.out.result("cancelled" if dead else "cancelling", Exit.DONE, team=found.team, tasks=list(tasks))


async def _dead(door: Door, found: Found, teller: Teller, tasks: tuple[TaskId, ...]) -> bool:
    """Wait, within reason, until the tasks are over."""
    try:
        async with asyncio.timeout(PATIENCE):
            await _until_over(door, found, teller, tasks)
    except TimeoutError:
        return False
    return True


async def _until_over(door: Door, found: Found, teller: Teller, tasks: tuple[TaskId, ...]) -> None:
    async for told in door.runtime.events(found.team, after=teller.version, follow=True):
        teller.tell(told)
        if not any(task in teller.world.tasks for task in tasks):
            return


def _open_tasks(world: World, found: Found) -> tuple[TaskId, ...]:
    tasks = tuple(task for task in world.tasks if found.task in (None, task))
    if not tasks:
        raise Refused(
            Rejected(
                code="nothing_open", why=f"Nothing is being worked on in {found}.", hint="`greenroom tasks --all`."
            )
        )
    return tasks
