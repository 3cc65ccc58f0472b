"""A web on the loopback interface: sites that misbehave, a canary, and a watched network."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

from greenroom.adapters.web.address_filter import IPAddress, SystemNetwork

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HERE = "127.0.0.1"


def said(body: bytes = b"", kind: str = "text/plain", status: str = "200 OK", **headers: str) -> bytes:
    """Build a whole response. Underscores in header names become hyphens."""
    named = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items() if value]
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("utf-8") + body


def moved(to: str) -> bytes:
    return said(status="302 Found", Location=to)


class Site:
    """Answers by path, with bytes or with a function. `seen` are the heads of requests."""

    def __init__(self, pages: Mapping[str, bytes | Answer]) -> None:
        self.pages = dict(pages)
        self.seen: list[str] = []
        self.port = 0

    @property
    def place(self) -> str:
        return f"{HERE}:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.place}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.seen.append(head)
            answer = self.pages.get(head.split(" ")[1].partition("?")[0], said(b"nothing", status="404 Not Found"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close the connection and wait until it is closed."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@asynccontextmanager
async def site(
    pages: Mapping[str, bytes | Answer], at: str = HERE, port: int = 0, secure: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    made = Site(pages)
    tasks: set[asyncio.Task[None]] = set()

    def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(visited, at, port, ssl=secure)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Canary:
    """Listens on both loopback addresses, in its own thread, for connections that must not happen."""

    def __init__(self) -> None:
        self._four = socket.create_server((HERE, 0))
        self.port: int = self._four.getsockname()[1]
        self._six = socket.create_server(("::1", self.port), family=socket.AF_INET6)
        self._count = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        for one in (self._four, self._six):
            one.setblocking(False)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    @property
    def visits(self) -> int:
        """Return the number of connections, including those not yet accepted."""
        with self._lock:
            for door in (self._four, self._six):
                self._let_in(door)
            return self._count

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._four.close()
        self._six.close()

    def _watch(self) -> None:
        while not self._over.is_set():
            select.select([self._four, self._six], [], [], 0.05)
            assert self.visits >= 0

    def _let_in(self, door: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                guest, _ = door.accept()
                self._count += 1
                with guest, suppress(OSError):
                    guest.sendall(said(b"canary"))


@asynccontextmanager
async def canary() -> AsyncIterator[Canary]:
    made = Canary()
    try:
        yield made
    finally:
        made.close()


class Watched(SystemNetwork):
    """A resolver with scripted answers, the last of which repeats. Only loopback is dialled, and dials are recorded."""

    def __init__(self, names: Mapping[str, Sequence[Sequence[str]]] | None = None) -> None:
        self.answers = {name: list(answers) for name, answers in (names or {}).items()}
        self.asked: list[str] = []
        self.dialled: list[str] = []

    async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
        self.asked.append(name)
        if name not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self.answers[name]
        return [ip_address(one) for one in (answers.pop(0) if len(answers) > 1 else answers[0])]

    def is_own(self, address: IPAddress) -> bool:
        return False

    def open(self, address: IPAddress) -> socket.socket:
        self.dialled.append(str(address))
        if not address.is_loopback:
            raise OSError(101, "Network is unreachable")
        return super().open(address)
