"""Commands as most programs run them: a subprocess with our environment and open files; only one process is killed.

It is the control for attempts that `LocalCommands` already stop: it shows that they can succeed.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.ports.commands import Command, CommandEnded, CommandEvent, CommandPrinted, CommandStarted

LAST: Final = 0.1
"""Seconds of reading output after the process has ended: a daemon may keep it open forever."""


class BareCommands:
    """No sandbox, no supervisor, no filtered variables."""

    def __init__(self, root: Path, own: Mapping[str, str]) -> None:
        self._root = root
        self._own = own

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """Yield the start, the output and the end."""
        yield CommandStarted()
        read, write = os.pipe()
        process = await self._begun(command, write)
        reader, transport = await _listening(read)
        late = asyncio.get_running_loop().call_later(command.seconds, _kill, process)
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        try:
            while piece := await _piece(process, reader):
                yield CommandPrinted(text=decode(piece))
            code = await process.wait()
            yield CommandEnded(how="exited" if code >= 0 else "timed_out", code=code)
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
        """Do nothing: running processes are not tracked."""


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def _listening(number: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Open our own pipe: asyncio waits for the end of its own pipes even if the process is dead."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(number, "rb", buffering=0)
    )
    return reader, transport


async def _piece(process: asyncio.subprocess.Process, reader: asyncio.StreamReader) -> bytes:
    """Return the next output, or b"" after the end of the process, even if others keep the pipe open."""
    read, over = asyncio.ensure_future(reader.read(65536)), asyncio.ensure_future(process.wait())
    await asyncio.wait((read, over), return_when=asyncio.FIRST_COMPLETED)
    try:
        return await asyncio.wait_for(read, LAST if over.done() else None)
    except TimeoutError:
        return b""
    finally:
        over.cancel()
