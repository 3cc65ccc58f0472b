"""A browser ends with whoever opened it, all of it; and while it lives it is nobody in particular."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from greenroom.adapters.browser.browser_folder import UNUSED_UID
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.core.ports.browser import BrowserFault, Click, GoBack, OpenPage, Tab, TypeText
from tests.adapters.browser.chromiums import clicked, den_in, living, needs_chromium, nest, opened
from tests.adapters.web.house import said, site

pytestmark = needs_chromium

LINKS = {
    "file": "file:///etc/passwd",
    "source": "view-source:http://127.0.0.1/",
    "chrome": "chrome://version/",
    "data": "data:text/html,<h1>inside</h1>",
    "download": "/it",
}
"""What is not for agents."""

PAGE = said(
    b"""<title>shop</title><input aria-label=name><select aria-label=size><option>S<option>L</select>
    <button onclick="document.title = document.querySelector('input').value + document.querySelector('select').value">
    buy</button><a href=/two target=_blank>apart</a>"""
    + "".join(f'<a href="{to}">{name}</a>' for name, to in LINKS.items()).encode(),
    "text/html",
)
SHOP = {
    "/": PAGE,
    "/two": said(b"<title>2</title>second", "text/html"),
    "/it": said(b"MZ", "application/octet-stream", Content_Disposition="attachment; filename=it.bin"),
}


def main_process(den: Path) -> psutil.Process:
    """Chromium itself, of all its processes."""
    found = [
        one for one in living(den) if "--remote-debugging-pipe" in one.cmdline() and one.cmdline()[0] != sys.executable
    ]
    return next(one for one in found if not any(word.startswith("--type=") for word in one.cmdline()))


@pytest.mark.req("MAS-193")
async def test_pages_are_used_and_afterwards_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    with nest() as folder:
        async with site(SHOP) as shop, opened(AddressFilter([shop.place]), shop.place) as tab:
            den = den_in(folder)
            look_at(main_process(den))
            await use(tab, shop.url("/"))
            for name in LINKS:
                assert (await clicked(tab, name)).startswith(f"{shop.url('/')} "), name
            assert tab.visited_urls == (shop.url("/"), shop.url("/two"))
            assert any(head.startswith("GET /it ") for head in shop.seen)
            assert not list(den.rglob("it*.bin*"))
        assert not list(folder.iterdir())
    assert not list(living(den))


def look_at(chromium: psutil.Process) -> None:
    """It is somebody else, knows no key, and locks up its pages."""
    words, environ = chromium.cmdline(), chromium.environ()
    assert chromium.uids().effective == (UNUSED_UID if os.geteuid() == 0 else os.geteuid())
    assert chromium.uids().effective != 0
    assert "--no-sandbox" not in words
    assert not [word for word in words if word.startswith("--remote-debugging-port")]
    assert "sk-canary" not in environ.values()
    renderers = [one for one in chromium.children(recursive=True) if "--type=renderer" in one.cmdline()]
    assert renderers
    for one in renderers:
        assert "Seccomp:\t2" in Path(f"/proc/{one.pid}/status").read_text()


async def use(tab: Tab, home: str) -> None:
    await tab.perform(OpenPage(url=home))
    text = (await tab.read_page()).text
    marks = {
        name: text.partition(f'"{name}"')[2].partition("[ref=")[2].partition("]")[0] for name in ("name", "size", "buy")
    }
    await tab.perform(TypeText(ref=marks["name"], text="it"))
    await tab.perform(TypeText(ref=marks["size"], text="L"))
    await tab.perform(Click(ref=marks["buy"]))
    assert (await tab.read_page()).title == "itL"
    assert (await tab.take_screenshot()).startswith(b"\xff\xd8")
    assert "second" in await clicked(tab, "apart")
    await tab.perform(GoBack())
    assert (await tab.read_page()).url == home


async def test_a_browser_that_is_killed_says_so_and_leaves_nothing() -> None:
    with nest() as folder:
        async with opened(AddressFilter(), "*") as tab:
            den = den_in(folder)
            main_process(den).kill()
            with pytest.raises(BrowserFault, match="Chromium is gone"):
                await until_it_is_noticed(tab)
        assert not list(folder.iterdir())
    assert not list(living(den))


async def until_it_is_noticed(tab: Tab) -> None:
    async with asyncio.timeout(20):
        while True:
            await tab.read_page()


@pytest.mark.prove
async def test_whoever_is_cancelled_leaves_no_browser() -> None:
    there = asyncio.Event()

    async def errand() -> None:
        async with opened(AddressFilter(), "*"):
            there.set()
            await asyncio.Event().wait()

    with nest() as folder:
        task = asyncio.create_task(errand())
        await asyncio.wait_for(there.wait(), 30)
        den = den_in(folder)
        assert list(living(den))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not list(folder.iterdir())
    assert not list(living(den))


HOUSE = """
import asyncio
from greenroom.adapters.web.address_filter import AddressFilter
from tests.adapters.browser.chromiums import opened
async def main():
    async with opened(AddressFilter(), "*"):
        print("open", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


def test_a_house_that_is_killed_takes_its_browser_along() -> None:
    with nest() as folder:
        environ = {**os.environ, "PYTHONPATH": ".", "TMPDIR": str(folder)}
        with subprocess.Popen([sys.executable, "-c", HOUSE], stdout=subprocess.PIPE, env=environ) as house:
            try:
                assert house.stdout is not None
                assert house.stdout.readline() == b"open\n"
                den = den_in(folder)
                family = list(living(den))
                assert len(family) > 5
            finally:
                house.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(family, timeout=20)
        assert not alive
        assert not den.exists()
