"""Host runs in this process: follow each until it is at rest, and continue after a restart those that were not.

The last part says which verbs a person can use on a run now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from greenroom.app.approvals import pending_approvals
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import CHANGING_RUNS
from greenroom.app.conversation.chat import work_until_settled
from greenroom.app.library.run_result import REFUSING_FACTORIES
from greenroom.app.messages import translate
from greenroom.app.organisation.phrases import ORGANISATION_KIT
from greenroom.app.runs.apply_change import APPLIED_STATES
from greenroom.app.runs.workspaces import find_change, has_repository
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import RecordFile, home_folder
from greenroom.app.task_status import read_status
from greenroom.app.team_host import TeamHost
from greenroom.core.base.errors import Bug, GreenroomError, RefusedError, RunsElsewhere, make_refusal
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.workspace import WorkspaceFault
from greenroom.core.rules.intents import CancelTask
from greenroom.core.state.step import Step
from greenroom.core.state.task import TaskEnded
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState

HOSTED_FILE: Final = "server/hosted.json"

CANCEL_TIMEOUT_S: Final = 20.0
"""How long to wait for cancelled steps to end before reporting that they still run."""

HostedListener: TypeAlias = Callable[[TeamId, Step, LiveEvent], None]


async def cancel_tasks(runtime: Runtime, team: TeamId, tasks: Sequence[TaskId]) -> bool:
    """Cancel tasks, wherever the team runs. Return whether they have ended; else some steps still run."""
    head = (await runtime.log.head(team)).version
    await runtime.ask(team, *(CancelTask(task_id=task) for task in tasks))
    try:
        async with asyncio.timeout(CANCEL_TIMEOUT_S):
            await _wait_until_over(runtime, team, head, set(tasks))
    except TimeoutError:
        return False
    return True


async def _wait_until_over(runtime: Runtime, team: TeamId, version: int, tasks: set[TaskId]) -> None:
    async for logged_event in runtime.events(team, after=version, follow=True):
        if isinstance(logged_event.event, TaskEnded):
            tasks.discard(logged_event.event.task_id)
        if not tasks:
            return


@record
class HostedRuns:
    """The runs that the servers of a home host, each with its folder, and the epoch in which a server owned it."""

    version: int = 1
    runs: Mapping[str, str] = msgspec.field(default_factory=dict)
    epochs: Mapping[str, int] = msgspec.field(default_factory=dict)


class RunHost:
    """Runs of one folder that this process hosts."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._file = RecordFile(home_folder(app.home) / HOSTED_FILE, HostedRuns, "hosted.content", "hosted.unreadable")
        self._hosted: dict[TeamId, asyncio.Task[None]] = {}
        self._woken: set[TeamId] = set()
        self.show_live: HostedListener | None = None
        """Hears pieces of replies and output of all hosted runs."""

    def is_hosting(self, team: TeamId) -> bool:
        """Whether this process runs the team."""
        return team in self._hosted

    def check_folder(self, team: Team) -> None:
        """Raise `RefusedError` for a run that works on another folder: its settings and its trust are not loaded."""
        if team.workspace and Path(team.workspace) != self._app.root:
            why = translate("hosted.other_folder", folder=team.workspace)
            raise make_refusal("other_folder", why, translate("hosted.serve_there", team=team.team_id))

    async def start(self, team: TeamId) -> None:
        """Run a team here until it is at rest. Raise `RefusedError` for a run of another folder, and `RunsElsewhere` if
        another process runs it."""
        if team in self._hosted:
            self._woken.add(team)
            return
        self.check_folder((await self._app.runtime.state(team)).team)
        try:
            host = await self._app.runtime.start(team)
        except BaseException:
            await self._app.runtime.stop(team)  # a new run is owned before it starts
            raise
        if team in self._hosted:  # two requests at once
            return
        self._hosted[team] = asyncio.create_task(self._follow(team, host), name=f"run {team}")
        self._remember(team, host.lease.epoch)

    async def wait(self, team: TeamId) -> None:
        """Wait until the team is not hosted here any more."""
        if task := self._hosted.get(team):
            await asyncio.wait({task})

    async def wake(self, team: TeamId) -> bool:
        """Start a run again that has work and is run by no process, unless it is paused or another kind of program
        continues it. Return whether it runs."""
        self._woken.add(team)
        if team in self._hosted or await self._app.runtime.log.holder(team) is not None:
            return True
        state = await self._app.runtime.state(team)
        elsewhere = (ORGANISATION_KIT, *REFUSING_FACTORIES)
        if state.team.paused is not None or state.team.kit in elsewhere or not await self._has_work(team):
            return False
        await self.start(team)
        return True

    async def recover(self) -> list[TeamId]:
        """Start the runs again that this folder's server hosted when it was stopped or killed, but those that another
        process has continued and stopped since. Return them."""
        recovered = list[TeamId]()
        folder, file = str(self._app.root), self._file.read()
        for team in [TeamId(name) for name, root in file.runs.items() if root == folder]:
            try:
                epoch = (await self._app.runtime.state(team)).team.epoch
                if epoch > file.epochs.get(team, epoch) and await self._app.runtime.log.holder(team) is None:
                    self._remember(team, None)
                    continue
                await self.start(team)
                recovered.append(team)
            except RunsElsewhere:
                continue  # it goes on there
            except GreenroomError as error:
                logging.getLogger(__name__).warning("%s does not go on: %s", team, error)
                self._remember(team, None)
        return recovered

    async def close(self) -> None:
        """Stop all runs. The next server of this folder continues them."""
        tasks = tuple(self._hosted.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, team: TeamId, host: TeamHost) -> None:
        runtime, is_stopped = self._app.runtime, False
        try:
            while True:
                unsubscribe = host.watch(partial(self._publish, team))
                await work_until_settled(runtime, host, team)
                unsubscribe()
                await runtime.stop(team)
                if is_stopped := await self._is_at_rest(team):
                    break
                host = await runtime.start(team)
                self._remember(team, host.lease.epoch)
            self._remember(team, None)
        except GreenroomError as error:
            level = logging.ERROR if isinstance(error, Bug) else logging.WARNING
            logging.getLogger(__name__).log(level, "%s stopped: %s", team, error)
            self._remember(team, None)
        finally:
            if not is_stopped:
                await runtime.stop(team)
            del self._hosted[team]

    async def _is_at_rest(self, team: TeamId) -> bool:
        """Whether a run that was stopped has nothing to do. Until this returns, an answer can come."""
        while True:
            self._woken.discard(team)
            if await self._has_work(team):
                return False
            if team not in self._woken:
                return True

    async def _has_work(self, team: TeamId) -> bool:
        """Whether a task goes on by itself, as far as its log says."""
        runtime = self._app.runtime
        tasks = tuple((await runtime.state(team)).tasks)
        return any([not (await runtime.status(team, task)).is_settled for task in tasks])

    def _publish(self, team: TeamId, step: Step, event: LiveEvent) -> None:
        if self.show_live is not None:
            self.show_live(team, step, event)

    def _remember(self, team: TeamId, epoch: int | None) -> None:
        """Note that a run is hosted here in an epoch, or no more."""

        def update(file: HostedRuns) -> HostedRuns:
            runs, epochs = dict(file.runs), dict(file.epochs)
            runs.pop(team, None)
            epochs.pop(team, None)
            if epoch is not None:
                runs[team], epochs[team] = str(self._app.root), epoch
            return evolve(file, runs=runs, epochs=epochs)

        self._file.change(update)


