"""The writer thread: takes all appends that wait into one group, so that one fsync serves them all."""

from __future__ import annotations

import asyncio
import queue
import threading
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
            while group := self._gather():
                with Caught() as caught:
                    self._serve(group)
                if caught.error is not None:
                    self._committer.recover()
                    for job in group:
                        job.fail(self._committer.translated(caught.error))
                self._deliver(group)
                if self._queue.empty():
                    self._committer.tidy()
        finally:
            self._end()

    def _gather(self) -> list[Job]:
        """All appends that wait, or one other change; nothing when it is time to end."""
        first = self._next.popleft() if self._next else self._queue.get()
        if first is None:
            return []
        group: list[Job] = [first]
        while isinstance(first, Appending) and len(group) < GROUP and not self._queue.empty():
            job = self._queue.get()
            if not isinstance(job, Appending):
                self._next.append(job)
                break
            group.append(job)
        return group

    def _serve(self, group: Sequence[Job]) -> None:
        if isinstance(group[0], Task):
            self._committer.run(group[0])
        else:
            self._committer.append([job for job in group if isinstance(job, Appending)])

    def _deliver(self, jobs: Sequence[Ticket]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, jobs)

    def _end(self) -> None:
        """Answer whatever is left, so that nobody waits for a thread that is gone."""
        self._closed = True
        while not self._queue.empty():
            self._next.append(self._queue.get())
        left = [job for job in self._next if job is not None]
        for job in left:
            job.fail(StoreFault(f"{self._path} was closed. Open it again."))
        self._deliver(left)
        self._committer.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._gone.set_result, None)
