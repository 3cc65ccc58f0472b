"""A team host: one team that runs in this process, with its writer, actor pool, scheduler, timers and inbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from greenroom.actors.history_windows import WindowCache
from greenroom.actors.pool import ActorPool
from greenroom.actors.stage_scheduler import find_changed_tasks, schedule
from greenroom.adapters.processes.local_commands import end_leftover_groups
from greenroom.app.timekeeper import Timekeeper
from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Bug, Rejection, StoreFull, WorldFault
from greenroom.core.base.ids import TaskId, ThreadId
from greenroom.core.ports.codec import decode_intent
from greenroom.core.ports.executor import Capabilities, CloseCallback
from greenroom.core.ports.log import Blobs, InboxRow, Lease, Store
from greenroom.core.rules.draft import CLIENT, SYSTEM
from greenroom.core.rules.intents import Declare, Intent, Recover
from greenroom.core.state.step import Step, StepStarted
from greenroom.core.state.team_state import EMPTY_STATE, TeamState
from greenroom.core.sync.bus import CommitNotice, Listener, LiveListener, TroubleListener
from greenroom.core.sync.replay import ReplayResult, make_snapshot, read_ended_steps, replay
from greenroom.core.sync.synchroniser import Synchroniser, predict_nothing

MIN_RETRY_DELAY_S: Final = 0.05
MAX_RETRY_DELAY_S: Final = 2.0


class RetryingBlobs:
    """Stores blobs of a running team and retries while the store is full, so that no paid result is lost."""

    def __init__(
        self,
        blobs: Blobs,
        set_trouble: Callable[[str | None], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._blobs = blobs
        self._set_trouble = set_trouble
        self._sleep = sleep

    async def put_blob(self, data: bytes) -> str:
        """Store the bytes, as soon as there is room."""
        delay, has_waited = MIN_RETRY_DELAY_S, False
        while True:
            try:
                digest = await self._blobs.put_blob(data)
            except StoreFull as full:
                has_waited = True
                self._set_trouble(str(full))
                await self._sleep(delay)
                delay = min(2 * delay, MAX_RETRY_DELAY_S)
            else:
                if has_waited:
                    self._set_trouble(None)
                return digest

    async def get_blob(self, digest: str) -> bytes:
        return await self._blobs.get_blob(digest)


SNAPSHOT_EVERY: Final = 4_000
"""Events between two snapshots. Folding that many takes about 50 ms: at the next start, or for a state of the past."""

LEASE_CHECK_S: Final = 2.0
"""Seconds between two checks of the lease while steps run."""

FIRST_INBOX_CHECK_S: Final = 0.1
"""Seconds until a new team reads its inbox. The inbox is empty at first, and most runs are short."""

SNAPSHOT_AT_CLOSE: Final = 1_000
"""Events since the last snapshot that make a new one worthwhile on close."""


class TeamHost:
    """The owner of a team. `open` recovers what the previous owner left; `run` starts the agents."""

    def __init__(self, log: Store, lease: Lease, sync: Synchroniser, clock: Clock, snapshot_at: int) -> None:
        self.sync = sync
        self.lease = lease
        self._log = log
        self._blobs: Blobs = RetryingBlobs(log, sync.bus.set_trouble)
        self._clock = clock
        self._pool: ActorPool | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: Timekeeper | None = None
        self._has_timers = False
        self._delayed_calls: list[asyncio.TimerHandle] = []
        self._changed_tasks: set[TaskId] = set()
        self._is_scheduling = False
        self._snapshot_at = snapshot_at
        self._checked_version = 0
        self._snapshot: asyncio.Task[None] | None = None
        self._close_capabilities: CloseCallback = _close_nothing

    @classmethod
    async def open(cls, log: Store, lease: Lease, *, clock: Clock, is_new: bool = False) -> TeamHost:
        """Replay the team, become its writer, and settle the steps that ran when the last owner ended. `is_new` says
        that this process created the stream, so there is nothing to read."""
        replayed = ReplayResult(state=EMPTY_STATE, version=0, tail=0) if is_new else await replay(log, lease.stream)
        sync = Synchroniser(log, lease, replayed.state, replayed.version, clock=clock)
        host = cls(log, lease, sync, clock, replayed.version - replayed.tail)
        sync.start()
        sync.bus.subscribe(host._follow)
        sync.bus.subscribe_trouble(host._stop_if_unwritable)
        if replayed.version:
            # End the processes of the previous owner first, then settle its steps: nothing may still run.
            try:
                await end_leftover_groups(
                    [prepared for step in replayed.state.steps.values() for prepared in step.prepared]
                )
                await sync.submit(Recover(epoch=lease.epoch, owner=lease.owner), by=SYSTEM)
            except BaseException:
                await sync.close()
                raise
        return host

    @property
    def state(self) -> TeamState:
        return self.sync.state

    def read_state(self) -> TeamState:
        """Return the current team state."""
        return self.sync.state

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Subscribe to every commit."""
        return self.sync.bus.subscribe(listener)

    def watch(self, listener: LiveListener) -> Callable[[], None]:
        """Subscribe to live events of replies."""
        return self.sync.bus.subscribe_live(listener)

    def listen_trouble(self, listener: TroubleListener) -> Callable[[], None]:
        """Subscribe to write failures and recoveries. No data is lost while the process lives."""
        return self.sync.bus.subscribe_trouble(listener)

    def submit(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejection | None]]:
        """Submit intents."""
        return self.sync.submit(*intents, by=by)

    @property
    def is_running(self) -> bool:
        """Whether the agents have capabilities and run."""
        return self._pool is not None

    async def run(self, capabilities: Capabilities) -> None:
        """Run the agents with these capabilities until `close`. A second call does nothing."""
        if self._pool is not None:
            return
        await self.submit(_make_declaration(capabilities), by=SYSTEM)
        pool = self._make_pool(capabilities)
        await self._begin()
        pool.wake(self.state.agents)

    async def create_team(
        self, *intents: Intent, capabilities: Capabilities | None = None
    ) -> Sequence[Rejection | None]:
        """Create an empty team with these intents, all or none. With `capabilities`, its agents start in the same
        commit."""
        if capabilities is None:
            return await self.sync.submit_atomic(*intents, by=CLIENT)
        self._make_pool(capabilities)
        verdicts = await self.sync.submit_atomic(*intents, _make_declaration(capabilities), by=CLIENT)
        if verdicts[-1] is None:
            await self._begin(inbox_after=FIRST_INBOX_CHECK_S)
        return verdicts

    def _make_pool(self, capabilities: Capabilities) -> ActorPool:
        self._close_capabilities = capabilities.on_close or _close_nothing
        windows = WindowCache(self._load_window, self._blobs)
        pool = ActorPool(self.sync, self.read_state, capabilities, windows, self._blobs, self.sync.bus.show)
        self.sync.predict = pool.predict_starts
        self._timers = Timekeeper(self, self.read_state, self._clock)
        self._pool = pool
        return pool

    async def _begin(self, inbox_after: float = 0.0) -> None:
        """Start the timers, the scheduler, the lease check and the inbox."""
        if self._timers is not None:
            await self._timers.fire_due()  # fire the timers that became due while the team was stopped
        self._start_timers()
        self._schedule(self.state.tasks)
        loop = asyncio.get_running_loop()
        self._delayed_calls = [
            loop.call_later(LEASE_CHECK_S, self._schedule_lease_check),
            loop.call_later(inbox_after, lambda: self._spawn(self._serve_inbox(), "inbox")),
        ]

    async def finish_calls(self) -> None:
        """Start no more steps, stop running ones, and wait for model calls, unless their replies cannot be saved."""
        if self._pool is not None and self.sync.bus.trouble is None:
            await self._pool.close(finish_calls=True)

    async def close(self) -> None:
        """Stop all steps and their processes, write everything that was submitted, and release the lease."""
        async with AsyncExitStack() as cleanup:  # runs from the bottom up, even after a failure
            cleanup.callback(self._drop_references)
            cleanup.push_async_callback(self._close_capabilities)
            cleanup.push_async_callback(self._log.release, self.lease)
            cleanup.push_async_callback(self.sync.close)
            cleanup.push_async_callback(self._end_tasks)
            if self._pool is not None:
                await self._pool.close(wait=not self.sync.is_idle and self.sync.bus.trouble is None)

    def _drop_references(self) -> None:
        """Break reference cycles, so that the team's memory is freed without the garbage collector."""
        self.sync.bus.close()
        self.sync.predict = predict_nothing
        self._pool = self._timers = None
        self._delayed_calls = []

    async def _end_tasks(self) -> None:
        if self.sync.bus.trouble is not None:
            why = "Unwritten changes are lost with this process"
            logging.getLogger(__name__).warning("%s: %s", why, self.sync.bus.trouble)
        for timer in self._delayed_calls:
            timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._snapshot is not None:
            await asyncio.gather(self._snapshot, return_exceptions=True)
        if self.sync.version - self._snapshot_at >= SNAPSHOT_AT_CLOSE:
            await self._save_snapshot(self.state, self.sync.version)

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._log_task_error)

    def _log_task_error(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            is_known, name = isinstance(error, WorldFault), f"{task.get_name()} {self.lease.stream}"
            level = logging.WARNING if is_known else logging.ERROR
            logging.getLogger(__name__).log(level, "%s ended: %s", name, error, exc_info=not is_known)

    def _follow(self, commit: CommitNotice) -> None:
        if self._pool is not None and self._timers is not None:
            self._pool.follow(commit.events, commit.archived)
            self._timers.follow(commit.events)
            self._start_timers()
            self._schedule(find_changed_tasks(commit.state, commit.events))
        if commit.version - self._snapshot_at >= SNAPSHOT_EVERY and self._snapshot is None:
            self._snapshot_at = commit.version
            self._snapshot = asyncio.create_task(self._save_snapshot(commit.state, commit.version))

    def _stop_if_unwritable(self, _: str | None) -> None:
        """Stop all steps if the log can no longer be written. Their results could not be recorded."""
        if self.sync.stopped is not None and self._pool is not None:
            self._spawn(self._pool.close(), "stopping")

    async def _save_snapshot(self, state: TeamState, version: int) -> None:
        try:
            snapshot = await asyncio.to_thread(make_snapshot, state, version)
            await self._log.save_snapshot(self.lease.stream, snapshot)
        except WorldFault as error:
            # A snapshot only saves time at the next start; the log is the truth.
            logging.getLogger(__name__).warning("No snapshot at version %d: %s", version, error)
        finally:
            self._snapshot = None

    def _start_timers(self) -> None:
        if self._timers and not self._has_timers:
            self._has_timers = True
            self._spawn(self._timers.run(), "timers")

    def _schedule(self, changed_tasks: Iterable[TaskId]) -> None:
        """Submit the scheduler's intents for the changed tasks."""
        if self._is_scheduling:
            self._changed_tasks.update(changed_tasks)
        elif intents := schedule(self.state, changed_tasks):
            self._is_scheduling = True
            self._spawn(self._submit_schedule(set(changed_tasks), intents), "schedule")

    async def _submit_schedule(self, changed_tasks: set[TaskId], intents: list[Intent]) -> None:
        try:
            while intents:
                try:
                    await self.submit(*intents, by=SYSTEM)
                except Bug:
                    await self._submit_schedule_singly(changed_tasks)
                changed_tasks, self._changed_tasks = self._changed_tasks, set()
                intents = schedule(self.state, changed_tasks)
        finally:
            self._is_scheduling = False

    async def _submit_schedule_singly(self, changed_tasks: set[TaskId]) -> None:
        """Submit the intents one by one after one of them failed, so that the others still run."""
        for intent in schedule(self.state, changed_tasks):
            try:
                await self.submit(intent, by=SYSTEM)
            except Bug as error:
                logging.getLogger(__name__).warning("A scheduled intent failed: %s", error)

    def _schedule_lease_check(self) -> None:
        """Check the lease regularly. Another process can take over the team while nothing is written here; a commit
        since the last check proves that it has not."""
        if self._pool is not None and self._pool.is_busy and self._checked_version == self.sync.version:
            self._spawn(self._check_lease(), "lease")
        self._checked_version = self.sync.version
        self._delayed_calls[0] = asyncio.get_running_loop().call_later(LEASE_CHECK_S, self._schedule_lease_check)

    async def _check_lease(self) -> None:
        newer = await self._find_newer_owner()
        if newer is not None:
            # Only the log's refusal is final, so try to write that another process owns the team.
            await self.submit(newer, by=SYSTEM)

    async def _find_newer_owner(self) -> Recover | None:
        try:
            head, lease = await self._log.head(self.lease.stream), await self._log.holder(self.lease.stream)
        except WorldFault:
            return None  # an unreadable store says nothing about its owner: check again later
        epoch = max(head.epoch, lease.epoch if lease else 0)
        owner = lease.owner if lease else ""
        return Recover(epoch=epoch, owner=owner) if epoch > self.lease.epoch else None

    async def _serve_inbox(self) -> None:
        async for rows in self._log.arrivals(self.lease.stream):
            for row in rows:
                await self.take_intent(row)

    async def take_intent(self, row: InboxRow) -> None:
        """Take one intent of the inbox. Its sender reads the answer there, even if it fails."""
        try:
            await self.sync.take_from_inbox(row.intent_id, decode_intent(row.data), f"{CLIENT}:{row.by}")
        except Bug as error:
            logging.getLogger(__name__).warning("An inbox intent failed: %s", error)

    async def _load_window(self, thread: ThreadId) -> Sequence[Step]:
        state = self.state.threads.get(thread)
        return await read_ended_steps(self._log, self.lease.stream, state.last, state.window_from) if state else ()


async def _close_nothing() -> None:
    """Close nothing, for capabilities without a close callback."""


def _make_declaration(capabilities: Capabilities) -> Declare:
    return Declare(
        blueprints=capabilities.agent_specs,
        abilities=capabilities.describe(),
        approvals_expire=capabilities.approvals_expire,
    )


def watch_steps(
    host: TeamHost, on_started: Callable[[Step], None], on_ended: Callable[[Step], None]
) -> Callable[[], None]:
    """Call back for each step that starts or ends. Return a function that unsubscribes."""

    def follow(commit: CommitNotice) -> None:
        for row in commit.archived:
            if isinstance(row.record, Step):
                on_ended(row.record)
        for event in commit.events:
            if isinstance(event, StepStarted) and event.step_id in commit.state.steps:
                on_started(commit.state.steps[event.step_id])

    return host.listen(follow)
