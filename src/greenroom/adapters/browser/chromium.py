"""Chromium from settings, and its front tab, driven through playwright. Import this late, because it loads playwright.

A page that opens in a new tab becomes the front tab.
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

from greenroom.adapters.browser.browser_folder import BrowserFolder, open_browser_folder
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.browser import (
    BrowserFault,
    Click,
    EgressEndpoint,
    EgressOpener,
    GoBack,
    OpenPage,
    PageView,
    Scroll,
    Tab,
    TabAction,
    TypeText,
)
from greenroom.core.ports.web import BadAddress, parse_address

LOAD_TIMEOUT_MS: Final = 20_000.0
"""How long loading a page may take, in milliseconds."""

ACTION_TIMEOUT_MS: Final = 5_000.0
QUIET_TIMEOUT_MS: Final = 1_500.0
"""How long to wait for a quiet page after an action, in milliseconds."""

REACTION_S: Final = 0.4
"""How long a page gets to start what a click causes, in seconds. There is no event for "nothing happens"."""

SCROLL_PIXELS: Final = 640
MAX_VISITED_URLS: Final = 500
JPEG_QUALITY: Final = 60
BLANK: Final = "about:blank"
WEB_SCHEMES: Final = ("http://", "https://")
BROWSER_GONE: Final = "browser.chromium_gone"


class PlaywrightTab:
    """A browser context whose newest page is the front tab."""

    def __init__(self, context: BrowserContext, refused_hosts: Mapping[str, str]) -> None:
        self._context = context
        self._visited_hosts: dict[str, str] = {}
        self._gone = False
        self.refused_hosts = refused_hosts

    @classmethod
    async def attach(cls, context: BrowserContext, refused_hosts: Mapping[str, str]) -> PlaywrightTab:
        """Return the tab of a browser that was just opened."""
        tab = cls(context, refused_hosts)
        context.on("close", lambda _: setattr(tab, "_gone", True))
        context.on("page", tab._watch)
        for page in context.pages:
            tab._watch(page)
        await tab._front_page()
        return tab

    @property
    def visited_urls(self) -> Sequence[str]:
        """The addresses of all pages that were shown, without those that the proxy refused."""
        return tuple(url for url, host in self._visited_hosts.items() if host not in self.refused_hosts)

    async def perform(self, action: TabAction) -> None:
        """Perform an action and wait until the page is quiet."""
        try:
            page = await self._front_page()
            await self._perform_action(page, action)
            leads_on = isinstance(action, Click) or (isinstance(action, TypeText) and action.submit)
            await asyncio.sleep(REACTION_S if leads_on else 0)
            await self._wait_until_quiet(await self._front_page())
        except Error as error:
            raise self._translate_error(error) from None
        await self._leave_unless_web()

    async def read_page(self) -> PageView:
        """Return the current content of the page."""
        page = await self._front_page()
        try:
            title = await page.title()
            return PageView(
                url=page.url, title=title, text=await page.aria_snapshot(mode="ai", timeout=ACTION_TIMEOUT_MS)
            )
        except TooLate:
            return PageView(url=page.url, title="", text="(The page does not answer. Go back, or open another one.)")
        except Error as error:
            raise self._translate_error(error) from None

    async def take_screenshot(self) -> bytes:
        """Return a screenshot; empty if that fails."""
        with suppress(Error):
            return await (await self._front_page()).screenshot(
                type="jpeg", quality=JPEG_QUALITY, timeout=ACTION_TIMEOUT_MS
            )
        return b""

    async def _perform_action(self, page: Page, action: TabAction) -> None:
        match action:
            case OpenPage():
                await page.goto(action.url, wait_until="domcontentloaded", timeout=LOAD_TIMEOUT_MS)
            case Click():
                await page.locator(f"aria-ref={action.ref}").click(timeout=ACTION_TIMEOUT_MS)
            case TypeText():
                field = page.locator(f"aria-ref={action.ref}")
                if await field.evaluate("one => one.tagName", timeout=ACTION_TIMEOUT_MS) == "SELECT":
                    await field.select_option(action.text, timeout=ACTION_TIMEOUT_MS)
                else:
                    await field.fill(action.text, timeout=ACTION_TIMEOUT_MS)
                if action.submit:
                    await field.press("Enter", timeout=ACTION_TIMEOUT_MS)
            case Scroll():
                await page.mouse.wheel(0, SCROLL_PIXELS if action.down else -SCROLL_PIXELS)
            case GoBack():
                response = await page.go_back(wait_until="domcontentloaded", timeout=LOAD_TIMEOUT_MS)
                if response is None and len(self._pages) > 1:
                    await page.close()
            case _:
                assert_never(action)

    async def _wait_until_quiet(self, page: Page) -> None:
        """Wait until the page is quiet, up to a limit: some pages never are."""
        with suppress(TooLate):
            await page.wait_for_load_state("domcontentloaded", timeout=LOAD_TIMEOUT_MS)
            await page.wait_for_load_state("networkidle", timeout=QUIET_TIMEOUT_MS)

    async def _leave_unless_web(self) -> None:
        """Leave any page that is not http or https without reading it."""
        page = await self._front_page()
        url = page.url
        if url != BLANK and not url.startswith((*WEB_SCHEMES, "chrome-error:")):
            await page.goto(BLANK)
            raise ModelFault(f"{url.partition(':')[0]}: is not opened here, only http: and https:.")

    @property
    def _pages(self) -> Sequence[Page]:
        return [page for page in self._context.pages if not page.is_closed()]

    async def _front_page(self) -> Page:
        if self._gone:
            raise BrowserFault(BROWSER_GONE)
        try:
            return self._pages[-1] if self._pages else await self._context.new_page()
        except Error as error:
            raise self._translate_error(error) from None

    def _watch(self, page: Page) -> None:
        self._record_url(page.main_frame)  # a tab that a page opened may already be loaded
        page.on("framenavigated", self._record_url)
        page.on("crash", self._close_crashed)

    def _record_url(self, frame: Frame) -> None:
        if frame.parent_frame is None and len(self._visited_hosts) < MAX_VISITED_URLS:
            with suppress(BadAddress):
                self._visited_hosts[frame.url] = str(parse_address(frame.url).host)

    async def _close_crashed(self, page: Page) -> None:
        with suppress(Error):
            await page.close()

    def _translate_error(self, error: Error) -> ModelFault | BrowserFault:
        message = error.message.partition("\n")[0].removeprefix("Error: ")
        if self._gone or (not self._pages and "closed" in message):
            return BrowserFault(BROWSER_GONE)
        return ModelFault(f"That did not work: {message[:300]}")


DISABLED_FEATURES: Final = (
    # Features that contact Chromium's own services.
    *("AutofillServerCommunication", "NetworkTimeServiceQuerying", "OptimizationHints", "MediaRouter", "Translate"),
    *("PreconnectToSearch", "SafeBrowsingHashPrefixRealTimeLookups", "OptimizationGuideModelDownloading", "AimEnabled"),
    *("LensOverlay", "InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater"),
    # Features that playwright disables itself; only the last such switch counts.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "PaintHolding", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect"),
)
"""Chromium features to disable."""

CHROMIUM_SWITCHES: Final = (
    # The proxy resolves names. Chromium does not, so a resolver cannot give it another address later.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    # HTTP/3 bypasses proxies. WebRTC is limited by a preference (`den.py`), and the supervisor forbids UDP.
    "--disable-quic",
    f"--disable-features={','.join(DISABLED_FEATURES)}",
    # Disables the sign-in service.
    "--gaia-url=https://127.0.0.1:1",
    "--no-pings",
    "--disable-domain-reliability",
    "--media-router=0",
    "--disable-notifications",
    "--deny-permission-prompts",
    "--disable-print-preview",
    "--disable-speech-api",
)


PROGRAM_NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MAC_PATHS: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PASSED_VARIABLES: Final = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")
DISPLAY_VARIABLES: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
"""Further variables that a visible browser needs."""


def find_program(configured: str = "") -> str:
    """Return the path of Chromium. Raise `BrowserFault` with instructions if there is none."""
    if configured:
        path = shutil.which(str(Path(configured).expanduser()))
        if path is None:
            raise BrowserFault("browser.configured_not_program", configured=configured)
        return path
    paths = (*map(shutil.which, PROGRAM_NAMES), *(mac_path for mac_path in MAC_PATHS if Path(mac_path).is_file()))
    first = next(filter(None, paths), None)
    if first is None:
        raise BrowserFault("browser.not_installed")
    return first


def is_headless(setting: bool | None, environ: Mapping[str, str]) -> bool:
    """Return whether Chromium runs without a window: as the settings say, else if there is no screen.

    Under root, Chromium runs as another user, who may not use the screen.
    """
    if setting is not None:
        return setting
    if sys.platform == "darwin":
        return False
    return os.geteuid() == 0 or not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def build_environment(environ: Mapping[str, str], home: Path, *, is_visible: bool) -> dict[str, str]:
    """Build Chromium's environment: allowed variables without keys, and the profile as its home."""
    passed = {
        name: environ[name]
        for name in (*PASSED_VARIABLES, *(DISPLAY_VARIABLES if is_visible else ()))
        if name in environ
    }
    folders = {"HOME": str(home), "TMPDIR": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **folders}


