"""Running a team here and following it to its end: the same for a new run and for one that is taken up again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from typing import Final

from greenroom.app.conversation.chat import settle
from greenroom.app.conversation.names import RUN
from greenroom.app.conversation.start import wanted_in
from greenroom.app.host import Host, watch_steps
from greenroom.app.task_status import Standing
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.display.progress import Progress
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.runs.session import Desk, Door

LONG: Final = 50_000
"""Events. A longer log is not read again only to say what each agent spent before."""

MAY_CHANGE: Final = frozenset({"patch", "rewrite", "execute_script"})
"""Tools that may change files."""

GRACE: Final = 0.3
"""Seconds. That nobody has anything to do may be true between two commits: look again."""


@record
class Ending:
    """How a run ended: how each task stands, and what was told. A `fault` makes it a failure however they stand;
    `unverified` is the code of why nothing has verified what it did. `why` are the reasons of a verdict, which stand in
    the place of what the agent said."""

    standings: Sequence[tuple[TaskId, Standing]]
    teller: Teller
    fault: str = ""
    unverified: str = ""
    why: str = ""

    @property
    def code(self) -> Exit:
        """The worst of them, as an exit code."""
        worst = of_standings(standing.word for _, standing in self.standings)
        if self.fault:
            return Exit.FAILED
        return Exit.UNVERIFIED if self.unverified and worst == Exit.DONE else worst

    @property
    def status(self) -> str:
        """The word that the exit code stands for."""
        words = [standing.word for _, standing in self.standings]
        return next(
            (word for word in words if of_standings([word]) == self.code),
            "failed" if self.fault else "unverified" if self.unverified else "finished",
        )


async def follow(door: Door, team: TeamId, *, new: bool = False) -> Ending:
    """Own the team, let it work, tell what happens until every task stands still, and let it go again."""
    teller = Teller() if new else await so_far(door, team)
    door.progress.begin(teller)
    try:
        async with telling(door, team, teller):
            tasks = await _work(door, team)
            await settle(door.runtime, team)
    except asyncio.CancelledError:
        door.progress.end()
        door.progress.note(f"Stopped. Go on with: {command(door, 'resume', team)}", style="bold")
        raise
    finally:
        door.progress.end()
    standings = [(task, await door.runtime.stands(team, task)) for task in tasks]
    return Ending(standings=standings, teller=teller, unverified=await unverified_code(door, team, teller))


async def unverified_code(door: Door, team: TeamId, teller: Teller) -> str:
    """Why nothing has verified a run in the person's own files: it has changed some, or changed none though that was
    asked for. Empty for every other run."""
    able = any(not MAY_CHANGE.isdisjoint(agent.spec.tools) for agent in teller.world.agents.values())
    if teller.world.team.kit != RUN or not able:
        return ""
    steps = [row async for row in door.runtime.archive(team, "step") if isinstance(row, Step)]
    if any(step.work.executor in MAY_CHANGE and step.state in ("finished", "uncertain") for step in steps):
        return "in_place"
    return "" if wanted_in(steps).question else "nothing_changed"


@contextlib.asynccontextmanager
async def telling(door: Door, team: TeamId, teller: Teller) -> AsyncIterator[None]:
    """Tell what happens meanwhile, by whichever process; at the end everything that is in the log has been told.

    When it cannot be told any more, because whoever read it has gone, what goes on is stopped.
    """
    listener, me = asyncio.create_task(tell(door, team, teller)), asyncio.current_task()
    listener.add_done_callback(lambda done: me.cancel() if me is not None and _broke(done) else None)
    try:
        yield
    except asyncio.CancelledError:
        if me is None or not _broke(listener):
            raise
        me.uncancel()
    finally:
        listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listener
        await tell(door, team, teller, follow=False)


def _broke(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def command(door: Desk, *words: str) -> str:
    """A command to type, for the same home."""
    home = ("--home", shlex.quote(str(door.setup.home))) if door.setup.home else ()
    return " ".join((os.environ.get("GREENROOM_CALLED_AS", "greenroom"), *home, *words))


async def _work(door: Door, team: TeamId) -> tuple[TaskId, ...]:
    """Let the agents work until nothing more happens by itself; returns the tasks they worked on."""
    try:
        host = await door.runtime.start(team)
        attend(host, door.progress)
        return await _settled(door, team, tuple(host.world.tasks))
    except asyncio.CancelledError:
        door.progress.note("Stopping: what runs is ended and written down. Once more to end at once.", style="yellow")
        raise
    finally:
        await door.runtime.stop(team)


def attend(host: Host, progress: Progress) -> None:
    """Show what goes on here, as it happens."""
    host.listen_trouble(progress.trouble)
    host.watch(progress.piece)
    watch_steps(host, progress.began, progress.ended)


async def so_far(door: Door, team: TeamId) -> Teller:
    """What was told before, without telling it again."""
    head = (await door.runtime.log.head(team)).version
    if head > LONG:
        return Teller(world=await door.runtime.world(team, head), version=head)
    teller = Teller()
    async for told in door.runtime.events(team):
        teller.tell(told)
    return teller


async def tell(door: Door, team: TeamId, teller: Teller, *, follow: bool = True) -> None:
    """Tell everything after what `teller` knows; with `follow` without end."""
    async for told in door.runtime.events(team, after=teller.version, follow=follow):
        line = teller.tell(told)
        door.progress.line(teller, line)
        door.out.stream(team, told)


async def _settled(door: Door, team: TeamId, tasks: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
    """Wait until every task, also those that came up meanwhile, is over or stands still; returns all of them."""
    while True:
        for task in tasks:
            await door.runtime.wait(team, task)
        tasks = tuple(dict.fromkeys((*tasks, *(await door.runtime.world(team)).tasks)))
        found = [await door.runtime.stands(team, task) for task in tasks]
        if all(one.settled and one.word != "idle" for one in found):
            return tasks
        before = (await door.runtime.log.head(team)).version
        await asyncio.sleep(GRACE)
        if before == (await door.runtime.log.head(team)).version and all(one.settled for one in found):
            return tasks
