"""The proxy: heads that are read strictly, hosts that are allowed, and everything else refused."""

from __future__ import annotations

import asyncio
import base64
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.adapters.web.proxy import PROXY_LIMITS, USER, BadHead, Proxy, ProxyLimits, ProxyVisit, parse_head
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from tests.adapters.web.house import HERE, Site, Watched, said, site
from tests.speed import is_soon

RIGHT = f"Proxy-Authorization: Basic {base64.b64encode(f'{USER}:t0k3n'.encode()).decode()}"


def asked(*headers: str) -> bytes:
    return "\r\n".join(("GET http://site.test/a HTTP/1.1", *headers, "", "")).encode()


@pytest.mark.parametrize("headers", [(RIGHT, RIGHT), (RIGHT, "Proxy-Authorization: Basic eDp5"), ()])
def test_who_shows_a_token_twice_or_never_is_a_stranger(headers: tuple[str, ...]) -> None:
    assert parse_head(asked(RIGHT), "t0k3n").host.name == "site.test"
    with pytest.raises(BadHead, match="needs a token"):
        parse_head(asked(*headers), "t0k3n")


def test_what_is_named_as_meant_for_the_proxy_alone_does_not_go_on() -> None:
    sent = parse_head(
        asked("Connection: close, X-Secret", "Connection: x-other", "X-Secret: 1", "X-Other: 2", "X-On: 3")
    )
    lines = sent.sent.decode().lower().split("\r\n")
    assert "x-on: 3" in lines
    assert not [one for one in lines if one.startswith(("x-secret", "x-other"))]


@pytest.mark.parametrize(
    "name", ["Keep-Alive", "TE", "Trailer", "Upgrade", "Proxy-Connection", "Proxy-Authorization", "Host"]
)
def test_what_concerns_one_connection_does_not_go_on_to_the_next(name: str) -> None:
    sent = parse_head(asked(f"{name}: evil.test")).sent.decode()
    assert "evil" not in sent
    assert sent.count("Host: site.test\r\n") == 1


class Running:
    """A proxy that runs, and what it tells."""

    def __init__(self, port: int, visits: list[ProxyVisit]) -> None:
        self.port = port
        self.visits = visits

    async def talk(self, *pieces: str | bytes) -> str:
        """What is answered when this is sent."""
        reader, writer = await asyncio.open_connection(HERE, self.port)
        for piece in pieces:
            writer.write(piece.encode("latin-1") if isinstance(piece, str) else piece)
            await writer.drain()
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return answer.decode("latin-1")


@asynccontextmanager
async def proxy(
    shop: Site, hosts: Sequence[str] = (), limits: ProxyLimits = PROXY_LIMITS, token: str = ""
) -> AsyncIterator[Running]:
    visits: list[ProxyVisit] = []
    network = Watched({name: [[HERE]] for name in ("pypi.test", "files.pypi.test", "other.test")})
    guard = AddressFilter([f"{name}:{shop.port}" for name in (HERE, "pypi.test", "files.pypi.test")], network=network)
    made = Proxy(guard, hosts or [shop.place], on_visit=visits.append, limits=limits, token=token)
    try:
        yield Running(await made.listen_on_loopback(), visits)
    finally:
        await made.close()


# --------------------------------------------------------------------------------------------------- who comes through


async def test_a_request_comes_through_and_is_told() -> None:
    async with site({"/a": said(b"hello")}) as shop, proxy(shop) as through:
        asked = f"GET {shop.url('/a')} HTTP/1.1\r\nHost: evil.example\r\nProxy-Connection: keep-alive\r\nX-A: b\r\n\r\n"
        assert (await through.talk(asked)).endswith("hello")
        assert through.visits == [ProxyVisit(host=shop.place, verdict="allowed")]
        head = shop.seen[0].lower()
        assert head.startswith("get /a http/1.1\r\n")
        assert f"host: {shop.place}\r\n" in head
        assert "x-a: b\r\n" in head
        assert "connection: close\r\n" in head
        assert "evil" not in head
        assert "keep-alive" not in head


