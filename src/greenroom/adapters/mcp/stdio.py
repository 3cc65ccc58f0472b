"""A server that is a program of this machine: its process with a keeper, and the SDK's transport to it.

Not the SDK's own transport: that one holds lines without a limit, copies a long one once per piece, and leaves
processes behind when Greenroom is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from greenroom.adapters.mcp.configuration import Filled, refuse_absent
from greenroom.adapters.mcp.schemas import one_line
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
FLOOD: Final = 1_000
"""Messages that are read per second: more would keep a processor busy."""

BREATH: Final = 0.02
"""Of a server that has complained plenty one piece per breath is read: endless complaints must not cost a processor."""


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
        pieces, held = list[bytes](), 0
        second, said = time.monotonic(), 0
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(PIECE):
            for number, piece in enumerate(data.split(b"\n")):
                if number:
                    yield b"".join(pieces)
                    pieces, held, said = [], 0, said + 1
                if said == FLOOD:
                    await asyncio.sleep(max(0.0, second + 1 - time.monotonic()))
                    second, said = time.monotonic(), 0
                pieces.append(piece)
                held += len(piece)
                if held > longest:
                    raise WorldFault(f"It sent a message of more than {longest // 1_000_000} MB.")

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


LONGEST: Final = 128_000_000
"""Bytes of one message."""

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
        prattle = 0
        async for line in child.lines(LONGEST):
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
