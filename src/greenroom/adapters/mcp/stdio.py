"""A server that is a program of this machine: the SDK's transport to it, with a keeper between that dies with us."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from mcp import StdioServerParameters
from mcp.client._transport import TransportStreams
from mcp.client.stdio import stdio_client

from greenroom.adapters.mcp.configuration import Filled, refuse_absent
from greenroom.adapters.mcp.schemas import one_line

SOURCES: Final = str(Path(__file__).resolve().parents[3])
KEEPER: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes.keeper import serve; sys.exit(serve(sys.argv[2], sys.argv[3:]))"
)
PIECE: Final = 64 * 1024
TAIL: Final = 2_000
"""Bytes that are kept of what it complains about."""

LAST_WORDS: Final = 1.0
"""Seconds that its last complaint may take."""


class Pipes:
    """The pipes of one server: messages through the SDK, and what it writes to stderr."""

    def __init__(self, filled: Filled, folder: Path) -> None:
        self._filled = filled
        self._folder = folder
        self._tail = b""
        self._silent = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start it, pass on messages, and end it with all that it has begun, whatever happens."""
        refuse_absent(self._filled, self._folder)
        server = self._filled.server
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-S", "-c", KEEPER, SOURCES, " ".join(self._filled.env), server.command, *server.args],
            env=dict(self._filled.env),
            cwd=self._folder / server.folder,
            encoding_error_handler="replace",  # strict: one such byte, and nothing is heard any more
        )
        complaints, theirs = os.pipe()
        os.set_blocking(complaints, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(complaints, self._hear, complaints)
        try:
            with os.fdopen(theirs, "w") as errlog:
                async with stdio_client(parameters, errlog=errlog) as streams:
                    errlog.close()  # or its end would never be heard
                    yield streams
        finally:
            loop.remove_reader(complaints)
            os.close(complaints)

    def _hear(self, complaints: int) -> None:
        if data := os.read(complaints, PIECE):
            self._tail = (self._tail + data)[-TAIL:]
        else:
            self._silent.set()
            asyncio.get_running_loop().remove_reader(complaints)

    async def last_words(self) -> str:
        """Why it has ended: what it complained about, and its exit code, may still be on their way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._silent.wait()
        complaint = one_line(self._filled.cover(self._tail.decode(errors="replace")[-600:]), 600)
        return f"It has ended: {complaint}" if complaint else "It has ended."
