"""The writer thread: takes all appends that wait into one group, so that one fsync serves them all."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from greenroom.adapters.storage.sqlite.commit import Committer
from greenroom.adapters.storage.sqlite.tickets import Appending, Caught, Mode, Task, Ticket, Work
from greenroom.adapters.storage.watch import Watch
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.log import Append

T = TypeVar("T")
Job = Appending | Task[object]

GROUP: Final = 1024

LULL: Final = 0.01
"""Seconds without work after which the writer tidies up."""

TIDY_EVERY: Final = 0.01
"""Seconds after which it does so while it is busy."""


class Writer:
    """One thread, one connection, one queue. Everything public is called from the event loop."""

    def __init__(self, path: Path, committer: Committer, watch: Watch) -> None:
        self._path = path
        self._committer = committer
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._gone = self._loop.create_future()
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._next: deque[Job | None] = deque()
        self._closed = False
        self._tidied = 0.0
        self._thread = threading.Thread(target=self._run, name="greenroom-writer", daemon=True)
        self._thread.start()

    def append(self, batch: Append) -> asyncio.Future[int]:
        """Write the batch with whatever else waits; answers the new version."""
        future: asyncio.Future[int] = self._loop.create_future()
        self._submit(Appending(future, batch))
        return future

    def change(
        self,
        work: Work[T],
        *,
        stream: str | None = None,
        mode: Mode = "transaction",
        undo: Callable[[], None] | None = None,
    ) -> asyncio.Future[T]:
        """Run this in the writer thread in a transaction of its own; `undo` when that fails."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._submit(Task(future, work, stream=stream, mode=mode, undo=undo))
        return future

    async def close(self) -> None:
        """Write what waits, then end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.shield(self._gone)
        self._thread.join()

    def _submit(self, job: Appending | Task[T]) -> None:
        if self._closed:
            raise StoreFault(f"{self._path} was closed. Open it again.")
        self._queue.put(job)

    def _settle(self, jobs: Sequence[Ticket]) -> None:
        for job in jobs:
            job.settle()
            if job.stream is not None:
                self._watch.wake(job.stream)

    # ------------------------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        try:
            while (work := self._gather()) is not None:
                jobs = work if isinstance(work, list) else (work,)
                with Caught() as caught:
                    self._serve(work)
                if caught.error is not None:
                    self._fail(jobs, caught.error)
                self._deliver(jobs)
        finally:
            self._end()

    def _gather(self) -> list[Appending] | Task[object] | None:
        """All appends that wait, or one other change; None when it is time to end."""
        first = self._next.popleft() if self._next else self._first()
        if not isinstance(first, Appending):
            return first
        group = [first]
        while not self._queue.empty() and len(group) < GROUP:
            job = self._queue.get()
            if not isinstance(job, Appending):
                self._next.append(job)
                break
            group.append(job)
        return group

    def _first(self) -> Job | None:
        """What comes next. What can wait is done when nothing comes at once, and now and then if it never stops."""
        if time.monotonic() < self._tidied + TIDY_EVERY:
            with suppress(queue.Empty):
                return self._queue.get(timeout=LULL)
        self._committer.tidy()
        self._tidied = time.monotonic()
        return self._queue.get()

    def _serve(self, work: list[Appending] | Task[object]) -> None:
        if isinstance(work, Task):
            self._committer.run(work)
        else:
            self._committer.append(work)

    def _fail(self, jobs: Sequence[Ticket], error: Exception) -> None:
        self._committer.recover()
        for job in jobs:
            job.fail(self._committer.translated(error))

    def _deliver(self, jobs: Sequence[Ticket]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, jobs)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _end(self) -> None:
        """Answer whatever is left, so that nobody waits for a thread that is gone."""
        self._closed = True
        while not self._queue.empty():
            self._next.append(self._queue.get())
        left = [job for job in self._next if job is not None]
        for job in left:
            job.fail(StoreFault(f"{self._path} was closed. Open it again."))
        self._deliver(left)
        self._committer.tidy()
        self._committer.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._gone.set_result, None)
