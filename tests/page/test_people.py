"""Several people and one truth: two answers to one question, and a server that is killed while a run works."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from greenroom.testing.demo_run import REQUEST, ScriptedTurn
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

SCRIBE: Final = """---
name: scribe
description: Writes.
tools: [create_artifact, rewrite_artifact, save_memory, ask_user, rewrite]
---
Write.
"""
SCRIBBLES: Final = (
    ScriptedTurn("", "read_code", {"file": "export.py"}),  # which it may not
    ScriptedTurn("", "create_artifact", {"id": "report", "title": "The report", "reason": "new", "content": "# Ink\n"}),
    ScriptedTurn("", "rewrite_artifact", {"id": "report", "content": "# Water\n", "reason": "cheaper"}),
    ScriptedTurn(
        "", "save_memory", {"memories": [{"content": "Ink is black.", "tags": [], "memory_type": "global_long_term"}]}
    ),
    ScriptedTurn("", "rewrite", {"file": "AGENTS.md", "content": "Be brief.\n"}),
    ScriptedTurn("", "ask_user", {"question": "Which colour?"}),
    ScriptedTurn("It is written."),
)
NOTICES: Final = """
window.asked = 0;
window.shown = [];
window.Notification = class {
  static permission = 'default';
  static requestPermission() {
    window.asked++;
    Notification.permission = 'granted';
    return Promise.resolve('granted');
  }
  constructor(title) { window.shown.push(title); }
  close() {}
};
"""
HIDE: Final = """() => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""
LOST = r"ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop."""
    with open_playground(tmp_path_factory.mktemp("people"), pace=0.05) as playground:
        agents = playground.folder / "config" / "greenroom" / "agents"
        agents.mkdir(parents=True)
        (agents / "scribe.md").write_text(SCRIBE, encoding="utf-8")
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


def test_the_browser_is_asked_for_notices_only_on_a_press_and_shows_what_waits(
    playground: Playground, open_page: OpenPage
) -> None:
    page = open_page(playground)
    page.add_init_script(NOTICES)
    page.clock.install()
    page.goto(f"{playground.base_url}/inbox")
    expect(page).to_have_title("Inbox · Greenroom")
    assert page.evaluate("window.asked") == 0
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notices are on")).to_be_visible()
    assert page.evaluate("window.asked") == 1
    page.evaluate(HIDE)
    run = playground.ask("/runs", request=REQUEST)["id"]
    playground.wait_for_inbox(1)
    page.clock.run_for(31_000)  # a page that is not seen asks the server now and then
    page.wait_for_function("() => window.shown.length === 1")
    assert REQUEST[:20] in page.evaluate("window.shown[0]")
    expect(page).to_have_title("(1) Inbox · Greenroom")
    playground.wait_for_state(run, "finished", "failed")


def test_what_an_agent_leaves_is_restored_corrected_forgotten_and_read_before_it_is_applied(
    playground: Playground, open_page: OpenPage
) -> None:
    playground.provider.script = SCRIBBLES
    page = open_page(playground, expected="status of (409|422)")
    run = playground.ask("/runs", request="write a report", agent="scribe", allow_unverified=True)["id"]
    playground.wait_for_inbox(1)
    read_failure(page, f"{playground.base_url}/runs/{run}")
    restore_artifact(page, f"{playground.base_url}/runs/{run}")
    answer_after_a_look(page, playground)
    playground.wait_for_state(run, "finished")
    playground.provider.script = ()
    page.goto(f"{playground.base_url}/runs/{run}/artifacts")
    expect(page.get_by_role("button", name="Restore").first).to_be_disabled()
    correct_memory(page, f"{playground.base_url}/knowledge")
    apply_governing(page, playground, run)


def answer_after_a_look(page: Page, playground: Playground) -> None:
    """Begin an answer, read the change, come back to what was typed, and send it."""
    page.goto(f"{playground.base_url}/inbox")
    card = page.get_by_role("article", name="Question")
    card.get_by_label("Your answer").fill("Blue, because")
    card.get_by_role("link", name="write a report").click()
    page.wait_for_url("**/runs/*")
    page.go_back()
    expect(card.get_by_label("Your answer")).to_have_value("Blue, because")
    card.get_by_role("button", name="Answer", exact=True).click()
    expect(page.get_by_text("All answered")).to_be_visible()


