"""Copy what is readable of a damaged database into a new store. The damaged files are only read.

A run is copied up to its first unreadable event or archive row, at the end of a batch. Snapshots are left out, because
they are made again.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from greenroom.adapters.storage.database import DATABASE_NAME, connect
from greenroom.adapters.storage.sqlite.faults import NO_SPACE_ERRNOS, find_error_path, translate_errors, translate_os
from greenroom.adapters.storage.sqlite.store_folder import MAX_VERSION, create_database
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.ports.codec import decode_archived, decode_event
from greenroom.core.ports.log import ArchiveRow, StoredEvent

SCRATCH_NAME: Final = "damaged.db"
PAGE_SIZE: Final = slice(16, 18)
PAGE_COUNT: Final = slice(28, 32)
"""Where the header of a database has them."""

Row = tuple[Any, ...]


def copy_readable(home: Path, target: Path) -> tuple[Mapping[str, tuple[int, int]], bool]:
    """Copy a store into a new folder. Return the copied and the recorded number of events by run, and whether every
    other row was read.

    Raise `StoreFault` if the folder is not empty, or nothing is readable. Then the folder is as it was.
    """
    if not (home / DATABASE_NAME).exists():
        raise StoreFault("storage.nothing_readable", path=home / DATABASE_NAME)
    is_new = not target.exists()
    with translate_errors(target):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise StoreFault("storage.folder_not_empty", path=target)
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with translate_errors(home / DATABASE_NAME):
            _copy_files(home, target)
        with translate_errors(target / DATABASE_NAME):
            found, is_whole = _copy_rows(home / DATABASE_NAME, target)
        if not any(copied for copied, _ in found.values()):
            raise StoreFault("storage.nothing_readable", path=home / DATABASE_NAME)
    except WorldFault:
        for path in target.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if is_new:
            target.rmdir()
        raise
    return found, is_whole


def _copy_files(home: Path, target: Path) -> None:
    """Copy the damaged database beside the new one, and the blobs. A full disk is that of the target."""
    files = [home / f"{DATABASE_NAME}{suffix}" for suffix in ("", "-wal")]
    for file in filter(Path.is_file, (*files, *(home / "blobs").rglob("*"))):
        copy = target / str(file.relative_to(home)).replace(DATABASE_NAME, SCRATCH_NAME)
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        except OSError as error:
            place = copy if error.errno in NO_SPACE_ERRNOS else find_error_path(error, file)
            raise translate_os(error, place) from error


def _copy_rows(damaged: Path, target: Path) -> tuple[Mapping[str, tuple[int, int]], bool]:
    scratch = target / SCRATCH_NAME
    create_database(target / DATABASE_NAME)
    with (
        closing(_open_damaged(scratch, target / DATABASE_NAME, damaged)) as source,
        closing(connect(target / DATABASE_NAME, timeout=0)) as db,
    ):
        forward, is_whole = _read_rows(source, "streams", "ORDER BY id ASC")
        backward, _ = _read_rows(source, "streams", "ORDER BY id DESC")
        streams = {row[0]: row for row in (*forward, *backward)}
        found = {str(row[1]): _copy_run(source, db, row) for row in streams.values()}
        for table in ("meta", "inbox", "blob_refs"):
            rows, is_read = _read_rows(source, table)
            is_whole = is_whole and is_read
            _insert(db, table, rows)
    for file in target.glob(f"{scratch.name}*"):
        file.unlink()
    return found, is_whole


def _open_damaged(path: Path, sound: Path, damaged: Path) -> sqlite3.Connection:
    """Open a copy of the damaged database. An unreadable first page is replaced by that of a new database: it only
    holds the header and the same tables."""
    for _ in range(2):
        db = connect(path, timeout=0)
        try:
            db.execute("PRAGMA writable_schema = ON")  # reads a file that was cut off
            db.execute("SELECT name FROM sqlite_master").fetchall()
        except sqlite3.DatabaseError:
            db.close()
            data, header = bytearray(path.read_bytes()), sound.read_bytes()
            page = int.from_bytes(header[PAGE_SIZE], "big")
            data[:page] = header[:page]
            data[PAGE_COUNT] = (len(data) // page).to_bytes(4, "big")
            path.write_bytes(data)
        else:
            return db
    raise StoreFault("storage.nothing_readable", path=damaged)


def _copy_run(source: sqlite3.Connection, db: sqlite3.Connection, stream: Row) -> tuple[int, int]:
    """Copy one run. Return the copied and the recorded number of events."""
    number, recorded = stream[0], stream[3]
    if not isinstance(number, int) or not isinstance(recorded, int) or not 0 <= recorded <= MAX_VERSION:
        return 0, 0
    first = number << 40
    where = f"WHERE id > {first} AND id <= {first + recorded} ORDER BY id"
    events, _ = _read_rows(source, "events", where, lambda row: decode_event(StoredEvent(*row)))
    archive, is_whole = _read_rows(
        source, "archive", where, lambda row: decode_archived(ArchiveRow(row[1], row[2], row[3], row[0], row[4]))
    )
    limit = first + recorded
    if not is_whole:
        unread = _read_rows(source, "archive", where, columns="id")[0][len(archive) :]
        limit = unread[0][0] - 1 if unread else first  # it is not known what is missing
    numbered = takewhile(lambda pair: pair[0] == pair[1][0] <= limit, enumerate(events, first + 1))
    kept = [row for _, row in numbered]
    while kept and not kept[-1][4]:  # half a batch
        kept.pop()
    if not kept:
        return 0, recorded
    db.execute("BEGIN")
    _insert(db, "streams", [(*stream[:3], len(kept), stream[4], "", *stream[6:])])
    _insert(db, "events", kept)
    _insert(db, "archive", [row for row in archive if row[0] <= first + len(kept)])
    db.execute("COMMIT")
    return len(kept), recorded


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _read_rows(
    db: sqlite3.Connection, table: str, where: str = "", check: Callable[[Row], object] = bool, *, columns: str = "*"
) -> tuple[list[Row], bool]:
    """Return the rows of a table up to the first that cannot be read, and whether these are all."""
    rows: list[Row] = []
    try:
        for row in db.execute(f"SELECT {columns} FROM {table} {where}"):
            check(row)
            rows.append(row)
    except (sqlite3.DatabaseError, StoreFault, KeyError, TypeError, ValueError):
        return rows, False
    return rows, True
