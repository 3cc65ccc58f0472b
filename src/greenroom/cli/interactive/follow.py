"""Run a team here and follow its events to the end. A person at the terminal can answer requests and send messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Final, TypeAlias

from greenroom.app.approvals import (
    describe_asker,
    find_kind,
    keep_rule,
    parse_answer,
    pending_approvals,
    render_question,
)
from greenroom.app.conversation.capability_names import CHANGING_RUNS, RUN
from greenroom.app.conversation.chat import read_research_status, work_until_settled
from greenroom.app.conversation.send import send_to_run as deliver
from greenroom.app.lookup import TaskReference
from greenroom.app.messages import translate
from greenroom.app.task_status import TaskStatus
from greenroom.app.team_host import TeamHost, watch_steps
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.progress import Progress
from greenroom.cli.render.questions import PersonLeft, TypedLine, ask_line, disable_echo
from greenroom.cli.render.team import TeamHistory, read_history
from greenroom.core.base.errors import GreenroomError, StoreFull
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.workspace import read_run_flags

CHANGING_TOOLS: Final = frozenset({"patch", "rewrite", "execute_script"})  # tools that may change files
FULL_PATIENCE_S: Final = 5.0
"""How long a run that no person watches waits for room on a full disk."""


@record
class Ending:
    """How a run ended: the status of each task, and the history.

    A `fault` makes the run a failure. `unverified` is the code of why nothing verified it. `why` holds the reasons of
    the verdict, which are reported instead of the agent's summary.
    """

    standings: Sequence[tuple[TaskId, TaskStatus]]
    history: TeamHistory
    fault: str = ""
    unverified: str = ""
    why: str = ""

    @property
    def code(self) -> Exit:
        """The exit code of the worst status."""
        worst = exit_for_statuses(standing.state for _, standing in self.standings)
        if self.fault:
            return Exit.FAILED
        return Exit.UNVERIFIED if self.unverified and worst == Exit.DONE else worst

    @property
    def status(self) -> str:
        """The status word behind the exit code."""
        words = (standing.state for _, standing in self.standings)
        other = "failed" if self.fault else "unverified" if self.unverified else "finished"
        return next((word for word in words if exit_for_statuses([word]) == self.code), other)


async def follow(cli: Invocation, team: TeamId, history: TeamHistory, last_words: str = "") -> Ending:
    """Run the team and show its events until every task is at rest; then release the team.

    Events after the version of `history` are shown and added to it. Nothing else is read to report the ending.
    `last_words` say how to go on after Ctrl-C.
    """
    stopped = translate("conversation.stopped", command=render_command(cli, "resume", team))
    cli.stop.last_words = last_words or stopped
    cli.progress.begin(history)
    try:
        async with show_events_meanwhile(cli, team, history):
            tasks = await _work_until_settled(cli, team)
    except asyncio.CancelledError:
        cli.progress.end()
        cli.progress.note(cli.stop.last_words, style="bold")
        raise
    finally:
        cli.progress.end()
    statuses = {task: history.status(task) for task in tasks}
    standings = [
        (task, await read_research_status(cli.runtime, history.state, history.steps, status))
        for task, status in statuses.items()
    ]
    return Ending(standings=standings, history=history, unverified=unverified_code(history.state, history.steps))


def unverified_code(state: TeamState, steps: Sequence[Step]) -> str:
    """Return why nothing verified a run in the person's own files: it changed some, or changed none though asked to.

    Empty for every other run.
    """
    can_change_files = any(not CHANGING_TOOLS.isdisjoint(agent.spec.tools) for agent in state.agents.values())
    if state.team.kit != RUN or not can_change_files:
        return ""
    if any(step.work.executor in CHANGING_TOOLS and step.state in ("finished", "uncertain") for step in steps):
        return "in_place"
    return "" if read_run_flags(steps).question else "nothing_changed"


@asynccontextmanager
async def show_events_meanwhile(cli: Invocation, team: TeamId, history: TeamHistory) -> AsyncIterator[None]:
    """Show events inside the block, of all processes; at the end all events of the log were shown.

    If the reader of the output is gone, the block is cancelled.
    """
    listener, current_task = asyncio.create_task(show_events(cli, team, history)), asyncio.current_task()
    listener.add_done_callback(
        lambda done: current_task.cancel() if current_task is not None and _is_broken(done) else None
    )
    try:
        yield
    except asyncio.CancelledError:
        if current_task is None or not _is_broken(listener):
            raise
        current_task.uncancel()
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener
        await show_events(cli, team, history, follow=False)


def _is_broken(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


async def show_events(cli: Invocation, team: TeamId, history: TeamHistory, *, follow: bool = True) -> None:
    """Show all events after the version of `history`; with `follow` forever."""
    async for event in cli.runtime.events(team, after=history.version, follow=follow):
        line = history.add(event)
        cli.progress.line(history, line)
        cli.out.stream(team, event, line.subtask)


async def _work_until_settled(cli: Invocation, team: TeamId) -> tuple[TaskId, ...]:
    """Let the agents work until the team is at rest; return its tasks.

    On Ctrl-C the model calls of a run end first: a stopped one counts with all that was reserved for it.
    """
    host: TeamHost | None = None
    try:
        host = await cli.runtime.start(team)
        attach_progress(host, cli.progress)
        async with _end_if_full(cli, host):
            tasks = await work_until_settled(cli.runtime, host, team)
    except asyncio.CancelledError:
        calls = host if cli.stop.code == Exit.INTERRUPTED and host and host.state.team.kit in CHANGING_RUNS else None
        key = "conversation.finishing_calls" if calls else "conversation.stopping"
        cli.progress.note(translate(key, command=render_command(cli, "resume", team)), style="yellow")
        if calls:
            cli.progress.is_listening = False
            await calls.finish_calls()
        raise
    else:
        return tasks
    finally:
        await cli.runtime.stop(team)


@asynccontextmanager
async def _end_if_full(cli: Invocation, host: TeamHost) -> AsyncIterator[None]:
    """Without a person, raise `StoreFull` if the log stays unwritable inside the block."""
    loop, patience = asyncio.get_running_loop(), asyncio.timeout(None)

    def watch(trouble: str | None) -> None:
        if not patience.expired():
            patience.reschedule(loop.time() + FULL_PATIENCE_S if trouble and not cli.is_attended else None)

    try:
        async with patience:
            unsubscribe = host.listen_trouble(watch)
            try:
                yield
            finally:
                unsubscribe()
    except TimeoutError:
        raise StoreFull(str(host.sync.bus.trouble)) from None


def attach_progress(host: TeamHost, progress: Progress) -> None:
    """Show the progress of a host as it happens."""
    host.listen_trouble(progress.trouble)
    host.watch(progress.piece)
    watch_steps(host, progress.begin_step, progress.end_step)


ListenContext: TypeAlias = Callable[[], AbstractContextManager[None]]  # open while keys are read


async def follow_attended(
    cli: Invocation, team: TeamId, *, new: bool = False, listen: ListenContext = nullcontext
) -> Ending:
    """Follow a run to its end, and ask the person its approval requests; without an answer the run stays waiting.

    `listen` is open while the agents work, and closed during a question.
    """
    history = TeamHistory() if new else await read_history(cli.runtime, team)
    with listen():
        ending = await follow(cli, team, history)
    while ending.status == "waiting" and cli.is_attended:
        try:
            await ask_approvals(cli, team)
        except PersonLeft:
            break
        with listen():
            ending = await follow(cli, team, history)
    return ending


async def ask_approvals(cli: Invocation, team: TeamId) -> None:
    """Ask the person each approval request of a run. Raise `PersonLeft` if they leave."""
    while pending := pending_approvals(state := await cli.runtime.state(team)):
        approval = pending[0]
        kind = find_kind(state, approval)
        plan, confirmation = kind == "plan", kind == "confirmation"
        if asker := describe_asker(state, approval):
            cli.progress.note(asker, style="bold")
        line = ask_line(render_question(approval, plan=plan, confirmation=confirmation))
        line = "no" if not line.strip() and confirmation else line  # its default is no
        if approval.approval_id not in {wait.approval_id for wait in pending_approvals(await cli.runtime.state(team))}:
            cli.progress.note(translate("approvals.answered_elsewhere"), style="yellow")
            continue
        answer = parse_answer(approval, line, plan=plan)
        if answer is None:
            cli.progress.note(translate("approvals.unknown_answer"), style="yellow")
            continue
        note = keep_rule(state, approval, answer)
        await cli.runtime.ask(team, answer)
        if note:
            cli.progress.note(note, style="dim")


class RunPrompt:
    """Reads what a person types during a run. A half-typed line survives a question in between."""

    def __init__(self, cli: Invocation, team: TeamId, view: RunView) -> None:
        self._cli = cli
        self._team = team
        self._view = view
        self._line = TypedLine()
        self._typed_lines: asyncio.Queue[str] = asyncio.Queue()
        self._sending: asyncio.Task[None] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Read keys until the run is at rest."""
        telling = asyncio.create_task(self._send_all())
        self._view.is_listening, self._view.typed = True, self._line.text
        try:
            with disable_echo(self._take_keys):
                yield
        finally:
            telling.cancel()
            self._view.is_listening = False

    def _take_keys(self, keys: bytes) -> None:
        for line in self._line.take(keys):
            self._typed_lines.put_nowait(line)
        self._view.typed = self._line.text
        self._view.refresh()

    async def _send_all(self) -> None:
        while True:
            if self._sending is None or self._sending.done():
                self._sending = asyncio.create_task(self._send(await self._typed_lines.get()))
            await asyncio.shield(self._sending)  # typed lines are sent even if the run comes to rest meanwhile

    async def _send(self, text: str) -> None:
        try:
            delivery = await deliver(self._cli.runtime, TaskReference(team=self._team), text)
        except GreenroomError as error:
            self._view.note(translate("conversation.not_sent", why=explain(error)), style="yellow")
        else:
            self._view.show_typed(text, delivery.reader)
