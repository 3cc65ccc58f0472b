"""Run a team here and follow its events to its end. A person at the terminal is asked, and can talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Final, TypeAlias

from greenroom.app.conversation.chat import settle
from greenroom.app.conversation.names import RUN
from greenroom.app.conversation.send import tell as deliver
from greenroom.app.host import Host, watch_steps
from greenroom.app.lookup import Found
from greenroom.app.task_status import Standing
from greenroom.cli.context import Invocation, command
from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.interactive.approvals import (
    NO_ANSWER,
    is_confirmation,
    is_plan,
    keep_rule,
    parse_answer,
    pending_approvals,
    render_question,
)
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.progress import Progress
from greenroom.cli.render.questions import Gone, TypedLine, ask_line, unechoed
from greenroom.cli.render.team import TeamHistory, read_history
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.runs.workspace import wanted_in

MAY_CHANGE: Final = frozenset({"patch", "rewrite", "execute_script"})  # tools that may change files
GRACE: Final = 0.3  # seconds. That no agent has anything to do may be true between two commits: look again


@record
class Ending:
    """How a run ended: how each task stands, and its history. A `fault` makes it a failure however they stand;
    `unverified` is the code of why nothing has verified what it did. `why` are the reasons of a verdict, which stand in
    the place of what the agent said."""

    standings: Sequence[tuple[TaskId, Standing]]
    history: TeamHistory
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
        words = (standing.word for _, standing in self.standings)
        other = "failed" if self.fault else "unverified" if self.unverified else "finished"
        return next((word for word in words if of_standings([word]) == self.code), other)


async def follow(cli: Invocation, team: TeamId, history: TeamHistory) -> Ending:
    """Own the team, let it work, tell what happens until every task stands still, and let it go again.

    What happens is told from where `history` ends, and added to it; nothing else is read to say how it ended.
    """
    cli.progress.begin(history)
    try:
        async with telling(cli, team, history):
            tasks = await _work(cli, team)
    except asyncio.CancelledError:
        cli.progress.end()
        cli.progress.note(f"Stopped. Go on with: {command(cli, 'resume', team)}", style="bold")
        raise
    finally:
        cli.progress.end()
    standings = [(task, history.status(task)) for task in tasks]
    return Ending(standings=standings, history=history, unverified=unverified_code(history))


def unverified_code(history: TeamHistory) -> str:
    """Why nothing has verified a run in the person's own files: it has changed some, or changed none though that was
    asked for. Empty for every other run."""
    able = any(not MAY_CHANGE.isdisjoint(agent.spec.tools) for agent in history.world.agents.values())
    if history.world.team.kit != RUN or not able:
        return ""
    if any(step.work.executor in MAY_CHANGE and step.state in ("finished", "uncertain") for step in history.steps):
        return "in_place"
    return "" if wanted_in(history.steps).question else "nothing_changed"


@asynccontextmanager
async def telling(cli: Invocation, team: TeamId, history: TeamHistory) -> AsyncIterator[None]:
    """Tell what happens meanwhile, by whichever process; at the end everything that is in the log has been told.

    When it cannot be told any more, because the reader has gone, what goes on is stopped.
    """
    listener, me = asyncio.create_task(tell(cli, team, history)), asyncio.current_task()
    listener.add_done_callback(lambda done: me.cancel() if me is not None and _broke(done) else None)
    try:
        yield
    except asyncio.CancelledError:
        if me is None or not _broke(listener):
            raise
        me.uncancel()
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener
        await tell(cli, team, history, follow=False)


def _broke(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


async def tell(cli: Invocation, team: TeamId, history: TeamHistory, *, follow: bool = True) -> None:
    """Tell everything after what `history` knows; with `follow` without end."""
    async for told in cli.runtime.events(team, after=history.version, follow=follow):
        line = history.add(told)
        cli.progress.line(history, line)
        cli.out.stream(team, told)


async def _work(cli: Invocation, team: TeamId) -> tuple[TaskId, ...]:
    """Let the agents work until nothing more happens by itself; returns the tasks they worked on."""
    try:
        host = await cli.runtime.start(team)
        attend(host, cli.progress)
        tasks = await _settled(cli, host, team)
        await settle(cli.runtime, team)
    except asyncio.CancelledError:
        cli.progress.note("Stopping: what runs is ended and written down. Once more to end at once.", style="yellow")
        raise
    else:
        return tasks
    finally:
        await cli.runtime.stop(team)


def attend(host: Host, progress: Progress) -> None:
    """Show what goes on here, as it happens."""
    host.listen_trouble(progress.trouble)
    host.watch(progress.piece)
    watch_steps(host, progress.began, progress.ended)


async def _settled(cli: Invocation, host: Host, team: TeamId) -> tuple[TaskId, ...]:
    """Wait until every task, also those that came up meanwhile, is over or stands still; returns all of them."""
    tasks = tuple(host.world.tasks)
    while True:
        for task in tasks:
            await cli.runtime.wait(team, task)
        tasks = tuple(dict.fromkeys((*tasks, *host.world.tasks)))
        found = [await cli.runtime.stands(team, task) for task in tasks]
        if all(standing.settled and standing.word != "idle" for standing in found):
            return tasks
        before = host.sync.version
        await asyncio.sleep(GRACE)
        if before == host.sync.version and all(standing.settled for standing in found):
            return tasks


# ---------------------------------------------------------------------------------------------------------- a person

Ear: TypeAlias = Callable[[], AbstractContextManager[None]]  # hears what is typed meanwhile


async def follow_attended(cli: Invocation, team: TeamId, *, new: bool = False, ear: Ear = nullcontext) -> Ending:
    """Follow it to its end; a person who can be asked is asked, and one who says nothing leaves it parked. The `ear` is
    open while it is worked, and not while something is asked."""
    history = TeamHistory() if new else await read_history(cli.runtime, team)
    with ear() if cli.attended else nullcontext():
        ending = await follow(cli, team, history)
    while ending.status == "waiting" and cli.attended:
        try:
            await _ask(cli, team)
        except Gone:
            break
        with ear():
            ending = await follow(cli, team, history)
    return ending


async def _ask(cli: Invocation, team: TeamId) -> None:
    while asked := pending_approvals(world := await cli.runtime.world(team)):
        approval = asked[0]
        plan = is_plan(world, approval)
        line = ask_line(render_question(approval, plan=plan))
        line = "no" if not line.strip() and is_confirmation(world, approval) else line  # as its [y/N] says
        answer = parse_answer(approval, line, plan=plan)
        if answer is None:
            cli.progress.note(NO_ANSWER, style="yellow")
            continue
        note = keep_rule(world, approval, answer)
        await cli.runtime.ask(team, answer)
        if note:
            cli.progress.note(note, style="dim")


class Hearing:
    """Hears what a person types during a run. What was half typed when a question came is there again after it."""

    def __init__(self, cli: Invocation, team: TeamId, view: RunView) -> None:
        self._cli = cli
        self._team = team
        self._view = view
        self._line = TypedLine()
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._saying: asyncio.Task[None] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """From now on, until the run stands still."""
        telling = asyncio.create_task(self._tell())
        self._view.hears, self._view.typed = True, self._line.text
        try:
            with unechoed(self._take):
                yield
        finally:
            telling.cancel()
            self._view.hears = False

    def _take(self, keys: bytes) -> None:
        for line in self._line.take(keys):
            self._said.put_nowait(line)
        self._view.typed = self._line.text

    async def _tell(self) -> None:
        """One after the other, in the order in which it was typed."""
        while True:
            if self._saying is None or self._saying.done():
                self._saying = asyncio.create_task(self._say(await self._said.get()))
            await asyncio.shield(self._saying)  # what was typed is said, also if the run stands still meanwhile

    async def _say(self, text: str) -> None:
        try:
            told = await deliver(self._cli.runtime, Found(team=self._team), text)
        except GreenroomError as error:
            self._view.note(f"Not said: {explain(error)}", style="yellow")
        else:
            self._view.hear(text, f"{told.reader} reads it in its next turn")
