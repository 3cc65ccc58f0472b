"""How messages reach the SDK's session: over the pipes of our supervisor, or by the SDK's HTTP transport."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.client._transport import WriteStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from greenroom.adapters.mcp.configuration import ResolvedServer, refuse_missing_program
from greenroom.adapters.mcp.schemas import to_one_line
from greenroom.core.base.errors import WorldFault, translate

SOURCE_FOLDER: Final = str(Path(__file__).resolve().parents[3])
SUPERVISOR_CODE: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes.program_supervisor import serve; sys.exit(serve(sys.argv[2], sys.argv[3:]))"
)
MAX_MESSAGE_BYTES: Final = 128_000_000
"""Largest message in bytes."""

CHUNK_BYTES: Final = 64 * 1024
MAX_STDERR_BYTES: Final = 2_000
"""How many bytes of stderr are kept."""

STDERR_TIMEOUT_S: Final = 1.0
"""How long to wait for the end of stderr, in seconds."""

END_TIMEOUT_S: Final = 2.0
"""How long a server may take to end after its stdin was closed, and its supervisor after SIGTERM, in seconds."""

Messages = tuple[AsyncIterator[SessionMessage | Exception], WriteStream[SessionMessage]]
"""What a server sends, and where messages to it go."""


class _SupervisorPipes(SubprocessStreamProtocol):
    """The pipes of a supervisor. `exited` is set at its end, even if another process holds the pipes."""

    def __init__(self) -> None:
        super().__init__(limit=CHUNK_BYTES, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class StdioTransport:
    """The pipes of the supervisor of a local server."""

    def __init__(self, resolved: ResolvedServer, folder: Path) -> None:
        self._resolved = resolved
        self._folder = folder
        self._stderr_tail = b""
        self._stderr_closed = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Messages]:
        """Start the server and yield its messages. At the end, all its processes are ended."""
        refuse_missing_program(self._resolved, self._folder)
        server, env = self._resolved.server, dict(self._resolved.env)
        transport, pipes = await asyncio.get_running_loop().subprocess_exec(
            _SupervisorPipes,
            *(sys.executable, "-I", "-S", "-c", SUPERVISOR_CODE, SOURCE_FOLDER, " ".join(env)),
            *(server.command, *server.args),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=env,
            cwd=self._folder / server.folder,
            start_new_session=True,
        )
        try:
            stdin, stdout, stderr = pipes.stdin, pipes.stdout, pipes.stderr
            assert stdin
            assert stdout
            assert stderr
            write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
            async with anyio.create_task_group() as group, outgoing:
                group.start_soon(self._read_stderr, stderr)
                group.start_soon(_write_lines, outgoing, stdin, transport)
                yield _read_lines(stdout), write
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end_process(transport, pipes)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(CHUNK_BYTES):
            self._stderr_tail = (self._stderr_tail + data)[-MAX_STDERR_BYTES:]
        self._stderr_closed.set()

    async def describe_end(self) -> str:
        """Return why the server ended, after waiting briefly for the rest of stderr and the exit code."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STDERR_TIMEOUT_S):
                await self._stderr_closed.wait()
        message = to_one_line(self._resolved.redact(self._stderr_tail.decode(errors="replace")[-600:]), 600)
        return translate("mcp.has_ended_with", message=message) if message else translate("mcp.has_ended")


async def _read_lines(stdout: asyncio.StreamReader) -> AsyncIterator[SessionMessage | Exception]:
    """Yield a message, or the error, for each line. Raise `WorldFault` for a line that is too long."""
    line = bytearray()
    while chunk := await stdout.read(CHUNK_BYTES):
        *endings, rest = chunk.split(b"\n")
        for ending in endings:
            yield _parse_line(line + ending)
            line.clear()
        line += rest
        if len(line) > MAX_MESSAGE_BYTES:
            raise WorldFault("mcp.message_too_large", limit=MAX_MESSAGE_BYTES // 1_000_000)


def _parse_line(line: bytearray) -> SessionMessage | ValidationError:
    try:
        # One bad byte must not end the connection.
        return SessionMessage(jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False))
    except ValidationError as error:
        return error


async def _write_lines(
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    stdin: asyncio.StreamWriter,
    transport: asyncio.SubprocessTransport,
) -> None:
    """Write each message as a line. A server that does not read is ended, or its calls would wait for ever."""
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(f"{text}\n".encode(errors="replace"))
            await stdin.drain()
    except OSError:
        with suppress(ProcessLookupError):
            transport.terminate()


async def _end_process(transport: asyncio.SubprocessTransport, pipes: _SupervisorPipes) -> None:
    """Close stdin, and end the supervisor if the server does not end by itself. It ends all of its processes."""
    for stop in (pipes.stdin.close, transport.terminate) if pipes.stdin else ():
        if not pipes.exited.is_set():
            stop()
            with suppress(TimeoutError):
                await asyncio.wait_for(pipes.exited.wait(), END_TIMEOUT_S)
    transport.close()  # kills it if it is still there


CONNECT_TIMEOUT_S: Final = 15.0
"""How long to wait for a connection, in seconds. Callers limit the time for a reply."""


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that raises an error when it becomes too long."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._body:
            read += len(piece)
            if read > MAX_MESSAGE_BYTES:
                raise httpx2.ReadError(translate("mcp.message_too_large", limit=MAX_MESSAGE_BYTES // 1000000))
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class HttpTransport:
    """The HTTP connections to a server. `status` is the last response status."""

    def __init__(self, resolved: ResolvedServer) -> None:
        self._resolved = resolved
        self.status = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Messages]:
        """Yield the messages of a session, and end the session afterwards."""
        url = self._resolved.server.url
        host = httpx2.URL(url).host

        async def check(request: httpx2.Request) -> None:
            if request.url.host != host:
                raise httpx2.RequestError(translate("mcp.redirects_away", host=request.url.host))

        async with (
            httpx2.AsyncClient(
                headers={**self._resolved.headers, "accept-encoding": "identity"},
                timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=None),
                # Use the person's proxy, except for this machine.
                trust_env=not is_loopback(url),
                event_hooks={"request": [check], "response": [self._check_response]},
                follow_redirects=False,
            ) as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
        ):
            yield streams

    async def _check_response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError(translate("mcp.compressed_body"))
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedBody(response.stream)


def is_loopback(url: str) -> bool:
    """Return whether the address is on the loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
