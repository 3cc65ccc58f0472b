"""Commands as most programs run them: a subprocess with our environment and our open files, and one process is killed.

It is a control, for what `PlainCommands` hold already: without it nobody would know whether those attempts can succeed.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.ports.commands import Begun, Command, CommandEvent, Ended, Printed

LAST: Final = 0.1
"""Seconds that output is heard after the process has ended: a daemon may keep it open for ever."""


class BareCommands:
    """No walls, no supervisor, no list of variables."""

    def __init__(self, root: Path, own: Mapping[str, str]) -> None:
        self._root = root
        self._own = own

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """Begun, printed, ended."""
        yield Begun()
        read, write = os.pipe()
        process = await self._begun(command, write)
        reader, transport = await _listening(read)
        late = asyncio.get_running_loop().call_later(command.seconds, _kill, process)
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        try:
            while piece := await _piece(process, reader):
                yield Printed(text=decode(piece))
            code = await process.wait()
            yield Ended(how="exited" if code >= 0 else "timed_out", code=code)
        finally:
            late.cancel()
            transport.close()
            _kill(process)
            await process.wait()

    async def _begun(self, command: Command, output: int) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *command.words,
                cwd=self._root / command.folder,
                env={**self._own, **command.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                close_fds=False,
            )
        finally:
            os.close(output)

    def close(self) -> None:
        """Nothing is known of what still runs."""


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def _listening(number: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """A pipe of our own: asyncio waits for the end of one of its own even if the process is long dead."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(number, "rb", buffering=0)
    )
    return reader, transport


async def _piece(process: asyncio.subprocess.Process, reader: asyncio.StreamReader) -> bytes:
    """What comes next; nothing after the end of the process, whoever else still has its output open."""
    read, over = asyncio.ensure_future(reader.read(65536)), asyncio.ensure_future(process.wait())
    await asyncio.wait((read, over), return_when=asyncio.FIRST_COMPLETED)
    try:
        return await asyncio.wait_for(read, LAST if over.done() else None)
    except TimeoutError:
        return b""
    finally:
        over.cancel()
