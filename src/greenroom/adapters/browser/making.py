"""What is made of settings: a browser. Whoever imports this loads playwright; do it late."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from playwright.async_api import BrowserContext, Error, Playwright, async_playwright

from greenroom.adapters.browser.den import Den, den
from greenroom.adapters.browser.tab import PlaywrightTab
from greenroom.core.base.records import record
from greenroom.core.ports.browser import Browser, BrowserFault, Gate, Gates, Tab

OFF: Final = (
    # What would ask Chromium's own services, of its own accord.
    *("AutofillServerCommunication", "NetworkTimeServiceQuerying", "OptimizationHints", "MediaRouter", "Translate"),
    *("PreconnectToSearch", "SafeBrowsingHashPrefixRealTimeLookups", "OptimizationGuideModelDownloading", "AimEnabled"),
    *("LensOverlay", "InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater"),
    # What playwright turns off to lead it: of two such switches only the last one counts.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "PaintHolding", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect"),
)
"""Parts of Chromium that are not wanted."""

SWITCHES: Final = (
    # Names are the proxy's to resolve: Chromium itself asks nobody, so it cannot be told another address later.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    # HTTP/3 goes around proxies. What WebRTC does is a preference (`den.py`), and the keeper closes UDP altogether.
    "--disable-quic",
    f"--disable-features={','.join(OFF)}",
    # Whom it would ask who is signed in: nobody.
    "--gaia-url=https://127.0.0.1:1",
    "--no-pings",
    "--disable-domain-reliability",
    "--media-router=0",
    "--disable-notifications",
    "--deny-permission-prompts",
    "--disable-print-preview",
    "--disable-speech-api",
)


NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MAC: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PASSED: Final = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")
SEEN: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
"""What a browser needs beside that to be seen."""

NONE: Final = (
    "There is no Chromium here. Install it (Debian, Ubuntu: `apt-get install chromium`; macOS: `brew install --cask "
    'chromium`), or name one: `program = "/path/to/chromium"` below [browser] in your settings.'
)


def program(named: str = "") -> str:
    """The path of Chromium; `BrowserFault` says how to get one."""
    if named:
        found = shutil.which(str(Path(named).expanduser()))
        if found is None:
            raise BrowserFault(f"{named!r} below [browser] in your settings is no program. Name one, or leave it out.")
        return found
    paths = (*map(shutil.which, NAMES), *(one for one in MAC if Path(one).is_file()))
    first = next(filter(None, paths), None)
    if first is None:
        raise BrowserFault(NONE)
    return first


def headless(wish: bool | None, environ: Mapping[str, str]) -> bool:
    """Whether nobody sees it: as the person wishes, else where there is nothing to be seen on. Who is root becomes
    somebody else, whom the screen's owner has not let in."""
    if wish is not None:
        return wish
    if sys.platform == "darwin":
        return False
    return os.geteuid() == 0 or not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def environment(environ: Mapping[str, str], home: Path, *, seen: bool) -> dict[str, str]:
    """What it gets of our own: names on a list, and no key. It is at home in its profile, and nowhere else."""
    passed = {name: environ[name] for name in (*PASSED, *(SEEN if seen else ())) if name in environ}
    own = {"HOME": str(home), "TMPDIR": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **own}


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


def browser(gates: Gates, program: str, headless: bool | None) -> Browser:
    """A browser that goes through such gates."""
    return Chromium(gates, Looks(program=program, headless=headless))
