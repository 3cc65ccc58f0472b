"""Open a store: check the folder without writing, then open the single writing connection.

This module holds the tables, and the side record of the newest acknowledged commit. SQLite silently drops a torn end of
its WAL; the side record reveals that. A WAL only loses its end, so one commit that is present proves all earlier ones.
The record is written without fsync shortly after the commit. It may lag behind, but is never ahead.
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

from greenroom.adapters.storage.database import (
    DATABASE_NAME,
    FrozenConnection,
    connect,
    connect_read_only,
    is_scratch_refused,
)
from greenroom.adapters.storage.sqlite.faults import translate_errors
from greenroom.adapters.storage.sqlite.files import flush_folder
from greenroom.core.base.errors import StoreFault, translate
from greenroom.core.ports.codec import SCHEMA_VERSION

APPLICATION_ID: Final = 0x47524E52
"""`GRNR` in the header of the file identifies a Greenroom database."""

MAX_VERSION: Final = (1 << 40) - 1
"""The highest version of a stream: the row id of an event is `stream id << 40 | version`.

So the events of a stream are stored together, in version order, in one plain B-tree. A key of (stream, version) costs a
quarter more per commit, and each row over 1 KB would need an overflow page.
"""

# An archive row has a row id like its event. Steps have no archive row. They are the most frequent: an index on
# them would touch one page per agent in each commit. The log itself links each step to the previous one.
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
    SELECT stream, events.id & {MAX_VERSION} AS version, at, type, CAST(data AS TEXT) AS data
    FROM events JOIN streams ON streams.id = events.id >> 40;
"""


def create_database(path: Path) -> None:
    """Create the database under a temporary name, then link it into place, so that no process opens a half-made one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    draft = Path(name)
    try:
        with closing(connect(draft, timeout=0)) as db:
            # Small pages: a commit writes whole pages, and most commits add a few hundred bytes.
            db.execute("PRAGMA page_size = 512")
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has no effect after the first write
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(f"BEGIN; {TABLES} COMMIT;")
            db.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
            db.execute("PRAGMA journal_mode = WAL")
        os.fsync(handle)
        path.hardlink_to(draft)
    except FileExistsError:
        return  # another process created it first
    finally:
        os.close(handle)
        draft.unlink(missing_ok=True)
    flush_folder(path.parent)


def check_database(db: sqlite3.Connection, path: Path) -> int:
    """Return the schema version. Raise `StoreFault` for a foreign, damaged or newer database. Nothing is written."""
    if path.stat().st_size == 0:
        raise StoreFault("storage.empty_database", path=path)
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreFault("storage.foreign_database", path=path)
    row = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if row is None:
        raise StoreFault("storage.schema_missing", path=path)
    if row[0] > SCHEMA_VERSION:
        raise StoreFault("storage.newer_schema", path=path, schema=row[0], schema_version=SCHEMA_VERSION)
    return int(row[0])


MARK_BYTES: Final = 128


class CommitMark(NamedTuple):
    """What the newest commit wrote: a stream's version and epoch, or an inbox row.

    It is a tuple for speed: every append creates one.
    """

    stream_id: int = 0
    version: int = 0
    epoch: int = 0
    inbox: int = 0


def encode_mark(mark: CommitMark) -> bytes:
    """Encode a mark as a line of fixed width, so that a new one overwrites the old one."""
    text = b"%d %d %d %d" % mark
    return (b"%b %08x" % (text, zlib.crc32(text))).ljust(MARK_BYTES)


def decode_mark(line: bytes) -> CommitMark | None:
    """Decode a mark; None if the line is incomplete and therefore proves nothing."""
    text, _, checksum = line.decode("ascii", "replace").strip().rpartition(" ")
    if checksum != f"{zlib.crc32(text.encode()):08x}" or text.count(" ") != 3:
        return None
    stream_id, version, epoch, inbox = map(int, text.split(" "))
    return CommitMark(stream_id=stream_id, version=version, epoch=epoch, inbox=inbox)


def contains_mark(db: sqlite3.Connection, mark: CommitMark) -> bool:
    """Return whether the database contains the commit of a mark. A missing stream with a used id was deleted."""
    sequences = dict(db.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    if sequences.get("streams", 0) < mark.stream_id or sequences.get("inbox", 0) < mark.inbox:
        return False
    row = db.execute("SELECT version, epoch FROM streams WHERE id = ?", (mark.stream_id,)).fetchone()
    return row is None or (row[0] >= mark.version and row[1] >= mark.epoch)


class SideRecord:
    """The file `greenroom.head` with the newest acknowledged commit."""

    def __init__(self, home: Path) -> None:
        self.path = home / "greenroom.head"
        self._handle = -1

    def read(self) -> CommitMark | None:
        """Return the newest acknowledged commit on record; None if there is none."""
        try:
            return decode_mark(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def make_loss_fault(self, database: Path) -> StoreFault:
        """Return the fault for a database that lacks an acknowledged commit."""
        return StoreFault("storage.commits_lost", database=database, path=self.path)

    def open(self) -> None:
        """Open the file for writing."""
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def clear(self) -> None:
        """Clear the record, because the loss is accepted."""
        os.ftruncate(self._handle, 0)

    def write(self, mark: CommitMark) -> None:
        """Record the newest commit. The commit is already durable: a failure here only makes the record lag."""
        try:
            os.pwrite(self._handle, encode_mark(mark), 0)
        except OSError:
            return

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


MAX_CHECKED_BYTES: Final = 16 * 1024 * 1024
"""Size up to which a database is checked as a whole before it is written, in at most about 0.2 s. In a larger one only
the small tables are checked; other damage is found when it is read."""


SELECT_MISCOUNTED: Final = """
SELECT stream, version, (SELECT count(*) FROM events WHERE events.id > streams.id << 40
                         AND events.id <= (streams.id << 40) + version) AS found,
       (SELECT count(*) FROM events WHERE events.id > (streams.id << 40) + version
        AND events.id < (streams.id + 1) << 40) AS beyond
