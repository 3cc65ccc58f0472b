"""One command as Greenroom sees it: the supervisor process, requests and reports, and the output."""

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

from greenroom.adapters.processes.supervisor import GO, KILL, STOP, CommandReport, CommandRequest, SupervisorReady
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import CommandEnded, CommandPrinted

CHUNK_BYTES: Final = 256 * 1024
MAX_BUFFERED_BYTES: Final = 4 * 1024 * 1024
"""How many bytes are buffered for a slow reader. Further output is counted and dropped."""

THROTTLE_AFTER_BYTES: Final = 64 * 1024 * 1024
THROTTLE_PAUSE_S: Final = 0.02
"""Pause in seconds between two reads after much output, so that endless output does not use a whole CPU."""


class OutputPipe:
    """Reads the output of a command in the event loop."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._read_bytes = 0
        self._news = asyncio.Event()
        self._closed = False
        self._throttle: asyncio.TimerHandle | None = None
        self.missing = 0
        """Bytes dropped since the last read."""

        os.set_blocking(number, False)
        self._loop.add_reader(number, self._read_chunk)

    async def read(self) -> bytes | None:
        """Wait for output and return it; None at the end."""
        while not self._pieces:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered_bytes = 0
        return data

    def close_in(self, seconds: float) -> None:
        """Read for a moment longer: all processes of the command are dead."""
        if not self._closed:
            self._loop.call_later(seconds, self.close)

    def close(self) -> None:
        """Stop reading."""
        if self._closed:
            return
        self._closed = True
        if self._throttle is not None:
            self._throttle.cancel()
        self._loop.remove_reader(self._number)
        os.close(self._number)
        self._news.set()

    def _read_chunk(self) -> None:
        data = b""
        with suppress(BlockingIOError):
            data = os.read(self._number, CHUNK_BYTES)
            if not data:
                self.close()
                return
        self._read_bytes += len(data)
        if self._buffered_bytes < MAX_BUFFERED_BYTES:
            self._buffered_bytes += len(data)
            self._pieces.append(data)
        else:
            self.missing += len(data)
        if self._read_bytes > THROTTLE_AFTER_BYTES:
            self._loop.remove_reader(self._number)
            self._throttle = self._loop.call_later(
                THROTTLE_PAUSE_S, self._loop.add_reader, self._number, self._read_chunk
            )
        self._news.set()


SOURCE_FOLDER: Final = str(Path(__file__).resolve().parents[3])
SUPERVISOR_CODE: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes.supervisor import main; main(int(sys.argv[2]))"
)
CLOSE_TIMEOUT_S: Final = 8.0
"""How long the supervisor may take to end all commands, in seconds. It normally needs a fraction."""


class SupervisorProcess:
    """The supervisor, in its own session, so that Ctrl-C in the terminal reaches only Greenroom."""

    def __init__(self, env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", SUPERVISOR_CODE, SOURCE_FOLDER, str(theirs.fileno())],
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
                raise WorldFault("processes.supervisor_not_started", executable=sys.executable, error=error) from error
        self._socket = ours

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def hand_over(self, control: int, output: int) -> None:
        """Hand over one more command, with its `control` socket and its `output` pipe."""
        socket.send_fds(self._socket, [b"c"], [control, output])

    def close(self) -> None:
        """End all commands, then the supervisor."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


PIPE_BYTES: Final = 1024 * 1024
"""Size of a pipe in bytes, where the system lets us set it."""

SUPERVISOR_TIMEOUT_S: Final = 10.0
"""How long to wait for a report of a command's supervisor, in seconds."""

OUTPUT_TIMEOUT_S: Final = 1.0
"""How long output may still arrive after all processes are dead, in seconds."""


