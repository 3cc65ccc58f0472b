"""A host: one team, owned and running in this process. Writer, crew, schedule, timers and inbox, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from greenroom.actors.pool import Crew
from greenroom.actors.scheduler import changed, schedule
from greenroom.actors.windows import Windows
from greenroom.adapters.processes.plain import end_left_over
from greenroom.app.kit import Closing, Kit
from greenroom.app.timekeeper import Timekeeper
from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Bug, Rejected, StoreFull, WorldFault
from greenroom.core.base.ids import TaskId, ThreadId
from greenroom.core.ports.codec import decode_intent
from greenroom.core.ports.log import Blobs, InboxRow, Lease, Store
from greenroom.core.rules.draft import DOOR, SYSTEM
from greenroom.core.rules.intents import Declare, Intent, Recover
from greenroom.core.state.step import Step, StepStarted
from greenroom.core.state.world import NOWHERE, World
from greenroom.core.sync.bus import Commit, Listener, LiveListener, TroubleListener
from greenroom.core.sync.replay import Replayed, ended_steps, replay, snapshot_of
from greenroom.core.sync.synchroniser import Synchroniser, foresee_nothing

SHORTEST: Final = 0.05
LONGEST: Final = 2.0
"""Seconds between two tries."""


class PatientBlobs:
    """The blobs of a team at work. A result was paid for, or stands for something done: it is not given up."""

    def __init__(
        self,
        blobs: Blobs,
        worry: Callable[[str | None], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._blobs = blobs
        self._worry = worry
        self._sleep = sleep

    async def put_blob(self, data: bytes) -> str:
        """Keep the bytes, as soon as there is room for them."""
        delay, waited = SHORTEST, False
        while True:
            try:
                digest = await self._blobs.put_blob(data)
            except StoreFull as full:
                waited = True
                self._worry(str(full))
                await self._sleep(delay)
                delay = min(2 * delay, LONGEST)
            else:
                if waited:
                    self._worry(None)
                return digest

    async def get_blob(self, digest: str) -> bytes:
        return await self._blobs.get_blob(digest)


SNAPSHOT_EVERY: Final = 20_000
"""Events between two snapshots: folding that many takes about half a second at the next start."""

LEASE_LOOK: Final = 2.0
"""Seconds between two looks whether the team is still ours, while something runs here."""

INBOX_AFTER: Final = 0.1
"""Seconds until a team that was just made looks into its inbox: nothing can be in it yet, and most runs are short."""

SNAPSHOT_AT_CLOSE: Final = 1_000
"""Events since the last snapshot that make one worth its while when the team is closed."""


class Host:
    """Opened, it is the owner and has recovered what its predecessor left; `run` lets the agents work."""

    def __init__(self, log: Store, lease: Lease, sync: Synchroniser, clock: Clock, snapshot_at: int) -> None:
        self.sync = sync
        self.lease = lease
        self._log = log
        self._blobs: Blobs = PatientBlobs(log, sync.bus.worry)
        self._clock = clock
        self._crew: Crew | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: Timekeeper | None = None
        self._has_timers = False
        self._later: list[asyncio.TimerHandle] = []
        self._moved: set[TaskId] = set()
        self._is_scheduling = False
        self._snapshot_at = snapshot_at
        self._snapshot: asyncio.Task[None] | None = None
        self._closing: Closing = _nothing

    @classmethod
    async def open(cls, log: Store, lease: Lease, *, clock: Clock, is_new: bool = False) -> Host:
        """Read the team back, become its writer, and settle what ran when the last owner ended.

        `is_new` says that the stream was made by this very process, so that there is nothing to read.
        """
        found = Replayed(world=NOWHERE, version=0, tail=0) if is_new else await replay(log, lease.stream)
        sync = Synchroniser(log, lease, found.world, found.version, clock=clock)
        host = cls(log, lease, sync, clock, found.version - found.tail)
        sync.start()
        sync.bus.subscribe(host._follow)
        sync.bus.subscribe_trouble(host._worry)
        if found.version:
            # First the old life's processes end, then its steps are settled: nothing may still be at work.
            try:
                await end_left_over([one for step in found.world.steps.values() for one in step.prepared])
                await sync.submit(Recover(epoch=lease.epoch, owner=lease.owner), by=SYSTEM)
            except BaseException:
                await sync.close()
                raise
        return host

    @property
    def world(self) -> World:
        return self.sync.world

    def look(self) -> World:
        """The same, as a function."""
        return self.sync.world

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of every commit."""
        return self.sync.bus.subscribe(listener)

    def watch(self, listener: LiveListener) -> Callable[[], None]:
        """See replies as they come."""
        return self.sync.bus.subscribe_live(listener)

    def listen_trouble(self, listener: TroubleListener) -> Callable[[], None]:
        """Hear when nothing can be written, and when it can again. Nothing is lost while the process lives."""
        return self.sync.bus.subscribe_trouble(listener)

    def submit(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejected | None]]:
        """Ask for changes."""
        return self.sync.submit(*intents, by=by)

    @property
    def is_running(self) -> bool:
        """Whether its agents have a kit and work."""
        return self._crew is not None

    async def run(self, kit: Kit) -> None:
        """Let the agents work with this kit, until `close`; asking again changes nothing."""
        if self._crew is not None:
            return
        await self.submit(_declared(kit), by=SYSTEM)
        crew = self._equip(kit)
        await self._begin()
        crew.wake(self.world.agents)

    async def found(self, *intents: Intent, kit: Kit | None = None) -> Sequence[Rejected | None]:
        """Begin an empty team with these, all or none; with a `kit` its agents work from the same commit on."""
        if kit is None:
            return await self.sync.submit_whole(*intents, by=DOOR)
        self._equip(kit)
        verdicts = await self.sync.submit_whole(*intents, _declared(kit), by=DOOR)
        if verdicts[-1] is None:
            await self._begin(inbox_after=INBOX_AFTER)
        return verdicts

    def _equip(self, kit: Kit) -> Crew:
        self._closing = kit.closing or _nothing
        windows = Windows(self._load_window, self._blobs)
        crew = Crew(self.sync, self.look, kit.abilities, windows, self._blobs, self.sync.bus.show)
        self.sync.foresee = crew.foresee
        self._timers = Timekeeper(self, self.look, self._clock)
        self._crew = crew
        return crew

    async def _begin(self, inbox_after: float = 0.0) -> None:
        """Look after timers, stages, the lease and the inbox from now on."""
        if self._timers is not None:
            await self._timers.fire_due()  # what was due while nobody was here has happened before anybody looks
        self._keep_time()
        self._schedule(self.world.tasks)
        loop = asyncio.get_running_loop()
        self._later = [
            loop.call_later(LEASE_LOOK, self._look_after_lease),
            loop.call_later(inbox_after, lambda: self._spawn(self._inbox(), "inbox")),
        ]

    async def close(self) -> None:
        """Stop: effects are ended and seen dead, everything asked for is written, the lease is given back."""
        async with AsyncExitStack() as last:  # from the bottom up, whatever fails before
            last.callback(self._let_go)
            last.push_async_callback(self._closing)
            last.push_async_callback(self._log.release, self.lease)
            last.push_async_callback(self.sync.close)
            last.push_async_callback(self._end_tasks)
            if self._crew is not None:
                await self._crew.close(wait=not self.sync.is_idle)

    def _let_go(self) -> None:
        """Refer to nothing that refers to this: all that a team held is free at once, without the garbage collector."""
        self.sync.bus.close()
        self.sync.foresee = foresee_nothing
        self._crew = self._timers = None
        self._later = []

    async def _end_tasks(self) -> None:
        if self.sync.bus.trouble is not None:
            why = "What was not yet written is lost with this process"
            logging.getLogger(__name__).warning("%s: %s", why, self.sync.bus.trouble)
        for timer in self._later:
            timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._snapshot is not None:
            await asyncio.gather(self._snapshot, return_exceptions=True)
        if self.sync.version - self._snapshot_at >= SNAPSHOT_AT_CLOSE:
            await self._save(self.world, self.sync.version)

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task of the host that ends with an error says so. A log that is no longer ours ends them all."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            known, name = isinstance(error, WorldFault), f"{task.get_name()} {self.lease.stream}"
            level = logging.WARNING if known else logging.ERROR
            logging.getLogger(__name__).log(level, "%s ended: %s", name, error, exc_info=not known)

    def _follow(self, commit: Commit) -> None:
        if self._crew is not None and self._timers is not None:
            self._crew.follow(commit.events, commit.archived)
            self._timers.follow(commit.events)
            self._keep_time()
            self._schedule(changed(commit.world, commit.events))
        if commit.version - self._snapshot_at >= SNAPSHOT_EVERY and self._snapshot is None:
            self._snapshot_at = commit.version
            self._snapshot = asyncio.create_task(self._save(commit.world, commit.version))

    def _worry(self, _: str | None) -> None:
        """When nothing can be written any more, what runs here must end: it counts for nothing, and may do harm."""
        if self.sync.stopped is not None and self._crew is not None:
            self._spawn(self._crew.close(), "stopping")

    async def _save(self, world: World, version: int) -> None:
        try:
            snapshot = await asyncio.to_thread(snapshot_of, world, version)
            await self._log.save_snapshot(self.lease.stream, snapshot)
        except WorldFault as error:
            # A snapshot only saves time at the next start; the log is the truth.
            logging.getLogger(__name__).warning("No snapshot at version %d: %s", version, error)
        finally:
            self._snapshot = None

    def _keep_time(self) -> None:
        """See that somebody waits for the nearest deadline, if there is one."""
        if self._timers and not self._has_timers:
            self._has_timers = True
            self._spawn(self._timers.run(), "timers")

    def _schedule(self, moved: Iterable[TaskId]) -> None:
        """The reaction that moves tasks on."""
        if self._is_scheduling:
            self._moved.update(moved)
        elif intents := schedule(self.world, moved):
            self._is_scheduling = True
            self._spawn(self._move_on(set(moved), intents), "schedule")

    async def _move_on(self, moved: set[TaskId], intents: list[Intent]) -> None:
        try:
            while intents:
                try:
                    await self.submit(*intents, by=SYSTEM)
                except Bug:
                    await self._schedule_singly(moved)
                moved, self._moved = self._moved, set()
                intents = schedule(self.world, moved)
        finally:
            self._is_scheduling = False

    async def _schedule_singly(self, moved: set[TaskId]) -> None:
        """One of the intents cannot be done: those after it were not tried, and must not suffer for it."""
        for intent in schedule(self.world, moved):
            try:
                await self.submit(intent, by=SYSTEM)
            except Bug as error:
                logging.getLogger(__name__).warning("An intent of the schedule: %s", error)

    def _look_after_lease(self) -> None:
        """Another process may take the team over while nothing is written here: what runs must end all the same."""
        if self._crew is not None and self._crew.busy:
            self._spawn(self._check_lease(), "lease")
        self._later[0] = asyncio.get_running_loop().call_later(LEASE_LOOK, self._look_after_lease)

    async def _check_lease(self) -> None:
        newer = await self._newer_owner()
        if newer is not None:
            # Only the log's refusal is final, so it is asked for one: to write that another one owns the team.
            await self.submit(newer, by=SYSTEM)

    async def _newer_owner(self) -> Recover | None:
        try:
            head, held = await self._log.head(self.lease.stream), await self._log.holder(self.lease.stream)
        except WorldFault:
            return None  # a store that cannot be read says nothing about its owner: look again
        epoch = max(head.epoch, held.epoch if held else 0)
        owner = held.owner if held else ""
        return Recover(epoch=epoch, owner=owner) if epoch > self.lease.epoch else None

    async def _inbox(self) -> None:
        async for rows in self._log.arrivals(self.lease.stream):
            for row in rows:
                await self.take(row)

    async def take(self, row: InboxRow) -> None:
        """Take one intent of the inbox; its sender reads the answer there, whatever becomes of it."""
        try:
            await self.sync.take(row.intent_id, decode_intent(row.data), f"{DOOR}:{row.by}")
        except Bug as error:
            logging.getLogger(__name__).warning("An intent of the inbox: %s", error)

    async def _load_window(self, thread: ThreadId) -> Sequence[Step]:
        known = self.world.threads.get(thread)
        return await ended_steps(self._log, self.lease.stream, known.last, known.window_from) if known else ()


async def _nothing() -> None:
    """A kit that has nothing to close."""


def _declared(kit: Kit) -> Declare:
    """What the house has, as the team is told."""
    return Declare(
        blueprints=kit.blueprints,
        abilities=kit.abilities.described(),
        approvals_expire=kit.approvals_expire,
    )


def watch_steps(host: Host, began: Callable[[Step], None], ended: Callable[[Step], None]) -> Callable[[], None]:
    """Be told of each step that begins or ends; call what is returned to stop."""

    def follow(commit: Commit) -> None:
        for row in commit.archived:
            if isinstance(row.record, Step):
                ended(row.record)
        for event in commit.events:
            if isinstance(event, StepStarted) and event.step_id in commit.world.steps:
                began(commit.world.steps[event.step_id])

    return host.listen(follow)
