"""One command seen from the house: what its guard is asked and tells, and what it prints."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from greenroom.adapters.commands.pipe import OutputPipe
from greenroom.adapters.commands.warden.guard import GO, STOP, Asked, Ready, Told
from greenroom.adapters.commands.warden_process import WardenProcess
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Ended, Printed

PIPE: Final = 1024 * 1024
"""Bytes that fit into a pipe, where the system lets us say so."""

MARGIN: Final = 10.0
"""Seconds after which a guard that should have told us something is given up."""

LAST: Final = 1.0
"""Seconds that output may take after everybody who could have written it is dead."""


class Job:
    """From the moment its guard is asked until everything is dead."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pipe: OutputPipe) -> None:
        self._reader = reader
        self._writer = writer
        self._pipe = pipe
        self._ready = Ready(pid=0, guard=0, contained=False)
        self._ended: asyncio.Task[Ended] | None = None

    @classmethod
    async def begin(cls, warden: WardenProcess, asked: Asked) -> Job:
        """Have it stand ready; `WorldFault` when nobody can look after it."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, PIPE)
        try:
            warden.hand(theirs.fileno(), write)
        except OSError:
            os.close(read)
            ours.close()
            raise WorldFault("The command was not begun: what looks after commands has ended. Try again.") from None
        finally:
            theirs.close()
            os.close(write)
        pipe = OutputPipe(read)
        try:
            job = cls(*await asyncio.open_unix_connection(sock=ours), pipe)
        except BaseException:
            pipe.close()
            ours.close()
            raise
        try:
            await job._get_ready(asked)
        except BaseException:
            await job.finish()
            raise
        return job

    async def _get_ready(self, asked: Asked) -> None:
        self._writer.write(json.dumps(asked).encode() + b"\n")
        line = b""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(MARGIN):  # `wait_for` loses a cancellation that comes with the answer
                line = await self._reader.readline()
        if not line:
            raise WorldFault("The command was not begun: its guard did not start. Try again.")
        self._ready = json.loads(line)

    @property
    def pid(self) -> int:
        """The process that is, or will be, the command; it leads its group."""
        return self._ready["pid"]

    @property
    def guard(self) -> int:
        """The process that looks after it."""
        return self._ready["guard"]

    def go(self, seconds: float) -> None:
        """Let it run."""
        self._say(GO)
        self._ended = asyncio.create_task(self._hear(seconds + MARGIN), name=f"command {self.pid}")

    async def printed(self) -> AsyncIterator[Printed]:
        """What it prints, as text, until there is no more."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while (data := await self._pipe.next()) is not None:
            missing, self._pipe.missing = self._pipe.missing, 0
            if text := decode(data):
                yield Printed(text=text, missing=missing)
        text = decode(b"", final=True)
        if text or self._pipe.missing:
            yield Printed(text=text, missing=self._pipe.missing)

    async def ended(self) -> Ended:
        """How it ended. Everything is dead by then."""
        return await self._ended if self._ended is not None else Ended(how="cancelled")

    def stop(self) -> None:
        """Ask for its end; it is told like any other."""
        self._say(STOP)

    async def finish(self) -> None:
        """If it has not ended, end it; return when everything is dead."""
        try:
            await self._end()
        finally:
            self._pipe.close()
            self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _end(self) -> None:
        if self._ended is None:
            self._ended = asyncio.create_task(self._hear(MARGIN))
        if not self._ended.done():
            self._say(STOP)
            await asyncio.wait((self._ended,), timeout=MARGIN)
            self._give_up()
            await asyncio.wait((self._ended,))

    def _say(self, word: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(word)

    async def _hear(self, patience: float) -> Ended:
        """What the guard tells in the end; one that tells nothing is ended, and the warden ends what it guarded."""
        told: Told | None = None
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(patience):
                told = await self._told()
        self._pipe.close_in(LAST)
        if told is None:
            self._give_up()
            return Ended(how="lost", contained=False)
        return _ended(told, contained=self._ready["contained"])

    async def _told(self) -> Told | None:
        """The guard's last words. Whoever was cancelled early may not even have heard its first."""
        while line := await self._reader.readline():
            told = json.loads(line)
            if "how" in told:
                last: Told = told
                return last
            self._ready = told
        return None

    def _give_up(self) -> None:
        if self._ready["guard"] and (self._ended is None or not self._ended.done()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._ready["guard"], signal.SIGKILL)


def _ended(told: Told, *, contained: bool) -> Ended:
    """What is told, as the port says it. Where somebody would not die, nobody knows what it still does."""
    code = told["code"]
    return Ended(
        how=told["how"] if told["dead"] else "lost",
        code=code if told["how"] == "exited" else None,
        signal=-code if code < 0 else 0,
        seconds=round(told["seconds"], 3),
        strays=told["strays"],
        contained=contained and told["dead"],
    )