def read_failure(page: Page, address: str) -> None:
    """Read what failed without what only the log needs."""
    page.goto(f"{address}/activity")
    failure = page.locator(".feed-row.level-bad").first
    expect(failure).to_contain_text("may not use the tool")
    expect(failure).not_to_contain_text("thread_id")


def restore_artifact(page: Page, address: str) -> None:
    """Make an old version of an artifact the newest."""
    page.goto(f"{address}/artifacts")
    artifact = page.get_by_role("region", name="The report")
    expect(artifact.get_by_role("heading", name="Water")).to_be_visible()
    artifact.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog", name="Restore").get_by_role("button", name="Restore").click()
    expect(artifact.get_by_role("heading", name="Ink")).to_be_visible()
    expect(artifact.get_by_role("button", name="Version 3")).to_have_attribute("aria-pressed", "true")


def correct_memory(page: Page, address: str) -> None:
    """Change what agents remember, and have it forgotten."""
    page.goto(address)
    memory = page.get_by_role("region", name="Memories").get_by_role("article")
    expect(memory).to_contain_text("of all projects")
    memory.filter(has_text="Ink is black.").get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit")
    dialog.get_by_label("What agents read").fill("Ink is blue.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    memory.filter(has_text="Ink is blue.").get_by_role("button", name="Forget").click()
    page.get_by_role("dialog", name="Forget").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("No memory yet")).to_be_visible()


def apply_governing(page: Page, playground: Playground, run: str) -> None:
    """Apply a change that configures agents, once it says that it does."""
    page.goto(f"{playground.base_url}/runs/{run}/changes")
    page.get_by_role("button", name="Apply", exact=True).click()
    dialog = page.get_by_role("dialog", name="Apply")
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("AGENTS.md")
    assert not (playground.root / "AGENTS.md").exists()
    dialog.get_by_role("button", name="I read it, apply it").click()
    expect(dialog).to_have_count(0)
    assert (playground.root / "AGENTS.md").read_text("utf-8") == "Be brief.\n"


def test_a_run_that_reached_its_limit_gets_a_higher_one(playground: Playground, open_page: OpenPage) -> None:
    run = playground.ask("/runs", request=REQUEST, cost_limit=0.0001)["id"]
    playground.wait_for_state(run, "limit")
    page = open_page(playground, f"/runs/{run}")
    expect(page.locator(".run-reason")).to_contain_text("Resume with a higher one.")
    page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog", name="Resume")
    limit = dialog.get_by_label("New limit in dollars")
    expect(limit).to_have_value("0.0002")
    limit.fill("5")
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog).to_have_count(0)
    playground.wait_for_inbox(1)
    playground.ask(f"/runs/{run}/cancel", now=True)


def test_a_question_is_answered_and_has_no_verdict(playground: Playground, open_page: OpenPage) -> None:
    playground.provider.script = (ScriptedTurn("It is in `export.py`."),)
    page = open_page(playground)
    page.get_by_label("What should be done?").fill("where are rows written?")
    page.get_by_role("button", name="Question").click()
    page.get_by_role("button", name=re.compile("^(Start|Ask)$")).click()
    page.wait_for_url("**/runs/*")
    header = page.locator(".run-header")
    expect(header.get_by_role("group").filter(has_text="Answer")).to_contain_text("It is in export.py.")
    expect(header).not_to_contain_text("verdict")
    expect(header).not_to_contain_text("not verified")
    playground.provider.script = ()


def test_a_header_that_was_read_while_the_run_went_on_is_read_again(
    playground: Playground, open_page: OpenPage
) -> None:
    playground.provider.script = (ScriptedTurn("In `export.py`."),)
    playground.provider.set_pace(2.0)
    page = open_page(playground)
    details = list[str]()

    def hold(route: Route) -> None:
        answer = route.fetch()
        details.append(answer.json()["state"])
        if len(details) == 1:  # it arrives when nothing happens any more
            while playground.ask(f"/runs/{answer.json()['id']}")["state"] != "finished":
                page.wait_for_timeout(50)
            page.wait_for_timeout(1_500)
        route.fulfill(response=answer)

    page.route(re.compile(r"/api/runs/[a-z0-9]+$"), hold)
    page.get_by_label("What should be done?").fill("where are headers written?")
    page.get_by_role("button", name="Question").click()
    page.get_by_role("button", name=re.compile("^(Start|Ask)$")).click()
    expect(page.locator(".run-header").get_by_role("group").filter(has_text="Answer")).to_contain_text("In export.py.")
    assert details[0] == "working"
    playground.provider.set_pace(0.05)
    playground.provider.script = ()