FROM streams WHERE found <> version OR beyond > 0
"""


def refuse_damaged(db: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreFault` if the tables are damaged, so that no write makes it worse."""
    is_small = path.stat().st_size <= MAX_CHECKED_BYTES
    for table in ("1",) if is_small else ("meta", "streams", "sqlite_sequence"):
        (found,) = db.execute(f"PRAGMA quick_check({table})").fetchone()
        if found != "ok":
            raise StoreFault("storage.damaged", path=path, error=found.rpartition("***")[2].strip())
    if is_small and (row := db.execute(SELECT_MISCOUNTED).fetchone()) is not None:
        error = translate("storage.miscounted", **dict(zip(("stream", "version", "there", "beyond"), row, strict=True)))
        raise StoreFault("storage.damaged", path=path, error=error.rstrip(".。"))


MIN_SQLITE_VERSION: Final = (3, 35, 0)

Access: TypeAlias = Literal["make", "change", "act", "look"]
"""How to open a store: `make` creates it if missing, `change` writes to an existing one, `look` only reads. `act` only
reads too, but refuses a damaged store: files are changed by what it says."""


class StoreFolder:
    """The folder of a store and its connections."""

    def __init__(self, home: Path, *, timeout: float, connection: type[sqlite3.Connection]) -> None:
        self.home = home
        self.path = home / DATABASE_NAME
        self.side = SideRecord(home)
        self._is_read_only = False
        self._is_damage_refused = True
        self._connect = partial(connect, self.path, timeout=timeout, connection=connection)
        self._connect_existing_read_only = partial(connect_read_only, self.path, timeout=timeout, connection=connection)

    def open(self, access: Access, *, accept_loss: bool) -> sqlite3.Connection | None:
        """Check the store and return the writing connection; None if it is opened for reading only."""
        if sqlite3.sqlite_version_info < MIN_SQLITE_VERSION:
            raise StoreFault("storage.sqlite_too_old", sqlite_version=sqlite3.sqlite_version)
        self._is_damage_refused = access != "look"
        if access in ("look", "act") or (
            access == "change" and not is_there(self.path) and not is_there(self.side.path)
        ):
            self._is_read_only = True
            self._check_store(accept_loss=False)
            return None
        with translate_errors(self.home):
            for folder in (self.home, self.home / "blobs", self.home / "leases"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_there(self.path):
            if not accept_loss and self.side.read() is not None:
                raise self.side.make_loss_fault(self.path)
            create_database(self.path)
        self._check_store(accept_loss=accept_loss)
        db = self.connect_writer()
        self.side.open()
        if accept_loss:
            self.side.clear()
        return db

    def connect_writer(self) -> sqlite3.Connection:
        """Open a connection with durable commits, and test that it can write."""
        db = self._connect()
        try:
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = 1")  # macOS: an ordinary fsync stops at the drive's cache
            # The writer checkpoints between groups, after it has answered. This is only a fallback.
            db.execute("PRAGMA wal_autocheckpoint = 4000")
            db.execute("PRAGMA cache_size = -32768")  # 32 MB: the newest page of each of many streams
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE meta SET value = ?1 WHERE key = 'schema' AND value < ?1", (SCHEMA_VERSION,))
            db.execute("COMMIT")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def connect_reader(self) -> sqlite3.Connection:
        """Open a connection for queries."""
        return self._connect_read_only() if self._is_read_only else self._connect()

    def _connect_read_only(self) -> sqlite3.Connection:
        """Open a connection that changes nothing. A missing store appears empty."""
        if not is_there(self.path):
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=FrozenConnection)
            db.executescript(TABLES)
            return db
        try:
            return self._connect_existing_read_only()
        except sqlite3.OperationalError as error:
            if is_scratch_refused(error) and os.access(self.path, os.R_OK) and not os.access(self.home, os.W_OK):
                raise StoreFault("storage.wal_needs_writable", path=self.path) from error
            raise

    def _check_store(self, *, accept_loss: bool) -> None:
        if self.path.is_dir():
            raise StoreFault("storage.database_is_folder", path=self.path)
        mark = None if accept_loss else self.side.read()  # read before the database, because it is written after it
        is_found = is_there(self.path)  # before opening: another process may be creating it
        # Read-only: closing an ordinary connection would remove a damaged WAL and the data that can be rescued from it.
        with closing(self._connect_read_only()) as db:
            if is_found:
                check_database(db, self.path)
                if self._is_damage_refused:
                    refuse_damaged(db, self.path)
            if mark is not None and not contains_mark(db, mark):
                raise self.side.make_loss_fault(self.path)


def is_there(path: Path) -> bool:
    """Return whether a file exists. Raise `OSError` if that cannot be determined."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True
