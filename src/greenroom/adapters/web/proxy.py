"""The egress proxy: plain HTTP and tunnels (CONNECT) to allowed hosts, through the address filter.

Request heads are parsed strictly: anything that two programs could read differently is refused. The contents of a
tunnel are not inspected. An allowed host can receive everything, and may pass it on.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
import socket
import stat
import struct
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import BadHost, Host, allows_host, parse_host
from greenroom.core.base.records import record
from greenroom.core.ports.web import BadAddress, WebFault, parse_address

USER: Final = "greenroom"
_REQUEST_LINE: Final = re.compile(r"([A-Z]{3,20}) (\S+) HTTP/1\.[01]")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")
_HOP_HEADERS: Final = frozenset(
    {
        *("connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "trailer", "upgrade", "host"),
    }
)

Headers = Sequence[tuple[str, str]]


class BadHead(Exception):
    """The error response for a request that cannot be served."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


@record
class RequestHead:
    """A parsed request head. A tunnel has only `host`; a plain request also has a head and a body length."""

    host: Host
    tunnel: bool
    sent: bytes = b""
    body: int = 0


def parse_head(raw: bytes, token: str = "") -> RequestHead:
    """Parse a request head. Raise `BadHead` if it is invalid or lacks the token."""
    first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    request_line = _REQUEST_LINE.fullmatch(first)
    if request_line is None:
        raise BadHead("400 Bad Request", "This is not a request to a proxy.")
    headers = [_parse_header(line) for line in lines]
    if token:
        wanted = f"Basic {base64.b64encode(f'{USER}:{token}'.encode()).decode()}"
        sent = [value for name, value in headers if name == "proxy-authorization"]
        if len(sent) != 1 or not hmac.compare_digest(sent[0].encode("latin-1"), wanted.encode()):
            raise BadHead("407 Proxy Authentication Required", "This proxy needs a token.")
    method, target = request_line[1], request_line[2]
    if method == "CONNECT":
        try:
            parsed = parse_host(target)
        except BadHost as why:
            raise BadHead("400 Bad Request", f"The host {target[:200]!r} {why}.") from None
        if not parsed.port:
            raise BadHead("400 Bad Request", f"The host {target[:200]!r} has no port.")
        return RequestHead(host=parsed, tunnel=True)
    return _parse_plain_request(method, target, headers)


def _parse_plain_request(method: str, target: str, headers: Headers) -> RequestHead:
    try:
        target_address = parse_address(target)
    except BadAddress as why:
        raise BadHead("400 Bad Request", str(why)) from None
    if target_address.scheme != "http":
        raise BadHead("400 Bad Request", "Use CONNECT for https addresses.")
    listed = {word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")}
    forwarded = [(name, value) for name, value in headers if name not in _HOP_HEADERS and name not in listed]
    place = target_address.url.partition("://")[2].partition("/")[0]
    lines = [
        f"{method} {target_address.target} HTTP/1.1",
        f"Host: {place}",
        *(f"{name}: {value}" for name, value in forwarded),
    ]
    sent = "\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1")
    return RequestHead(host=target_address.host, tunnel=False, sent=sent, body=_parse_body_length(headers))


def _parse_header(line: str) -> tuple[str, str]:
    parsed = _HEADER.fullmatch(line)
    if parsed is None:
        raise BadHead("400 Bad Request", "A header of the request is invalid.")
    return parsed[1].lower(), parsed[2].strip(" \t")


def _parse_body_length(headers: Headers) -> int:
    """Return the length of the body. A body without a length could hide a second request."""
    if any(name == "transfer-encoding" for name, _ in headers):
        raise BadHead("411 Length Required", "Send the body with its Content-Length.")
    lengths = {value for name, value in headers if name == "content-length"}
    if not lengths:
        return 0
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise BadHead("400 Bad Request", "The length of the body is not clear.")
    return int(lengths.pop())


