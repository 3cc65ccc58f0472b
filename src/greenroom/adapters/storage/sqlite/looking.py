"""What stands in the writer's place when a store is only looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from greenroom.adapters.storage.sqlite.tickets import Mode, Work
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.log import Append

T = TypeVar("T")


class Refusing:
    """A writer that writes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, _: Append) -> asyncio.Future[int]:
        """Refuse."""
        raise self.fault()

    def change(
        self,
        _: Work[T],
        *,
        stream: str | None = None,
        mode: Mode = "transaction",
        undo: Callable[[], None] | None = None,
    ) -> asyncio.Future[T]:
        """Refuse."""
        raise self.fault()

    async def close(self) -> None:
        """Nothing waits."""

    def fault(self) -> StoreFault:
        """What to say."""
        return StoreFault(f"{self._path} was opened for looking only. Open it for changes.")
