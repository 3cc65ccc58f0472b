"""A browser as settings want it, and its tab in front, led through playwright. Import this late: it loads playwright.

What a page opens beside the tab comes to the front.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, assert_never

from playwright.async_api import BrowserContext, Error, Frame, Page, Playwright, ViewportSize, async_playwright
from playwright.async_api import TimeoutError as TooLate

from greenroom.adapters.browser.den import Den, den
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.browser import (
    Back,
    Browser,
    BrowserFault,
    Click,
    Gate,
    Gates,
    Move,
    Open,
    Scroll,
    Sight,
    Tab,
    Type,
)
from greenroom.core.ports.web import BadAddress, address

ARRIVING: Final = 20_000.0
"""Milliseconds for a page to be there."""

DOING: Final = 5_000.0
QUIET: Final = 1_500.0
"""Milliseconds that a page has at most to become quiet after something was done."""

REACTING: Final = 0.4
"""Seconds that a page has to begin what a click leads to: another page, another tab. Nobody says that nothing will."""

SCROLLED: Final = 640
PAGES: Final = 500
QUALITY: Final = 60
BLANK: Final = "about:blank"
WEB: Final = ("http://", "https://")
GONE: Final = "Chromium is gone: it crashed, or somebody has closed it."


class PlaywrightTab:
    """One context, of which the newest page is in front."""

    def __init__(self, context: BrowserContext, refused: Mapping[str, str]) -> None:
        self._context = context
        self._visited: dict[str, str] = {}
        self._gone = False
        self.refused = refused

    @classmethod
    async def in_front_of(cls, context: BrowserContext, refused: Mapping[str, str]) -> PlaywrightTab:
        """The tab of a browser that has just been opened."""
        made = cls(context, refused)
        context.on("close", lambda _: setattr(made, "_gone", True))
        context.on("page", made._watch)
        for page in context.pages:
            made._watch(page)
        await made._front()
        return made

    @property
    def visited(self) -> Sequence[str]:
        """The addresses of all pages that were shown; where the gate has answered in a host's place there was none."""
        return tuple(url for url, host in self._visited.items() if host not in self.refused)

    async def do(self, move: Move) -> None:
        """Do it, and wait until the page is quiet."""
        try:
            page = await self._front()
            await self._done(page, move)
            leads_on = isinstance(move, Click) or (isinstance(move, Type) and move.submit)
            await asyncio.sleep(REACTING if leads_on else 0)
            await self._quiet(await self._front())
        except Error as error:
            raise self._fault(error) from None
        await self._only_the_web()

    async def look(self) -> Sight:
        """What is there now."""
        page = await self._front()
        try:
            title = await page.title()
            return Sight(url=page.url, title=title, text=await page.aria_snapshot(mode="ai", timeout=DOING))
        except TooLate:
            return Sight(url=page.url, title="", text="(The page does not answer. Go back, or open another one.)")
        except Error as error:
            raise self._fault(error) from None

    async def shot(self) -> bytes:
        """A picture of it."""
        with suppress(Error):
            return await (await self._front()).screenshot(type="jpeg", quality=QUALITY, timeout=DOING)
        return b""

    # ---------------------------------------------------------------------------------------------- what is done

    async def _done(self, page: Page, move: Move) -> None:
        match move:
            case Open():
                await page.goto(move.url, wait_until="domcontentloaded", timeout=ARRIVING)
            case Click():
                await page.locator(f"aria-ref={move.ref}").click(timeout=DOING)
            case Type():
                await self._typed(page, move)
            case Scroll():
                await page.mouse.wheel(0, SCROLLED if move.down else -SCROLLED)
            case Back():
                gone = await page.go_back(wait_until="domcontentloaded", timeout=ARRIVING)
                if gone is None and len(self._pages) > 1:
                    await page.close()
            case _:
                assert_never(move)

    async def _typed(self, page: Page, move: Type) -> None:
        field = page.locator(f"aria-ref={move.ref}")
        if await field.evaluate("one => one.tagName", timeout=DOING) == "SELECT":
            await field.select_option(move.text, timeout=DOING)
        else:
            await field.fill(move.text, timeout=DOING)
        if move.submit:
            await field.press("Enter", timeout=DOING)

    async def _quiet(self, page: Page) -> None:
        """Some pages never are."""
        with suppress(TooLate):
            await page.wait_for_load_state("domcontentloaded", timeout=ARRIVING)
            await page.wait_for_load_state("networkidle", timeout=QUIET)

    async def _only_the_web(self) -> None:
        """Whatever else a page could lead to is left again, unread."""
        page = await self._front()
        where = page.url
        if where != BLANK and not where.startswith((*WEB, "chrome-error:")):
            await page.goto(BLANK)
            raise ModelFault(f"{where.partition(':')[0]}: is not opened here, only http: and https:.")

    # ---------------------------------------------------------------------------------------------- what is there

    @property
    def _pages(self) -> Sequence[Page]:
        return [one for one in self._context.pages if not one.is_closed()]

    async def _front(self) -> Page:
        if self._gone:
            raise BrowserFault(GONE)
        try:
            return self._pages[-1] if self._pages else await self._context.new_page()
        except Error as error:
            raise self._fault(error) from None

    def _watch(self, page: Page) -> None:
        self._seen(page.main_frame)  # a tab that a page has opened may be there already
        page.on("framenavigated", self._seen)
        page.on("crash", self._crashed)

    def _seen(self, frame: Frame) -> None:
        if frame.parent_frame is None and len(self._visited) < PAGES:
            with suppress(BadAddress):
                self._visited[frame.url] = str(address(frame.url).host)

    async def _crashed(self, page: Page) -> None:
        with suppress(Error):
            await page.close()

    def _fault(self, error: Error) -> ModelFault | BrowserFault:
        said = error.message.partition("\n")[0].removeprefix("Error: ")
        if self._gone or (not self._pages and "closed" in said):
            return BrowserFault(GONE)
        return ModelFault(f"That did not work: {said[:300]}")


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

