"""Notices what other processes commit. It looks only while somebody listens."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from greenroom.adapters.storage.database import Frozen
from greenroom.adapters.storage.sqlite.readers import Readers
from greenroom.adapters.storage.watch import Watch
from greenroom.core.base.errors import WorldFault


class Poller:
    """One task that asks SQLite whether anything changed, however many listen."""

    def __init__(
        self, path: Path, readers: Readers, connect: Callable[[], sqlite3.Connection], watch: Watch, *, every: float
    ) -> None:
        self._path = path
        self._readers = readers
        self._connect = connect
        self._watch = watch
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._db: sqlite3.Connection | None = None

    @contextmanager
    def listen(self, stream: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever somebody, anywhere, may have changed the stream."""
        with self._watch.listen(stream) as event:
            self.ensure()
            yield event

    def ensure(self) -> None:
        """See that somebody looks."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll(), name="greenroom-poller")

    async def close(self) -> None:
        """Stop looking and wake everybody: they find the store closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._watch.wake_all()

    def close_connection(self) -> None:
        """Let the connection go, once no thread can be using it."""
        if self._db is not None:
            self._db.close()
            self._db = None

    async def _poll(self) -> None:
        seen = None
        try:
            while self._watch.busy:
                now = await self._readers.run(self._version)
                if now != seen:
                    seen = now
                    self._watch.wake_all()
                await asyncio.sleep(self._every)
        except WorldFault:
            self._watch.wake_all()  # each listener looks for itself and hears of it

    def _version(self) -> tuple[int, ...]:
        if self._db is None:
            self._db = self._connect()
        if isinstance(self._db, Frozen):
            self.close_connection()
            return tuple(stamp for file in beside(self._path) for stamp in stamps(file))
        return (int(self._db.execute("PRAGMA data_version").fetchone()[0]),)


def beside(path: Path) -> tuple[Path, Path]:
    """The files in which a commit shows."""
    return path, path.with_name(f"{path.name}-wal")


def stamps(file: Path) -> tuple[int, ...]:
    """What differs when somebody has written to the file; nothing when it is not there."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns
