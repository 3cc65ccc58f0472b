"""How jobs become transactions. Everything here runs in the writer thread.

What one append does wrong does not hurt the others of its group: a stale one changes nothing, and when anything else
goes wrong the group is written again with a savepoint around each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.sqlite.append import Appender
from greenroom.adapters.storage.sqlite.faults import concerns_all, translate, translate_commit, translate_os
from greenroom.adapters.storage.sqlite.head import Mark, SideRecord
from greenroom.adapters.storage.sqlite.tickets import Appending, Caught, Task
from greenroom.core.base.errors import Bug, StoreFault

CHECKPOINT: Final = 1000
"""WAL pages (estimated) after which they are copied into the database."""


class Committer:
    """The one connection that writes."""

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        *,
        connect: Callable[[], sqlite3.Connection],
        side: SideRecord,
        appender: Appender,
    ) -> None:
        self.commits = 0
        self._path = path
        self._db = db
        self._connect = connect
        self._side = side
        self._appender = appender
        self._pages = 0
        self._newest: Mark | None = None
        place = path.stat()
        self._file = (place.st_dev, place.st_ino)

    def append(self, jobs: Sequence[Appending]) -> None:
        """Write them all in one transaction; each gets its own answer."""
        self._same_place()
        self._db.execute("BEGIN IMMEDIATE")
        if len(jobs) == 1:
            self._appender.write(self._db, jobs)
        else:
            self._write_group(jobs)
        newest = None
        for job in jobs:
            if job.mark is not None:
                newest = job.mark
                self._pages += 3 + len(job.batch.events) // 8 + len(job.batch.archive)
        if newest is None:
            self._db.execute("ROLLBACK")
            return
        self._commit(newest)
        for job in jobs:
            if job.batch.blobs and job.mark:
                self._appender.committed(job.batch)

    def _same_place(self) -> None:
        """Writing on into a file that somebody has deleted or replaced would lose everything without a word."""
        try:
            place = self._path.stat()
        except FileNotFoundError:
            place = None
        if place is None or (place.st_dev, place.st_ino) != self._file:
            raise StoreFault(f"{self._path} was deleted or replaced while it was open. Nothing more is written to it.")

    def run(self, job: Task[object]) -> None:
        """Do one other change."""
        if job.mode == "bare":
            job.run(self._db)
            return
        self._db.execute("BEGIN IMMEDIATE")
        job.run(self._db)
        self._commit(job.mark)

    def recover(self) -> None:
        """Leave no transaction open; when even that fails, start over with a new connection."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
            with suppress(sqlite3.Error):  # then every call says what is wrong, until it works again
                self._db = self._connect()

    def translated(self, error: Exception) -> Exception:
        """The error as callers shall see it."""
        if isinstance(error, sqlite3.IntegrityError):
            return Bug(f"A batch does not fit what {self._path} holds: {error}.")
        if isinstance(error, sqlite3.Error):
            return translate(error, self._path)
        return translate_os(error, self._path) if isinstance(error, OSError) else error

    def tidy(self) -> None:
        """What nobody waits for: note the newest commit beside the database, copy the WAL into it once in a while."""
        if self._newest is not None:
            self._side.write(self._newest)
            self._newest = None
        if self._pages >= CHECKPOINT:
            self._pages = 0
            with suppress(sqlite3.Error):  # costs nothing: all of it is durable where it is
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Let the connection go."""
        with suppress(sqlite3.Error):
            self._db.close()

    def _write_group(self, jobs: Sequence[Appending]) -> None:
        with Caught() as caught:
            self._appender.write(self._db, jobs)
        if caught.error is None:
            return
        if concerns_all(caught.error):
            raise caught.error
        self._db.execute("ROLLBACK")
        self._db.execute("BEGIN IMMEDIATE")
        for job in jobs:
            self._write_alone(job)

    def _write_alone(self, job: Appending) -> None:
        """One of the group is at fault: a savepoint around each."""
        self._db.execute("SAVEPOINT batch")
        with Caught() as caught:
            self._appender.write(self._db, (job,))
        if caught.error is not None:
            if concerns_all(caught.error):
                raise caught.error
            self._db.execute("ROLLBACK TO batch")
            job.fail(self.translated(caught.error))
        self._db.execute("RELEASE batch")

    def _commit(self, mark: Mark | None) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate_commit(error, self._path) from error
        self.commits += 1
        self._newest = mark or self._newest
