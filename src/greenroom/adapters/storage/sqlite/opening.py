"""How a folder becomes an open store: look first, without writing; then open the one connection that writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from greenroom.adapters.storage.sqlite.faults import translated
from greenroom.adapters.storage.sqlite.head import SideRecord, holds
from greenroom.adapters.storage.sqlite.schema import FILE, bear, connect, examine
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import SCHEMA

OLDEST_SQLITE = (3, 35, 0)


class Opening:
    """The folder of one store, and its connections."""

    def __init__(self, home: Path, *, timeout: float, connection: type[sqlite3.Connection]) -> None:
        self.home = home
        self.path = home / FILE
        self.side = SideRecord(home)
        self.connect = partial(connect, self.path, timeout=timeout, connection=connection)

    def open(self, *, accept_loss: bool) -> sqlite3.Connection:
        """The writing connection of a store that is sound, ours and not too new."""
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreFault(f"SQLite {sqlite3.sqlite_version} is too old: use a Python with SQLite 3.35 or newer.")
        with translated(self.home):
            for folder in (self.home, self.home / "blobs", self.home / "leases"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._look(accept_loss=accept_loss)
        db = self.connect_writer()
        self.side.open()
        if accept_loss:
            self.side.reset()
        return db

    def connect_writer(self) -> sqlite3.Connection:
        """A connection that commits durably, and is seen to be able to write."""
        db = self.connect()
        try:
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = 1")  # macOS: an ordinary fsync stops at the drive's cache
            # The writer checkpoints between groups, after everybody was answered; this is the net below it.
            db.execute("PRAGMA wal_autocheckpoint = 4000")
            db.execute("PRAGMA cache_size = -32768")  # 32 MB: the newest page of each of many streams
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE meta SET value = ?1 WHERE key = 'schema' AND value < ?1", (SCHEMA,))
            db.execute("COMMIT")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _look(self, *, accept_loss: bool) -> None:
        mark = self.side.read()  # before the database: it is written after it, so it is never ahead
        if not self.path.exists():
            if mark is not None and not accept_loss:
                raise self.side.lost(self.path)
            bear(self.path)
        # Read-only: closing an ordinary connection would tidy up a damaged WAL and with it what can be rescued.
        with closing(self.connect(read_only=True)) as db:
            examine(db, self.path)
            if mark is not None and not accept_loss and not holds(db, mark):
                raise self.side.lost(self.path)
