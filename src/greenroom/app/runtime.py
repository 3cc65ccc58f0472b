"""The runtime: the facade with which doors and programs use Greenroom. About a dozen verbs, all asynchronous."""

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
from greenroom.adapters.storage.sqlite.opening import Access
from greenroom.app.clock import SystemClock, new_team_id
from greenroom.app.host import Host
from greenroom.app.kit import Kit, KitMaker, find_kit
from greenroom.app.settings import home_folder
from greenroom.app.task_status import Standing, ended, standing
from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Refused, Rejected, RunsElsewhere
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.codec import checked_intent, decode_archived, decode_event, decode_outcome, encode_intent
from greenroom.core.ports.log import Held, InboxRow, Lease, Store
from greenroom.core.rules.draft import DOOR
from greenroom.core.rules.intents import AddAgent, CreateTeam, ForkTeam, Intent
from greenroom.core.state.archive import ArchivedRecord, ArchiveKind
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import Task
from greenroom.core.state.team import Origin
from greenroom.core.state.world import World
from greenroom.core.sync.bus import Commit
from greenroom.core.sync.replay import StepHistory, fork_log, rebuild_archive, replay

ORPHANED_AFTER: Final = 0.5
"""Seconds without an answer after which we look whether the owner still lives."""


LOOK_PAUSE: Final = 10
"""Who waits for a task spends at most a tenth of the time on looking at it, however often something happens."""


@record
class Told:
    """An event with its place in the log."""

    version: int
    event: Event


class Waiting:
    """Looks at a task of a host whenever something happens there; `over` is how it stands once that stays so."""

    def __init__(self, host: Host, task: TaskId) -> None:
        self._host = host
        self._task = task
        self._pause = 0.0
        self._later: asyncio.TimerHandle | None = None
        self._stops: Sequence[Callable[[], None]] = ()
        self.over: asyncio.Future[Standing] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> Self:
        self._stops = (self._host.listen(self._follow), self._host.listen_trouble(lambda _: self._look()))
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        for stop in self._stops:
            stop()
        self._stops = ()
        if self._later is not None:
            self._later.cancel()

    def _follow(self, commit: Commit) -> None:
        if self._task in commit.world.tasks:
            self._look()
            return
        for row in commit.archived:
            if isinstance(row.record, Task) and row.record.task_id == self._task and not self.over.done():
                self.over.set_result(ended(row.record))

    def _look(self) -> None:
        """Look now, or a little later if the last look was a moment ago: in a large team each takes its time."""
        if self.over.done():
            return
        if self._host.sync.stopped is not None:
            self.over.set_exception(self._host.sync.stopped)
            return
        begun = time.perf_counter()
        if begun >= self._pause:
            found = standing(self._host.world, self._task)
            if found is not None and found.settled:
                self.over.set_result(found)
            now = time.perf_counter()
            self._pause = now + LOOK_PAUSE * (now - begun)
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(self._pause - begun, self._look_later)

    def _look_later(self) -> None:
        self._later = None
        self._look()


