"""The commands of the story: real `greenroom` processes, heard line by line, and gone when the story is over."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from greenroom.interfaces.cli.runs.story.stage import Stage

GRACE: Final = 10.0
"""Seconds that a command gets to end when it is asked to."""

WIDEST: Final = 1 << 20
"""Bytes of a line."""


class Child:
    """One command. What it prints, on either stream, is `heard` as it comes."""

    def __init__(self, process: asyncio.subprocess.Process, hear: Callable[[str], None]) -> None:
        self._process = process
        self._hear = hear
        self._lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def text(self) -> str:
        """All that it has printed."""
        return "\n".join(self._lines)

    async def end(self) -> int:
        """Wait for it; its exit code, or minus the signal that ended it."""
        await asyncio.shield(self._reading)
        return await self._process.wait()

    async def kill(self) -> int:
        """kill -9."""
        self._process.kill()
        return await self.end()

    async def leave(self) -> None:
        """Whatever happens, nothing of it goes on."""
        with suppress(ProcessLookupError):
            if self._process.returncode is None:
                self._process.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(self._process.wait(), GRACE)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for data in self._process.stdout:
            line = data.decode(errors="replace").rstrip()
            self._lines.append(line)
            self._hear(line)


@asynccontextmanager
async def child(stage: Stage, words: Sequence[str], hear: Callable[[str], None]) -> AsyncIterator[Child]:
    """A command, typed in the repository. Ctrl-C is for whoever tells the story, and they pass it on."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "greenroom.interfaces.cli",
        *words,
        cwd=stage.shop,
        env=dict(stage.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=WIDEST,
        start_new_session=True,
    )
    one = Child(process, hear)
    try:
        yield one
    finally:
        await one.leave()
