"""Searches, and pages over TLS: the name is kept on the way to the checked address."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError

import pytest
from ddgs.ddgs import DDGS
from ddgs.exceptions import DDGSException

from greenroom.adapters.web import search
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.adapters.web.page_fetcher import FETCH_LIMITS, WebPageFetcher, WebRequest
from greenroom.adapters.web.search import DuckDuckGo, SearXNG, Tavily, parse_results, request_json
from greenroom.core.base.hosts import block_no_host
from greenroom.core.base.records import evolve
from greenroom.core.ports.web import SearchHit, WebFault, WebPage, parse_address
from tests.adapters.web.certificates import vouched
from tests.adapters.web.house import HERE, Watched, said, site

ANSWER = {"results": [{"title": " A \n b", "url": "https://a.org/", "content": "x" * 2000}, {"url": "https://b.org/"}]}


# ------------------------------------------------------------------------------------------------------- duckduckgo


async def test_without_a_network_that_is_said_and_what_to_look_at() -> None:
    """The real ddgs, which comes to our proxy and no further."""
    network = Watched()
    with pytest.raises(WebFault, match=r"DuckDuckGo cannot be reached.*Is there a network") as raised:
        await DuckDuckGo(AddressFilter(network=network)).find("parsers", 3)
    assert raised.value.reason == "offline"
    assert network.asked == ["html.duckduckgo.com"]


async def test_its_client_reaches_no_other_host_through_the_proxy() -> None:
    network = Watched({"html.duckduckgo.com": [[HERE]], "evil.test": [["8.8.8.8"]]})
    answers: list[str] = []

    def elsewhere(_: str, __: int, proxy: str) -> object:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
        for url in ("https://evil.test/", "http://html.duckduckgo.com/", "https://html.duckduckgo.com/"):
            with pytest.raises(URLError) as raised:
                opener.open(url, timeout=5)
            answers.append(str(raised.value))
        return None

    with pytest.raises(WebFault, match="this machine"):
        await DuckDuckGo(AddressFilter(network=network), elsewhere).find("x", 1)
    assert all("403" in one for one in answers)
    assert network.dialled == []


async def test_what_it_finds_is_taken_as_far_as_it_is_whole() -> None:
    found = [
        {"title": "T", "href": "https://a.org/", "body": "b"},
        {"href": "https://a.org/"},
        "x",
        {"title": "no url"},
    ]
    search = DuckDuckGo(AddressFilter(network=Watched()), lambda *_: found)
    assert [one.url for one in await search.find("x", 5)] == ["https://a.org/"]


async def test_an_answer_that_is_none_is_a_fault() -> None:
    with pytest.raises(WebFault, match="asked too often"):
        await DuckDuckGo(AddressFilter(network=Watched()), lambda *_: None).find("x", 5)


async def test_without_the_extra_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs.ddgs", None)
    with pytest.raises(WebFault, match=r"web\]'.*search = \"tavily\"") as raised:
        await DuckDuckGo(AddressFilter(network=Watched())).find("x", 5)
    assert raised.value.reason == "setup"


@pytest.mark.parametrize(("said_", "found"), [("No results found.", []), ("Ratelimit", None)])
async def test_nothing_found_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, said_: str, found: list[object] | None
) -> None:

    def text(*_: object, **__: object) -> object:
        raise DDGSException(said_)

    monkeypatch.setattr(DDGS, "text", text)
    search = DuckDuckGo(AddressFilter(network=Watched()))
    if found is None:
        with pytest.raises(WebFault):
            await search.find("x", 5)
    else:
        assert list(await search.find("x", 5)) == found


async def test_what_ddgs_finds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        DDGS,
        "text",
        lambda *_, **__: [{"title": "T", "href": "https://a.org/", "body": "b"}],
    )
    assert [one.title for one in await DuckDuckGo(AddressFilter(network=Watched())).find("x", 5)] == ["T"]


# ---------------------------------------------------------------------------------------------------------- searxng


async def test_searxng_may_be_on_this_machine() -> None:
    async with site({"/sx/search": said(json.dumps(ANSWER).encode(), "application/json")}) as shop:
        search = SearXNG(shop.url("/sx/?a=b"))
        found = await search.find("a b&c", 5)
        assert search.host == shop.place
        assert [(one.title, one.url) for one in found] == [("A b", "https://a.org/"), ("https://b.org/",) * 2]
        assert len(found[0].snippet) == 1000
        assert shop.seen[0].startswith("GET /sx/search?q=a+b%26c&format=json ")


async def test_a_searxng_that_gives_no_json_says_what_to_set() -> None:
    async with site({"/search": said(b"<html>", "text/html")}) as shop:
        with pytest.raises(WebFault, match=r"formats: \[html, json\]"):
            await SearXNG(shop.url()).find("x", 5)


async def test_a_search_that_takes_too_long_is_left() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with site({"/search": silent}) as shop:
        request = WebRequest(address=parse_address(shop.url("/search")))
        with pytest.raises(WebFault, match="did not answer"):
            await request_json(request, AddressFilter([shop.place]), "", evolve(FETCH_LIMITS, total=0.3))


# ------------------------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize("answer", [None, {}, "text", [], [None], [{"url": 5}], [{"url": "https://" + "x" * 3000}]])
def test_what_is_no_result_is_left_out(answer: object) -> None:
    assert parse_results(answer, 5) == ()


def test_no_more_results_than_were_asked_for() -> None:
    assert len(parse_results([{"url": f"https://a.org/{number}"} for number in range(9)], 4)) == 4


@pytest.mark.parametrize(("which", "kind"), [("ddgs", DuckDuckGo), ("tavily", Tavily), ("searxng", SearXNG)])
def test_what_the_settings_say_is_made(which: str, kind: type) -> None:
    make: Callable[..., object] = search.make_search
    assert isinstance(make(which, "http://localhost:8888", str), kind)
    assert isinstance(search.make_pages(["localhost:8000"], [8443], block_no_host), WebPageFetcher)


KEY = "tvly-0123456789"


async def test_the_name_is_kept_on_the_way_to_the_checked_address(tmp_path: Path) -> None:
    server, client = vouched(tmp_path, "site.test")
    names: list[str | None] = []
    server.sni_callback = lambda _, name, __: names.append(name)
    async with site({"/": said(b"secret")}, secure=server) as shop:
        network = Watched({"site.test": [[HERE]], "other.test": [[HERE]]})
        guard = AddressFilter([f"site.test:{shop.port}", f"other.test:{shop.port}"], network=network)
        found = await WebPageFetcher(guard, ssl_context=client).fetch(parse_address(f"https://site.test:{shop.port}/"))
        assert isinstance(found, WebPage)
        assert found.text == "secret"
        assert names == ["site.test"]
        assert f"Host: site.test:{shop.port}" in shop.seen[0]
        for name, trust in (("other.test", client), ("site.test", ssl.create_default_context())):
            with pytest.raises(WebFault, match="prove who it is"):
                await WebPageFetcher(guard, ssl_context=trust).fetch(parse_address(f"https://{name}:{shop.port}/"))


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        ("200 OK", b'{"results": [{"title": "T", "url": "https://a.org/", "content": "c"}, {"url": "ftp://x"}]}', ""),
        ("401 No", b"{}", "setup"),
        ("429 Slow", b"{}", "status"),
        ("500 Oops", b"{}", "status"),
        ("200 OK", b"[" * 100_000, "broken"),
        ("200 OK", b"[1]", "broken"),
    ],
)
async def test_tavily_is_asked_with_the_key(tmp_path: Path, status: str, body: bytes, reason: str) -> None:
    server, client = vouched(tmp_path, "api.test")
    async with site({"/search": said(body, "application/json", status)}, secure=server) as shop:
        guard = AddressFilter([f"api.test:{shop.port}"], network=Watched({"api.test": [[HERE]]}))
        tavily = Tavily(guard, lambda: KEY, f"https://api.test:{shop.port}/search", ssl_context=client)
        assert tavily.host == f"api.test:{shop.port}"
        if reason:
            with pytest.raises(WebFault) as raised:
                await tavily.find("parsers", 3)
            assert raised.value.reason == reason
            assert KEY not in str(raised.value)
        else:
            assert await tavily.find("parsers", 3) == (SearchHit(title="T", url="https://a.org/", snippet="c"),)
        assert f"Authorization: Bearer {KEY}" in shop.seen[0]


async def test_tavily_without_a_key_asks_nobody() -> None:
    network = Watched()
    with pytest.raises(WebFault, match="TAVILY_API_KEY"):
        await Tavily(AddressFilter(network=network), str).find("parsers", 3)
    assert network.asked == []
