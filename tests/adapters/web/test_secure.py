"""TLS: the name that was asked for is the one that must be proven, whichever address was dialled."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from greenroom.adapters.web.fetching import Fetching
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.making import Tavily
from greenroom.core.ports.web import Found, Page, WebFault, address
from tests.adapters.web.certificates import vouched
from tests.adapters.web.house import HERE, Watched, said, site

KEY = "tvly-0123456789"


async def test_the_name_is_kept_on_the_way_to_the_checked_address(tmp_path: Path) -> None:
    server, client = vouched(tmp_path, "site.test")
    names: list[str | None] = []
    server.sni_callback = lambda _, name, __: names.append(name)
    async with site({"/": said(b"secret")}, secure=server) as shop:
        network = Watched({"site.test": [[HERE]], "other.test": [[HERE]]})
        guard = Guard([f"site.test:{shop.port}", f"other.test:{shop.port}"], network=network)
        found = await Fetching(guard, secure=client).fetch(address(f"https://site.test:{shop.port}/"))
        assert isinstance(found, Page)
        assert found.text == "secret"
        assert names == ["site.test"]
        assert f"Host: site.test:{shop.port}" in shop.seen[0]
        for name, trust in (("other.test", client), ("site.test", ssl.create_default_context())):
            with pytest.raises(WebFault, match="prove who it is"):
                await Fetching(guard, secure=trust).fetch(address(f"https://{name}:{shop.port}/"))


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
        guard = Guard([f"api.test:{shop.port}"], network=Watched({"api.test": [[HERE]]}))
        tavily = Tavily(guard, lambda: KEY, f"https://api.test:{shop.port}/search", secure=client)
        assert tavily.host == f"api.test:{shop.port}"
        if reason:
            with pytest.raises(WebFault) as raised:
                await tavily.find("parsers", 3)
            assert raised.value.reason == reason
            assert KEY not in str(raised.value)
        else:
            assert await tavily.find("parsers", 3) == (Found(title="T", url="https://a.org/", snippet="c"),)
        assert f"Authorization: Bearer {KEY}" in shop.seen[0]


async def test_tavily_without_a_key_asks_nobody() -> None:
    network = Watched()
    with pytest.raises(WebFault, match="TAVILY_API_KEY"):
        await Tavily(Guard(network=network), str).find("parsers", 3)
    assert network.asked == []
