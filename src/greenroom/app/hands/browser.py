"""The browser for tools, as the person has set it up. What it needs is loaded when an errand begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, TypeAlias, cast

from greenroom.abilities.tools.browser_use import EVERY, Bounds, BrowserUse
from greenroom.adapters.browser.den import FolderAlbum
from greenroom.app.hands.browser_mind import ModelMind
from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.core.base.hosts import Closed, nothing_closed
from greenroom.core.ports.browser import Browser, BrowserFault, Gate, Gates, Tab
from greenroom.core.ports.model import Models
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

SCREENSHOTS: Final = "screenshots"
MISSING: Final = (
    "Using a browser needs an extra: `uv tool install 'greenroom[browser]'` or `pip install 'greenroom[browser]'`, and "
    "a Chromium (Debian, Ubuntu: `apt-get install chromium`)."
)


ClosedFor: TypeAlias = Callable[[World, Step, Sequence[str]], Closed]
"""What is closed to whoever does a step, who was let to some hosts by their names."""


def browser_tool(
    models: Models | None, browser: BrowserSettings, web: WebSettings, home: Path, closed: ClosedFor
) -> BrowserUse:
    """`browser_use`, led by the model of whoever calls it; pictures are kept below `home`, beside the log."""
    return BrowserUse(
        lambda bench: LateBrowser(browser, web, lambda hosts: closed(bench.world, bench.step, hosts)),
        ModelMind(models, browser.tokens),
        FolderAlbum(home / SCREENSHOTS),
        Bounds(steps=browser.steps, seconds=browser.seconds, hosts=browser.hosts),
    )


class LateBrowser:
    """A browser, once somebody has an errand for it. Of the hosts that it is let to, some may be `closed`."""

    def __init__(
        self,
        settings: BrowserSettings,
        web: WebSettings,
        closed: Callable[[Sequence[str]], Closed] = lambda _: nothing_closed,
    ) -> None:
        self._settings = settings
        self._web = web
        self._closed = closed

    def opened(self, hosts: Sequence[str]) -> AbstractAsyncContextManager[Tab]:
        """A new one that reaches these hosts; `BrowserFault` where something has to be installed first."""
        return self._opened(hosts)

    @asynccontextmanager
    async def _opened(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        loaded, gates = await asyncio.to_thread(_loaded)
        made = loaded.browser(self._gates(gates), self._settings.program, self._settings.headless)
        async with made.opened(hosts) as tab:
            yield tab

    def _gates(self, loaded: _MakingGates) -> Gates:
        web = self._web
        # The whole web is also what a person has opened of their own network.
        also = (*web.local, *(f"*:{port}" for port in web.ports))

        def opened(hosts: Sequence[str]) -> AbstractAsyncContextManager[Gate]:
            every = (*hosts, *(also if EVERY in hosts else ()))
            return loaded.opened_gate(web.local, web.ports, every, self._closed(hosts))

        return opened


class _MakingGates(Protocol):
    """What is loaded late of the web."""

    def opened_gate(
        self, local: Sequence[str], ports: Sequence[int], hosts: Sequence[str], closed: Closed
    ) -> AbstractAsyncContextManager[Gate]:
        """A way out to these hosts, but for what is closed."""
        ...


class _Making(Protocol):
    """What is loaded late of the browser."""

    def browser(self, gates: Gates, program: str, headless: bool | None) -> Browser:
        """A browser that goes through such gates."""
        ...


def _loaded() -> tuple[_Making, _MakingGates]:
    try:
        making = _late("browser")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("playwright"):
            raise
        raise BrowserFault(MISSING) from None
    return cast("_Making", making), cast("_MakingGates", _late("web"))


def _late(room: str) -> ModuleType:
    return import_module(f"greenroom.adapters.{room}.making")
