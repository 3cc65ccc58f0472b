"""The synchroniser: MAS's SyncState, the only writer of a team.

It takes all waiting intents, decides each on the fold of the ones before it, appends everything in one transaction,
then makes that world the committed one and publishes it. A failed append throws the tentative world away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Bug, CommitUnknown, Rejected, StaleOwner, StoreFull, WorldFault
from greenroom.core.ports.codec import encode_archived, encode_event, encode_outcome
from greenroom.core.ports.log import Append, ArchiveRow, Lease, Log, NewEvent, TakenIntent
from greenroom.core.rules.decide import Decided, decide
from greenroom.core.rules.intents import Intent
from greenroom.core.state.archive import Archived
from greenroom.core.state.events import Event
from greenroom.core.state.step import StepEnded
from greenroom.core.state.world import World
from greenroom.core.sync.bus import Bus, Commit

MAX_BATCH: Final = 512
"""How many requests go into one commit at most: more would keep the event loop too long."""

PATIENCE: Final = 10
"""How often an append is tried when the store fails for another reason than being full: about fifteen seconds."""

LAST_TRIES: Final = 2.0
"""Seconds that a team which is being closed gives a log that has just stopped taking anything."""

Verdicts = list[Rejected | None]
Foresee = Callable[[World, Sequence[Event]], Iterable[tuple[Intent, str]]]
"""What is sure to be asked for next, and by whom: decided in the same commit, which saves one."""


def foresee_nothing(_: World, __: Sequence[Event]) -> Iterable[tuple[Intent, str]]:
    """Each intent waits until it is asked for."""
    return ()


@dataclass(slots=True, eq=False)
class _Request:
    intents: tuple[Intent, ...]
    by: str
    answer: asyncio.Future[Verdicts]
    inbox_id: str | None = None
    whole: bool = False
    verdicts: Verdicts = field(default_factory=list)
    bug: Exception | None = None


@dataclass(slots=True)
class _Batch:
    """The tentative fold of one commit."""

    world: World
    events: list[Event] = field(default_factory=list)
    archived: list[Archived] = field(default_factory=list)
    taken: list[TakenIntent] = field(default_factory=list)
    encoded: list[NewEvent] = field(default_factory=list)
    rows: list[ArchiveRow] = field(default_factory=list)

    def add(self, decided: Decided, version: int) -> None:
        """Take it in, or nothing of it when it cannot be written down."""
        encoded = [encode_event(event) for event in decided.events]
        if decided.archived:
            first = version + len(self.events) + 1
            self.rows += [encode_archived(row, first + at) for at, row in decided.archived if row.kind != "step"]
            self.archived += [row for _, row in decided.archived]
        self.events += decided.events
        self.encoded += encoded
        self.world = decided.world

    def mark(self) -> tuple[World, int, int, int]:
        """Where it stands now, for `rewind`."""
        return self.world, len(self.events), len(self.archived), len(self.rows)

    def rewind(self, mark: tuple[World, int, int, int]) -> None:
        """Forget what was added since."""
        self.world, events, archived, rows = mark
        del self.events[events:], self.encoded[events:], self.archived[archived:], self.rows[rows:]


class Synchroniser:
    """One per owned team. `world` and `version` are what is committed; nobody sees anything else.

    But for `foresee`, which may say what follows from a commit that is being made (docs/decisions/0009).

    `stopped` says why nothing more is written: somebody else owns the team, or the store is broken.
    """

    def __init__(
        self,
        log: Log,
        lease: Lease,
        world: World,
        version: int,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.world = world
        self.version = version
        self.bus = Bus()
        self._log = log
        self._lease = lease
        self._clock = clock
        self._sleep = sleep
        self._now = 0
        self._batches = 0
        self._told: object = None
        self._waiting: list[_Request] = []
        self._is_open = False
        self.foresee: Foresee = foresee_nothing
        self.stopped: WorldFault | None = None
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take requests from now on."""
        self._is_open = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written, and nothing waits to be."""
        return not self._waiting

    async def close(self) -> None:
        """Finish what was asked for, then stop."""
        self._is_open = False
        while self._waiting and self.stopped is None and self.bus.trouble is None:
            await self._settled([request.answer for request in self._waiting])
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        self._refuse(self._waiting, StaleOwner(f"Team {self._lease.stream!r} is closed here."))

    async def _settled(self, answers: Sequence[asyncio.Future[Verdicts]]) -> None:
        """Wait for the answers; when it turns out meanwhile that nothing can be written, only a little longer."""
        trouble = asyncio.Event()
        hush = self.bus.subscribe_trouble(lambda said: None if said is None else trouble.set())
        answered, worried = asyncio.create_task(asyncio.wait(answers)), asyncio.create_task(trouble.wait())
        try:
            await asyncio.wait((answered, worried), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((answered,), timeout=LAST_TRIES)
        finally:
            hush()
            answered.cancel()
            worried.cancel()

    def submit(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejected | None]]:
        """Ask for changes; see the port."""
        return self._ask(_Request(intents, by, asyncio.get_running_loop().create_future()))

    def submit_whole(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejected | None]]:
        """Ask for all of these or none: after the first refusal nothing more is decided, and nothing happens."""
        return self._ask(_Request(intents, by, asyncio.get_running_loop().create_future(), whole=True))

    async def take(self, inbox_id: str, intent: Intent | Rejected, by: str) -> Rejected | None:
        """Decide an intent from the inbox: its events, its answer and its taking are one transaction."""
        intents = () if isinstance(intent, Rejected) else (intent,)
        request = _Request(intents, by, asyncio.get_running_loop().create_future(), inbox_id)
        if isinstance(intent, Rejected):
            request.verdicts.append(intent)
        return (await self._ask(request))[0]

    def _ask(self, request: _Request) -> Awaitable[Verdicts]:
        if self.stopped is not None:
            raise self.stopped
        if not self._is_open:
            raise StaleOwner(f"Team {self._lease.stream!r} is closed here.")
        self._waiting.append(request)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        # A caller that is cancelled while it waits only stops listening: the request will be decided all the same.
        return request.answer

    async def _write(self) -> None:
        """Write until nothing waits. Requests that come in the same turn of the loop share a commit."""
        try:
            while self._waiting:
                await self._commit(self._waiting[:MAX_BATCH])
        except WorldFault as error:
            self._stop(error)
        except Exception as error:
            logging.getLogger(__name__).exception("The writer of %s broke", self._lease.stream)
            self._stop(WorldFault(f"The writer of team {self._lease.stream!r} broke: {error!r}"))
        finally:
            self._writer = None

    def _stop(self, why: WorldFault) -> None:
        """Write nothing more, and see that everybody hears of it."""
        self.stopped = why
        self._refuse(self._waiting, why)
        self.bus.insist(str(why))

    def _refuse(self, requests: list[_Request], error: Exception) -> None:
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)
                request.answer.exception()
        self._waiting = []

    async def _commit(self, requests: list[_Request]) -> None:
        self._now = max(self._now, self._clock.now())
        batch = _Batch(world=self.world)
        for request in requests:
            mark = batch.mark() if request.whole else None
            self._decide(batch, request)
            if mark is not None and (request.bug is not None or request.verdicts[-1] is not None):
                batch.rewind(mark)
        if batch.events:
            self._foreseen(batch)
        if batch.events or batch.taken:
            self.version = await self._append(batch)
            self.world = batch.world
        del self._waiting[: len(requests)]
        if batch.events:
            self.bus.publish(
                Commit(version=self.version, events=batch.events, world=batch.world, archived=batch.archived)
            )
        for request in requests:
            if request.answer.done():
                continue
            if request.bug is not None:
                request.answer.set_exception(request.bug)
                request.answer.exception()
            else:
                request.answer.set_result(request.verdicts)

    def _decide(self, batch: _Batch, request: _Request) -> None:
        for intent in request.intents:
            try:
                decided = decide(batch.world, intent, by=request.by, now=self._now)
                if not isinstance(decided, Rejected):
                    batch.add(decided, self.version)
            except Exception as error:
                # A rule that raises, or a result that cannot be written, costs its asker an answer, not the team its
                # writer.
                logging.getLogger(__name__).exception("%s could not be done", type(intent).__name__)
                request.bug = Bug(f"{type(intent).__name__} could not be done: {error!r}")
                break
            request.verdicts.append(decided if isinstance(decided, Rejected) else None)
            if request.whole and isinstance(decided, Rejected):
                break
        if request.inbox_id is not None:
            refused = request.verdicts[0] if request.verdicts else Rejected(code="bug", why=str(request.bug))
            batch.taken.append(TakenIntent(intent_id=request.inbox_id, outcome=encode_outcome(refused)))

    def _foreseen(self, batch: _Batch) -> None:
        """Take in what follows from it anyway. What cannot be done now is asked for again by whoever wants it."""
        for intent, by in self.foresee(batch.world, tuple(batch.events)):
            try:
                decided = decide(batch.world, intent, by=by, now=self._now)
                if not isinstance(decided, Rejected):
                    batch.add(decided, self.version)
            except Exception:
                logging.getLogger(__name__).warning("%s was not foreseen well", type(intent).__name__, exc_info=True)

    async def _append(self, batch: _Batch) -> int:
        self._batches += 1
        append = Append(
            stream=self._lease.stream,
            expected_version=self.version,
            epoch=self._lease.epoch,
            batch=f"{self._lease.epoch}.{self._batches}",
            events=batch.encoded,
            archive=batch.rows,
            taken=batch.taken,
            blobs=[blob for event in batch.events if isinstance(event, StepEnded) for blob in event.blobs],
            questions=self._questions(batch.world),
        )
        tries, delay, unsure = 0, 0.05, False
        while True:
            try:
                version = await self._found(append) if unsure else None
                if version is None:
                    version = await self._log.append(append)
            except StaleOwner:
                raise
            except WorldFault as error:
                # What was paid for stays in memory and is written when it can be: a full disk may take hours.
                unsure = unsure or isinstance(error, CommitUnknown)
                tries += not isinstance(error, StoreFull)
                if tries >= PATIENCE:
                    raise
                self.bus.worry(str(error))
                await self._sleep(delay)
                delay = min(delay * 2, 2.0)
            else:
                self.bus.worry(None)
                self._told = batch.world.approvals
                return version

    def _questions(self, world: World) -> int | None:
        """How many questions wait for a person, for those who list them; None when that was said already."""
        if world.approvals is self._told:
            return None
        return sum(one.state == "pending" for one in world.approvals.values())

    async def _found(self, append: Append) -> int | None:
        """The version of a commit that was cut off, if it happened after all."""
        head = await self._log.head(append.stream)
        return head.version if (head.epoch, head.batch) == (append.epoch, append.batch) else None
