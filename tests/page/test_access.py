"""The page with a phone, with a keyboard alone, and for people who use assistive technology."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from greenroom.testing.demo_team import REQUEST
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

PLACES: Final = (
    "/",
    "/inbox",
    "/agents",
    "/agents?view=tools",
    "/knowledge",
    "/knowledge?view=skills",
    "/knowledge?view=notes",
    "/costs",
)
TABS: Final = (
    "plan?view=graph",
    "plan?view=gantt",
    "activity",
    "messages",
    "changes",
    "changes?view=conflicts",
    "changes?view=report",
    "artifacts",
    "agents?sel=agent:code-writer-1",
    "costs",
    "log",
    "plan?at=40",
)


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop where agents ask before they write documentation."""
    with open_playground(tmp_path_factory.mktemp("access"), pace=0.0) as playground:
        playground.run("permissions", "add", "ask", "path", "docs/**")
        playground.serve()
        yield playground


@pytest.fixture(scope="module")
def run(playground: Playground) -> str:
    """Start a team; return its run when a permission and a conflict wait for the person."""
    plan = playground.ask("/plans", request=REQUEST)
    started = playground.ask("/runs", request=REQUEST, plan=plan["text"], confirm_checks=plan["checks_digest"])
    playground.wait_for_inbox(2)
    return str(started["id"])


def list_violations(page: Page, path: str) -> list[str]:
    """Return what axe finds wrong in the page that is shown."""
    found = Axe().run(page).response["violations"]
    return [f"{path}: {rule['id']}: {node['html'][:160]}" for rule in found for node in rule["nodes"]]


def open_look(open_page: OpenPage, playground: Playground, *, dark: bool, zh: bool) -> Page:
    """Open the page in a theme and a language."""
    page = open_page(playground, dark=dark, expected="status of 404")
    if zh:
        page.get_by_role("button", name="Settings").click()
        page.get_by_role("button", name="中文").click()
        page.keyboard.press("Escape")
        expect(page.locator("html[lang^=zh]")).to_be_attached()
    return page


def check_with_axe(page: Page, paths: Iterable[str]) -> None:
    """Open each path and let axe look at it."""
    violations = list[str]()
    for path in paths:
        page.goto(path)
        expect(page.get_by_role("main").locator("h1").first).to_be_attached()
        expect(page.locator(".skeleton")).to_have_count(0)
        violations += list_violations(page, path)
    assert not violations, "\n".join(violations)


def list_paths(playground: Playground, run: str) -> list[str]:
    """Return the address of each view."""
    return [playground.base_url + path for path in (*PLACES, *(f"/runs/{run}/{tab}" for tab in TABS))]


def test_axe_finds_nothing_in_any_view(playground: Playground, run: str, open_page: OpenPage) -> None:
    paths = list_paths(playground, run)
    check_with_axe(open_look(open_page, playground, dark=False, zh=False), paths[::2])
    check_with_axe(open_look(open_page, playground, dark=True, zh=True), paths[1::2])


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("zh", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_in_any_look(
    playground: Playground, run: str, open_page: OpenPage, *, dark: bool, zh: bool
) -> None:
    check_with_axe(open_look(open_page, playground, dark=dark, zh=zh), list_paths(playground, run))


def test_on_a_phone_what_waits_is_read_and_allowed_with_a_thumb(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}", width=390, height=844, touch=True)
    expect(page.get_by_role("region", name="Stages of the plan")).to_be_visible()
    places = page.get_by_role("navigation", name="Places")
    box = places.bounding_box()
    assert box is not None
    assert box["y"] > 700
    places.get_by_role("link", name=re.compile("^Inbox")).tap()
    expect(page.get_by_role("article")).to_have_count(2)
    page.get_by_role("article", name="Permission").locator(".ask-head").scroll_into_view_if_needed()
    fold = page.get_by_role("article", name="Permission").locator(".ask-fold")
    if fold.count():
        fold.tap()
    allow = page.get_by_role("article", name="Permission").get_by_role("button", name="Allow once")
    size = allow.bounding_box()
    assert size is not None
    assert size["height"] >= 40
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("link", name="See both versions and decide").or_(page.locator(".ask-fold")).first.tap()
    for path in list_paths(playground, run)[::2]:
        page.goto(path)
        expect(page.get_by_role("main").locator("h1").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_on_a_phone_nothing_is_cut_off_or_without_meaning(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/plan", width=390, height=844, touch=True)
    more = page.locator(".run-header").get_by_role("link", name="and 1 more")
    expect(more).to_be_visible()
    edges = [page.locator(".run-header .waits").bounding_box(), more.bounding_box()]
    assert all(box is not None and box["x"] + box["width"] <= 390 for box in edges)
    stages = page.get_by_role("region", name="Stages of the plan")
    expect(stages).to_contain_text(re.compile(r"\$0\.\d"))
    expect(stages).not_to_contain_text("$0.00")  # nothing is known yet of what waits
    live = page.get_by_role("button", name="live", exact=True).bounding_box()
    assert live is not None
    assert live["x"] + live["width"] >= 370
    page.goto(f"{playground.base_url}/runs/{run}/log")
    tab = page.locator(".run-tabs").get_by_role("link", name="Log", exact=True)
    expect(tab).to_have_attribute("aria-current", "page")
    page.wait_for_function(
        "() => document.querySelector('.run-tabs [aria-current]').getBoundingClientRect().right <= 360"
    )
    page.goto(playground.base_url)
    expect(page.get_by_text(str(playground.root), exact=True)).to_be_visible()
    folder = page.get_by_text(str(playground.root), exact=True)
    assert folder.evaluate("node => node.getBoundingClientRect().width") > 200
    expect(page.locator("a.run-row").first).to_contain_text("$0.")


def press_until(page: Page, key: str, name: str, times: int = 40) -> None:
    """Press a key until what has this name has the focus."""
    for _ in range(times):
        page.keyboard.press(key)
        if name in str(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")
        ):
            return
    raise AssertionError(f"{name} is not reached with {key}")


def test_with_the_keyboard_alone_everything_is_reached(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground)
    expect(page.get_by_label("What should be done?")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # skips to the content
    press_until(page, "Tab", "What should be done?")
    page.keyboard.type("add a button")
    expect(page.get_by_label("What should be done?")).to_have_value("add a button")
    press_until(page, "Tab", "Plan")
    press_until(page, "Tab", "Search runs")
    press_until(page, "Tab", REQUEST)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{run}**")
    expect(page.get_by_role("navigation", name="Views of this run")).to_be_visible()
    for number, tab in enumerate(("Plan", "Activity", "Messages", "Changes"), 1):
        page.keyboard.press(str(number))
        expect(page.get_by_role("link", name=tab, exact=True)).to_have_attribute("aria-current", "page")
    page.keyboard.press("Control+k")
    page.keyboard.type("inbox")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    press_until(
        page, "Tab", "See both versions" if page.get_by_role("link", name="See both versions").count() else "Allow once"
    )
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
