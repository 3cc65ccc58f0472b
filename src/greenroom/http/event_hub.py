"""The live stream of all runs: one tail per run feeds every watcher, and every row is encoded once.

A watcher pulls: it has a version per run and takes what came after it. There is no queue that a slow one could fill: a
watcher that falls behind what is in memory reads the log until it has caught up.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from greenroom.app.context import AppContext
from greenroom.app.messages import set_task_language
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.codec import decode_event
from greenroom.core.ports.executor import LiveEvent, ToolPrinted
from greenroom.core.ports.log import StoredEvent, StreamInfo
from greenroom.core.ports.model import Failed, Finished, ModelReasoningDelta, ModelTextDelta
from greenroom.core.state.events import Event
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.http.schemas import LiveText, Run
from greenroom.http.state_reader import StateReader, describe_row

FRAME_S: Final = 0.1
RUNS_CHECK_S: Final = 0.5
PING_S: Final = 10.0
MAX_ROWS: Final = 5_000
MAX_FRAMES: Final = 200
"""Rows of a run, and other frames, that stay in memory."""

MAX_CHANGED_RUNS: Final = 50
BACKLOG_PAGE: Final = 500
MAX_PAGES: Final = 8
"""Events of a page of older ones, and pages that the watchers of a run share."""

MAX_FRAME: Final = 256_000
"""Bytes of events after which a frame ends. A larger event is alone in its frame."""

RETRY_MS: Final = 500
RETRY_STEP_MS: Final = 97
RETRY_SPREAD_MS: Final = 2_000
"""When watchers come back after the server was gone: not all at once."""

PING: Final = b": ping\n\n"
ENDED: Final = b"event: error\ndata: {}\n\n"
"""The last frame of a stream: its watcher connects again."""

MAX_HELD: Final = 512
OPEN_WORD: Final = re.compile(r"[!-~]+\Z")
"""The word at the end of a text that may go on, as a key does. Live text waits for its end, if it is not longer."""


@dataclass(slots=True)
class TailRow:
    """An event of a run, encoded when a watcher wants it in a language. `state` is the state before it."""

    run: TeamId
    stored: StoredEvent
    event: Event
    state: TeamState
    encoded: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def encode(self, language: str) -> tuple[str, bytes]:
        """Return the event's agent, and its row as JSON."""
        if language not in self.encoded:
            row = describe_row(self.run, self.state, self.stored, self.event, language)
            data = msgspec.json.encode({**row.model_dump(), "data": msgspec.Raw(self.stored.data)})
            self.encoded[language] = (row.agent, data)
        return self.encoded[language]


