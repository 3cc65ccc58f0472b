"""Equipment: what comes to the tools of the house from one source, be it a folder, a package or a server."""

from __future__ import annotations

from collections.abc import Iterable

from greenroom.app.hands.guarded import After
from greenroom.app.kit import Closing
from greenroom.core.base.records import record
from greenroom.core.ports.tool import ToolExecutor


@record
class Equipment:
    """Tools, who hears of calls afterwards, and how it ends. `notes` say what is not there, and what to do about it;
    `unagreed` what only waits for a person's trust."""

    tools: tuple[ToolExecutor, ...] = ()
    after: tuple[After, ...] = ()
    notes: tuple[str, ...] = ()
    unagreed: tuple[str, ...] = ()
    closing: tuple[Closing, ...] = ()


def together(some: Iterable[Equipment]) -> Equipment:
    """All of it, in this order."""
    every = tuple(some)
    return Equipment(
        tools=tuple(tool for one in every for tool in one.tools),
        after=tuple(after for one in every for after in one.after),
        notes=tuple(note for one in every for note in one.notes),
        unagreed=tuple(note for one in every for note in one.unagreed),
        closing=tuple(closing for one in every for closing in one.closing),
    )
