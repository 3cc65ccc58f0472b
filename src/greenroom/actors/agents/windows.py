"""Conversation windows: the ended steps of a thread, read from the archive once and then kept up with the commits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import cast

from greenroom.core.base.ids import ThreadId
from greenroom.core.state.archive import Archived
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.thread import ThreadClosed, WindowMoved


class Windows:
    """A cache: everything in it can be read again from the archive after a restart."""

    def __init__(self, load: Callable[[ThreadId], Awaitable[Sequence[Step]]]) -> None:
        self._load = load
        self._steps: dict[ThreadId, list[Step]] = {}
        self._missed: dict[ThreadId, list[Step]] = {}

    async def of(self, thread: ThreadId) -> Sequence[Step]:
        """The ended steps of the thread's window, oldest first."""
        if thread not in self._steps:
            missed = self._missed.setdefault(thread, [])
            found = list(await self._load(thread))
            known = {step.step_id for step in found}
            found += [step for step in missed if step.step_id not in known]
            self._missed.pop(thread, None)
            self._steps.setdefault(thread, found)
        return tuple(self._steps[thread])

    def follow(self, events: Iterable[Event], archived: Iterable[Archived]) -> None:
        """Keep up with a commit."""
        if not self._steps and not self._missed:
            return
        for row in archived:
            for table in (self._steps, self._missed):
                if row.kind == "step" and row.owner in table:
                    table[ThreadId(row.owner)].append(cast("Step", row.record))
        for event in events:
            if type(event) is ThreadClosed:
                self._steps.pop(event.thread_id, None)
            elif type(event) is WindowMoved and event.thread_id in self._steps:
                kept = self._steps[event.thread_id]
                self._steps[event.thread_id] = [step for step in kept if step.ordinal >= event.window_from]
