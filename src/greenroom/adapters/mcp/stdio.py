"""The SDK's transport to a program of this machine. Not the SDK's own: that one holds lines without a limit, copies a
long one once per piece, and leaves processes behind when the house is killed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from greenroom.adapters.mcp.child import Child
from greenroom.adapters.mcp.filling import Filled
from greenroom.adapters.mcp.lines import Pace
from greenroom.adapters.mcp.words import one_line
from greenroom.core.base.errors import WorldFault

LONGEST: Final = 128_000_000
"""Bytes of one message."""

MOST: Final = 1_000
"""Messages a second. One that tells us of its progress more often than that is slowed down."""

LAST_WORDS: Final = 1.0
PRATTLE: Final = 200
"""Lines that are no messages, after which a server is not listened to any longer."""

GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
Heard = MemoryObjectSendStream[SessionMessage | Exception]
Said = MemoryObjectReceiveStream[SessionMessage]


class Pipes:
    """The two directions of one child. `ended` is told why they have ended; `now` says that nobody waits for it."""

    def __init__(self, filled: Filled, folder: Path, ended: Callable[[str], None]) -> None:
        self._filled = filled
        self._folder = folder
        self._ended = ended
        self.now = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start it, pass on messages, and end it whatever happens."""
        child = await Child.start(self._filled, self._folder)
        heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, said = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with read, write, anyio.create_task_group() as group:
                group.start_soon(self._hear, child, heard)
                group.start_soon(self._say, child, said)
                group.start_soon(child.complain)
                try:
                    yield read, write
                finally:
                    await self._leave(child, read, write)
                    group.cancel_scope.cancel()
        finally:
            child.cut()

    async def _leave(
        self,
        child: Child,
        read: MemoryObjectReceiveStream[SessionMessage | Exception],
        write: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        with anyio.CancelScope(shield=True):
            read.close()
            write.close()
            await child.end(now=self.now)

    async def _hear(self, child: Child, heard: Heard) -> None:
        why = ""
        async with heard:
            try:
                await self._pass_on(child, heard)
            except WorldFault as fault:
                why = str(fault)
                self.now = True
            except GONE:
                pass
            if not why:
                why = await self._last_words(child)
            self._ended(why)
        await child.drain()

    async def _pass_on(self, child: Child, heard: Heard) -> None:
        prattle, pace = 0, Pace(MOST)
        async for line in child.lines(LONGEST):
            await pace.step()
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                prattle += 1
                if prattle > PRATTLE:
                    said = one_line(self._filled.cover(line[:200].decode(errors="replace")), 80)
                    raise WorldFault(f"It prints what is no MCP to its standard output: {said!r}.") from None
                continue
            await heard.send(SessionMessage(message))

    async def _last_words(self, child: Child) -> str:
        """Why it has ended. What it complained about may still be on its way, so a moment is given to it."""
        with anyio.move_on_after(LAST_WORDS):
            await child.drain()
            await child.wait(LAST_WORDS)
        how = "It has ended" if child.code is None else f"It has ended with exit code {child.code}"
        complaint = self._filled.cover(child.complaint)
        return f"{how}: {complaint}" if complaint else f"{how}."

    async def _say(self, child: Child, said: Said) -> None:
        async with said:
            try:
                async for one in said:
                    text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await child.say(text.encode() + b"\n")
            except OSError:
                # Who dies stops listening first: what it complained about is on its way.
                await child.wait(LAST_WORDS)
                complaint = self._filled.cover(child.complaint)
                self._ended(f"It does not listen any more{f': {complaint}' if complaint else '.'}")
