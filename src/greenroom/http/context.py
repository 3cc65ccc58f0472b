"""What the routes of the HTTP API get: the server's context, and the shared query parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeVar, cast

from fastapi import Depends, Query, Request

from greenroom.app.context import AppContext
from greenroom.app.cost import TeamCosts
from greenroom.app.messages import translate
from greenroom.app.run_host import RunHost
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.pipeline import CallPreview
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.http.event_hub import EventHub
from greenroom.http.schemas import Page, Run
from greenroom.http.state_reader import StateReader

MAX_NUMBER: Final = 2**53
MAX_ROWS: Final = 2_000
MAX_COSTS: Final = 500
"""Runs whose rows and whose costs stay in memory."""

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=500, description="How many rows a page has at most.")]
Cursor = Annotated[str, Query(max_length=200, description="`next` of the page before.")]
At = Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="The version of the run to look at; the newest one.")]


@dataclass(slots=True, kw_only=True)
class ServerContext:
    """The parts of one server: its settings, models and tools, the runs of its home, their states, those that it
    hosts, and their live stream."""

    app: AppContext
    runtime: Runtime
    reader: StateReader
    host: RunHost
    hub: EventHub
    rows: OrderedDict[tuple[TeamId, str], tuple[object, Run]] = field(default_factory=OrderedDict)
    costs: OrderedDict[TeamId, TeamCosts] = field(default_factory=OrderedDict)
    previews: OrderedDict[object, CallPreview] = field(default_factory=OrderedDict)
    planned: OrderedDict[str, Amounts] = field(default_factory=OrderedDict)  # what proposals took that have not begun


def _find_context(request: Request) -> ServerContext:
    return cast("ServerContext", request.app.state.context)


Context = Annotated[ServerContext, Depends(_find_context)]


async def find_run(context: Context, run: str) -> TeamId:
    """Return the run that the path names. Raise `RefusedError` if there is none."""
    return await context.reader.find_run(run)


RunPath = Annotated[TeamId, Depends(find_run)]


def read_cursor(cursor: str) -> int:
    """Return the number in a cursor, 0 for the first page. Raise `RefusedError` if it holds none."""
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and int(cursor) <= MAX_NUMBER):
        raise make_refusal("invalid_cursor", translate("server.invalid_cursor", cursor=cursor[:40]))
    return int(cursor)


def cut_page(rows: Sequence[T], limit: int, cursor: str = "") -> Page[T]:
    """Return one page of a list that is in memory. Its cursor is the number of rows before it."""
    begin = read_cursor(cursor)
    end = begin + limit
    return Page(items=list(rows[begin:end]), next=str(end) if end < len(rows) else None, total=len(rows))
