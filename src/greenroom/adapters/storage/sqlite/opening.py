"""How a folder becomes an open store: look first, without writing; then open the one connection that writes.

Here are the tables, and the side record of the newest acknowledged commit: SQLite drops a torn end of its WAL without a
word, and we notice. A WAL is only ever lost from its end, so one place that must be in the database proves all that
came before it. The record is written without fsync a moment after the commit, so it may lag behind; it is never ahead.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import zlib
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from greenroom.adapters.storage.database import FILE, Frozen, connect, connect_to_look, refuses_scratch
from greenroom.adapters.storage.sqlite.faults import translated
from greenroom.adapters.storage.sqlite.files import flush_folder
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import SCHEMA

APPLICATION_ID: Final = 0x47524E52
"""`GRNR` in the file's header: this database is ours."""

NEWEST: Final = (1 << 40) - 1
"""The highest version of a stream: an event's row id is `stream id << 40 | version`.

So the events of a stream lie together in version order in one plain B-tree. A key of (stream, version) costs a quarter
more per commit, and rows over 1 KB would each take an overflow page.
"""

# The row id of an archive row is made like that of its event. Steps have none: they are by far the most, an index on
# them would touch as many pages per commit as there are agents, and the log itself leads from one to the one before.
TABLES: Final = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    stream        TEXT    NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL DEFAULT 0,
    epoch         INTEGER NOT NULL DEFAULT 0,
    owner         TEXT    NOT NULL DEFAULT '',
    batch         TEXT    NOT NULL DEFAULT '',
    batch_epoch   INTEGER NOT NULL DEFAULT 0,
    event_bytes   INTEGER NOT NULL DEFAULT 0,
    archive_bytes INTEGER NOT NULL DEFAULT 0,
    blob_bytes    INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    type TEXT    NOT NULL,
    data BLOB    NOT NULL,
    ends INTEGER NOT NULL
);
CREATE TABLE archive (
    id    INTEGER PRIMARY KEY,
    kind  TEXT    NOT NULL,
    key   TEXT    NOT NULL,
    owner TEXT    NOT NULL,
    data  BLOB    NOT NULL
);
CREATE INDEX archive_by_key ON archive (kind, key, id);
CREATE INDEX archive_by_owner ON archive (kind, owner, id);
CREATE TABLE snapshots (
    stream_id   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    fingerprint TEXT    NOT NULL,
    data        BLOB    NOT NULL,
    PRIMARY KEY (stream_id, version)
);
CREATE TABLE inbox (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_id   INTEGER NOT NULL,
    intent_id   TEXT    NOT NULL,
    by          TEXT    NOT NULL,
    data        BLOB    NOT NULL,
    put_at      INTEGER NOT NULL,
    outcome     BLOB,
    answered_at INTEGER,
    UNIQUE (stream_id, intent_id)
);
CREATE INDEX inbox_waiting ON inbox (stream_id, seq) WHERE outcome IS NULL;
CREATE TABLE blob_refs (
    digest    TEXT    NOT NULL,
    stream_id INTEGER NOT NULL,
    size      INTEGER NOT NULL,
    PRIMARY KEY (digest, stream_id)
) WITHOUT ROWID;
CREATE TABLE forgotten (stream_id INTEGER PRIMARY KEY);
CREATE VIEW event_log AS
    SELECT stream, events.id & {NEWEST} AS version, at, type, CAST(data AS TEXT) AS data
    FROM events JOIN streams ON streams.id = events.id >> 40;
"""


def bear(path: Path) -> None:
    """Make the database beside its place and link it in whole, so that nobody ever opens half of one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    fresh = Path(name)
    try:
        with closing(connect(fresh, timeout=0)) as db:
            # Small ones: a commit writes whole pages, and most commits are a few hundred bytes of news.
            db.execute("PRAGMA page_size = 512")
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before anything is written, or it has no effect
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(f"BEGIN; {TABLES} COMMIT;")
            db.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA,))
            db.execute("PRAGMA journal_mode = WAL")
        os.fsync(handle)
        path.hardlink_to(fresh)
    except FileExistsError:
        return  # another process was quicker: its database is as good
    finally:
        os.close(handle)
        fresh.unlink(missing_ok=True)
    flush_folder(path.parent)