class Runtime:
    """Teams in one home. What this process owns runs here; everything else is read, or asked through the inbox."""

    def __init__(self, log: Store, *, kits: Mapping[str, KitMaker] | None = None, clock: Clock | None = None) -> None:
        self.log = log
        self._kits = dict(kits or {})
        self._clock = clock or SystemClock()
        self._hosts: dict[TeamId, Host] = {}
        self._doors: WeakValueDictionary[TeamId, asyncio.Lock] = WeakValueDictionary()
        self._owner = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(3)}"

    @classmethod
    async def open(
        cls,
        home: Path | None = None,
        *,
        kits: Mapping[str, KitMaker] | None = None,
        access: Access = "make",
        accept_loss: bool = False,
    ) -> Runtime:
        """The runtime of a home folder; `accept_loss` goes on though acknowledged commits are missing in its log.

        With `access` "look" nothing is made or changed but SQLite's scratch files, and a folder that is not there is
        one without teams; with "change" it is so only where there is none.
        """
        return cls(await SqliteLog.open(home_folder(home), access=access, accept_loss=accept_loss), kits=kits)

    async def close(self) -> None:
        """Stop everything that runs here; it goes on where it was when somebody starts it again."""
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
        kit: str = "",
        workspace: str = "",
        limits: Limits = UNLIMITED,
        waiting_timeout: int | None = None,
        begin: Iterable[Intent] = (),
        named: TeamId | None = None,
        work_with: Kit | None = None,
        opened: Callable[[Host], None] | None = None,
    ) -> TeamId:
        """Make a team with its first agents and what it is to begin with, all at once or not at all.

        It is owned here and does not work yet, unless there is something to `work_with`: then its first steps start in
        the commit that makes it. `opened` is called with its host before that. `waiting_timeout` (ms) is how long an
        agent waits for another one. `named` is the id that it is to have: `RunsElsewhere` while another process makes
        or runs that one, `Refused` when it is there.
        """
        members = [AddAgent(agent_id=agent, spec=spec) for agent, spec in agents]
        host = await self._new_host() if named is None else await self._empty_host(named)
        team = TeamId(host.lease.stream)
        try:
            founding = CreateTeam(
                team_id=team,
                name=name,
                kit=kit,
                workspace=workspace,
                limits=limits,
                waiting_timeout=waiting_timeout,
            )
            intents = _checked(founding, *members, *begin)
            if opened is not None:
                opened(host)
            _accept(await host.found(*intents, kit=work_with))
        except BaseException:
            await self.stop(team)
            if named is None:  # one that was named may be another's by now; what is empty is the next one's to fill
                await self.log.forget(team)
            raise
        return team

    async def _new_host(self) -> Host:
        """The host of a stream that nobody had before."""
        lease = await self._new_lease()
        host = self._hosts[TeamId(lease.stream)] = await self._opened(lease, is_new=True)
        return host

    async def _new_lease(self) -> Lease:
        while True:
            lease = await self.log.acquire(new_team_id(), self._owner, made_at=self._clock.now())
            if isinstance(lease, Lease):
                if lease.epoch == 1:
                    return lease
                await self.log.release(lease)

    async def _empty_host(self, team: TeamId) -> Host:
        """The host of a team that is to have this name; `Refused` when there is one."""
        await self.log.create(team, self._clock.now())
        if (await self.log.head(team)).version:
            raise _is_there(team)
        async with self._alone(team):
            host = await self._own(team)
        if host.world.team.team_id:  # made by another process since we looked
            await self.stop(team)
            raise _is_there(team)
        return host

    async def start(self, team: TeamId, *, take_over: bool = False) -> Host:
        """Own the team and let its agents work. `take_over` fences an owner that hangs."""
        async with self._alone(team):
            host = self._hosts.get(team) or await self._own(team, force=take_over)
            if not host.is_running:  # a second kit would open, and take away, what the first works with
                await host.run(await find_kit(self._kits, host.world.team))
        return host

    async def stop(self, team: TeamId) -> None:
        """Stop working on a team here."""
        async with self._alone(team):
            host = self._hosts.pop(team, None)
            if host is not None:
                await host.close()

    async def ask(self, team: TeamId, *intents: Intent, timeout: float = 30.0) -> None:
        """Ask for changes, wherever the team runs; raises `Refused` at the first that is refused."""
        wanted = _checked(*intents)
        if not await self._asked_here(team, wanted):
            for intent in wanted:
                await self._through_inbox(team, intent, timeout)

    async def world(self, team: TeamId, at: int | None = None) -> World:
        """What is (or at version `at` was) true in a team."""
        host = self._hosts.get(team)
        if host is not None and at is None:
            return host.world
        if at is not None:
            await self._there(team, at)
        return (await replay(self.log, team, at)).world

    async def _there(self, team: TeamId, at: int) -> int:
        """The newest version of the team; `Refused` when it never had the version `at`."""
        head = (await self.log.head(team)).version
        if not 1 <= at <= head:
            raise Refused(Rejected(code="no_such_version", why=f"Team {team!r} has versions 1 to {head}, not {at}."))
        return head

    async def archive(self, team: TeamId, kind: ArchiveKind) -> AsyncIterator[ArchivedRecord]:
        """What has left the world (ended tasks, stages and steps; messages; notes), oldest first."""
        if kind == "step":
            for step in await StepHistory(self.log, team).read():
                yield step
            return
        after = 0
        while rows := await self.log.archived(team, kind, after=after):
            for row in rows:
                yield decode_archived(row)
            after = rows[-1].version

    async def ended_tasks(self, team: TeamId) -> Sequence[Task]:
        """The tasks that are over, oldest first."""
        return [task async for task in self.archive(team, "task") if isinstance(task, Task)]

    async def events(self, team: TeamId, *, after: int = 0, follow: bool = False) -> AsyncIterator[Told]:
        """The team's events, oldest first; with `follow`, then the new ones as they come."""
        pages = self.log.tail(team, after) if follow else self.log.read(team, after)
        async for page in pages:
            for stored in page:
                yield Told(version=stored.version, event=decode_event(stored))

    async def stands(self, team: TeamId, task: TaskId) -> Standing:
        """How a task stands."""
        found = standing(await self.world(team), task)
        if found is not None:
            return found
        row = await self.log.find(team, "task", task)
        record_ = decode_archived(row) if row else None
        if not isinstance(record_, Task):
            raise Refused(Rejected(code="unknown_task", why=f"Team {team!r} has no task {task!r}."))
        return ended(record_)

    async def wait(self, team: TeamId, task: TaskId) -> Standing:
        """Wait until a task that runs here is over, or stands still for want of something from outside."""
        host = self._hosts.get(team)
        if host is None:
            raise Refused(
                Rejected(code="not_run_here", why=f"Team {team!r} does not run here.", hint="Start it first.")
            )
        if task not in host.world.tasks:
            return await self.stands(team, task)
        with Waiting(host, task) as waiting:
            return await waiting.over

    async def fork(self, team: TeamId, at: int | None = None) -> TeamId:
        """A new team that begins as this one was when the commit at or before `at` ended; this one is not touched."""
        head = (await self.log.head(team)).version if at is None else await self._there(team, at)
        lease = await self._new_lease()
        new = TeamId(lease.stream)
        fork = ForkTeam(team_id=new, origin=Origin(team_id=team, version=head))
        try:
            await fork_log(self.log, team, lease, fork, at=at, now=self._clock.now())
            await rebuild_archive(self.log, new)
        except BaseException:
            await self.log.release(lease)
            await self.log.forget(new)
            raise
        await self.log.release(lease)
        return new

    def _alone(self, team: TeamId) -> asyncio.Lock:
        """Held by whoever becomes or ceases to be the team's owner here: one at a time."""
        return self._doors.setdefault(team, asyncio.Lock())

    async def _own(self, team: TeamId, *, force: bool = False) -> Host:
        lease = await self.log.acquire(team, self._owner, force=force)
        if isinstance(lease, Held):
            raise RunsElsewhere(
                f"Team {team!r} runs already, in {lease.owner}. Watch it with `greenroom events {team} --follow`, "
                "or end that process first."
            )
        host = await self._opened(lease)
        self._hosts[team] = host
        return host

    async def _opened(self, lease: Lease, *, is_new: bool = False) -> Host:
        """The team's host; where none comes about, the lease is given back."""
        try:
            return await Host.open(self.log, lease, clock=self._clock, is_new=is_new)
        except BaseException:
            await self.log.release(lease)
            raise

    async def _asked_here(self, team: TeamId, intents: Sequence[Intent]) -> bool:
        """Ask the host of this process, or be it for a moment; False when the team runs elsewhere."""
        host = self._hosts.get(team)
        if host is None:
            async with self._alone(team):
                host = self._hosts.get(team)
                if host is None:
                    return await self._visited(team, lambda visitor: _accepted(visitor, *intents))
        await _accepted(host, *intents)
        return True

    async def _visited(self, team: TeamId, work: Callable[[Host], Awaitable[None]]) -> bool:
        """Own a team that nobody runs for as long as it takes to change something; False when somebody does."""
        lease = await self.log.acquire(team, self._owner)
        if isinstance(lease, Held):
            return False
        visitor = await self._opened(lease)
        try:
            await work(visitor)
        finally:
            await visitor.close()
        return True

    async def _through_inbox(self, team: TeamId, intent: Intent, timeout: float) -> None:
        name = f"{self._owner}.{secrets.token_hex(6)}"
        row = InboxRow(intent_id=name, by="inbox", data=encode_intent(intent), put_at=self._clock.now())
        await self.log.put(team, row)
        async with asyncio.timeout(timeout):
            refused = decode_outcome(await self._answer(team, name))
        if refused is not None:
            raise Refused(refused)

    async def _answer(self, team: TeamId, name: str) -> bytes:
        while True:
            try:
                return await asyncio.wait_for(self.log.answer(team, name), ORPHANED_AFTER)
            except TimeoutError:
                await self._serve_orphan(team)

    async def _serve_orphan(self, team: TeamId) -> None:
        """An owner that ended with somebody's intent in its inbox will not take it: take it here."""
        if await self.log.holder(team) is not None:
            return
        async with self._alone(team):
            await self._visited(team, self._take_all)

    async def _take_all(self, visitor: Host) -> None:
        for row in await self.log.waiting(visitor.lease.stream):
            await visitor.take(row)


def _is_there(team: TeamId) -> Refused:
    return Refused(Rejected(code="team_exists", why=f"There is a team {team!r} already."))


def _checked(*intents: Intent) -> Sequence[Intent]:
    """The intents as the log would have them, whichever way they go there; `Refused` at the first that cannot be."""
    wanted = list[Intent]()
    for intent in map(checked_intent, intents):
        if isinstance(intent, Rejected):
            raise Refused(intent)
        wanted.append(intent)
    return wanted


async def _accepted(host: Host, *intents: Intent) -> None:
    _accept(await host.submit(*intents, by=DOOR))


def _accept(verdicts: Iterable[Rejected | None]) -> None:
    for refused in verdicts:
        if refused is not None:
            raise Refused(refused)
