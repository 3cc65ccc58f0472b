"""The files of a workspace on the local disk: the port, with the work in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from greenroom.adapters.files.disk import Disk
from greenroom.adapters.files.ground import Ground
from greenroom.adapters.files.ignoring import Globs
from greenroom.adapters.files.walking import Walker
from greenroom.core.ports.files import Entry, Walk

P = ParamSpec("P")
T = TypeVar("T")


class LocalFiles:
    """One workspace, which may be known as `at` another place. `kernel` says whether to use openat2; by itself it looks
    whether there is one."""

    def __init__(self, root: Path, *, at: Path | None = None, kernel: bool | None = None) -> None:
        self._ground = Ground(root, at=at, kernel=kernel)
        self._disk = Disk(self._ground)

    @property
    def root(self) -> str:
        """The absolute path of the root."""
        return self._ground.root

    def real(self, path: str) -> str:
        """The path with its links followed."""
        return self._ground.real(path)

    async def read(self, path: str, limit: int) -> bytes:
        """A whole file."""
        return await _in_thread(self._disk.read, path, limit)

    async def stat(self, path: str) -> Entry | None:
        """What is there."""
        return await _in_thread(self._disk.stat, path)

    async def entries(self, path: str = "") -> Sequence[Entry]:
        """All that is in a folder."""
        return await _in_thread(self._disk.entries, path)

    async def walk(self, under: str = "", *, globs: Sequence[str] = (), limit: int) -> Walk:
        """Files and links below a folder that git would not ignore."""
        left = threading.Event()
        walk = asyncio.to_thread(self._walk, under, tuple(globs), limit, left.is_set)
        return await _waited_for(walk, left.set)

    async def write(self, path: str, content: bytes, *, expected: str | None) -> None:
        """Write a whole file at once."""
        await _in_thread(self._disk.write, path, content, expected)

    async def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        await _in_thread(self._disk.make_folder, path)

    async def delete(self, path: str, *, expected: str) -> None:
        """Delete a file that has this content."""
        await _in_thread(self._disk.delete, path, expected)

    def _walk(self, under: str, globs: tuple[str, ...], limit: int, left: Callable[[], bool]) -> Walk:
        start = self._ground.real(under)
        return Walker(self._ground, Globs(globs, start), left).walk(start, limit)


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it in a thread. A thread cannot be cancelled: who cancels this waits until it is done, and nothing goes on."""
    return await _waited_for(asyncio.to_thread(function, *args, **kwargs))


async def _waited_for(doing: Coroutine[None, None, T], leave: Callable[[], None] = lambda: None) -> T:
    """Wait for a thread; one that can be told to `leave` is told so by who cancels it."""
    work = asyncio.ensure_future(doing)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        leave()
        await asyncio.wait([work])
        if work.done() and not work.cancelled():
            work.exception()  # nobody will ask for it any more
        raise
