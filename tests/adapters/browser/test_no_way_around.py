"""A page that tries every way out: what the guard bars is not reached, what it allows is."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final

import pytest

from greenroom.adapters.browser import browser_folder as dens_of
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.browser import OpenPage, Tab
from tests.adapters.browser.chromiums import clicked, needs_chromium, opened
from tests.adapters.web.house import HERE, Site, Watched, canary, moved, said, site

pytestmark = needs_chromium

WAYS: Final = {
    "fetch": "fetch(`http://${p}/fetch`, {mode: 'no-cors'}).catch(() => 0)",
    "xhr": "x = new XMLHttpRequest(); x.open('GET', `http://${p}/xhr`); x.send()",
    "websocket": "new WebSocket(`ws://${p}/websocket`)",
    "events": "new EventSource(`http://${p}/events`)",
    "beacon": "navigator.sendBeacon(`http://${p}/beacon`, 'x')",
    "image": "new Image().src = `http://${p}/image`",
    "iframe": "add('iframe', {src: `http://${p}/iframe`})",
    "object": "add('object', {data: `http://${p}/object`})",
    "script": "add('script', {src: `http://${p}/script`})",
    "style": "add('link', {rel: 'stylesheet', href: `http://${p}/style`})",
    "font": "new FontFace('x', `url(http://${p}/font)`).load().catch(() => 0)",
    "form": "add('iframe', {name: 'f' + p}); send('f' + p, `http://${p}/form`)",
    "popup": "window.open(`http://${p}/popup`)",
    "worker": "new Worker(URL.createObjectURL(new Blob([`importScripts('http://${p}/worker')`])))",
    "redirect": "new Image().src = `/redirect/${p}`",
    "led_on": "add('iframe', {src: `/led_on/${p}`})",
    "refresh": "add('iframe', {src: `/refresh/${p}`})",
    "preload": "add('link', {rel: 'preload', as: 'image', href: `http://${p}/preload`})",
}
"""What a page can do to have a place `p` visited; each names itself in the path."""

RTC: Final = (
    "const pc = new RTCPeerConnection({iceServers: [{urls: `stun:${p}`}, {urls: [`turn:${p}?transport=udp`,"
    " `turn:${p}?transport=tcp`], username: 'u', credential: 'c'}]}); pc.createDataChannel('x');"
    " pc.createOffer().then(o => pc.setLocalDescription(o))"
)
"""WebRTC looks for a way with UDP and with TCP."""

HUSH: Final = 3.0
"""Seconds in which WebRTC is heard ten times over where it is heard at all."""

UNHEARD: Final = (
    RTC,
    "new WebTransport(`https://${p}/transport`).ready.catch(() => 0)",
    "add('link', {rel: 'preconnect', href: `http://${p}`}); add('link', {rel: 'dns-prefetch', href: `http://${p}`})",
    "add('link', {rel: 'prefetch', href: `http://${p}/prefetch`})",
)
"""Ways that need not come off where they are allowed, but must not where they are barred."""

SPELLED: Final = {
    "127.1": HERE,
    "2130706433": HERE,
    "0x7f000001": HERE,
    "[::1]": "[::1]",
    "[::ffff:127.0.0.1]": "[::ffff:7f00:1]",
    "0.0.0.0": "0.0.0.0",
    "a.localhost": "a.localhost",
    "me.example": "me.example",
    "turns.example": "turns.example",
}
"""Names for this machine, and as what they come to the guard."""

PAGE: Final = """<body><script>
add = (tag, all) => document.body.appendChild(Object.assign(document.createElement(tag), all));
send = (target, action) => { f = add('form', {target, action, method: 'POST'}); f.submit(); };
for (p of PLACES) for (way of WAYS) try { way(p) } catch {}
</script></body>"""


def attack(places: Sequence[str]) -> dict[str, bytes]:
    """The pages of somebody who wants these places visited."""
    ways = ",".join(f"p => {{ {way} }}" for way in (*WAYS.values(), *UNHEARD))
    page = PAGE.replace("PLACES", str(list(places)), 1).replace("WAYS", f"[{ways}]", 1)
    pages = {"/": said(page.encode(), "text/html")}
    for p in places:
        again = f'<meta http-equiv="refresh" content="0;url=http://{p}/refresh">'
        pages |= {f"/redirect/{p}": moved(f"http://{p}/redirect"), f"/led_on/{p}": moved(f"http://{p}/led_on")}
        pages[f"/refresh/{p}"] = said(again.encode(), "text/html")
    return pages


async def until_visited(place: Site, ways: set[str]) -> set[str]:
    """Those of the ways that never led there."""
    missing = ways
    for _ in range(200):
        missing = ways - {head.split(" ")[1].removeprefix("/") for head in place.seen}
        if not missing:
            break
        await asyncio.sleep(0.05)
    return missing


async def went(tab: Tab, url: str) -> str:
    """Where that led, and what it shows."""
    try:
        await tab.perform(OpenPage(url=url))
    except ModelFault as fault:
        return str(fault)
    sight = await tab.read_page()
    return f"{sight.url} {sight.text}"


async def test_whatever_a_page_tries_only_what_is_allowed_is_reached() -> None:
    with ears() as heard:
        async with site({}) as mine, site({}, port=heard.getsockname()[1]) as barred:
            await tried(mine, barred)
            assert barred.seen == []
            with pytest.raises(BlockingIOError):
                heard.recv(1)


async def tried(mine: Site, barred: Site) -> None:
    """A page tries to have both visited, in every way."""
    async with site(attack([mine.place, barred.place])) as attacker:
        places = (mine.place, attacker.place)
        async with opened(AddressFilter(places), "*", barred.place, *places) as tab:
            await tab.perform(OpenPage(url=attacker.url("/")))
            missing = await until_visited(mine, set(WAYS))
            assert missing == set(), "where it is allowed the way leads there, or it proves nothing"
            assert await until_visited(attacker, {f"led_on/{barred.place}"}) == set()
            for path in ("/led_on/", "/refresh/"):
                await went(tab, attacker.url(f"{path}{barred.place}"))
            assert barred.place in tab.refused_hosts


async def test_what_is_no_page_of_the_web_is_left_again_unread() -> None:
    script = "l.href = URL.createObjectURL(new Blob(['<h1>made up</h1>'], {type: 'text/html'}))"
    page = said(f"<a id=l href=/>Leave</a><script>{script}</script>".encode(), "text/html")
    async with site({"/": page}) as shop, opened(AddressFilter([shop.place]), shop.place) as tab:
        await tab.perform(OpenPage(url=shop.url("/")))
        assert await clicked(tab, "Leave") == "blob: is not opened here, only http: and https:."
        sight = await tab.read_page()
        assert (sight.url, "made up" in sight.text) == ("about:blank", False)


@contextmanager
def ears() -> Iterator[socket.socket]:
    """Hears what is sent to a port without asking."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind((HERE, 0))
        made.setblocking(False)
        yield made


