"""Conversation windows: the ended steps of a thread, read from the archive once and then kept up with the commits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast, overload

from greenroom.actors.payload import made_whole
from greenroom.core.base.ids import ThreadId
from greenroom.core.ports.log import Blobs
from greenroom.core.state.archive import Archived
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.thread import ThreadClosed, WindowMoved


class Window(Sequence[Step]):
    """The steps that had ended when somebody looked. Not a copy: what it is part of only grows at its end."""

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


class Windows:
    """A cache: everything in it can be read again from the archive after a restart.

    What was said in a conversation is whole in it, however long; `whole` is how much of each is known to be.
    """

    def __init__(self, load: Callable[[ThreadId], Awaitable[Sequence[Step]]], blobs: Blobs) -> None:
        self._load = load
        self._blobs = blobs
        self._whole: dict[ThreadId, int] = {}
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
        await self._make_whole(thread)
        return Window(self._steps[thread])

    async def _make_whole(self, thread: ThreadId) -> None:
        steps = self._steps[thread]
        for place in range(self._whole.get(thread, 0), len(steps)):
            if steps[place].blobs:
                steps[place] = await made_whole(steps[place], self._blobs)
        self._whole[thread] = len(steps)

    def follow(self, events: Iterable[Event], archived: Iterable[Archived]) -> None:
        """Keep up with a commit."""
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
                self._whole.pop(event.thread_id, None)
            elif type(event) is WindowMoved and event.thread_id in self._steps:
                kept = self._steps[event.thread_id]
                self._steps[event.thread_id] = [step for step in kept if step.ended_in >= event.window_from]
                self._whole.pop(event.thread_id, None)
