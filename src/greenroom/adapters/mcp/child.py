"""A server that is a program of this machine, and its keeper: what it says, what it complains about, how it ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.mcp.filling import Filled
from greenroom.adapters.mcp.lines import Lines
from greenroom.adapters.mcp.words import one_line
from greenroom.core.base.errors import WorldFault

SOURCES: Final = str(Path(__file__).resolve().parents[3])
KEEPER: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.commands.warden.keeper import serve; sys.exit(serve(int(sys.argv[2]), sys.argv[3:]))"
)
PIECE: Final = 256 * 1024
GRACE: Final = 1.0
"""Seconds that a server has to end by itself once nobody talks to it any more."""

LAST: Final = 8.0
"""Seconds that its keeper has to end all of it; it needs a fraction of one."""

TAIL: Final = 2_000
"""Bytes that are kept of what it complains about."""

PLENTY: Final = 1024 * 1024
BREATH: Final = 0.02
"""Of a server that has complained plenty one piece per breath is read: endless complaints must not cost a processor."""


def refuse_absent(filled: Filled, folder: Path) -> None:
    """`WorldFault` for a program, or a folder to begin in, that is not there."""
    server = filled.server
    where = folder / server.folder
    if not where.is_dir():
        raise WorldFault(f"The MCP server {server.name!r} cannot be started: there is no folder {str(where)!r}.")
    if shutil.which(server.command, path=filled.env["PATH"]) is None and "/" not in server.command:
        raise WorldFault(
            f"The MCP server {server.name!r} cannot be started: there is no program {server.command!r}. "
            "Install it, or write its whole path."
        )


class Child:
    """From its start until it is dead with everything that it has begun."""

    def __init__(self, process: Process, lifeline: int) -> None:
        self._process = process
        self._lifeline: int | None = lifeline
        self._tail = b""

    @classmethod
    async def start(cls, filled: Filled, folder: Path) -> Child:
        """Start it; `WorldFault` where that is not possible."""
        refuse_absent(filled, folder)
        server, where = filled.server, folder / filled.server.folder
        read, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", KEEPER, SOURCES, str(read), server.command, *server.args),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=PIECE,
                cwd=where,
                env=filled.env,
                pass_fds=(read,),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(lifeline)
            raise WorldFault(f"The MCP server {server.name!r} cannot be started: {error}.") from None
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(read)
        return cls(process, lifeline)

    @property
    def complaint(self) -> str:
        """The end of what it wrote to stderr, as one line."""
        return one_line(self._tail.decode(errors="replace")[-600:], 600)

    @property
    def code(self) -> int | None:
        """Its exit code, once it is dead."""
        return self._process.returncode

    async def lines(self, longest: int) -> AsyncIterator[bytes]:
        """What it says, line by line, until its end; `WorldFault` for a line that never ends."""
        lines = Lines(longest)
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(PIECE):
            for line in lines.feed(data):
                yield line

    async def drain(self) -> None:
        """Hear what it still says, to no purpose: who cannot write does not end."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(PIECE):
            pass

    async def say(self, line: bytes) -> None:
        """Tell it something; `ConnectionError` when it does not listen any more."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def complain(self) -> None:
        """Read what it writes to stderr, however much that is, and keep the end of it."""
        assert self._process.stderr is not None
        read = 0
        while data := await self._process.stderr.read(PIECE):
            self._tail = (self._tail + data)[-TAIL:]
            read += len(data)
            if read > PLENTY:
                await asyncio.sleep(BREATH)

    async def end(self, *, now: bool) -> None:
        """Close its input and wait a moment, unless `now`; then have its keeper end all of it, and see it dead."""
        try:
            if not now and self._process.stdin is not None:
                self._process.stdin.close()
                await self.wait(GRACE)
        finally:
            self.cut()
        if not await self.wait(LAST):
            with suppress(ProcessLookupError):
                self._process.kill()

    def cut(self) -> None:
        """Let go of the lifeline: at once, whatever happens to us next."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    async def wait(self, seconds: float) -> bool:
        """Whether it is dead within so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
            return True
        return False
