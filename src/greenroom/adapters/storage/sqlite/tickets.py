"""What waits for the writer thread, and how its answer gets back to the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeVar

from greenroom.adapters.storage.sqlite.head import Mark
from greenroom.core.ports.log import Append

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Answer = tuple[T, Mark | None]
"""What a change answers, and where its commit shows in the database, if that proves anything."""

Work = Callable[[sqlite3.Connection], Answer[T]]
Mode = Literal["transaction", "bare"]


class Ticket(Protocol):
    """A caller's wish. `fail` in the writer thread, `settle` in the event loop."""

    stream: str | None
    """Whose listeners to wake when it is done."""

    def fail(self, error: Exception) -> None:
        """Note that it did not work."""
        ...

    def settle(self) -> None:
        """Tell the caller, unless it went away."""
        ...


class Task(Generic[T_co]):
    """Any change but an append, in a transaction of its own; `bare` is for what SQLite does outside of one."""

    def __init__(
        self,
        future: asyncio.Future[T_co],
        work: Work[T_co],
        *,
        stream: str | None,
        mode: Mode,
        undo: Callable[[], None] | None,
    ) -> None:
        self.stream = stream
        self.mode = mode
        self._undo = undo
        self.mark: Mark | None = None
        self._future = future
        self._work = work
        self._error: Exception | None = None
        self._result: T_co

    def run(self, db: sqlite3.Connection) -> None:
        """Do it, in the writer thread."""
        self._result, self.mark = self._work(db)

    def fail(self, error: Exception) -> None:
        """Note that it did not work, and take back what it did outside the database."""
        self.mark = None
        self._error = error
        if self._undo is not None:
            self._undo()

    def settle(self) -> None:
        """Tell the caller."""
        if self._future.done():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._result)


class Appending:
    """An append that waits for the next group commit."""

    __slots__ = ("_error", "_future", "batch", "mark", "stream")

    def __init__(self, future: asyncio.Future[int], batch: Append) -> None:
        self.stream: str | None = batch.stream
        self.batch = batch
        self.mark: Mark | None = None
        self._future = future
        self._error: Exception | None = None

    def fail(self, error: Exception) -> None:
        """Note that it did not work."""
        self.mark = None
        self._error = error

    def settle(self) -> None:
        """Tell the caller."""
        if self._future.done():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        elif self.mark is not None:
            self._future.set_result(self.mark.version)


class Caught:
    """Keeps whatever goes wrong inside, so that it reaches those who wait and the thread lives on."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Caught:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        return False
