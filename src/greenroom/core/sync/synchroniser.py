"""The synchroniser: MAS's SyncState, the only writer of a team.

It takes all waiting intents, decides each on the state left by those before it, and appends all events in one
transaction. Then it commits the new state and publishes it. A failed append discards the tentative state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Bug, CommitUnknown, Rejection, StaleOwner, StoreFull, WorldFault
from greenroom.core.ports.codec import encode_archived, encode_event, encode_outcome
from greenroom.core.ports.log import ArchiveRow, EventBatch, Lease, Log, NewEvent, TakenIntent
from greenroom.core.rules.decide import Transition, decide
from greenroom.core.rules.intents import Intent
from greenroom.core.state.archive import ArchiveEntry
from greenroom.core.state.events import Event
from greenroom.core.state.step import list_blobs
from greenroom.core.state.team_state import TeamState
from greenroom.core.sync.bus import Bus, CommitNotice

MAX_BATCH: Final = 512
"""Maximum requests per commit. More would block the event loop too long."""

MAX_APPEND_TRIES: Final = 10
"""Maximum tries of an append when the store fails, except for a full disk: about fifteen seconds."""

CLOSING_TIMEOUT_S: Final = 2.0
"""How long closing waits, in seconds, for a log that has stopped accepting writes."""

IntentResults = list[Rejection | None]
PredictIntents = Callable[[TeamState, Sequence[Event]], Iterable[tuple[Intent, str]]]
"""Returns intents that are certain to follow, with their senders. Deciding them in the same commit saves a commit."""


def predict_nothing(_: TeamState, __: Sequence[Event]) -> Iterable[tuple[Intent, str]]:
    """Predict nothing."""
    return ()


@dataclass(slots=True, eq=False)
class _Request:
    intents: tuple[Intent, ...]
    by: str
    answer: asyncio.Future[IntentResults]
    inbox_id: str | None = None
    is_atomic: bool = False
    verdicts: IntentResults = field(default_factory=list)
    bug: Exception | None = None


@dataclass(slots=True)
class _Batch:
    """The tentative state and events of one commit."""

    state: TeamState
    events: list[Event] = field(default_factory=list)
    archived: list[ArchiveEntry] = field(default_factory=list)
    taken: list[TakenIntent] = field(default_factory=list)
    encoded: list[NewEvent] = field(default_factory=list)
    rows: list[ArchiveRow] = field(default_factory=list)

    def add(self, decided: Transition, version: int) -> None:
        """Add a transition. Add nothing if its events cannot be encoded."""
        encoded = [encode_event(event) for event in decided.events]
        if decided.archived:
            first = version + len(self.events) + 1
            self.rows += [encode_archived(row, first + at) for at, row in decided.archived if row.kind != "step"]
            self.archived += [row for _, row in decided.archived]
        self.events += decided.events
        self.encoded += encoded
        self.state = decided.state

    def mark(self) -> tuple[TeamState, int, int, int]:
        """Return the current position, for `rewind`."""
        return self.state, len(self.events), len(self.archived), len(self.rows)

    def rewind(self, mark: tuple[TeamState, int, int, int]) -> None:
        """Drop everything added since `mark`."""
        self.state, events, archived, rows = mark
        del self.events[events:], self.encoded[events:], self.archived[archived:], self.rows[rows:]


class Synchroniser:
    """The writer of one owned team. `state` and `version` are committed; readers see nothing else.

    `predict` is the exception: it may predict what follows from a commit in progress (docs/decisions/0009).

    `stopped` says why nothing more is written: another owner has the team, or the store is broken.
    """

    def __init__(
        self,
        log: Log,
        lease: Lease,
        state: TeamState,
        version: int,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.state = state
        self.version = version
        self.bus = Bus()
        self._log = log
        self._lease = lease
        self._clock = clock
        self._sleep = sleep
        self._now = 0
        self._batches = 0
        self._counted_approvals: object = None
        self._waiting: list[_Request] = []
        self._is_open = False
        self.predict: PredictIntents = predict_nothing
        self.stopped: WorldFault | None = None
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to accept requests."""
        self._is_open = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written or waits to be written."""
        return not self._waiting

    async def close(self) -> None:
        """Finish the waiting requests, then stop."""
        self._is_open = False
        while self._waiting and self.stopped is None and self.bus.trouble is None:
            await self._wait_for_answers([request.answer for request in self._waiting])
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        self._refuse(self._waiting, StaleOwner("sync.team_closed", stream=self._lease.stream))

    async def _wait_for_answers(self, answers: Sequence[asyncio.Future[IntentResults]]) -> None:
        """Wait for the answers. If the log stops accepting writes meanwhile, wait only a little longer."""
        trouble = asyncio.Event()
        unsubscribe = self.bus.subscribe_trouble(lambda message: None if message is None else trouble.set())
        answer_wait, trouble_wait = asyncio.create_task(asyncio.wait(answers)), asyncio.create_task(trouble.wait())
        try:
            await asyncio.wait((answer_wait, trouble_wait), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((answer_wait,), timeout=CLOSING_TIMEOUT_S)
        finally:
            unsubscribe()
            answer_wait.cancel()
            trouble_wait.cancel()

    def submit(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejection | None]]:
        """Submit intents; see `IntentSubmitter`."""
        return self._enqueue(_Request(intents, by, asyncio.get_running_loop().create_future()))

    def submit_atomic(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejection | None]]:
        """Submit intents that are applied together or not at all. The first rejection stops the rest."""
        return self._enqueue(_Request(intents, by, asyncio.get_running_loop().create_future(), is_atomic=True))

    async def take_from_inbox(self, inbox_id: str, intent: Intent | Rejection, by: str) -> Rejection | None:
        """Decide an intent from the inbox. Its events, its answer and its removal are one transaction."""
        intents = () if isinstance(intent, Rejection) else (intent,)
        request = _Request(intents, by, asyncio.get_running_loop().create_future(), inbox_id)
        if isinstance(intent, Rejection):
            request.verdicts.append(intent)
        return (await self._enqueue(request))[0]

    def _enqueue(self, request: _Request) -> Awaitable[IntentResults]:
        if self.stopped is not None:
            raise self.stopped
        if not self._is_open:
            raise StaleOwner("sync.team_closed", stream=self._lease.stream)
        self._waiting.append(request)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        # A caller that is cancelled while it waits only stops waiting: the request is still decided.
        return request.answer

    async def _write(self) -> None:
        """Write until no request waits. Requests from the same iteration of the event loop share a commit."""
        try:
            while self._waiting:
                await self._commit(self._waiting[:MAX_BATCH])
        except WorldFault as error:
            self._stop(error)
        except Exception as error:
            logging.getLogger(__name__).exception("The writer of %s broke", self._lease.stream)
            self._stop(WorldFault("sync.writer_broke", stream=self._lease.stream, error=error))
        finally:
            self._writer = None

    def _stop(self, why: WorldFault) -> None:
        """Stop writing, fail the waiting requests and announce why."""
        self.stopped = why
        self._refuse(self._waiting, why)
        self.bus.announce_trouble(str(why))

    def _refuse(self, requests: list[_Request], error: Exception) -> None:
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)
                request.answer.exception()
        self._waiting = []

    async def _commit(self, requests: list[_Request]) -> None:
        self._now = max(self._now, self._clock.now())
        batch = _Batch(state=self.state)
        for request in requests:
            mark = batch.mark() if request.is_atomic else None
            self._decide(batch, request)
            if mark is not None and (request.bug is not None or request.verdicts[-1] is not None):
                batch.rewind(mark)
        if batch.events:
            self._add_predicted(batch)
        if batch.events or batch.taken:
            self.version = await self._append(batch)
            self.state = batch.state
        del self._waiting[: len(requests)]
        if batch.events:
            self.bus.publish(
                CommitNotice(version=self.version, events=batch.events, state=batch.state, archived=batch.archived)
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
                decided = decide(batch.state, intent, by=request.by, now=self._now)
                if not isinstance(decided, Rejection):
                    batch.add(decided, self.version)
            except Exception as error:
                # A rule that raises, or a result that cannot be encoded, fails its own request, not the writer of the
                # team.
                logging.getLogger(__name__).exception("%s could not be done", type(intent).__name__)
                request.bug = Bug(f"{type(intent).__name__} could not be done: {error!r}")
                break
            request.verdicts.append(decided if isinstance(decided, Rejection) else None)
            if request.is_atomic and isinstance(decided, Rejection):
                break
        if request.inbox_id is not None:
            refused = request.verdicts[0] if request.verdicts else Rejection(code="bug", why=str(request.bug))
            batch.taken.append(TakenIntent(intent_id=request.inbox_id, outcome=encode_outcome(refused)))

    def _add_predicted(self, batch: _Batch) -> None:
        """Add the predicted intents. A rejected one is skipped; its sender submits it again."""
        for intent, by in self.predict(batch.state, tuple(batch.events)):
            try:
                decided = decide(batch.state, intent, by=by, now=self._now)
                if not isinstance(decided, Rejection):
                    batch.add(decided, self.version)
            except Exception:
                logging.getLogger(__name__).warning("%s was not predicted well", type(intent).__name__, exc_info=True)

    async def _append(self, batch: _Batch) -> int:
        self._batches += 1
        append = EventBatch(
            stream=self._lease.stream,
            expected_version=self.version,
            epoch=self._lease.epoch,
            batch=f"{self._lease.epoch}.{self._batches}",
            events=batch.encoded,
            archive=batch.rows,
            taken=batch.taken,
            blobs=[blob for event in batch.events for blob in list_blobs(event)],
            questions=self._count_questions(batch.state),
        )
        tries, delay, unsure = 0, 0.05, False
        while True:
            try:
                version = await self._find_commit(append) if unsure else None
                if version is None:
                    version = await self._log.append(append)
            except StaleOwner:
                raise
            except WorldFault as error:
                # Paid results stay in memory until they can be written: a full disk may take hours.
                unsure = unsure or isinstance(error, CommitUnknown)
                tries += not isinstance(error, StoreFull)
                if tries >= MAX_APPEND_TRIES:
                    raise
                self.bus.set_trouble(str(error))
                await self._sleep(delay)
                delay = min(delay * 2, 2.0)
            else:
                self.bus.set_trouble(None)
                self._counted_approvals = batch.state.approvals
                return version

    def _count_questions(self, state: TeamState) -> int | None:
        """Return how many approval requests wait for a person; None if unchanged since the last commit."""
        if state.approvals is self._counted_approvals:
            return None
        return sum(approval.state == "pending" for approval in state.approvals.values())

    async def _find_commit(self, append: EventBatch) -> int | None:
        """Return the version of an interrupted commit if it happened, or None."""
        head = await self._log.head(append.stream)
        return head.version if (head.epoch, head.batch) == (append.epoch, append.batch) else None