async def test_a_body_of_known_length_comes_through_and_no_second_request() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = await asyncio.wait_for(reader.readexactly(5), 5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        writer.write(said(got))
        await writer.drain()

    async with site({"/a": echo}) as shop, proxy(shop) as through:
        asked = f"POST {shop.url('/a')} HTTP/1.1\r\nContent-Length: 5\r\n\r\n"
        second = f"GET {shop.url('/b')} HTTP/1.1\r\nHost: other.test\r\n\r\n"
        assert (await through.talk(asked, "12345", second)).endswith("12345")
        assert len(shop.seen) == 1


async def test_a_tunnel_passes_everything_both_ways() -> None:
    async with site({"/a": said(b"deep")}) as shop, proxy(shop) as through:
        answer = await through.talk(f"CONNECT {shop.place} HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert answer.endswith("deep")


async def test_patterns_mean_what_is_below_a_domain() -> None:
    async with site({"/a": said(b"x")}) as shop:
        rule = f"*.pypi.test:{shop.port}"
        async with proxy(shop, [rule]) as through:
            for name, code in (("files.pypi.test", "200"), ("pypi.test", "403"), ("other.test", "403")):
                answer = await through.talk(f"GET http://{name}:{shop.port}/a HTTP/1.1\r\n\r\n")
                assert answer[9:12] == code, name
            assert [one.verdict for one in through.visits] == ["allowed", "refused", "refused"]


async def test_an_allowed_host_that_is_local_is_still_refused_by_the_guard() -> None:
    async with site({"/a": said(b"x")}) as shop, proxy(shop, [f"other.test:{shop.port}", "other.test"]) as through:
        assert (await through.talk("CONNECT other.test:443 HTTP/1.1\r\n\r\n"))[9:12] == "403"
        assert "this machine" in through.visits[0].why
        assert (await through.talk("CONNECT gone.test:443 HTTP/1.1\r\n\r\n"))[9:12] == "403"
    assert shop.seen == []


async def test_a_host_that_is_not_there_is_a_bad_gateway() -> None:
    async with site({}) as shop:
        pass
    async with proxy(shop, [shop.place, "gone.test"]) as through:
        assert (await through.talk(f"CONNECT {shop.place} HTTP/1.1\r\n\r\n"))[9:12] == "502"
        assert (await through.talk("CONNECT gone.test:443 HTTP/1.1\r\n\r\n"))[9:12] == "502"
        assert [one.verdict for one in through.visits] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ("hello\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: {place}\r\n\r\n", "400"),
        ("GET https://{place}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://a@{place}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://{place}/ HTTP/1.1\r\n folded: x\r\n\r\n", "400"),
        ("GET http://{place}/ HTTP/1.1\r\nA : b\r\n\r\n", "400"),
        ("GET http://{place}/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n", "400"),
        ("GET http://{place}/ HTTP/1.1\r\nA: \0\r\n\r\n", "400"),
        ("POST http://{place}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411"),
        ("POST http://{place}/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"),
        ("POST http://{place}/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", "400"),
        ("CONNECT {place}/ HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT pypi.test HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT evil.test\0.pypi.test:443 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT 127.1:443 HTTP/1.1\r\n\r\n", "400"),
        ("GET http://{place}/ HTTP/1.1\r\nA: " + "x" * 100_000 + "\r\n\r\n", "431"),
    ],
)
async def test_what_is_no_clear_request_is_refused(request_: str, code: str) -> None:
    async with site({}) as shop, proxy(shop) as through:
        assert (await through.talk(request_.replace("{place}", shop.place)))[9:12] == code
        assert [one.verdict for one in through.visits] == ["refused"]
        assert shop.seen == []


async def test_a_header_that_is_made_to_keep_us_busy_does_not() -> None:
    async with site({"/a": said(b"x")}) as shop, proxy(shop) as through:
        before = time.process_time()
        await through.talk(f"GET {shop.url('/a')} HTTP/1.1\r\nA: b{' ' * 30_000}c\r\n\r\n")
        assert is_soon(time.process_time() - before, 0.5)