def examine(db: sqlite3.Connection, path: Path) -> int:
    """The schema version of a database that is ours and not too new; nothing is written."""
    if path.stat().st_size == 0:
        raise StoreFault(f"{path} is empty. Restore a copy, or delete it if nothing was ever in it.")
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreFault(
            f"{path} is a database of another program; it was not touched. Move it away, or choose another folder."
        )
    row = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if row is None:
        raise StoreFault(f"{path} does not say which schema it has: it is damaged. Restore a copy.")
    if row[0] > SCHEMA:
        raise StoreFault(
            f"{path} was written by a newer Greenroom (schema {row[0]}, this one knows {SCHEMA}); it was not touched. "
            "Update Greenroom, or choose another folder."
        )
    return int(row[0])


SIDE_FILE: Final = "greenroom.head"
WIDTH: Final = 128


class Mark(NamedTuple):
    """What the newest commit left behind: a stream's version and epoch, or a row of the inbox.

    A tuple: one is made per append.
    """

    stream_id: int = 0
    version: int = 0
    epoch: int = 0
    inbox: int = 0


def encode_mark(mark: Mark) -> bytes:
    """One line of fixed width, so that a new one covers the old one."""
    text = b"%d %d %d %d" % mark
    return (b"%b %08x" % (text, zlib.crc32(text))).ljust(WIDTH)


def decode_mark(line: bytes) -> Mark | None:
    """The mark; None when the line is not whole: then it proves nothing."""
    text, _, checksum = line.decode("ascii", "replace").strip().rpartition(" ")
    if checksum != f"{zlib.crc32(text.encode()):08x}" or text.count(" ") != 3:
        return None
    stream_id, version, epoch, inbox = map(int, text.split(" "))
    return Mark(stream_id=stream_id, version=version, epoch=epoch, inbox=inbox)


def holds(db: sqlite3.Connection, mark: Mark) -> bool:
    """Whether the database has what the mark says. A stream that is gone was forgotten, unless it never was."""
    made = dict(db.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    if made.get("streams", 0) < mark.stream_id or made.get("inbox", 0) < mark.inbox:
        return False
    row = db.execute("SELECT version, epoch FROM streams WHERE id = ?", (mark.stream_id,)).fetchone()
    return row is None or (row[0] >= mark.version and row[1] >= mark.epoch)


class SideRecord:
    """The file `greenroom.head`."""

    def __init__(self, home: Path) -> None:
        self.path = home / SIDE_FILE
        self._handle = -1

    def read(self) -> Mark | None:
        """The newest acknowledged commit as far as anybody knows."""
        try:
            return decode_mark(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def lost(self, database: Path) -> StoreFault:
        """What to say when the database lacks a commit that was acknowledged."""
        return StoreFault(
            f"{database} (or its WAL) has lost commits that were acknowledged: it lacks what {self.path} says is in "
            "it. A file was cut or deleted, or an old copy put back. Nothing was touched: copy the folder, restore the "
            "files if you can, or accept the loss with `greenroom doctor --accept-loss`."
        )

    def open(self) -> None:
        """Get ready to write."""
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def reset(self) -> None:
        """Forget what was there before: the loss is accepted."""
        os.ftruncate(self._handle, 0)

    def write(self, mark: Mark) -> None:
        """Note the newest commit. It is done already: a failure here only makes the record lag."""
        try:
            os.pwrite(self._handle, encode_mark(mark), 0)
        except OSError:
            return

    def close(self) -> None:
        """Let the file go."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


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