WINDOW: Final = ViewportSize(width=1280, height=800)
CLOSING: Final = 5.0
"""Seconds in which it may close by itself; then it is ended."""

SANDBOX: Final = (
    "It needs what it locks pages up with: user namespaces (`sysctl kernel.unprivileged_userns_clone=1`), or its "
    "helper (Debian: `apt-get install chromium-sandbox`). Without that no page is opened."
)

_COMPLAINT: Final = re.compile(r"\[err\] (.+)")
"""What Chromium itself has said, in what playwright tells of it."""


class Chromium:
    """Each opening is a new one with an empty profile. It reaches what the gate lets through.

    `program` is which one (empty: what is found), `headless` whether nobody sees it (None: where there is no screen).
    """

    def __init__(self, gates: Gates, program: str = "", *, headless: bool | None = None) -> None:
        self._gates = gates
        self._program = program
        self._headless = headless

    @asynccontextmanager
    async def opened(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        """A new one that reaches these hosts."""
        found = program(self._program)
        async with self._gates(hosts) as gate, _driver() as driver, den(found) as home:
            context = await self._started(driver, home, gate)
            try:
                yield await PlaywrightTab.in_front_of(context, gate.refused)
            finally:
                await asyncio.shield(asyncio.ensure_future(_end_quietly(context.close)))

    async def _started(self, driver: Playwright, home: Den, gate: Gate) -> BrowserContext:
        unseen = headless(self._headless, os.environ)
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
                viewport=WINDOW,
                accept_downloads=False,
                service_workers="block",
                permissions=[],
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=STARTING * 1000,
            )
        except Error as error:
            said = str(error)
            if "sandbox" in said.lower():
                raise BrowserFault(f"Chromium cannot be started. {SANDBOX}") from None
            own = _COMPLAINT.search(said)
            line = own[1] if own else said.partition("\n")[0]
            raise BrowserFault(f"Chromium cannot be started: {line.strip()[:300]}") from None


@asynccontextmanager
async def _driver() -> AsyncIterator[Playwright]:
    """playwright while the block lasts. One whose start nobody waits for any more is ended too."""
    starting = asyncio.ensure_future(async_playwright().start())

    async def stop() -> None:
        await (await starting).stop()

    try:
        yield await asyncio.shield(starting)
    finally:
        await asyncio.shield(asyncio.ensure_future(_end_quietly(stop)))


async def _end_quietly(end: Callable[[], Awaitable[None]]) -> None:
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSING):
            await end()


def browser(gates: Gates, program: str, headless: bool | None) -> Browser:
    """A browser that goes through such gates."""
    return Chromium(gates, program, headless=headless)