START_TIMEOUT_S: Final = 30.0
"""How long starting Chromium may take, in seconds."""

VIEWPORT: Final = ViewportSize(width=1280, height=800)
CLOSE_TIMEOUT_S: Final = 5.0
"""How long closing may take before it is ended, in seconds."""


_COMPLAINT: Final = re.compile(r"\[err\] (.+)")
"""Matches Chromium's own error in playwright's message."""


class Chromium:
    """Chromium. Each opening starts a new process with an empty profile; it reaches only what the proxy allows.

    `program` is its path (empty: search for it), `headless` whether it has no window (None: depends on the screen).
    """

    def __init__(self, gates: EgressOpener, program: str = "", *, headless: bool | None = None) -> None:
        self._gates = gates
        self._program = program
        self._headless = headless

    @asynccontextmanager
    async def open_tab(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        """Open a new browser that can reach these hosts."""
        found = find_program(self._program)
        async with self._gates(hosts) as gate, _open_driver() as driver, open_browser_folder(found) as home:
            context = await self._launch(driver, home, gate)
            try:
                yield await PlaywrightTab.attach(context, gate.refused)
            finally:
                await asyncio.shield(asyncio.ensure_future(_end_quietly(context.close)))

    async def _launch(self, driver: Playwright, home: BrowserFolder, gate: EgressEndpoint) -> BrowserContext:
        is_hidden = is_headless(self._headless, os.environ)
        try:
            return await driver.chromium.launch_persistent_context(
                home.profile,
                executable_path=home.starter,
                headless=is_hidden,
                chromium_sandbox=True,
                args=CHROMIUM_SWITCHES,
                env={**build_environment(os.environ, home.profile, is_visible=not is_hidden)},
                proxy={
                    "server": f"http://127.0.0.1:{gate.port}",
                    "bypass": "<-loopback>",
                    "username": gate.user,
                    "password": gate.token,
                },
                viewport=VIEWPORT,
                accept_downloads=False,
                service_workers="block",
                permissions=[],
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=START_TIMEOUT_S * 1000,
            )
        except Error as error:
            message = str(error)
            if "sandbox" in message.lower():
                raise BrowserFault("browser.chromium_sandbox_missing") from None
            complaint = _COMPLAINT.search(message)
            line = complaint[1] if complaint else message.partition("\n")[0]
            raise BrowserFault("browser.chromium_start_failed", error=line.strip()[:300]) from None


@asynccontextmanager
async def _open_driver() -> AsyncIterator[Playwright]:
    """Run playwright during the block. It is ended even if its start is cancelled."""
    starting = asyncio.ensure_future(async_playwright().start())

    async def stop() -> None:
        await (await starting).stop()

    try:
        yield await asyncio.shield(starting)
    finally:
        await asyncio.shield(asyncio.ensure_future(_end_quietly(stop)))


async def _end_quietly(end: Callable[[], Awaitable[None]]) -> None:
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await end()
