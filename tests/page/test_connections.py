"""A browser opens six connections to one host: pages that nobody sees must hold none of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from tests.adapters.browser.chromiums import needs_chromium
from tests.page.playground import Playground, open_playground

MANY = 8
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop."""
    with open_playground(tmp_path_factory.mktemp("connections")) as playground:
        playground.serve()
        yield playground


@pytest.fixture(scope="module")
def context(playground: Playground) -> Iterator[BrowserContext]:
    """Sign in with a Chromium that keeps pages for "back", as everyone's does."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox"] if os.getuid() == 0 else [],
            ignore_default_args=["--disable-back-forward-cache"],
        )
        context = browser.new_context(locale="en-GB")
        page = context.new_page()
        page.goto(playground.link)
        page.close()
        yield context
        browser.close()


SHOW = """isShown => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => !isShown});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_pages_that_are_kept_for_back_hold_no_connection(playground: Playground, context: BrowserContext) -> None:
    page = context.new_page()
    for place in range(MANY):
        page.goto(f"{playground.base_url}/?load={place}", timeout=10_000)
        expect(page.get_by_text("No run yet")).to_be_visible()
    page.close()


def test_tabs_that_nobody_sees_hold_no_connection(playground: Playground, context: BrowserContext) -> None:
    pages = list[Page]()
    for _ in range(MANY):
        for page in pages:
            page.evaluate(SHOW, False)  # the browser of a test shows every tab
        pages.append(context.new_page())
        pages[-1].goto(playground.base_url, timeout=10_000)
        expect(pages[-1].get_by_text("No run yet")).to_be_visible()
    with pages[0].expect_response("**/api/events*"):
        pages[0].evaluate(SHOW, True)
    for page in pages:
        page.close()
