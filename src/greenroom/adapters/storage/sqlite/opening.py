"""How a folder becomes an open store: look first, without writing; then open the one connection that writes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from greenroom.adapters.storage.database import FILE, Frozen, connect, connect_to_look, refuses_scratch
from greenroom.adapters.storage.sqlite.faults import translated
from greenroom.adapters.storage.sqlite.head import SideRecord, holds
from greenroom.adapters.storage.sqlite.schema import TABLES, bear, examine
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import SCHEMA

OLDEST_SQLITE: Final = (3, 35, 0)

Access: TypeAlias = Literal["make", "change", "look"]
"""What somebody wants of a store: `make` it where there is none, `change` what is there, or only `look`."""


class Opening:
    """The folder of one store, and its connections."""

    def __init__(self, home: Path, *, timeout: float, connection: type[sqlite3.Connection]) -> None:
        self.home = home
        self.path = home / FILE
        self.side = SideRecord(home)
        self._looks = False
        self._connect = partial(connect, self.path, timeout=timeout, connection=connection)
        self._connect_to_look = partial(connect_to_look, self.path, timeout=timeout, connection=connection)

    def open(self, access: Access, *, accept_loss: bool) -> sqlite3.Connection | None:
        """The writing connection of a store that is sound, ours and not too new; None when it is only looked at."""
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreFault(f"SQLite {sqlite3.sqlite_version} is too old: use a Python with SQLite 3.35 or newer.")
        if access == "look" or (access == "change" and not there(self.path) and not there(self.side.path)):
            self._looks = True
            self._look(accept_loss=False)
            return None
        with translated(self.home):
            for folder in (self.home, self.home / "blobs", self.home / "leases"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not there(self.path):
            if not accept_loss and self.side.read() is not None:
                raise self.side.lost(self.path)
            bear(self.path)
        self._look(accept_loss=accept_loss)
        db = self.connect_writer()
        self.side.open()
        if accept_loss:
            self.side.reset()
        return db

    def connect_writer(self) -> sqlite3.Connection:
        """A connection that commits durably, and is seen to be able to write."""
        db = self._connect()
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

    def connect_reader(self) -> sqlite3.Connection:
        """A connection for questions."""
        return self._connect_looking() if self._looks else self._connect()

    def _connect_looking(self) -> sqlite3.Connection:
        """One that changes nothing; a store that is not there yet looks like an empty one."""
        if not there(self.path):
            return empty()
        try:
            return self._connect_to_look()
        except sqlite3.OperationalError as error:
            if refuses_scratch(error) and os.access(self.path, os.R_OK) and not os.access(self.home, os.W_OK):
                raise StoreFault(
                    f"The newest commits of {self.path} stand in the file beside it and can only be read where the "
                    "folder can be written. Copy the folder to such a place and name it with --home."
                ) from error
            raise

    def _look(self, *, accept_loss: bool) -> None:
        if self.path.is_dir():
            raise StoreFault(f"{self.path} is a folder where the database should be. Move it away, or choose another.")
        mark = None if accept_loss else self.side.read()  # before the database: written after it, so never ahead
        found = there(self.path)  # before it is opened: somebody may be making it just now
        # For looking only: closing an ordinary connection would tidy up a damaged WAL and with it what can be rescued.
        with closing(self._connect_looking()) as db:
            if found:
                examine(db, self.path)
            if mark is not None and not holds(db, mark):
                raise self.side.lost(self.path)


def there(path: Path) -> bool:
    """Whether there is such a file. That it cannot be known is an error, and not a no."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def empty() -> sqlite3.Connection:
    """A store in which nothing is."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=Frozen)
    db.executescript(TABLES)
    return db
