"""The log in SQLite: the suite that every log passes. What only SQLite can get wrong is tested beside it."""

from collections.abc import Callable
from pathlib import Path

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.ports.log import Store
from greenroom.testing.conformance.log import LogConformance


class TestSqliteLog(LogConformance):
    async def open_store(self, folder: Path, clock: Callable[[], float]) -> Store:
        return await SqliteLog.open(folder, clock=clock, poll=0.01)
