"""Real Chromium processes for tests, on a web that is entirely on the loopback interface."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from greenroom.adapters.browser.chromium import Chromium
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.adapters.web.search import serve_egress
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.browser import Click, EgressEndpoint, Tab

needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None and os.environ.get("CI") != "true",
    reason="there is no chromium here (`apt-get install chromium`)",
)


def opened(guard: AddressFilter, *hosts: str) -> AbstractAsyncContextManager[Tab]:
    """Open a browser whose requests this guard decides."""

    def gates(wanted: Sequence[str]) -> AbstractAsyncContextManager[EgressEndpoint]:
        return serve_egress(guard, wanted)

    return Chromium(gates, headless=True).open_tab(hosts)


@contextmanager
def nest() -> Iterator[Path]:
    """Return a folder for the browsers of this test alone, which unprivileged users can reach too."""
    before, folder = tempfile.tempdir, Path(tempfile.mkdtemp(prefix="nest-"))
    folder.chmod(0o711)
    tempfile.tempdir = str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


def den_in(folder: Path) -> Path:
    """Return the folder of the only browser there."""
    (found,) = folder.glob("greenroom-browser-*")
    return found


def living(den: Path) -> Iterator[psutil.Process]:
    """Yield all processes of a browser: those that name its folder, and their descendants."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(den) in word for word in process.cmdline()):
                yield process
                yield from process.children(recursive=True)


async def clicked(tab: Tab, name: str) -> str:
    """Click the element with this name. Return the URL and the page afterwards."""
    found = re.search(rf'"{name}"[^\n]*\[ref=(\w+)\]', (await tab.read_page()).text)
    assert found is not None, name
    try:
        await tab.perform(Click(ref=found[1]))
    except ModelFault as fault:
        return str(fault)
    sight = await tab.read_page()
    return f"{sight.url} {sight.text}"
