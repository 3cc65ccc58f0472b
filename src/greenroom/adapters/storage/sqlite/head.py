"""The side record of the newest acknowledged commit. SQLite drops a torn end of its WAL without a word: we notice.

A WAL is only ever lost from its end, so one place that must be in the database proves all that came before it. It is
written without fsync a moment after the commit (see `writer.py`), so it may lag behind; it is never ahead.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from greenroom.core.base.errors import StoreFault

FILE: Final = "greenroom.head"
WIDTH: Final = 128


class Mark(NamedTuple):
    """What the newest commit left behind: a stream's version and epoch, or a row of the inbox.

    A tuple: one is made per append.
    """

    stream_id: int = 0
    version: int = 0
    epoch: int = 0
    inbox: int = 0


def encode(mark: Mark) -> bytes:
    """One line of fixed width, so that a new one covers the old one."""
    text = b"%d %d %d %d" % mark
    return (b"%b %08x" % (text, zlib.crc32(text))).ljust(WIDTH)


def decode(line: bytes) -> Mark | None:
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
        self.path = home / FILE
        self._handle = -1

    def read(self) -> Mark | None:
        """The newest acknowledged commit as far as anybody knows."""
        try:
            return decode(self.path.read_bytes())
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
            os.pwrite(self._handle, encode(mark), 0)
        except OSError:
            return

    def close(self) -> None:
        """Let the file go."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
