"""The runtime: the interface of all front ends and programs to teams. All methods are asynchronous."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self
from weakref import WeakValueDictionary

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.adapters.storage.sqlite.store_folder import Access
from greenroom.app.clock import SystemClock, new_team_id
from greenroom.app.messages import translate
from greenroom.app.settings import home_folder
from greenroom.app.task_status import TaskStatus, read_ended_status, read_status
from greenroom.app.team_host import TeamHost
from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import RefusedError, Rejection, RunsElsewhere, WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.codec import decode_archived, decode_event, decode_outcome, encode_intent, validate_intent
from greenroom.core.ports.executor import Capabilities, CapabilitiesFactory
from greenroom.core.ports.log import InboxRow, Lease, LeaseHolder, Store
from greenroom.core.rules.draft import CLIENT
from greenroom.core.rules.intents import AddAgent, CreateTeam, ForkTeam, Intent
from greenroom.core.state.archive import ArchivedRecord, ArchiveKind
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import Task
from greenroom.core.state.team import ForkOrigin, Team
from greenroom.core.state.team_state import TeamState
from greenroom.core.sync.bus import CommitNotice
from greenroom.core.sync.replay import StepHistory, fork_log, rebuild_archive, replay

ORPHAN_CHECK_S: Final = 0.5
"""Seconds without an answer after which the owner is checked."""


LOOK_PAUSE_FACTOR: Final = 10
"""A waiter spends at most one part in this many of its time on checking the task."""


@record
class LoggedEvent:
    """An event with its version in the log."""

    version: int
    event: Event


class TaskWaiter:
    """Waits for a task of a host. `result` is its status once that no longer changes by itself."""

    def __init__(self, host: TeamHost, task: TaskId) -> None:
        self._host = host
        self._task = task
        self._next_look = 0.0
        self._delayed_look: asyncio.TimerHandle | None = None
        self._unsubscribes: Sequence[Callable[[], None]] = ()
        self.result: asyncio.Future[TaskStatus] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> Self:
        self._unsubscribes = (self._host.listen(self._follow), self._host.listen_trouble(lambda _: self._look()))
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        for stop in self._unsubscribes:
            stop()
        self._unsubscribes = ()
        if self._delayed_look is not None:
            self._delayed_look.cancel()

    def _follow(self, commit: CommitNotice) -> None:
        if self._task in commit.state.tasks:
            self._look()
            return
        for row in commit.archived:
            if isinstance(row.record, Task) and row.record.task_id == self._task and not self.result.done():
                self.result.set_result(read_ended_status(row.record))

    def _look(self) -> None:
        """Check the status now, or later if the last check was recent. A check is slow in a large team."""
        if self.result.done():
            return
        if self._host.sync.stopped is not None:
            self.result.set_exception(self._host.sync.stopped)
            return
        started_at = time.perf_counter()
        if started_at >= self._next_look:
            status = read_status(self._host.state, self._task)
            if status is not None and status.is_settled:
                self.result.set_result(status)
            now = time.perf_counter()
            self._next_look = now + LOOK_PAUSE_FACTOR * (now - started_at)
        elif self._delayed_look is None:
            self._delayed_look = asyncio.get_running_loop().call_later(self._next_look - started_at, self._look_later)

    def _look_later(self) -> None:
        self._delayed_look = None
        self._look()


class Runtime:
    """The teams of one home folder. Teams of this process run here; others are read, or changed through their inbox."""

    def __init__(
        self,
        log: Store,
        *,
        capability_factories: Mapping[str, CapabilitiesFactory] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.log = log
        self.clean_intent: Callable[[Intent], Intent | Rejection] = validate_intent
        self._capability_factories = dict(capability_factories or {})
        self._clock = clock or SystemClock()
        self._hosts: dict[TeamId, TeamHost] = {}
        self._locks: WeakValueDictionary[TeamId, asyncio.Lock] = WeakValueDictionary()
        self._owner = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(3)}"

    @classmethod
    async def open(
        cls,
        home: Path | None = None,
        *,
        capability_factories: Mapping[str, CapabilitiesFactory] | None = None,
        access: Access = "make",
        accept_loss: bool = False,
    ) -> Runtime:
        """Open the runtime of a home folder.

        With `accept_loss`, continue even if acknowledged commits are missing in the log. With `access` "look", nothing
        is created or changed except SQLite's temporary files, and a missing folder has no teams. With "change", this
        holds only for a missing folder.
        """
        return cls(
            await SqliteLog.open(home_folder(home), access=access, accept_loss=accept_loss),
            capability_factories=capability_factories,
        )

    async def close(self) -> None:
        """Stop everything that runs here. It can be started again later."""
        hosts = tuple(self._hosts.values())
        self._hosts.clear()
        try:
            for fault in await asyncio.gather(*(host.close() for host in hosts), return_exceptions=True):
                if fault is not None:
                    raise fault
        finally:
            await self.log.close()

    async def create(
        self,
        name: str,
        agents: Iterable[tuple[AgentId, AgentSpec]],
        *,
        capabilities_name: str = "",
        workspace: str = "",
        limits: Limits = UNLIMITED,
        waiting_timeout: int | None = None,
        first_intents: Iterable[Intent] = (),
        team_id: TeamId | None = None,
        capabilities: Capabilities | None = None,
        on_open: Callable[[TeamHost], None] | None = None,
    ) -> TeamId:
        """Create a team with its first agents and intents, all or nothing.

        This process owns the team. It starts only if `capabilities` are given; then its first steps start in the same
        commit. `on_open` is called with its host before that. `waiting_timeout` is how long an agent waits for another
        one, in milliseconds. `team_id` sets the team's id. Raise `RunsElsewhere` if another process creates or runs
        that team, and `RefusedError` if it exists.
        """
        members = [AddAgent(agent_id=agent, spec=spec) for agent, spec in agents]
        host = await self._new_host() if team_id is None else await self._empty_host(team_id)
        team = TeamId(host.lease.stream)
        try:
            create_intent = CreateTeam(
                team_id=team,
                name=name,
                kit=capabilities_name,
                workspace=workspace,
                limits=limits,
                waiting_timeout=waiting_timeout,
            )
            intents = self._check_intents(create_intent, *members, *first_intents)
            if on_open is not None:
                on_open(host)
            _raise_refusal(await host.create_team(*intents, capabilities=capabilities))
        except BaseException:
            await self.stop(team)
            if team_id is None:  # a named team may belong to another process by now; an empty one can be filled later
                await self.log.forget(team)
            raise
        return team

    async def _new_host(self) -> TeamHost:
        lease = await self._new_lease()
        host = self._hosts[TeamId(lease.stream)] = await self._open_host(lease, is_new=True)
        return host

    async def _new_lease(self) -> Lease:
        while True:
            lease = await self.log.acquire(new_team_id(), self._owner, made_at=self._clock.now())
            if isinstance(lease, Lease):
                if lease.epoch == 1:
                    return lease
                await self.log.release(lease)

    async def _empty_host(self, team: TeamId) -> TeamHost:
        """Return the host of a new team with this id. Raise `RefusedError` if it exists."""
        await self.log.create(team, self._clock.now())
        if (await self.log.head(team)).version:
            raise _make_exists_error(team)
        async with self._get_lock(team):
            host = await self._acquire_host(team)
        if host.state.team.team_id:  # created by another process meanwhile
            await self.stop(team)
            raise _make_exists_error(team)
        return host

    async def start(self, team: TeamId, *, take_over: bool = False) -> TeamHost:
        """Own the team and start its agents. `take_over` fences an owner that hangs."""
        async with self._get_lock(team):
            host = self._hosts.get(team) or await self._acquire_host(team, force=take_over)
            if not host.is_running:  # second capabilities would open, and later close, what the first ones use
                await host.run(await self._make_capabilities(host.state.team))
        return host

    async def stop(self, team: TeamId) -> None:
        """Stop a team that runs here."""
        async with self._get_lock(team):
            host = self._hosts.pop(team, None)
            if host is not None:
                await host.close()

    async def ask(self, team: TeamId, *intents: Intent, timeout: float = 30.0) -> None:
        """Submit intents, wherever the team runs. Raise `RefusedError` for the first that is refused."""
        checked = self._check_intents(*intents)
        if not await self._try_submit_here(team, checked):
            for intent in checked:
                await self._submit_through_inbox(team, intent, timeout)

    def _check_intents(self, *intents: Intent) -> Sequence[Intent]:
        """Check the intents as the log would. Raise `RefusedError` for the first invalid one."""
        checked = list[Intent]()
        for intent in map(self.clean_intent, intents):
            if isinstance(intent, Rejection):
                raise RefusedError(intent)
            checked.append(intent)
        return checked

    async def state(self, team: TeamId, at: int | None = None) -> TeamState:
        """Return the team state, now or at version `at`."""
        host = self._hosts.get(team)
        if host is not None and at is None:
            return host.state
        if at is not None:
            await self._check_version(team, at)
        return (await replay(self.log, team, at)).state

    async def _check_version(self, team: TeamId, at: int) -> int:
        """Return the newest version of the team. Raise `RefusedError` if version `at` does not exist."""
        head = (await self.log.head(team)).version
        if not 1 <= at <= head:
            raise make_refusal("no_such_version", translate("runs.no_such_version", team=team, head=head, at=at))
        return head

    async def archive(self, team: TeamId, kind: ArchiveKind) -> AsyncIterator[ArchivedRecord]:
        """Yield records that have left the state: ended tasks, stages and steps, messages and notes, oldest first."""
        if kind == "step":
            for step in await StepHistory(self.log, team).read():
                yield step
            return
        after = 0
        while rows := await self.log.read_archive(team, kind, after=after):
            for row in rows:
                yield decode_archived(row)
            after = rows[-1].version

    async def ended_tasks(self, team: TeamId) -> Sequence[Task]:
        """Return the ended tasks, oldest first."""
        return [task async for task in self.archive(team, "task") if isinstance(task, Task)]

    async def events(self, team: TeamId, *, after: int = 0, follow: bool = False) -> AsyncIterator[LoggedEvent]:
        """Yield the team's events, oldest first. With `follow`, keep yielding new ones."""
        pages = self.log.tail(team, after) if follow else self.log.read(team, after)
        async for page in pages:
            for stored in page:
                yield LoggedEvent(version=stored.version, event=decode_event(stored))

    async def status(self, team: TeamId, task: TaskId) -> TaskStatus:
        """Return the status of a task."""
        status = read_status(await self.state(team), task)
        if status is not None:
            return status
        row = await self.log.find(team, "task", task)
        record_ = decode_archived(row) if row else None
        if not isinstance(record_, Task):
            raise make_refusal("unknown_task", translate("lookup.unknown_task", team=team, task=task))
        return read_ended_status(record_)

    async def wait(self, team: TeamId, task: TaskId) -> TaskStatus:
        """Wait until a task that runs here is over, or cannot continue by itself."""
        host = self._hosts.get(team)
        if host is None:
            raise make_refusal(
                "not_run_here", translate("runtime.not_run_here", team=team), translate("runtime.start_first")
            )
        if task not in host.state.tasks:
            return await self.status(team, task)
        with TaskWaiter(host, task) as waiter:
            return await waiter.result

    async def fork(self, team: TeamId, at: int | None = None) -> TeamId:
        """Create a new team from the state of this one at the commit at or before `at`. This team stays unchanged."""
        head = (await self.log.head(team)).version if at is None else await self._check_version(team, at)
        lease = await self._new_lease()
        new = TeamId(lease.stream)
        fork = ForkTeam(team_id=new, origin=ForkOrigin(team_id=team, version=head))
        try:
            await fork_log(self.log, team, lease, fork, at=at, now=self._clock.now())
            await rebuild_archive(self.log, new)
        except BaseException:
            await self.log.release(lease)
            await self.log.forget(new)
            raise
        await self.log.release(lease)
        return new

    async def _make_capabilities(self, team: Team) -> Capabilities:
        """Make the capabilities that the team's log names. Raise `WorldFault` if they are not installed."""
        factory = self._capability_factories.get(team.kit)
        if factory is None:
            known = ", ".join(sorted(self._capability_factories)) or translate("hints.none")
            raise WorldFault("capabilities.kit_not_installed", team_id=team.team_id, kit=team.kit, known=known)
        capabilities = factory(team)
        return capabilities if isinstance(capabilities, Capabilities) else await capabilities

    def _get_lock(self, team: TeamId) -> asyncio.Lock:
        """Return the lock for becoming or ceasing to be the team's owner."""
        return self._locks.setdefault(team, asyncio.Lock())

    async def _acquire_host(self, team: TeamId, *, force: bool = False) -> TeamHost:
        lease = await self.log.acquire(team, self._owner, force=force)
        if isinstance(lease, LeaseHolder):
            raise RunsElsewhere("runtime.team_runs_elsewhere", team=team, owner=lease.owner)
        host = await self._open_host(lease)
        self._hosts[team] = host
        return host

    async def _open_host(self, lease: Lease, *, is_new: bool = False) -> TeamHost:
        """Open the team's host. Release the lease if that fails."""
        try:
            return await TeamHost.open(self.log, lease, clock=self._clock, is_new=is_new)
        except BaseException:
            await self.log.release(lease)
            raise

    async def _try_submit_here(self, team: TeamId, intents: Sequence[Intent]) -> bool:
        """Submit to the host of this process, or own the team briefly. Return False if it runs elsewhere."""
        host = self._hosts.get(team)
        if host is None:
            async with self._get_lock(team):
                host = self._hosts.get(team)
                if host is None:
                    return await self._try_visit(team, lambda visitor: _submit(visitor, *intents))
        await _submit(host, *intents)
        return True

    async def _try_visit(self, team: TeamId, change: Callable[[TeamHost], Awaitable[None]]) -> bool:
        """Own a stopped team just long enough for a change. Return False if it runs elsewhere."""
        lease = await self.log.acquire(team, self._owner)
        if isinstance(lease, LeaseHolder):
            return False
        visitor = await self._open_host(lease)
        try:
            await change(visitor)
        finally:
            await visitor.close()
        return True

    async def _submit_through_inbox(self, team: TeamId, intent: Intent, timeout: float) -> None:
        name = f"{self._owner}.{secrets.token_hex(6)}"
        row = InboxRow(intent_id=name, by="inbox", data=encode_intent(intent), put_at=self._clock.now())
        await self.log.put(team, row)
        async with asyncio.timeout(timeout):
            refused = decode_outcome(await self._wait_for_answer(team, name))
        if refused is not None:
            raise RefusedError(refused)

    async def _wait_for_answer(self, team: TeamId, name: str) -> bytes:
        while True:
            try:
                return await asyncio.wait_for(self.log.answer(team, name), ORPHAN_CHECK_S)
            except TimeoutError:
                await self._serve_orphan(team)

    async def _serve_orphan(self, team: TeamId) -> None:
        """Take the intents in the inbox of an owner that has ended."""
        if await self.log.holder(team) is not None:
            return
        async with self._get_lock(team):
            await self._try_visit(team, self._take_all)

    async def _take_all(self, visitor: TeamHost) -> None:
        for row in await self.log.list_inbox(visitor.lease.stream):
            await visitor.take_intent(row)


def _make_exists_error(team: TeamId) -> RefusedError:
    return make_refusal("team_exists", translate("runtime.team_exists", team=team))


async def _submit(host: TeamHost, *intents: Intent) -> None:
    _raise_refusal(await host.submit(*intents, by=CLIENT))


def _raise_refusal(verdicts: Iterable[Rejection | None]) -> None:
    for refused in verdicts:
        if refused is not None:
            raise RefusedError(refused)