class CommandProcess:
    """A command, from the request to its supervisor until all its processes are dead."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pipe: OutputPipe) -> None:
        self._reader = reader
        self._writer = writer
        self._pipe = pipe
        self._ready = SupervisorReady(pid=0, guard=0, contained=False)
        self._end_task: asyncio.Task[CommandEnded] | None = None

    @classmethod
    async def start(cls, supervisor: SupervisorProcess, request: CommandRequest) -> CommandProcess:
        """Prepare a command. Raise `WorldFault` if it cannot be supervised."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            supervisor.hand_over(theirs.fileno(), write)
        except OSError:
            os.close(read)
            ours.close()
            raise WorldFault("processes.supervisor_ended") from None
        finally:
            theirs.close()
            os.close(write)
        pipe = OutputPipe(read)
        try:
            process = cls(*await asyncio.open_unix_connection(sock=ours), pipe)
        except BaseException:
            pipe.close()
            ours.close()
            raise
        try:
            await process._wait_until_ready(request)
        except BaseException:
            await process.finish()
            raise
        return process

    async def _wait_until_ready(self, request: CommandRequest) -> None:
        self._writer.write(json.dumps(request).encode() + b"\n")
        line = b""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(
                SUPERVISOR_TIMEOUT_S
            ):  # `wait_for` loses a cancellation that arrives with the reply
                line = await self._reader.readline()
        if not line:
            raise WorldFault("processes.guard_not_started")
        self._ready = json.loads(line)

    @property
    def pid(self) -> int:
        """The process of the command, which leads its process group."""
        return self._ready["pid"]

    @property
    def supervisor_pid(self) -> int:
        """The process that supervises the command."""
        return self._ready["guard"]

    def go(self, seconds: float) -> None:
        """Let the command run."""
        self._send(GO)
        self._end_task = asyncio.create_task(
            self._wait_for_report(seconds + SUPERVISOR_TIMEOUT_S), name=f"command {self.pid}"
        )

    async def read_output(self) -> AsyncIterator[CommandPrinted]:
        """Yield the output as text until its end."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while (data := await self._pipe.read()) is not None:
            missing, self._pipe.missing = self._pipe.missing, 0
            if text := decode(data):
                yield CommandPrinted(text=text, missing=missing)
        text = decode(b"", final=True)
        if text or self._pipe.missing:
            yield CommandPrinted(text=text, missing=self._pipe.missing)

    async def wait_for_end(self) -> CommandEnded:
        """Wait for the end and return how the command ended. All its processes are dead then."""
        return await self._end_task if self._end_task is not None else CommandEnded(how="cancelled")

    def stop(self, *, at_once: bool = False) -> None:
        """Ask the supervisor to end the command. With `at_once`, its processes get no time to end by themselves."""
        self._send(KILL if at_once else STOP)

    async def finish(self) -> None:
        """End the command if it still runs; return when all its processes are dead."""
        try:
            await self._end()
        finally:
            self._pipe.close()
            self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _end(self) -> None:
        if self._end_task is None:
            self._end_task = asyncio.create_task(self._wait_for_report(SUPERVISOR_TIMEOUT_S))
        if not self._end_task.done():
            self._send(STOP)
            await asyncio.wait((self._end_task,), timeout=SUPERVISOR_TIMEOUT_S)
            self._kill_supervisor()
            await asyncio.wait((self._end_task,))

    def _send(self, word: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(word)

    async def _wait_for_report(self, seconds: float) -> CommandEnded:
        """Wait for the report of the supervisor. If none arrives, kill it; the main supervisor ends its command."""
        report: CommandReport | None = None
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(seconds):
                report = await self._read_report()
        self._pipe.close_in(OUTPUT_TIMEOUT_S)
        if report is None:
            self._kill_supervisor()
            return CommandEnded(how="lost", contained=False)
        code, dead = report["code"], report["dead"]  # if a process does not die, its effects are unknown
        return CommandEnded(
            how=report["how"] if dead else "lost",
            code=code if report["how"] == "exited" else None,
            signal=-code if code < 0 else 0,
            seconds=round(report["seconds"], 3),
            strays=report["strays"],
            contained=self._ready["contained"] and dead,
        )

    async def _read_report(self) -> CommandReport | None:
        """Read the last report. After an early cancellation, the first may still be unread."""
        while line := await self._reader.readline():
            message = json.loads(line)
            if "how" in message:
                report: CommandReport = message
                return report
            self._ready = message
        return None

    def _kill_supervisor(self) -> None:
        if self._ready["guard"] and (self._end_task is None or not self._end_task.done()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._ready["guard"], signal.SIGKILL)