class SentRow(NamedTuple):
    """An event as watchers get it."""

    version: int
    type: str
    agent: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a watcher wants: events of runs after a version each, None for now, of these types and this agent."""

    runs: Mapping[TeamId, int | None]
    types: Collection[str] = ()
    agent: str = ""
    language: str = "en"
    is_allowed: Callable[[], bool] = lambda: True


class RunTail:
    """The newest events of a run, followed as long as it has watchers."""

    def __init__(self, run: TeamId, state: TeamState) -> None:
        self.run = run
        self.state = state
        self.watchers = 0
        self.task: asyncio.Task[None] | None = None
        self._rows: deque[TailRow] = deque(maxlen=MAX_ROWS)
        self._bodies: dict[tuple[int, int, str], tuple[bytes, int]] = {}
        self._pages: OrderedDict[tuple[int, int, str], Sequence[SentRow]] = OrderedDict()
        self._reading = asyncio.Lock()

    @property
    def version(self) -> int:
        """The version of its last event."""
        return self.state.version

    def add(self, stored: StoredEvent) -> None:
        """Add the next event."""
        event = decode_event(stored)
        self._rows.append(TailRow(self.run, stored, event, self.state))
        self.state = reduce(self.state, event)
        self._bodies.clear()

    def has_all_after(self, version: int) -> bool:
        """Return whether every event after a version is in memory."""
        return version >= self.version - len(self._rows)

    async def read_page(self, reader: StateReader, version: int, language: str) -> Sequence[SentRow]:
        """Return the older events of the page that follows a version. Watchers share it."""
        begin = version - version % BACKLOG_PAGE
        async with self._reading:
            end = min(begin + BACKLOG_PAGE, self.version - len(self._rows))
            key = (begin, end, language)
            if key not in self._pages:
                rows = await reader.describe(self.run, range(begin + 1, end + 1), language)
                self._pages[key] = [
                    SentRow(row.version, row.type, row.agent, row.model_dump_json().encode()) for row in rows
                ]
                if len(self._pages) > MAX_PAGES:
                    self._pages.popitem(last=False)
            return [row for row in self._pages[key] if row.version > version]

    def encode_after(self, version: int, wanted: Subscription) -> tuple[bytes, int]:
        """Return the wanted events after a version as JSON, with commas between them, and the version they reach."""
        key = (version, self.version, wanted.language)
        is_shared = not wanted.types and not wanted.agent
        if is_shared and key in self._bodies:
            return self._bodies[key]
        skipped = max(0, len(self._rows) - (self.version - version))
        rows = (self._rows[place] for place in range(skipped, len(self._rows)))
        sent = (SentRow(row.stored.version, row.stored.type, *row.encode(wanted.language)) for row in rows)
        joined = _join_rows(sent, wanted)
        if is_shared:
            self._bodies[key] = joined
        return joined


class EventHub:
    """The tails of the runs that are watched, the runs that changed, and text that is not in the log yet."""

    def __init__(self, app: AppContext, runtime: Runtime, reader: StateReader) -> None:
        self.describe_run: Callable[[StreamInfo], Awaitable[Run]]
        self._runtime = runtime
        self._reader = reader
        self._app = app
        self._tails: dict[TeamId, RunTail] = {}
        self._frames: deque[tuple[int, TeamId | None, str, bytes]] = deque(maxlen=MAX_FRAMES)
        self._number = 0
        self._inbox: int | None = None
        self._changed = asyncio.Event()
        self._pending: dict[TeamId, list[LiveText]] = {}
        self._begun: set[str] = set()
        self._held: dict[str, LiveText] = {}
        self._watchers = list[str]()  # their languages
        self._runs_task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def watch(self, wanted: Subscription) -> AsyncGenerator[bytes, None]:
        """Yield frames of server-sent events until the watcher or the server ends."""
        self._watchers.append(wanted.language)
        if self._runs_task is None:
            self._runs_task = self._begin(self._follow_runs(), "runs")
        number, tails, cursors, tasks = self._number, list[RunTail](), dict[TeamId, int](), [self._runs_task]
        try:
            for run, after in wanted.runs.items():
                tail = await self._open_tail(run)
                tails.append(tail)
                tasks += [tail.task] if tail.task is not None else []
                cursors[run] = tail.version if after is None else min(after, tail.version)
            retry = RETRY_MS + len(self._watchers) * RETRY_STEP_MS % RETRY_SPREAD_MS
            yield b"retry: %d\n" % retry + _frame("inbox", b'{"count":%d}' % (self._inbox or 0))
            while not self._is_closed and wanted.is_allowed() and not any(task.done() for task in tasks):
                changed, frames = self._changed, list[bytes]()
                for tail in tails:
                    frames.append(await self._take_events(tail, cursors, wanted))
                frames += [
                    frame
                    for at, run, language, frame in self._frames
                    if at > number and (run is None or run in cursors) and language in ("", wanted.language)
                ]
                number = self._number
                if data := b"".join(frames):
                    yield data
                elif all(cursors[tail.run] == tail.version for tail in tails) and not await _wait(changed, PING_S):
                    yield PING
            yield ENDED
        except GreenroomError as error:
            logging.getLogger(__name__).info("A watcher is sent away: %s", error)
            yield ENDED
        finally:
            self._watchers.remove(wanted.language)
            for tail in tails:
                self._leave_tail(tail)
            if not self._watchers and self._runs_task is not None:
                self._runs_task.cancel()
                self._runs_task = None

    async def _take_events(self, tail: RunTail, cursors: dict[TeamId, int], wanted: Subscription) -> bytes:
        """Return the frame of what came after the watcher's version, and move that on."""
        before = cursors[tail.run]
        if before == tail.version:
            return b""
        if tail.has_all_after(before):
            body, cursors[tail.run] = tail.encode_after(before, wanted)
        else:
            rows = await tail.read_page(self._reader, before, wanted.language)
            body, cursors[tail.run] = _join_rows(rows, wanted)
        name = ",".join(f"{run}:{version}" for run, version in cursors.items())
        return _frame("events", b"[%b]" % body, name) if body else b""

    async def _open_tail(self, run: TeamId) -> RunTail:
        state = await self._reader.read(run)
        tail = self._tails.setdefault(run, RunTail(run, state))
        tail.watchers += 1
        if tail.task is None:
            tail.task = self._begin(self._follow(tail), f"tail {run}")
        return tail

    def _begin(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Start a task whose end, if an error is its cause, is logged and ends the streams that need it."""

        def end(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()):
                logging.getLogger(__name__).error("%s is no longer followed", name, exc_info=error)
                self._tails = {run: tail for run, tail in self._tails.items() if tail.task is not task}
                self._runs_task = None if self._runs_task is task else self._runs_task
                self._notify()

        task = asyncio.create_task(work, name=name)
        task.add_done_callback(end)
        return task

    def _leave_tail(self, tail: RunTail) -> None:
        tail.watchers -= 1
        if not tail.watchers and tail.task is not None:
            tail.task.cancel()
            if self._tails.get(tail.run) is tail:
                del self._tails[tail.run]

    async def _follow(self, tail: RunTail) -> None:
        """Add new events to a tail, at most one frame in `FRAME_S`."""
        async for page in self._runtime.log.tail(tail.run, tail.version):
            for stored in page:
                tail.add(stored)
            self._reader.keep_newest(tail.run, tail.state)
            self._notify()
            await asyncio.sleep(FRAME_S)

    async def _follow_runs(self) -> None:
        """Publish the rows of runs that changed, in any process, and how many requests wait for a person."""
        seen: dict[str, tuple[object, ...]] | None = None
        while True:
            try:
                infos = await self._runtime.log.streams()
                marks: dict[str, tuple[object, ...]] = {}
                marks |= {info.stream: (info.head.version, info.owner, info.questions) for info in infos}
                known, seen = seen if seen is not None else marks, marks
                changed = [info for info in infos if info.head.version and known.get(info.stream) != marks[info.stream]]
                # Without an owner, only requests for approval wait for a person.
                waiting = [info for info in infos if info.head.version and (info.questions != 0 or info.owner)]
                if changed or self._inbox is None:
                    await self._publish_runs(changed[-MAX_CHANGED_RUNS:], waiting)
            except GreenroomError as error:
                logging.getLogger(__name__).warning("The runs cannot be read: %s", error)
            await asyncio.sleep(RUNS_CHECK_S)

    async def _publish_runs(self, changed: Sequence[StreamInfo], waiting: Sequence[StreamInfo]) -> None:
        for language in set(self._watchers) if changed else ():
            set_task_language(language)
            rows = [await self.describe_run(info) for info in changed]
            body = b",".join(row.model_dump_json().encode() for row in rows)
            self._publish(None, "runs", b"[%b]" % body, language)
        inbox = sum([(await self.describe_run(info)).waits_for_me for info in waiting])
        if inbox != (self._inbox or 0):
            self._publish(None, "inbox", b'{"count":%d}' % inbox)
        self._inbox = inbox

    def show_live(self, run: TeamId, step: Step, event: LiveEvent) -> None:
        """Publish a piece of a reply or of a tool's output. It is not in the log yet."""
        if not self._watchers:
            self._held.clear()
            return
        pieces, is_first = self._pending.setdefault(run, []), not any(self._pending.values())
        begin = LiveText(run=run, agent=step.agent_id, step=step.step_id, type="agent_start")
        name = f"{run}/{step.step_id}/{step.attempt}"
        if name not in self._begun and not isinstance(event, ToolPrinted):
            self._begun = {name} if len(self._begun) >= MAX_ROWS else self._begun | {name}
            pieces.append(begin)
        held = self._held.pop(name, None)
        is_text = isinstance(event, ModelTextDelta | ModelReasoningDelta)
        chunk = "content" if isinstance(event, ModelTextDelta) else "reasoning"
        if held is not None and not (is_text and held.chunk == chunk):
            pieces.append(held)
            held = None
        match event:
            case ModelTextDelta() | ModelReasoningDelta():
                text = (held.text if held is not None else "") + event.text
                found = OPEN_WORD.search(text)
                end = found.start() if found is not None else len(text)
                if len(text) - end > MAX_HELD:
                    end = self._app.model_session.redaction.find_open_end(text)
                piece = begin.model_copy(update={"type": "llm_chunk", "chunk": chunk, "text": text[:end]})
                pieces += [piece] if piece.text else []
                if text[end:] and len(self._held) < MAX_ROWS:
                    self._held[name] = piece.model_copy(update={"text": text[end:]})
            case ToolPrinted():
                pieces.append(begin.model_copy(update={"type": "tool_output", "text": event.text}))
            case Finished() | Failed():
                self._begun.discard(name)
                pieces += [begin.model_copy(update={"type": kind}) for kind in ("llm_complete", "agent_complete")]
            case _:
                pass
        if pieces and is_first:
            asyncio.get_running_loop().call_later(FRAME_S, self._publish_live)

    def _publish_live(self) -> None:
        redact = self._app.model_session.redaction.text
        for run, pieces in self._pending.items():
            joined = list[LiveText]()
            for piece in pieces:
                last = joined[-1] if joined else None
                if last is not None and last.model_copy(update={"text": ""}) == piece.model_copy(update={"text": ""}):
                    joined[-1] = last.model_copy(update={"text": last.text + piece.text})
                else:
                    joined.append(piece)
            clean = [piece.model_copy(update={"text": redact(piece.text)}) for piece in joined]
            if clean:
                self._publish(run, "live", b"[%b]" % b",".join(piece.model_dump_json().encode() for piece in clean))
        self._pending.clear()

    def _publish(self, run: TeamId | None, kind: str, data: bytes, language: str = "") -> None:
        self._number += 1
        self._frames.append((self._number, run, language, _frame(kind, data)))
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def close(self) -> None:
        """End all watchers."""
        self._is_closed = True
        self._notify()


def _join_rows(rows: Iterable[SentRow], wanted: Subscription) -> tuple[bytes, int]:
    """Return the wanted rows as JSON, with commas between them, until a frame is full, and the version they reach."""
    chosen, size, version = list[bytes](), 0, 0
    for row in rows:
        is_wanted = (not wanted.types or row.type in wanted.types) and wanted.agent in ("", row.agent)
        if is_wanted and chosen and size + len(row.data) > MAX_FRAME:
            break
        if is_wanted:
            chosen.append(row.data)
            size += len(row.data)
        version = row.version
    return b",".join(chosen), version


def _frame(kind: str, data: bytes, name: str = "") -> bytes:
    """Return a frame of server-sent events. JSON has no line breaks."""
    head = f"event: {kind}\n" + (f"id: {name}\n" if name else "")
    return b"%bdata: %b\n\n" % (head.encode(), data)


async def _wait(changed: asyncio.Event, seconds: float) -> bool:
    """Wait for a change. Return False if there was none in time."""
    try:
        return await asyncio.wait_for(changed.wait(), seconds)
    except TimeoutError:
        return False