@pytest.mark.prove
@pytest.mark.parametrize(
    ("wishes", "closed", "heard"), [(False, False, True), (True, False, False), (False, True, False)]
)
async def test_udp_is_closed_twice(monkeypatch: pytest.MonkeyPatch, wishes: bool, closed: bool, heard: bool) -> None:
    """By what Chromium is told, and by the keeper, whatever Chromium makes of that; without both it is heard."""
    if not wishes:
        monkeypatch.setattr(dens_of, "PREFERENCES", {})
    if not closed:
        loose = "processes import keeper; keeper._close_udp = keeper.nothing; browse = keeper.browse;"
        assert "processes.keeper import browse;" in dens_of.SUPERVISOR_CODE
        monkeypatch.setattr(
            dens_of, "SUPERVISOR_CODE", dens_of.SUPERVISOR_CODE.replace("processes.keeper import browse;", loose, 1)
        )
    with ears() as port:
        page = PAGE.replace("PLACES", f"['{HERE}:{port.getsockname()[1]}']", 1).replace(
            "WAYS", f"[p => {{ {RTC} }}]", 1
        )
        async with (
            site({"/": said(page.encode(), "text/html")}) as attacker,
            opened(AddressFilter([attacker.place]), attacker.place) as tab,
        ):
            await tab.perform(OpenPage(url=attacker.url("/")))
            listening = asyncio.get_running_loop().sock_recv(port, 1)
            with nullcontext() if heard else pytest.raises(TimeoutError):
                await asyncio.wait_for(listening, 20 if heard else HUSH)


@pytest.mark.prove
async def test_no_spelling_and_no_resolver_leads_home() -> None:
    names = {"me.example": [[HERE]], "a.localhost": [[HERE]], "turns.example": [["8.8.8.8"], [HERE]]}
    async with canary() as house:
        wanted = [f"http://{name}:{house.port}/" for name in (*SPELLED, "turns.example")]
        wanted += ["http://169.254.169.254/", "http://192.168.1.1/", "https://10.0.0.1/"]
        page = said("".join(f"<img src={one}{number}>" for number, one in enumerate(wanted)).encode(), "text/html")
        async with site({"/": page}) as attacker:
            network = Watched(names)
            guard = AddressFilter([attacker.place], ports=[house.port], network=network)
            async with opened(guard, "*", f"*:{house.port}", attacker.place) as tab:
                await tab.perform(OpenPage(url=attacker.url("/")))
                tried = {f"{name}:{house.port}" for name in SPELLED.values()}
                assert tried <= set(tab.refused_hosts)
                assert "is at 127.0.0.1 (this machine)" in tab.refused_hosts[f"turns.example:{house.port}"]
                assert {"169.254.169.254:80", "192.168.1.1:80", "10.0.0.1:443"} <= set(tab.refused_hosts)
                assert "not reached from here" in await went(tab, f"http://me.example:{house.port}/")
                assert tab.visited_urls == (attacker.url("/"),)
        assert house.visits == 0
        assert set(network.dialled) == {HERE, "8.8.8.8"}


@pytest.mark.prove
async def test_only_the_hosts_that_were_named_are_reached() -> None:
    network = Watched({name: [[HERE]] for name in ("shop.example", "cdn.shop.example", "other.example")})
    async with site({"/": said(b"<h1>here</h1>", "text/html")}) as shop:
        places = [f"{name}:{shop.port}" for name in network.answers]
        async with opened(AddressFilter(places, network=network), places[0], f"*.{places[0]}") as tab:
            assert "here" in await went(tab, f"http://{places[0]}/")
            assert "here" in await went(tab, f"http://{places[1]}/")
            assert "none of the hosts" in await went(tab, f"http://{places[2]}/")
            assert list(tab.refused_hosts) == [places[2]]
        assert "other.example" not in network.asked
