"""Chromium, opened for one errand and ended after it, whatever happens in between. Whoever imports this loads
playwright; do it late."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from playwright.async_api import BrowserContext, Error, Playwright, async_playwright

from greenroom.adapters.browser.den import Den, den
from greenroom.adapters.browser.program import environment, headless, program
from greenroom.adapters.browser.switches import SWITCHES
from greenroom.adapters.browser.tab import PlaywrightTab
from greenroom.core.base.records import record
from greenroom.core.ports.browser import BrowserFault, Gate, Gates, Tab

STARTING: Final = 30.0
"""Seconds for Chromium to be there."""

CLOSING: Final = 5.0
"""Seconds in which it may close by itself; then it is ended."""

SANDBOX: Final = (
    "It needs what it locks pages up with: user namespaces (`sysctl kernel.unprivileged_userns_clone=1`), or its "
    "helper (Debian: `apt-get install chromium-sandbox`). Without that no page is opened."
)

_COMPLAINT: Final = re.compile(r"\[err\] (.+)")
"""What Chromium itself has said, in what playwright tells of it."""


@record
class Looks:
    """How it is opened: which one, whether it is seen (None: where there is a screen), how large its window is."""

    program: str = ""
    headless: bool | None = None
    width: int = 1280
    height: int = 800


class Chromium:
    """Each opening is a new one with an empty profile. It reaches what the gate lets through."""

    def __init__(self, gates: Gates, looks: Looks) -> None:
        self._gates = gates
        self._looks = looks

    def opened(self, hosts: Sequence[str]) -> AbstractAsyncContextManager[Tab]:
        """A new one that reaches these hosts."""
        return self._opened(hosts)

    @asynccontextmanager
    async def _opened(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        found = program(self._looks.program)
        async with self._gates(hosts) as gate, _driver() as driver, den(found) as home:
            context = await self._started(driver, home, gate)
            try:
                yield await PlaywrightTab.in_front_of(context, gate.refused)
            finally:
                await asyncio.shield(asyncio.ensure_future(_closed(context)))

    async def _started(self, driver: Playwright, home: Den, gate: Gate) -> BrowserContext:
        unseen = headless(self._looks.headless, os.environ)
        try:
            return await driver.chromium.launch_persistent_context(
                home.profile,
                executable_path=home.starter,
                headless=unseen,
                chromium_sandbox=True,
                args=SWITCHES,
                env={**environment(os.environ, home.profile, seen=not unseen)},
                proxy={
                    "server": f"http://127.0.0.1:{gate.port}",
                    "bypass": "<-loopback>",
                    "username": gate.user,
                    "password": gate.token,
                },
                viewport={"width": self._looks.width, "height": self._looks.height},
                accept_downloads=False,
                service_workers="block",
                permissions=[],
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=STARTING * 1000,
            )
        except Error as error:
            raise _not_started(str(error)) from None


def _not_started(said: str) -> BrowserFault:
    if "sandbox" in said.lower():
        return BrowserFault(f"Chromium cannot be started. {SANDBOX}")
    own = _COMPLAINT.search(said)
    line = own[1] if own else said.partition("\n")[0]
    return BrowserFault(f"Chromium cannot be started: {line.strip()[:300]}")


@asynccontextmanager
async def _driver() -> AsyncIterator[Playwright]:
    """playwright while the block lasts. One whose start nobody waits for any more is ended too."""
    starting = asyncio.ensure_future(async_playwright().start())
    try:
        yield await asyncio.shield(starting)
    finally:
        await asyncio.shield(asyncio.ensure_future(_stopped(starting)))


async def _stopped(starting: asyncio.Future[Playwright]) -> None:
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSING):
            await (await starting).stop()


async def _closed(context: BrowserContext) -> None:
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSING):
            await context.close()
