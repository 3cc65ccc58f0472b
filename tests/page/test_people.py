"""Several people and one truth: two answers to one question, and a server that is killed while a run works."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from greenroom.testing.demo_run import REQUEST, ScriptedTurn
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

LOST = r"ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop."""
    with open_playground(tmp_path_factory.mktemp("people"), pace=0.05) as playground:
        playground.serve()
        yield playground


def start_agent(page: Page) -> None:
    """Start one agent from the page."""
    page.get_by_label("What should be done?").fill(REQUEST)
    page.get_by_role("button", name="One agent").click()
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/runs/*")


def find_card(page: Page) -> Locator:
    """Return the card that waits in the inbox."""
    return page.get_by_role("article", name="Plan to confirm")


@pytest.mark.req("MAS-252")
def test_of_two_answers_one_wins_and_the_other_person_is_told(playground: Playground, open_page: OpenPage) -> None:
    ann, ben = open_page(playground), open_page(playground, "/inbox", expected="status of 409")
    start_agent(ann)
    expect(find_card(ben).get_by_role("button", name="Do not start")).to_be_visible()
    expect(ann.get_by_role("link", name="Inbox Waiting for you")).to_be_visible()
    ann.goto(f"{playground.base_url}/inbox")
    expect(find_card(ann).get_by_role("button", name="Start this plan")).to_be_visible()
    held = list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    ben.route(re.compile(r"/api/inbox"), hold)  # Ben reads the card while Ann answers
    find_card(ann).get_by_role("button", name="Start this plan").click()
    expect(find_card(ann).get_by_role("status")).to_be_visible()
    find_card(ben).get_by_role("button", name="Do not start").click()
    find_card(ben).get_by_label("Why not? (may be empty)").fill("Not this week.")
    find_card(ben).get_by_role("button", name="Do not start", exact=True).click()
    said = find_card(ben).get_by_role("status")
    expect(said).to_contain_text("A person on the page has already answered: yes.")
    for route in held:
        route.continue_()
    expect(ann.get_by_text("All answered")).to_be_visible()
    expect(ben.get_by_text("All answered")).to_be_visible()


def test_a_refused_plan_ends_the_run_with_the_persons_reason(playground: Playground, open_page: OpenPage) -> None:
    page = open_page(playground)
    start_agent(page)
    address = page.url
    page.locator(".run-header").get_by_role("link", name="Answer").click()
    find_card(page).get_by_role("button", name="Do not start").click()
    find_card(page).get_by_label("Why not? (may be empty)").fill("Too many files.")
    find_card(page).get_by_role("button", name="Do not start", exact=True).click()
    expect(find_card(page).get_by_role("status")).to_be_visible()
    page.goto(address)
    expect(page.locator(".run-header")).to_contain_text(
        re.compile(r"cancelled.*Refused by .+: Too many files\.", re.DOTALL)
    )


@pytest.mark.req("MAS-261")
def test_a_killed_server_is_said_and_the_page_goes_on_by_itself(playground: Playground, open_page: OpenPage) -> None:
    page = open_page(playground, expected=LOST)
    start_agent(page)
    page.get_by_role("link", name="Inbox Waiting for you").click()
    playground.provider.set_pace(1.0)
    find_card(page).get_by_role("link").first.click()
    rows = page.locator(".feed-row")
    expect(rows.filter(has_text="asks for approval")).to_be_visible()
    page.get_by_role("link", name="Inbox Waiting for you").click()
    find_card(page).get_by_role("button", name="Start this plan").click()
    page.go_back()
    expect(rows.filter(has_text="bytes written").first).to_be_visible()
    before = rows.all_inner_texts()
    port = int(playground.base_url.rpartition(":")[2])
    playground.end(signal.SIGKILL)
    expect(page.get_by_role("status").filter(has_text="Connection lost")).to_be_visible()
    assert rows.all_inner_texts()[: len(before)] == before
    expect(page.locator(".run-header")).to_contain_text(REQUEST)
    playground.provider.set_pace(0.05)
    playground.serve(port)
    expect(page.get_by_role("status").filter(has_text="Connection lost")).to_have_count(0, timeout=30_000)
    expect(page.locator(".run-header")).to_contain_text("finished", timeout=60_000)
    expect(page.locator(".run-header")).to_contain_text("verified")
    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.get_by_role("button", name=re.compile("export.py")).first).to_be_visible()


def test_a_key_that_is_held_answers_one_card(playground: Playground, open_page: OpenPage) -> None:
    runs = [str(playground.ask("/runs", request=REQUEST)["id"]) for _ in range(2)]
    playground.wait_for_inbox(2)
    page = open_page(playground, "/inbox")
    cards = find_card(page)
    expect(cards).to_have_count(2)
    page.wait_for_timeout(800)
    for _ in range(30):
        page.keyboard.down("a")
        page.wait_for_timeout(50)
    page.keyboard.up("a")
    expect(cards.first.get_by_role("status")).to_be_visible()
    page.keyboard.press("a")
    page.wait_for_timeout(300)
    assert len(playground.ask("/inbox")["items"]) == 1
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.get_by_text("All answered")).to_be_visible()
    playground.provider.set_pace(0.0)
    for run in runs:
        playground.wait_for_state(run, "finished", "failed")


def test_a_change_that_breaks_a_check_says_so_before_it_is_applied(playground: Playground, open_page: OpenPage) -> None:
    broken = {"search": "writerows(rows)", "replace": "writerows(rows[1:])"}
    playground.provider.script = (
        ScriptedTurn("", "patch", {"file": "export.py", "edits": [broken]}),
        ScriptedTurn("", "finish", {"status": "done", "summary": "Done."}),
    )
    run = str(playground.ask("/runs", request="write no head")["id"])
    playground.wait_for_state(run, "failed")
    page = open_page(playground, f"/runs/{run}/changes")
    page.get_by_role("button", name="Apply", exact=True).click()
    dialog = page.get_by_role("dialog", name="Apply")
    expect(dialog).to_contain_text("A check that passed before fails now.")
    dialog.get_by_role("button", name="Back").click()
    playground.provider.script = ()
