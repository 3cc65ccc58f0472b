"""Conversation windows: a thread's ended steps, read once from the log and then updated by each commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast, overload

from greenroom.actors.payload import restore_result
from greenroom.core.base.ids import ThreadId
from greenroom.core.ports.log import Blobs
from greenroom.core.state.archive import ArchiveEntry
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.thread import ThreadClosed, WindowMoved


class Window(Sequence[Step]):
    """The ended steps at the time of reading. Not a copy: the underlying list only grows at its end."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps
        self._length = len(steps)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Step]:
        return islice(self._steps, self._length)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        places = range(self._length)[index]
        return self._steps[places] if isinstance(places, int) else [self._steps[place] for place in places]


class WindowCache:
    """A cache. Everything in it can be read again after a restart.

    Results are restored in full, however long; `_restored` counts those steps per thread.
    """

    def __init__(self, load: Callable[[ThreadId], Awaitable[Sequence[Step]]], blobs: Blobs) -> None:
        self._load = load
        self._blobs = blobs
        self._restored: dict[ThreadId, int] = {}
        self._steps: dict[ThreadId, list[Step]] = {}
        self._missed: dict[ThreadId, list[Step]] = {}

    async def read(self, thread: ThreadId) -> Sequence[Step]:
        """Return the ended steps in the thread's window, oldest first."""
        if thread not in self._steps:
            missed = self._missed.setdefault(thread, [])
            steps = list(await self._load(thread))
            known = {step.step_id for step in steps}
            steps += [step for step in missed if step.step_id not in known]
            self._missed.pop(thread, None)
            self._steps.setdefault(thread, steps)
        await self._restore_results(thread)
        return Window(self._steps[thread])

    async def _restore_results(self, thread: ThreadId) -> None:
        steps = self._steps[thread]
        for place in range(self._restored.get(thread, 0), len(steps)):
            if steps[place].blobs:
                steps[place] = await restore_result(steps[place], self._blobs)
        self._restored[thread] = len(steps)

    def follow(self, events: Iterable[Event], archived: Iterable[ArchiveEntry]) -> None:
        """Update the windows after a commit."""
        if not self._steps and not self._missed:
            return
        tables = (self._steps, self._missed) if self._missed else (self._steps,)
        for row in archived:
            for table in tables:
                if row.kind == "step" and row.owner in table:
                    table[ThreadId(row.owner)].append(cast("Step", row.record))
        for event in events:
            if type(event) is ThreadClosed:
                self._steps.pop(event.thread_id, None)
                self._restored.pop(event.thread_id, None)
            elif type(event) is WindowMoved and event.thread_id in self._steps:
                kept = self._steps[event.thread_id]
                self._steps[event.thread_id] = [step for step in kept if step.ended_in >= event.window_from]
                self._restored.pop(event.thread_id, None)
