"""The reader threads: a few connections that never wait for the writer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from greenroom.adapters.storage.database import Frozen
from greenroom.adapters.storage.sqlite.faults import translated
from greenroom.core.base.errors import StoreFault

T = TypeVar("T")

THREADS: Final = 4
"""A background check takes one of them for its whole time."""


class Readers:
    """Threads for reading and for files. Public methods are called from the event loop."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="greenroom-reader")
        self._free: list[sqlite3.Connection] = []
        self._busy: set[sqlite3.Connection] = set()
        self._closed = False

    async def ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on a connection that nobody else uses."""
        return await self.run(lambda: self._ask(query))

    async def run(self, work: Callable[[], T]) -> T:
        """Run anything that blocks."""
        self._refuse_if_closed()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._translate, work)

    def close(self) -> None:
        """Break off what is being read, and end the threads."""
        self._closed = True
        for db in tuple(self._busy):
            db.interrupt()
        self._threads.shutdown()
        while self._free:
            self._free.pop().close()

    def _translate(self, work: Callable[[], T]) -> T:
        self._refuse_if_closed()
        with translated(self._path):
            return work()

    def _ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            db = self._free.pop()
        except IndexError:
            db = self._connect()
            db.execute("PRAGMA query_only = 1")
        self._busy.add(db)
        try:
            return query(db)
        finally:
            self._busy.discard(db)
            self._keep(db)

    def _keep(self, db: sqlite3.Connection) -> None:
        """For the next question; but through a frozen one nothing new is ever seen."""
        if isinstance(db, Frozen):
            db.close()
        else:
            self._free.append(db)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreFault(f"{self._path} was closed. Open it again.")
