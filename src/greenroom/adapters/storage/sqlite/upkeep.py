"""What keeps the store small and tells whether it is sound. It works in small bites, between the appends."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.sqlite import changes, queries
from greenroom.adapters.storage.sqlite.blobs import BlobFiles
from greenroom.adapters.storage.sqlite.readers import Readers
from greenroom.adapters.storage.sqlite.tickets import Answer, Writing
from greenroom.core.base.errors import StoreFault

UNNAMED_AGE: Final = 3600.0
"""Seconds. A blob is written before the event that names it: a young one may be waiting for its event."""

ANSWERED_AGE: Final = 86400.0
"""Seconds. After a day nobody asks for an answer any more."""

VACUUM: Final = 2000
"""Pages given back at once."""


class Upkeep:
    """Collecting and checking."""

    def __init__(
        self, path: Path, *, writer: Writing, readers: Readers, blobs: BlobFiles, clock: Callable[[], float]
    ) -> None:
        self._path = path
        self._writer = writer
        self._readers = readers
        self._blobs = blobs
        self._clock = clock

    async def collect(self) -> int:
        """Drop what nothing refers to, give the room back to the system; returns the bytes freed."""
        before = await self._readers.run(self._size)
        limit = int((self._clock() - ANSWERED_AGE) * 1000)
        await self._writer.change(partial(drop_answered, before=limit))
        for number in await self._readers.ask(queries.forgotten):
            await self.sweep(number)
        freed = await self._collect_blobs()
        free = await self._writer.change(free_pages, mode="bare")
        while free > (left := await self._writer.change(shrink, mode="bare")):
            free = left
        await self._writer.change(truncate_wal, mode="bare")
        return freed + max(0, before - await self._readers.run(self._size))

    async def sweep(self, number: int) -> None:
        """Delete all rows of a forgotten stream."""
        while not await self._writer.change(partial(changes.sweep, number=number)):
            pass

    async def check(self) -> Sequence[str]:
        """What is wrong with the tables and the blobs."""
        found = list(await self._readers.ask(queries.damage))
        after = ""
        while page := await self._readers.ask(partial(queries.named, after=after)):
            found += await self._readers.run(partial(self._damaged, page))
            after = page[-1]
        return found

    async def _collect_blobs(self) -> int:
        before = self._clock() - UNNAMED_AGE
        freed = 0
        for digests in await self._readers.run(lambda: [page for page in self._blobs.old(before) if page]):
            freed += await self._writer.change(partial(self._remove_unnamed, digests=digests, before=before))
        return freed

    def _remove_unnamed(self, db: sqlite3.Connection, digests: Sequence[str], before: float) -> Answer[int]:
        # In a write transaction: no append names one of them between the question and the deletion.
        return sum(self._blobs.remove(digest, before) for digest in queries.unnamed(db, digests)), None

    def _damaged(self, digests: Sequence[str]) -> Sequence[str]:
        found = []
        for digest in digests:
            try:
                self._blobs.get(digest)
            except StoreFault as fault:
                found.append(str(fault))
        return found

    def _size(self) -> int:
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())


def drop_answered(db: sqlite3.Connection, before: int) -> Answer[None]:
    """Delete the inbox rows that were answered before then."""
    db.execute("DELETE FROM inbox WHERE answered_at < ?", (before,))
    return None, None


def free_pages(db: sqlite3.Connection) -> Answer[int]:
    """How many pages of the file hold nothing."""
    return db.execute("PRAGMA freelist_count").fetchone()[0], None


def shrink(db: sqlite3.Connection) -> Answer[int]:
    """Give some free pages back to the system; how many are left."""
    db.execute(f"PRAGMA incremental_vacuum({VACUUM})").fetchall()
    return free_pages(db)


def truncate_wal(db: sqlite3.Connection) -> Answer[None]:
    """Empty the WAL, unless somebody reads an old page of it just now."""
    (patience,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 100")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")
    return None, None
