"""The filtering proxy: plain HTTP and tunnels (CONNECT) to hosts that a rule allows, through the guard.

The head of a request is read strictly: what two programs could read in two ways is refused. A tunnel is not looked
into: who allows a host allows everything that is said to it, also that the host passes it on.
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

from greenroom.adapters.web.guard import Guard
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import BadHost, Host, host, loosens
from greenroom.core.base.records import record
from greenroom.core.ports.web import BadAddress, WebFault, address

USER: Final = "greenroom"
_FIRST: Final = re.compile(r"([A-Z]{3,20}) (\S+) HTTP/1\.[01]")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")
_HOP: Final = frozenset(
    {
        *("connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "trailer", "upgrade", "host"),
    }
)

Headers = Sequence[tuple[str, str]]


class BadHead(Exception):
    """What a client is answered whose request cannot be taken."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


@record
class Head:
    """What a client wants. Of a tunnel only `host` is known; of a request what is sent on, and how long its body is."""

    host: Host
    tunnel: bool
    sent: bytes = b""
    body: int = 0


def head_of(raw: bytes, token: str = "") -> Head:
    """Read it; `BadHead` for what is not exactly a request, or comes without the token."""
    first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    asked = _FIRST.fullmatch(first)
    if asked is None:
        raise BadHead("400 Bad Request", "That is no request to a proxy.")
    headers = [_header(line) for line in lines]
    if token:
        _refuse_stranger(headers, token)
    method, target = asked[1], asked[2]
    if method == "CONNECT":
        return Head(host=_tunnel_host(target), tunnel=True)
    return _plain_request(method, target, headers)


def _plain_request(method: str, target: str, headers: Headers) -> Head:
    try:
        wanted = address(target)
    except BadAddress as why:
        raise BadHead("400 Bad Request", str(why)) from None
    if wanted.scheme != "http":
        raise BadHead("400 Bad Request", "An https address is reached with CONNECT.")
    named = {one.strip().lower() for name, value in headers if name == "connection" for one in value.split(",")}
    kept = [(name, value) for name, value in headers if name not in _HOP and name not in named]
    place = wanted.url.partition("://")[2].partition("/")[0]
    lines = [f"{method} {wanted.target} HTTP/1.1", f"Host: {place}", *(f"{name}: {value}" for name, value in kept)]
    sent = "\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1")
    return Head(host=wanted.host, tunnel=False, sent=sent, body=_body_length(headers))


def _header(line: str) -> tuple[str, str]:
    read = _HEADER.fullmatch(line)
    if read is None:
        raise BadHead("400 Bad Request", "A header of the request is none.")
    return read[1].lower(), read[2].strip(" \t")


def _body_length(headers: Headers) -> int:
    """How long the body is. One without a length could hide a second request."""
    if any(name == "transfer-encoding" for name, _ in headers):
        raise BadHead("411 Length Required", "Send the body with its Content-Length.")
    said = {value for name, value in headers if name == "content-length"}
    if not said:
        return 0
    if len(said) > 1 or not all(map(_LENGTH.fullmatch, said)):
        raise BadHead("400 Bad Request", "The length of the body is not clear.")
    return int(said.pop())


def _tunnel_host(target: str) -> Host:
    try:
        asked = host(target)
    except BadHost as why:
        raise BadHead("400 Bad Request", f"The host {target[:200]!r} {why}.") from None
    if not asked.port:
        raise BadHead("400 Bad Request", f"The host {target[:200]!r} comes without a port.")
    return asked


def _refuse_stranger(headers: Headers, token: str) -> None:
    wanted = f"Basic {base64.b64encode(f'{USER}:{token}'.encode()).decode()}"
    said = [value for name, value in headers if name == "proxy-authorization"]
    if len(said) != 1 or not hmac.compare_digest(said[0].encode("latin-1"), wanted.encode()):
        raise BadHead("407 Proxy Authentication Required", "This proxy is for those who have its token.")


PIECE: Final = 2**16

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[], None], most: int | None = None
) -> None:
    """Pass on what comes, `most` bytes at most. The end of a stream without a bound is passed on too."""
    left = PIECE if most is None else most
    while left > 0 and (piece := await reader.read(min(PIECE, left))):
        heard()
        writer.write(piece)
        await writer.drain()
        heard()
        left -= 0 if most is None else len(piece)
    if most is None and writer.can_write_eof():
        writer.write_eof()


async def both(*pumps: Coroutine[None, None, None]) -> None:
    """Until all have ended, or one has failed."""
    tasks = [asyncio.ensure_future(one) for one in pumps]
    try:
        await asyncio.gather(*tasks)
    finally:
        await _ended(tasks)


async def first(main: Coroutine[None, None, None], beside: Coroutine[None, None, None]) -> None:
    """Until the first has ended, whatever the other does."""
    tasks = [asyncio.ensure_future(one) for one in (main, beside)]
    try:
        await tasks[0]
    finally:
        await _ended(tasks)


async def _ended(tasks: Iterable[asyncio.Future[None]]) -> None:
    for one in tasks:
        one.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


LONGEST: Final = 2**15
LINGER: Final = 1.0
"""Seconds in which somebody who is refused can end what they were saying."""

OPENED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


@record
class ProxyLimits:
    """How many connections at once; seconds for a request's head, until a host answers, of silence, and for all."""

    connections: int = 128
    head: float = 10.0
    connect: float = 10.0
    idle: float = 60.0
    total: float = 1_800.0


