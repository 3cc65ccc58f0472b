"""Chromiums for tests: real ones, on a web that is all on the loopback interface."""

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

from greenroom.adapters.browser.making import Chromium
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.making import gate
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.browser import Click, Gate, Tab

needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None and os.environ.get("CI") != "true",
    reason="there is no chromium here (`apt-get install chromium`)",
)


def opened(guard: Guard, *hosts: str) -> AbstractAsyncContextManager[Tab]:
    """A browser whose web is judged by this guard."""

    def gates(wanted: Sequence[str]) -> AbstractAsyncContextManager[Gate]:
        return gate(guard, wanted)

    return Chromium(gates, headless=True).opened(hosts)


@contextmanager
def nest() -> Iterator[Path]:
    """Where the browsers of this test have their folders, and those of no other one; nobody's number gets there too."""
    before, folder = tempfile.tempdir, Path(tempfile.mkdtemp(prefix="nest-"))
    folder.chmod(0o711)
    tempfile.tempdir = str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


def den_in(folder: Path) -> Path:
    """The folder of the one browser there."""
    (found,) = folder.glob("greenroom-browser-*")
    return found


def living(den: Path) -> Iterator[psutil.Process]:
    """All processes of a browser: those that name its folder, and all below them."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(den) in word for word in process.cmdline()):
                yield process
                yield from process.children(recursive=True)


async def clicked(tab: Tab, name: str) -> str:
    """Click what has this name; where that led, and what is shown then."""
    found = re.search(rf'"{name}"[^\n]*\[ref=(\w+)\]', (await tab.look()).text)
    assert found is not None, name
    try:
        await tab.do(Click(ref=found[1]))
    except ModelFault as fault:
        return str(fault)
    sight = await tab.look()
    return f"{sight.url} {sight.text}"
