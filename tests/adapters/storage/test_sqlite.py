"""Both logs pass the conformance suite."""

from collections.abc import Callable
from pathlib import Path

from greenroom.adapters.storage.memory import MemoryLog, MemoryStore
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.ports.log import Store
from tests.conformance.log import LogConformance


class TestSqliteLog(LogConformance):
    async def open_store(self, folder: Path, clock: Callable[[], float]) -> Store:
        return await SqliteLog.open(folder, clock=clock, poll=0.01)


class TestMemoryLog(LogConformance):
    async def open_store(self, folder: Path, clock: Callable[[], float]) -> Store:
        if not hasattr(self, "memory"):
            self.memory = MemoryStore()
        return MemoryLog(self.memory, clock=clock)