@pytest.mark.parametrize("given", ["", "Basic eDp5", "Bearer x"])
async def test_with_a_token_only_who_has_it_is_served(given: str) -> None:
    async with site({"/a": said(b"x")}) as shop, proxy(shop, token="t0k3n") as through:
        line = f"Proxy-Authorization: {given}\r\n" if given else ""
        answer = await through.talk(f"GET {shop.url('/a')} HTTP/1.1\r\n{line}\r\n")
        assert answer.startswith("HTTP/1.1 407")
        assert "Proxy-Authenticate: Basic" in answer
        right = base64.b64encode(f"{USER}:t0k3n".encode()).decode()
        answer = await through.talk(f"GET {shop.url('/a')} HTTP/1.1\r\nProxy-Authorization: Basic {right}\r\n\r\n")
        assert answer.endswith("x")
        assert "authorization" not in shop.seen[0].lower()


# ------------------------------------------------------------------------------------------------------------- limits


async def test_so_many_connections_at_once_and_no_more() -> None:
    limits = evolve(PROXY_LIMITS, connections=2)
    async with site({}) as shop, proxy(shop, limits=limits) as through:
        held = [await asyncio.open_connection(HERE, through.port) for _ in range(2)]
        assert (await through.talk("CONNECT x:443 HTTP/1.1\r\n\r\n"))[9:12] == "503"
        for _, writer in held:
            writer.close()


async def test_who_does_not_finish_the_request_is_let_go() -> None:
    async with site({}) as shop, proxy(shop, limits=evolve(PROXY_LIMITS, head=0.2)) as through:
        assert (await through.talk("GET http"))[9:12] == "408"
        reader, writer = await asyncio.open_connection(HERE, through.port)
        writer.write(b"GET")
        writer.write_eof()
        assert (await asyncio.wait_for(reader.read(), 5))[9:12] == b"400"
        writer.close()


@pytest.mark.parametrize("limits", [{"idle": 0.3}, {"total": 0.3}])
async def test_a_tunnel_ends_when_nobody_speaks_or_its_time_is_up(limits: dict[str, float]) -> None:
    async def deaf(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with site({"/a": deaf}) as shop, proxy(shop, limits=evolve(PROXY_LIMITS, **limits)) as through:
        answer = await through.talk(f"CONNECT {shop.place} HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1\r\n\r\n")
        assert answer == "HTTP/1.1 200 Connection established\r\n\r\n"


async def test_closing_ends_what_is_open() -> None:
    async def deaf(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with site({"/a": deaf}) as shop:
        async with proxy(shop) as through:
            reader, writer = await asyncio.open_connection(HERE, through.port)
            writer.write(f"CONNECT {shop.place} HTTP/1.1\r\n\r\n".encode())
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        with pytest.raises(OSError, match=r"refused|Connect"):
            await asyncio.open_connection(HERE, through.port)


# --------------------------------------------------------------------------------------------------------- unix sockets


async def test_it_listens_at_a_unix_socket_that_is_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "proxy"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()  # what a dead process leaves
    async with site({"/a": said(b"by unix")}) as shop:
        made = Proxy(AddressFilter([shop.place]), [shop.place])
        await made.listen(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(f"GET {shop.url('/a')} HTTP/1.1\r\n\r\n".encode())
        assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"by unix")
        writer.close()
        await made.close()
        assert not path.exists()


async def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(WorldFault, match="The egress proxy cannot listen"):
        await Proxy(AddressFilter(), []).listen(path)
    assert path.read_text() == "mine"


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(WorldFault, match=r"'\*\.org' is not a valid host"):
        Proxy(AddressFilter(), ["*.org"])


# ------------------------------------------------------------------------------------------------------- real programs


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
@pytest.mark.parametrize("tunnel", [True, False])
async def test_curl_comes_through_to_an_allowed_host_and_to_no_other(tunnel: bool) -> None:
    async with site({"/a": said(b"hello")}) as shop, proxy(shop, [f"pypi.test:{shop.port}"]) as through:
        words = ["curl", "-sS", "-m", "10", "-x", f"http://{HERE}:{through.port}", *(["-p"] if tunnel else [])]
        good = await run(*words, f"http://pypi.test:{shop.port}/a")
        bad = await run(*words, f"http://other.test:{shop.port}/a")
        assert good.stdout == "hello"
        assert "hello" not in bad.stdout
        assert "none of the hosts" in through.visits[-1].why
        assert len(shop.seen) == 1


async def run(*words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run, words, capture_output=True, text=True, timeout=60, check=False, env={"PATH": "/usr/bin:/bin"}
    )