# ----------------------------------------------------------------------------------------------------------- the verbs

CHANGE_VERBS: Final = ("apply", "branch", "discard", "undo")


async def list_refusals(app: AppContext, host: RunHost, team: TeamId) -> dict[str, str]:
    """Return each verb with why it cannot be used on a run now; an empty sentence if it can."""
    state, holder = await app.runtime.state(team), await app.runtime.log.holder(team)
    over, kit = "" if state.tasks else "over", state.team.kit
    is_paused = state.team.paused is not None or any(task.paused is not None for task in state.tasks.values())
    working = "runs" if holder is not None else ""
    busy = working and ("pausing_now" if is_paused else "pause_first")
    codes = {
        "pause": over or ("paused" if is_paused else "" if working or is_waiting(state) else "stopped"),
        "resume": over or ("" if is_paused and holder else working or _refuse_start(state)),
        "cancel": over,
        "send": over,
        "fork": "",
        "rewind": "program" if kit in REFUSING_FACTORIES else busy,
    }
    if kit in CHANGING_RUNS:
        waiting = "answer_first" if pending_approvals(state) else ""
        codes |= await _refuse_change(app, state.team, busy, waiting)
    else:
        codes |= dict.fromkeys(CHANGE_VERBS, "no_worktree")
    refusals = {verb: translate(f"actions.{code}") if code else "" for verb, code in codes.items()}
    try:
        host.check_folder(state.team)
    except RefusedError as refusal:  # another process can pause and resume it there, but it starts nowhere else
        starting = ("rewind",) if holder is not None else ("resume", "rewind")
        refusals |= {verb: str(refusal) for verb in starting if not refusals[verb]}
    return refusals


def is_waiting(state: TeamState) -> bool:
    """Whether all tasks of a run wait for a person."""
    statuses = [read_status(state, task) for task in state.tasks]
    return all(status is not None and status.state == "waiting" for status in statuses)


def _refuse_start(state: TeamState) -> str:
    if state.team.kit in REFUSING_FACTORIES:
        return "program"
    if is_waiting(state):
        return "answer_first"
    return "organisation" if state.team.kit == ORGANISATION_KIT else ""


async def _refuse_change(app: AppContext, team: Team, working: str, waiting: str) -> dict[str, str]:
    try:
        change = await find_change(team, app.steps)
        applied = [entry.state in APPLIED_STATES for entry in await change.workspace.list_applied(change.run)]
    except WorkspaceFault:
        return dict.fromkeys(CHANGE_VERBS, "no_repository")
    nothing = "no_change" if change.tip == change.snapshot.commit else ""
    if not (nothing or working or any(applied)):
        kept = await change.workspace.list_kept_runs(change.run)
        nothing = "" if any(run.unapplied for run in kept) else "discarded"
    return {
        "apply": nothing or working or waiting or ("applied" if any(applied) else ""),
        "branch": nothing or working or waiting or ("" if has_repository(Path(team.workspace)) else "no_git"),
        "discard": working or (nothing if nothing == "discarded" else ""),
        "undo": "" if any(applied) else "not_applied",
    }