CHUNK_BYTES: Final = 2**16

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    on_data: Callable[[], None],
    max_bytes: int | None = None,
) -> None:
    """Copy at most `max_bytes` bytes. Without a limit, the end of the stream is passed on too."""
    left = CHUNK_BYTES if max_bytes is None else max_bytes
    while left > 0 and (piece := await reader.read(min(CHUNK_BYTES, left))):
        on_data()
        writer.write(piece)
        await writer.drain()
        on_data()
        left -= 0 if max_bytes is None else len(piece)
    if max_bytes is None and writer.can_write_eof():
        writer.write_eof()


async def run_all(*pumps: Coroutine[None, None, None]) -> None:
    """Run all until they end, or one fails."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in pumps]
    try:
        await asyncio.gather(*tasks)
    finally:
        await _cancel_all(tasks)


async def run_until_main_ends(main: Coroutine[None, None, None], beside: Coroutine[None, None, None]) -> None:
    """Run both until `main` ends, then cancel the other."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in (main, beside)]
    try:
        await tasks[0]
    finally:
        await _cancel_all(tasks)


async def _cancel_all(tasks: Iterable[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


MAX_HEAD_BYTES: Final = 2**15
LINGER_S: Final = 1.0
"""How long a refused client may still send data, in seconds."""

TUNNEL_OPENED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


@record
class ProxyLimits:
    """The number of parallel connections, and time limits in seconds: for the head, for connecting, without data, in
    total."""

    connections: int = 128
    head: float = 10.0
    connect: float = 10.0
    idle: float = 60.0
    total: float = 1_800.0


@record
class ProxyVisit:
    """A request to the proxy and its outcome. `host` is empty if it could not be read.

    `caller` is the process of the client, which Linux reports for unix sockets.
    """

    host: str
    verdict: Literal["allowed", "refused", "failed"]
    why: str = ""
    caller: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRoute:
    """The allowed hosts as patterns, and the address filter for them."""

    hosts: tuple[Host, ...]
    address_filter: AddressFilter


PROXY_LIMITS: Final = ProxyLimits()


class Proxy:
    """An egress proxy. `hosts` are allowed: a name, or `*.domain` for its subdomains, and a port if it is not 80 or
    443.

    `route_of` may return another route for a process. `on_visit` is called for every request. With `token`, clients
    must send it.
    """

    def __init__(
        self,
        address_filter: AddressFilter,
        hosts: Iterable[str],
        *,
        route_of: Callable[[int], EgressRoute | None] = lambda _: None,
        on_visit: Callable[[ProxyVisit], None] = lambda _: None,
        token: str = "",
        limits: ProxyLimits = PROXY_LIMITS,
    ) -> None:
        self._default_route = EgressRoute(hosts=tuple(map(parse_pattern, hosts)), address_filter=address_filter)
        self._route_of = route_of
        self._on_visit = on_visit
        self._token = token
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._visits: dict[asyncio.Task[None], int] = {}
        self._path: Path | None = None

    async def listen(self, path: Path, mode: int = 0o600) -> None:
        """Serve at a unix socket, which is not usable before its mode is set."""
        unix_socket, self._path = _bind_unix_socket(path, mode), path
        self._server = await asyncio.start_unix_server(self._accept, sock=unix_socket, limit=MAX_HEAD_BYTES)

    async def listen_on_loopback(self) -> int:
        """Serve at a free port of the loopback interface and return the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop the proxy and all its connections."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._visits):
            task.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def cut(self, callers: Collection[int]) -> None:
        """End all connections of these processes, including pending requests."""
        for task in [task for task, caller in self._visits.items() if caller in callers]:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._handle(reader, writer))
        self._visits[task] = _find_caller_pid(writer)
        task.add_done_callback(lambda done: self._visits.pop(done, None))

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._visits) > self._limits.connections:
                raise BadHead("503 Service Unavailable", "Too many connections at once. Try again.")
            await self._serve(await self._read_head(reader), reader, writer)
        except BadHead as bad:
            self._on_visit(ProxyVisit(host="", verdict="refused", why=str(bad), caller=_find_caller_pid(writer)))
            await self._answer((reader, writer), bad.status, str(bad))
        except OSError:
            pass  # the client is gone or too slow
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _read_head(self, reader: asyncio.StreamReader) -> RequestHead:
        try:
            async with asyncio.timeout(self._limits.head):
                return parse_head(await reader.readuntil(b"\r\n\r\n"), self._token)
        except asyncio.IncompleteReadError:
            raise BadHead("400 Bad Request", "The request is incomplete.") from None
        except asyncio.LimitOverrunError:
            raise BadHead("431 Request Header Fields Too Large", "The head of the request is too long.") from None
        except TimeoutError:
            raise BadHead("408 Request Timeout", "The request was not completed in time.") from None

    async def _serve(self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place, caller = str(head.host), _find_caller_pid(writer)
        route = self._route_of(caller) or self._default_route
        if not any(allows_host(host_pattern, head.host) for host_pattern in route.hosts):
            why = f"{place!r} is none of the hosts that are allowed."
            self._on_visit(ProxyVisit(host=place, verdict="refused", why=why, caller=caller))
            return await self._answer((reader, writer), "403 Forbidden", why)
        try:
            checked = await route.address_filter.check(head.host)
            there = await asyncio.open_connection(sock=await checked.connect(self._limits.connect), limit=CHUNK_BYTES)
        except WebFault as fault:
            is_barred = fault.reason == "barred"
            self._on_visit(
                ProxyVisit(host=place, verdict="refused" if is_barred else "failed", why=str(fault), caller=caller)
            )
            return await self._answer((reader, writer), "403 Forbidden" if is_barred else "502 Bad Gateway", str(fault))
        self._on_visit(ProxyVisit(host=place, verdict="allowed", caller=caller))
        try:
            await self._relay(head, (reader, writer), there)
        finally:
            there[1].close()
            with suppress(OSError):
                await there[1].wait_closed()
        return None

    async def _answer(self, here: Stream, status: str, why: str) -> None:
        reader, writer = here
        body = f"{why}\n".encode()
        challenge = "Proxy-Authenticate: Basic\r\n" if status.startswith("407") else ""
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            f"{challenge}Connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        with suppress(OSError):
            async with asyncio.timeout(LINGER_S):
                writer.write_eof()
                # Read the rest: closing early would reset the connection before the client reads the response.
                while await reader.read(CHUNK_BYTES):
                    pass

    async def _relay(self, head: RequestHead, here: Stream, there: Stream) -> None:
        """Relay data in both directions until both sides end, or no data comes for too long."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._limits.total
        with suppress(OSError):
            async with asyncio.timeout_at(min(clock() + self._limits.idle, end)) as timeout:

                def extend_timeout() -> None:
                    timeout.reschedule(min(clock() + self._limits.idle, end))

                if head.tunnel:
                    here[1].write(TUNNEL_OPENED)
                    await run_all(pump(here[0], there[1], extend_timeout), pump(there[0], here[1], extend_timeout))
                else:
                    there[1].write(head.sent)
                    sending = pump(here[0], there[1], extend_timeout, head.body)
                    # A response may come before the body is complete. Then the rest of the body is not sent.
                    await run_until_main_ends(pump(there[0], here[1], extend_timeout), sending)


def parse_pattern(text: str) -> Host:
    """Parse an allowed host from the settings. Raise `WorldFault` if it is invalid."""
    try:
        return parse_host(text, pattern=True)
    except BadHost as why:
        raise WorldFault("web.invalid_host", text=text, why=why) from None


def _find_caller_pid(writer: asyncio.StreamWriter) -> int:
    """Return the process of the client; 0 if it is unknown."""
    connection = writer.get_extra_info("socket")
    if connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return 0
    pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(pid)


def _bind_unix_socket(path: Path, mode: int) -> socket.socket:
    """Bind a unix socket, replacing one that a dead process left."""
    unix_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        unix_socket.bind(str(path))
        path.chmod(mode)
    except OSError as error:
        unix_socket.close()
        raise WorldFault("web.proxy_cannot_listen", path=str(path), strerror=error.strerror or error) from None
    return unix_socket
