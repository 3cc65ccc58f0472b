"""The history of a run: its events in pages, the timeline, and what its agents did over time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from greenroom.app.messages import current_language
from greenroom.app.words import shorten
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.codec import decode_data
from greenroom.core.ports.log import StoredEvent
from greenroom.http.context import MAX_NUMBER, At, Context, Limit, RunPath, ServerContext, read_cursor
from greenroom.http.event_hub import Subscription
from greenroom.http.schemas import EventRow, Fields, Page
from greenroom.http.state_reader import WAITING, WITH_MODEL, IndexedEvent, RunIndex

MAX_SPAN: Final = 3_000
"""Events that one page reads at most. A page of rare events may have fewer rows and still a next one."""

MAX_RUNS: Final = 20
MAX_MARKS: Final = 200
MAX_BARS: Final = 200
MIN_BARS: Final = 20
MAX_ALL_BARS: Final = 20_000
"""Marks of a timeline, and bars of an agent and of all."""

BarKind: TypeAlias = Literal["model", "tool", "wait", "approval"]
MarkKind: TypeAlias = Literal["approval", "failure", "conflict", "verdict", "person"]

MARK_KINDS: Final[Mapping[str, MarkKind]] = {
    "ApprovalRequested": "approval",
    "ApprovalAnswered": "person",
    "SubtaskEnded": "failure",
    "StepEnded": "failure",
    "TaskEnded": "verdict",
}
SLOTS: Final = {
    "StepStarted": ("step", True),
    "StepEnded": ("step", False),
    "StepInterrupted": ("step", False),
    "ApprovalRequested": ("approval", True),
    "ApprovalAnswered": ("approval", False),
    "ApprovalVoided": ("approval", False),
    "MessageSent": ("wait", True),
    "WaitReleased": ("wait", False),
}
"""The events that begin and end a bar, and what an agent has one of at a time: a step, an approval, a wait."""

SLOT_KINDS: Final[Mapping[str, BarKind]] = {"step": "tool", "approval": "approval", "wait": "wait"}


class Bucket(Fields):
    """A part of the timeline: its last version, its time, and how many events happened since the one before."""

    version: int
    at: int
    events: int


class Mark(Fields):
    """A moment worth a look."""

    version: int
    at: int
    kind: MarkKind
    text: str


class Timeline(Fields):
    """The density of events over a run."""

    head: int
    begins: int
    ends: int
    buckets: list[Bucket]
    marks: list[Mark]


class Bar(Fields):
    """What an agent did from one time to another. Bars that are too short to see are one bar of several `steps`."""

    kind: BarKind
    begins: int
    ends: int | None
    step: str = ""
    subtask: str = ""
    text: str = ""
    steps: int = 1


class Lane(Fields):
    """The bars of one agent, oldest first."""

    agent: str
    bars: list[Bar]


class Gantt(Fields):
    """What all agents did over time."""

    at: int
    begins: int
    ends: int
    lanes: list[Lane]


router = APIRouter(tags=["events"])
Version = Annotated[int | None, Query(ge=0, le=MAX_NUMBER)]


@router.get("/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
async def stream_events(
    context: Context,
    request: Request,
    *,
    run: Annotated[list[str] | None, Query(max_length=MAX_RUNS)] = None,
    after: Annotated[str, Query(max_length=2_000, description="run:version,run2:version")] = "",
    types: Annotated[str, Query(alias="type", max_length=500)] = "",
    agent: Annotated[str, Query(max_length=200)] = "",
    last_event_id: Annotated[str, Header(max_length=2_000)] = "",
) -> StreamingResponse:
    """Stream what happens: events of the named runs, live text, rows of runs that changed, the length of the inbox."""
    cursors = _read_cursors(last_event_id or after)
    known = [await context.reader.find_run(name) for name in run or ()]
    wanted = Subscription(
        runs={name: cursors.get(name) for name in known},
        types=frozenset(filter(None, types.split(","))),
        agent=agent,
        language=current_language().partition("-")[0],
        is_allowed=request.scope["is_logged_in"],
    )
    return StreamingResponse(context.hub.watch(wanted), media_type="text/event-stream")


def _read_cursors(text: str) -> dict[str, int]:
    """Return the version of each run in `run:version,run2:version`."""
    pairs = [part.strip().rpartition(":") for part in text.split(",") if part.strip()]
    return {name: read_cursor(version) for name, _, version in pairs}


@router.get("/runs/{run}/events")
async def list_events(
    context: Context,
    run: RunPath,
    *,
    at: At = None,
    after: Version = None,
    before: Version = None,
    types: Annotated[str, Query(alias="type", max_length=500, description="Types, with commas between them.")] = "",
    agent: Annotated[str, Query(max_length=200)] = "",
    subtask: Annotated[str, Query(max_length=200)] = "",
    search: Annotated[str, Query(max_length=200)] = "",
    limit: Limit = 100,
) -> Page[EventRow]:
    """List events, oldest first: those after a version, those before one, or the newest."""
    index, head = await context.reader.index_at(run, at)
    if before is not None and before > index.version + 1:
        await context.reader.index_at(run, before)
    wanted_types, is_forward = frozenset(filter(None, types.split(","))), after is not None
    found: Iterable[IndexedEvent]
    if is_forward:
        found = index.rows(first=(after or 0) + 1, last=head, types=wanted_types, agent=agent)
    else:
        found = index.rows_back(last=min(head, (before or head + 1) - 1), types=wanted_types, agent=agent)
    rows = list(_take_near(found, MAX_SPAN if subtask or search else limit))
    versions = sorted(row.version for row in rows)
    shown = await context.reader.describe(run, versions, current_language().partition("-")[0])
    wanted = [
        row
        for row in shown
        if subtask in ("", row.subtask) and search.lower() in f"{row.agent} {row.type} {row.text}".lower()
    ]
    wanted = (wanted[:limit] if is_forward else wanted[-limit:]) if wanted else wanted
    edge = _find_edge(wanted, versions, limit, is_forward=is_forward)
    has_more = edge is not None and (edge < head if is_forward else edge > 1)
    return Page(items=wanted, next=str(edge) if has_more else None)


def _find_edge(wanted: Sequence[EventRow], versions: Sequence[int], limit: int, *, is_forward: bool) -> int | None:
    """Return the version from which the next page goes on; None if there were no events."""
    reached = [row.version for row in wanted] if len(wanted) == limit else versions
    return reached[-1 if is_forward else 0] if reached else None


def _take_near(rows: Iterable[IndexedEvent], limit: int) -> Iterator[IndexedEvent]:
    """Yield the first rows as long as they are near to each other: all events between them are read."""
    first: int | None = None
    for row in islice(rows, limit):
        first = row.version if first is None else first
        if abs(row.version - first) > MAX_SPAN:
            return
        yield row


@router.get("/runs/{run}/timeline")
async def read_timeline(
    context: Context, run: RunPath, at: At = None, buckets: Annotated[int, Query(ge=1, le=1_000)] = 200
) -> Timeline:
    """Show how many events happened when, and the moments worth a look."""
    index, head = await context.reader.index_at(run, at)
    begins, ends = index.time_of(1), index.time_of(head)
    width, before, shown = max(1, -(-(ends - begins + 1) // buckets)), 0, list[Bucket]()
    for number in range(buckets):
        until = min(begins + (number + 1) * width - 1, ends)
        version = min(index.find_version(until), head)
        shown.append(Bucket(version=version, at=until, events=version - before))
        before = version
        if until == ends:
            break
    return Timeline(
        head=index.version, begins=begins, ends=ends, buckets=shown, marks=await _find_marks(context, run, index, head)
    )


async def _find_marks(context: ServerContext, run: TeamId, index: RunIndex, head: int) -> list[Mark]:
    newest = [version for version in index.marks if version <= head][-MAX_MARKS:]
    events = await context.runtime.log.pick(run, newest)
    return [
        Mark(version=stored.version, at=stored.at, kind=MARK_KINDS[stored.type], text=_describe_mark(stored))
        for stored in events
    ]


def _describe_mark(stored: StoredEvent) -> str:
    fields = decode_data(stored.data)
    words = (fields.get(name) for name in ("question", "error", "summary", "reason", "answer"))
    return shorten(next((str(word) for word in words if word), str(fields.get("state", ""))))


@router.get("/runs/{run}/gantt")
async def read_gantt(context: Context, run: RunPath, at: At = None) -> Gantt:
    """Show what each agent did when. Bars that are too short to see are one bar."""
    index, head = await context.reader.index_at(run, at)
    return await asyncio.to_thread(_draw_gantt, index, head)  # a long run takes a while; streams go on meanwhile


def _draw_gantt(index: RunIndex, head: int) -> Gantt:
    begins, ends = index.time_of(1), index.time_of(head)
    lanes = _collect_bars(index, head)
    per_lane = min(MAX_BARS, max(MIN_BARS, MAX_ALL_BARS // max(len(lanes), 1)))
    smallest = (ends - begins) // per_lane
    shown = [Lane(agent=agent, bars=_merge_bars(agent, bars, smallest, ends)) for agent, bars in sorted(lanes.items())]
    return Gantt(at=head, begins=begins, ends=ends, lanes=shown)


@dataclass(slots=True)
class _Span:
    """A bar before it is merged. `ends` is None while it goes on."""

    begins: int
    ends: int | None
    kind: BarKind
    step: int
    subtask: str
    steps: int = 1


def _collect_bars(index: RunIndex, last: int) -> dict[str, list[_Span]]:
    """Return what each agent did, by its beginnings."""
    lanes, begun = dict[str, list[_Span]](), dict[tuple[str, str, int], _Span]()
    for row in index.rows(last=last, types=frozenset(SLOTS)):
        slot, is_beginning = SLOTS[row.type]
        key = (row.agent, slot, 0 if slot == "wait" else row.step)
        spans = lanes.setdefault(row.agent, [])
        if not is_beginning and key in begun:
            begun.pop(key).ends = row.at
        elif is_beginning and (slot != "wait" or row.flags & WAITING):
            kind: BarKind = "model" if row.flags & WITH_MODEL else SLOT_KINDS[slot]
            begun[key] = _Span(row.at, None, kind, 0 if slot == "wait" else row.step, row.subtask)
            spans.append(begun[key])
    return lanes


def _merge_bars(agent: str, spans: Sequence[_Span], smallest: int, now: int) -> list[Bar]:
    """Return the bars of a lane: those that begin close together are one."""
    merged = list[_Span]()
    for span in spans:
        before = merged[-1] if merged else None
        if before is None or span.begins - before.begins >= smallest or span.ends is None or before.ends is None:
            merged.append(span)
            continue
        longest = max(before, span, key=lambda part: (part.ends or now) - part.begins)
        ends = max(before.ends, span.ends)
        merged[-1] = _Span(before.begins, ends, longest.kind, longest.step, longest.subtask, before.steps + 1)
    return [
        Bar(
            kind=span.kind,
            begins=span.begins,
            ends=span.ends,
            step=f"{agent}#{span.step}" if span.step else "",
            subtask=span.subtask,
            steps=span.steps,
        )
        for span in merged
    ]