@record
class Visit:
    """What was asked of the proxy, and what came of it. The host is empty where it could not be read.

    `caller` is the process that asked, where the system tells: at a unix socket of Linux.
    """

    host: str
    verdict: Literal["allowed", "refused", "failed"]
    why: str = ""
    caller: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The hosts that somebody may reach, as patterns, and the guard that looks where they are."""

    hosts: tuple[Host, ...]
    guard: Guard


PROXY_LIMITS: Final = ProxyLimits()


class Proxy:
    """One proxy. `hosts` are those that may be reached: a name, or `*.domain` for all below one, and a port if it is
    not the web's. Who asks may have a way of its own, and goes that one (`own`, by the process that asks). `told` hears
    of every request. With a `token` only who has it is served."""

    def __init__(
        self,
        guard: Guard,
        hosts: Iterable[str],
        *,
        own: Callable[[int], Way | None] = lambda _: None,
        told: Callable[[Visit], None] = lambda _: None,
        token: str = "",
        limits: ProxyLimits = PROXY_LIMITS,
    ) -> None:
        self._way = Way(hosts=tuple(map(pattern, hosts)), guard=guard)
        self._own = own
        self._told = told
        self._token = token
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._visits: dict[asyncio.Task[None], int] = {}
        self._path: Path | None = None

    async def listen(self, path: Path, mode: int = 0o600) -> None:
        """Serve at a unix socket that nobody can use before its mode is set."""
        door, self._path = _door(path, mode), path
        self._server = await asyncio.start_unix_server(self._visited, sock=door, limit=LONGEST)

    async def listen_here(self) -> int:
        """Serve at a free port of the loopback interface, which is returned."""
        self._server = await asyncio.start_server(self._visited, "127.0.0.1", 0, limit=LONGEST)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """End it, and all that it serves."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._visits):
            task.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def cut(self, callers: Collection[int]) -> None:
        """End what is served to these processes, also what they have asked for and not got yet."""
        for task in [task for task, caller in self._visits.items() if caller in callers]:
            task.cancel()

    # ---------------------------------------------------------------------------------------------------- a visit

    def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._visit(reader, writer))
        self._visits[task] = _caller(writer)
        task.add_done_callback(lambda done: self._visits.pop(done, None))

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._visits) > self._limits.connections:
                raise BadHead("503 Service Unavailable", "Too many connections at once. Try again.")
            await self._serve(await self._head(reader), reader, writer)
        except BadHead as bad:
            self._told(Visit(host="", verdict="refused", why=str(bad), caller=_caller(writer)))
            await self._answer((reader, writer), bad.status, str(bad))
        except OSError:
            pass  # whoever asked is gone, or took too long
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _head(self, reader: asyncio.StreamReader) -> Head:
        try:
            async with asyncio.timeout(self._limits.head):
                return head_of(await reader.readuntil(b"\r\n\r\n"), self._token)
        except asyncio.IncompleteReadError:
            raise BadHead("400 Bad Request", "The request ends before its end.") from None
        except asyncio.LimitOverrunError:
            raise BadHead("431 Request Header Fields Too Large", "The head of the request is too long.") from None
        except TimeoutError:
            raise BadHead("408 Request Timeout", "The request did not come to an end.") from None

    async def _serve(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place, caller = str(head.host), _caller(writer)
        way = self._own(caller) or self._way
        if not any(loosens(one, head.host) for one in way.hosts):
            why = f"{place!r} is none of the hosts that may be reached from here."
            self._told(Visit(host=place, verdict="refused", why=why, caller=caller))
            return await self._answer((reader, writer), "403 Forbidden", why)
        try:
            checked = await way.guard.check(head.host)
            there = await asyncio.open_connection(sock=await checked.connect(self._limits.connect), limit=PIECE)
        except WebFault as fault:
            barred = fault.reason == "barred"
            self._told(Visit(host=place, verdict="refused" if barred else "failed", why=str(fault), caller=caller))
            return await self._answer((reader, writer), "403 Forbidden" if barred else "502 Bad Gateway", str(fault))
        self._told(Visit(host=place, verdict="allowed", caller=caller))
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
        asks = "Proxy-Authenticate: Basic\r\n" if status.startswith("407") else ""
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            f"{asks}Connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        with suppress(OSError):
            async with asyncio.timeout(LINGER):
                writer.write_eof()
                # Who still speaks when the door is closed is cut off, and does not hear the answer.
                while await reader.read(PIECE):
                    pass

    # ---------------------------------------------------------------------------------------------------- a relay

    async def _relay(self, head: Head, here: Stream, there: Stream) -> None:
        """Both ways at once, until both have ended, or nobody has said anything for too long."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._limits.total
        with suppress(OSError):
            async with asyncio.timeout_at(min(clock() + self._limits.idle, end)) as patience:

                def heard() -> None:
                    patience.reschedule(min(clock() + self._limits.idle, end))

                if head.tunnel:
                    here[1].write(OPENED)
                    await both(pump(here[0], there[1], heard), pump(there[0], here[1], heard))
                else:
                    there[1].write(head.sent)
                    sending = pump(here[0], there[1], heard, head.body)
                    # An answer may come before all of the body is sent; after it nothing more is sent.
                    await first(pump(there[0], here[1], heard), sending)


def pattern(told: str) -> Host:
    """A host that may be reached, as settings write it; `WorldFault` for what is none."""
    try:
        return host(told, pattern=True)
    except BadHost as why:
        raise WorldFault(f"{told!r} is no host that can be allowed: it {why}.") from None


def _caller(writer: asyncio.StreamWriter) -> int:
    """The process at the other end; 0 where nobody says."""
    known = writer.get_extra_info("socket")
    if known.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return 0
    pid, _, _ = struct.unpack("3i", known.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(pid)


def _door(path: Path, mode: int) -> socket.socket:
    """A unix socket, in the place of one that a dead process has left."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        door.bind(str(path))
        path.chmod(mode)
    except OSError as error:
        door.close()
        raise WorldFault(f"No proxy can listen at {str(path)!r}: {error.strerror or error}.") from None
    return door
