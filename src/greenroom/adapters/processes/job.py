"""One command seen from Greenroom: the process that looks after it, what it is asked and tells, and what it prints."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.processes.supervisor import GO, STOP, Asked, Ready, Told
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Ended, Printed

PIECE: Final = 256 * 1024
WAITING: Final = 4 * 1024 * 1024
"""Bytes that are kept for a reader that is behind; what comes on top is counted and dropped."""

PLENTY: Final = 64 * 1024 * 1024
BREATH: Final = 0.02
"""Of a command that has printed plenty, one piece per breath is taken: endless output must not cost a processor."""


class OutputPipe:
    """Reads as soon as there is something, in the loop."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._read = 0
        self._news = asyncio.Event()
        self._closed = False
        self._later: asyncio.TimerHandle | None = None
        self.missing = 0
        """Bytes that were dropped since somebody asked."""

        os.set_blocking(number, False)
        self._loop.add_reader(number, self._take)

    async def next(self) -> bytes | None:
        """What came since; None after the end."""
        while not self._pieces:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._kept = 0
        return data

    def close_in(self, seconds: float) -> None:
        """Hear on for a moment: everybody who could write is dead, or does not belong to the command."""
        if not self._closed:
            self._loop.call_later(seconds, self.close)

    def close(self) -> None:
        """Read no more."""
        if self._closed:
            return
        self._closed = True
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._number)
        os.close(self._number)
        self._news.set()

    def _take(self) -> None:
        data = b""
        with suppress(BlockingIOError):
            data = os.read(self._number, PIECE)
            if not data:
                self.close()
                return
        self._read += len(data)
        if self._kept < WAITING:
            self._kept += len(data)
            self._pieces.append(data)
        else:
            self.missing += len(data)
        if self._read > PLENTY:
            self._loop.remove_reader(self._number)
            self._later = self._loop.call_later(BREATH, self._loop.add_reader, self._number, self._take)
        self._news.set()


ROOM: Final = str(Path(__file__).resolve().parents[3])
PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes.supervisor import main; main(int(sys.argv[2]))"
)
LEAVING: Final = 8.0
"""Seconds that it has to end all that it looks after; it needs a fraction of one."""


class SupervisorProcess:
    """It runs in a session of its own, so that a Ctrl-C in our terminal is ours alone."""

    def __init__(self, env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", PROGRAM, ROOM, str(theirs.fileno())],
                    cwd="/",
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise WorldFault(f"No command can be run: {sys.executable!r} does not start ({error}).") from error
        self._socket = ours

    @property
    def alive(self) -> bool:
        """Whether it can still be handed something."""
        return self._process.poll() is None

    def hand(self, control: int, output: int) -> None:
        """Let it look after one more command: one that is told through `control` and prints into `output`."""
        socket.send_fds(self._socket, [b"c"], [control, output])

    def close(self) -> None:
        """End everything that it looks after, and see it end."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(LEAVING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


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
    async def begin(cls, supervisor: SupervisorProcess, asked: Asked) -> Job:
        """Have it stand ready; `WorldFault` when nobody can look after it."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, PIPE)
        try:
            supervisor.hand(theirs.fileno(), write)
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
        """What the guard tells in the end; one that tells nothing is ended, and the supervisor ends what it guarded."""
        told: Told | None = None
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(patience):
                told = await self._told()
        self._pipe.close_in(LAST)
        if told is None:
            self._give_up()
            return Ended(how="lost", contained=False)
        code, dead = told["code"], told["dead"]  # where somebody would not die, nobody knows what it still does
        return Ended(
            how=told["how"] if dead else "lost",
            code=code if told["how"] == "exited" else None,
            signal=-code if code < 0 else 0,
            seconds=round(told["seconds"], 3),
            strays=told["strays"],
            contained=self._ready["contained"] and dead,
        )

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
