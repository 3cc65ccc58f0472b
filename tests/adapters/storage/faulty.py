"""A connection that fails on demand, and a writer thread that pauses on demand."""

import sqlite3
import threading
from typing import Any, ClassVar

from greenroom.adapters.storage.sqlite import SqliteLog


class Faulty(sqlite3.Connection):
    """A connection that fails before or after a chosen statement."""

    before: ClassVar[dict[str, int]] = {}
    after: ClassVar[dict[str, int]] = {}

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._fail(self.before, sql)
        cursor = super().execute(sql, *values)
        self._fail(self.after, sql)
        return cursor

    @staticmethod
    def _fail(faults: dict[str, int], sql: str) -> None:
        for start, code in faults.items():
            if sql.strip().startswith(start):
                error = sqlite3.OperationalError(f"injected {code}")
                error.sqlite_errorcode = code
                raise error


def hold_up(log: SqliteLog) -> threading.Event:
    """Pause the writer thread, so that all appends wait for the next group."""
    gate = threading.Event()

    def stand_still(_: sqlite3.Connection) -> tuple[bool, None]:
        return gate.wait(20), None

    log._open_writer.change(stand_still, mode="bare")
    return gate
