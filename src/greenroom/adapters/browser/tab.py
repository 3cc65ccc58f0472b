"""The tab in front, led through playwright. What a page opens beside it comes to the front."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, assert_never

from playwright.async_api import BrowserContext, Error, Frame, Page
from playwright.async_api import TimeoutError as TooLate

from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.browser import Back, BrowserFault, Click, Move, Open, Scroll, Sight, Type
from greenroom.core.ports.web import BadAddress, address

ARRIVING: Final = 20_000.0
"""Milliseconds for a page to be there."""

DOING: Final = 5_000.0
QUIET: Final = 1_500.0
"""Milliseconds that a page has at most to become quiet after something was done."""

REACTING: Final = 0.4
"""Seconds that a page has to begin what a click leads to: another page, another tab. Nobody says that nothing will."""

SCROLLED: Final = 640
TABS: Final = 8
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
        context.on("close", made._left)
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
            await asyncio.sleep(REACTING if _leads_on(move) else 0)
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
                await page.locator(_marked(move.ref)).click(timeout=DOING)
            case Type():
                await self._typed(page, move)
            case Scroll():
                await page.mouse.wheel(0, SCROLLED if move.down else -SCROLLED)
            case Back():
                await self._back(page)
            case _:
                assert_never(move)

    async def _typed(self, page: Page, move: Type) -> None:
        field = page.locator(_marked(move.ref))
        if await field.evaluate("one => one.tagName", timeout=DOING) == "SELECT":
            await field.select_option(move.text, timeout=DOING)
        else:
            await field.fill(move.text, timeout=DOING)
        if move.submit:
            await field.press("Enter", timeout=DOING)

    async def _back(self, page: Page) -> None:
        if await page.go_back(wait_until="domcontentloaded", timeout=ARRIVING) is None and len(self._pages) > 1:
            await page.close()

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

    def _left(self, _: BrowserContext) -> None:
        self._gone = True

    async def _crashed(self, page: Page) -> None:
        with suppress(Error):
            await page.close()

    def _fault(self, error: Error) -> ModelFault | BrowserFault:
        said = error.message.partition("\n")[0].removeprefix("Error: ")
        if self._gone or (not self._pages and "closed" in said):
            return BrowserFault(GONE)
        return ModelFault(f"That did not work: {said[:300]}")


def _leads_on(move: Move) -> bool:
    """Whether it may lead to another page that nobody waits for yet."""
    return isinstance(move, Click) or (isinstance(move, Type) and move.submit)


def _marked(ref: str) -> str:
    return f"aria-ref={ref}"
