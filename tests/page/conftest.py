"""Pages in a real Chromium. What the browser reports as an error fails the test."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.adapters.browser.chromiums import needs_chromium
from tests.page.playground import Playground

PATIENCE_MS: Final = 60_000
REPORT: Final = """
document.addEventListener('securitypolicyviolation',
  event => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
window.stolen = 0;
window.alert = window.confirm = window.prompt = () => { window.stolen = 1; };
"""
OpenPage: TypeAlias = Callable[..., Page]
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "open_page" in getattr(item, "fixturenames", ()):
            item.add_marker(needs_chromium)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))  # four browsers share two processors


class Witness:
    """Keeps what a browser context reports. `expected` is the pattern of what a test provokes."""

    def __init__(self, context: BrowserContext, host: str, expected: str) -> None:
        self.complaints = list[str]()
        self._host, self._expected = host, re.compile(expected) if expected else None
        context.add_init_script(REPORT)
        context.on("console", self._hear_console)
        context.on("weberror", lambda error: self._complain(f"page: {error.error}"))
        context.on("request", self._see_request)
        context.on("response", self._see_response)

    def _complain(self, text: str) -> None:
        if self._expected is None or not self._expected.search(text):
            self.complaints.append(text)

    def _hear_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._complain(f"console: {message.text} {message.location.get('url', '')}")

    def _see_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in {"blob", "data"} and parts.netloc != self._host:
            self._complain(f"request: {request.url}")

    def _see_response(self, response: Response) -> None:
        if response.status >= 500:
            self._complain(f"response: {response.status} {response.url}")


@pytest.fixture(scope="module", autouse=True)
def own_child_watcher() -> None:
    """Let playwright's loop start processes: a command that ran in this process leaves a watcher of its own loop."""
    if sys.version_info < (3, 12):
        asyncio.set_child_watcher(asyncio.ThreadedChildWatcher())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start one Chromium for a file."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Return a function that opens the page of a playground as a person who is signed in."""
    witnesses, contexts = list[Witness](), list[BrowserContext]()

    def open_context(
        playground: Playground,
        path: str = "/",
        *,
        width: int = 1440,
        height: int = 900,
        dark: bool = False,
        touch: bool = False,
        expected: str = "",
    ) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            reduced_motion="reduce",
            locale="en-GB",
            storage_state=playground.signed_in,
        )
        contexts.append(context)
        witnesses.append(Witness(context, urlsplit(playground.base_url).netloc, expected))
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        if playground.signed_in is None:
            page.goto(playground.link)
            playground.signed_in = context.storage_state()
        page.goto(playground.base_url + path)
        return page

    yield open_context
    for context in contexts:
        context.close()
    complaints = [complaint for witness in witnesses for complaint in witness.complaints]
    assert not complaints, "\n".join(complaints)
