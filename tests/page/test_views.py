"""Every view of the page: empty, and on a run that waits for a person in two places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from greenroom.testing.demo_team import REQUEST, SPECIALISTS
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

EMPTY: Final = {
    "/": "No run yet",
    "/inbox": "Nothing waits for you",
    "/knowledge": "No memory yet",
    "/knowledge?view=notes": "No run yet",
    "/costs": "Nothing was spent yet",
    "/runs/nowhere": "There is no run",
}


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop where agents ask before they write documentation."""
    with open_playground(tmp_path_factory.mktemp("views"), pace=0.02) as playground:
        playground.run("permissions", "add", "ask", "path", "docs/**")
        playground.serve()
        yield playground


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop where nothing was ever started."""
    with open_playground(tmp_path_factory.mktemp("empty")) as playground:
        playground.serve()
        yield playground


@pytest.fixture(scope="module")
def run(playground: Playground) -> str:
    """Start a team; return its run when a permission and a conflict wait for the person."""
    plan = playground.ask("/plans", request=REQUEST)
    started = playground.ask("/runs", request=REQUEST, plan=plan["text"], confirm_checks=plan["checks_digest"])
    playground.wait_for_inbox(2)
    return str(started["id"])


def choose(page: Page, name: str) -> None:
    """Press a choice of a view."""
    page.locator(".run-tab").get_by_role("button", name=name, exact=True).click()


def rows_of(page: Page, name: str) -> Locator:
    """Return the rows of a list."""
    return page.get_by_role("region", name=name, exact=True).get_by_role("button")


@pytest.mark.parametrize(("path", "title"), EMPTY.items())
def test_an_empty_view_says_what_would_be_there(empty: Playground, open_page: OpenPage, path: str, title: str) -> None:
    page = open_page(empty, path, expected="status of 404")
    expect(page.get_by_text(title).first).to_be_visible()


def test_an_empty_tab_says_what_would_be_there(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, f"/runs/{run}/artifacts")
    expect(page.get_by_text("No artifact yet")).to_be_visible()


@pytest.mark.parametrize("path", ["/nowhere", "/?at=abc", "/runs/%E0%A4%A", "/runs/nowhere/plan"])
def test_a_wrong_address_leads_to_all_runs(empty: Playground, open_page: OpenPage, path: str) -> None:
    page = open_page(empty, path, expected="status of 404")
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_text("No run yet")).to_be_visible()


def test_a_wrong_tab_or_version_of_a_run_leads_to_all_runs(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, expected="status of 404")
    for path in (f"/runs/{run}/nowhere", f"/runs/{run}/plan?at=0", f"/runs/{run}/plan?at=999999"):
        page.goto(playground.base_url + path)
        page.get_by_role("link", name="All runs").click()
        expect(page).to_have_url(f"{playground.base_url}/")


def test_the_server_speaks_the_language_of_the_page(empty: Playground, open_page: OpenPage) -> None:
    page = open_page(empty, "/runs/nowhere", expected="status of 404")
    expect(page.get_by_role("alert")).to_contain_text("There is no run")
    page.get_by_role("button", name="Settings").click()
    with page.expect_request("**/api/events?*language=zh*"):
        page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("alert")).to_contain_text("没有")


@pytest.mark.req("RC-119", "MAS-263")
def test_the_plan_is_a_graph_and_a_gantt_with_one_selection(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/plan")
    expect(page.locator(".run-header")).to_contain_text("waits")
    node = page.locator(".react-flow__node").filter(has_text="code-writer-1")
    expect(node.get_by_text("finished")).to_be_attached()
    node.click()
    expect(page).to_have_url(re.compile("sel=subtask:"))
    inspector = page.get_by_role("complementary", name="Selection")
    expect(inspector).to_contain_text("code-writer-1")
    choose(page, "Gantt")
    lanes = page.get_by_role("region", name="Agents over time")
    for name in SPECIALISTS[:2]:
        expect(lanes.get_by_role("button", name=re.compile(rf"^{name}-\d")).first).to_be_visible()
    lanes.get_by_role("button", name=re.compile("^Model call")).first.dispatch_event("click")
    expect(page).to_have_url(re.compile("sel=step:"))
    expect(inspector).to_contain_text("You are")
    page.keyboard.press("Escape")
    expect(inspector).to_have_count(0)
    choose(page, "Graph")
    for title in page.locator(".node-name").all():  # what tells two subtasks apart is at the end of their names
        assert title.evaluate("node => node.scrollHeight <= node.clientHeight + 1"), title.inner_text()
    expect(page.locator(".graph")).not_to_contain_text("Press enter")  # English in every language, and not true


def test_times_and_durations_go_on_while_nothing_happens(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground)
    page.clock.install()
    page.goto(f"{playground.base_url}/runs/{run}/plan")
    since = page.locator(".run-header .waits time")
    lasts = page.locator(".react-flow__node").filter(has_text="documentation-1").locator(".num").first
    begun, lasted = since.inner_text(), lasts.inner_text()
    page.clock.run_for(180_000)
    expect(since).not_to_have_text(begun)
    expect(since).to_contain_text("min. ago")
    expect(lasts).not_to_have_text(lasted)


def test_back_and_forward_restore_the_tab_the_selection_and_the_version(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/plan")
    inspector = page.get_by_role("complementary", name="Selection")
    band = page.get_by_role("status").filter(has_text="You see version")
    page.locator(".react-flow__node").filter(has_text="architect-1").click()
    expect(inspector).to_contain_text("architect-1")
    page.get_by_role("link", name="Log", exact=True).click()
    rows_of(page, "Log").filter(has_text="SubtaskEnded").first.click()
    page.get_by_role("button", name=re.compile("^See the run at version")).click()
    expect(band).to_be_visible()
    seen = page.url
    page.get_by_role("link", name="Agents", exact=True).last.click()
    expect(page.locator(".member-row").nth(1)).to_be_visible()
    page.go_back()
    expect(page).to_have_url(seen)
    expect(band).to_be_visible()
    page.go_back()
    expect(band).to_have_count(0)
    expect(page.get_by_role("link", name="Log", exact=True)).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(page.get_by_role("link", name="Plan", exact=True)).to_have_attribute("aria-current", "page")
    expect(inspector).to_contain_text("architect-1")
    page.go_back()
    expect(inspector).to_have_count(0)
    for _ in range(3):
        page.go_forward()
    expect(page).to_have_url(seen)
    expect(band).to_be_visible()
    expect(inspector).to_contain_text("architect-1")


@pytest.mark.req("RC-118", "MAS-263")
def test_the_activity_follows_the_tail_and_leads_to_the_step(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/activity", height=600)
    feed = page.get_by_role("region", name="Activity")
    playground.ask(f"/runs/{run}/messages", text="the first word", to="")
    expect(feed.get_by_text("the first word").last).to_be_attached()
    expect(feed.locator(".feed-row").last).to_be_in_viewport()  # agents may go on after it
    feed.hover()
    page.mouse.wheel(0, -2000)
    playground.ask(f"/runs/{run}/messages", text="the second word", to="")
    page.get_by_role("button", name=re.compile(r"^↓ \d+ new event")).click()
    expect(feed.get_by_text("the second word").last).to_be_attached()
    expect(feed.locator(".feed-row").last).to_be_in_viewport()
    page.get_by_label("Agent", exact=True).select_option("architect-1")
    expect(feed.get_by_text("the second word")).to_have_count(0)
    feed.get_by_role("button").filter(has_text="read_code").first.click()
    feed.get_by_role("button", name="Show the step").first.click()
    step = page.get_by_role("complementary", name="Selection")
    expect(step).to_contain_text("csv.writer(out).writerows(rows)")
    assert '{"' not in step.inner_text().replace(" ", "").replace("\n", "")


def test_a_person_writes_to_an_agent_and_what_is_not_sent_stays(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/messages")
    entry = page.get_by_role("region", name="Write to the run as yourself")
    entry.get_by_role("combobox").select_option("code-writer-2")
    entry.get_by_role("textbox").fill("Keep the names short.")
    page.get_by_role("link", name="Changes", exact=True).click()
    page.go_back()
    expect(entry.get_by_role("textbox")).to_have_value("Keep the names short.")
    page.reload()
    expect(entry.get_by_role("textbox")).to_have_value("Keep the names short.")
    entry.get_by_role("button", name="Send").click()
    expect(entry.get_by_role("status")).to_contain_text("Sent to code-writer-2")
    page.reload()
    expect(entry.get_by_role("textbox")).to_have_value("")


def test_the_changes_of_an_open_run_have_a_diff_and_a_conflict(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/changes")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("not over")
    page.get_by_role("button", name=re.compile("to_json.py")).click()
    expect(page.get_by_role("region", name="Diff of to_json.py")).to_contain_text("json.dumps")
    choose(page, "Two columns")
    expect(page.locator(".diff-split")).to_be_visible()
    choose(page, "One column")
    page.get_by_role("tab", name=re.compile("^Conflicts")).click()
    expect(page.locator("figure.pane")).to_have_count(4)
    expect(page.get_by_role("group", name="Decide this conflict").get_by_role("button")).to_have_count(6)


def test_two_conflicts_of_one_question_are_answered_together_and_asked_about_again(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/changes?view=conflicts", expected="status of 4(09|22)")
    settle = page.get_by_role("group", name="Decide this conflict")
    settle.get_by_role("button", name="Write it yourself…").click()
    settle.get_by_role("textbox").fill("<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n")
    settle.get_by_role("button", name="Use this text").click()
    expect(settle.get_by_role("alert")).to_contain_text("still has conflict markers")
    expect(settle.get_by_role("textbox")).to_have_value(re.compile("<<<<<<< ours"))
    answers = list[str]()

    def double(route: Route) -> None:
        page_of = route.fetch().json()
        asked = next(item for item in page_of["items"] if item["approval"])
        page_of["items"].append({**asked, "id": "second", "path": "second.py"})
        for item in page_of["items"]:
            item["approval"] = item["approval"] and f"again-{len(answers)}"
        route.fulfill(json=page_of)

    def take(route: Route) -> None:
        answers.append(json.loads(route.request.post_data or "")["text"])
        route.fulfill(json={"done": True, "message": "It goes on.", "hint": "", "clashes": [], "run": None})

    page.route("**/conflicts*", double)
    page.route("**/inbox/again-*", take)
    page.reload()
    settle.get_by_role("button", name="Accept the proposal").click()
    expect(settle.get_by_role("status")).to_contain_text("second.py")
    assert not answers
    page.get_by_role("button", name=re.compile("^second.py")).click()
    settle.get_by_role("button", name=re.compile("^Take left")).click()
    expect(page.get_by_text("Your last answer did not settle this file").first).to_be_visible()
    expect(settle.get_by_role("button", name="Accept the proposal")).to_be_enabled()
    assert json.loads(answers[0])["choices"] == {"export.py": "accept", "second.py": "left"}


@pytest.mark.req("MAS-263", "RC-118")
def test_an_agent_shows_its_rights_and_its_steps_and_can_be_talked_to(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, f"/runs/{run}/agents")
    rows_of(page, "Agents").filter(has_text="documentation-1").click()
    inspector = page.get_by_role("complementary", name="Selection")
    expect(page.locator(".member-row").filter(has_text="checks")).not_to_contain_text("$")  # it calls no model
    inspector.get_by_role("tab", name="Rights").click()
    expect(inspector).to_contain_text("rewrite")
    inspector.get_by_role("tab", name="History").click()
    expect(inspector.locator(".step-row").first).to_be_visible()
    inspector.get_by_role("tab", name="Talk").click()
    inspector.get_by_label("Write to documentation-1 as yourself").fill("Write for beginners.")
    inspector.get_by_role("button", name="Send").click()
    expect(inspector.get_by_role("status")).to_contain_text("Sent to documentation-1")
    page.goto(f"{playground.base_url}/runs/{run}/agents?sel=agent:documentation-1&at=150")
    inspector.get_by_role("tab", name="Talk").click()
    expect(inspector.get_by_text("You and this agent have not written to each other yet.")).to_be_visible()
    inspector.get_by_label("Write to documentation-1 as yourself").fill("Write for experts.")
    inspector.get_by_role("button", name="Send").hover()
    expect(inspector.get_by_role("button", name="Send")).to_be_disabled()
    expect(page.get_by_role("tooltip")).to_contain_text("Go back to live to act.")


def test_the_costs_of_a_run_are_a_chart_and_a_table(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, f"/runs/{run}/costs")
    table = page.get_by_role("region", name="What was spent")
    expect(table.get_by_role("row", name=re.compile("code-writer-1"))).to_contain_text("$")
    expect(page.get_by_role("img", name=re.compile("^What was spent over time")).locator("canvas")).to_be_visible()
    choose(page, "Model")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).to_contain_text("scripted:coder")


def test_the_log_is_searched_and_leads_to_a_version(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, f"/runs/{run}/log")
    rows = rows_of(page, "Log")
    page.get_by_label("Search events").fill("to_xml.py")
    expect(rows.filter(has_text="AgentAdded")).to_have_count(0)
    expect(rows.filter(has_text="to_xml.py").first).to_be_visible()
    rows.filter(has_text="to_xml.py").first.click()
    expect(page.get_by_role("region", name="Data of the event")).to_contain_text("{")
    page.get_by_role("button", name=re.compile("^See the run at version")).click()
    expect(page.get_by_role("status").filter(has_text="You see version")).to_be_visible()


def test_the_inbox_is_used_with_keys(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, "/inbox")
    assert run
    cards = page.get_by_role("article")
    expect(cards).to_have_count(2)
    expect(page).to_have_title("(2) Inbox · Greenroom")
    kinds = [cards.nth(place).get_attribute("aria-label") for place in range(2)]
    assert sorted(map(str, kinds)) == ["Conflict", "Permission"]
    for key in ("k", "j") if kinds[1] == "Permission" else ("j", "k"):
        page.keyboard.press(key)
    permission = page.get_by_role("article", name="Permission")
    expect(permission).to_have_attribute("data-open", "true")
    call = permission.get_by_role("region", name="The exact call")
    expect(call).to_contain_text("docs/formats.md")
    expect(call).not_to_contain_text("{")
    page.keyboard.press("d")
    reason = permission.get_by_label("Reason for the agent (may be empty)")
    expect(reason).to_be_focused()
    page.keyboard.press("Escape")
    expect(reason).to_have_count(0)
    permission.get_by_role("button", name="Allow always…").click()
    expect(permission.get_by_label("This rule is written")).to_have_value(re.compile("^allow "))
    permission.get_by_role("button", name="Back").click()
    page.locator("h1").click()
    page.keyboard.press("a")
    expect(permission.get_by_role("status")).to_be_visible()
    page.goto(f"{playground.base_url}/runs/{run}/activity")
    feed = page.get_by_role("region", name="Activity")
    expect(feed).to_contain_text("approved by a person")
    expect(feed).not_to_contain_text(re.compile("door|takes over"))  # what the machinery calls a person, and itself


def test_agents_tools_and_skills_are_listed(playground: Playground, open_page: OpenPage) -> None:
    page = open_page(playground, "/agents")
    own = page.get_by_role("region", name="For new runs")
    expect(own).to_contain_text("coder")
    assert not [row for row in own.get_by_role("cell").all_inner_texts() if not row.strip()]
    page.get_by_role("tab", name="Tools").click()
    page.get_by_label("Search tools").fill("rewrite")
    expect(page.locator(".item").first).to_contain_text("edit · found again after a crash · built in")
    page.goto(f"{playground.base_url}/knowledge?view=skills")
    expect(page.get_by_role("main")).to_contain_text("No skill here")


def test_a_person_logs_out_and_is_told_how_to_log_in(empty: Playground, open_page: OpenPage) -> None:
    page = open_page(empty, expected="status of 401")
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("main")).to_contain_text("You are not signed in.")
    expect(page.get_by_role("main")).to_contain_text("greenroom serve")
    page.goto(f"{empty.base_url}/inbox")
    expect(page.get_by_role("main")).to_contain_text("You are not signed in.")


def test_a_request_survives_leaving_and_the_better_way_to_start_is_offered(
    playground: Playground, run: str, open_page: OpenPage
) -> None:
    page = open_page(playground, expected="ERR_FAILED")
    page.get_by_label("What should be done?").fill(REQUEST)
    page.get_by_text("Limits and model").click()
    page.get_by_label("Stop at (dollars)").fill("2")
    page.goto(f"{playground.base_url}/runs/{run}")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_label("What should be done?")).to_have_value(REQUEST)
    expect(page.get_by_text("Limits and model")).to_contain_text("$2")

    def advise(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "is_team": False, "reason": "One agent: a team takes longer."})

    page.route("**/api/plans", advise)
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_role("button", name="Start the team")).to_be_enabled()
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/runs")) as started:
        page.route("**/api/runs", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
        page.get_by_role("button", name="Start one agent").click()
    asked = json.loads(started.value.post_data or "")
    assert (asked["plan"], asked["cost_limit"]) == ("", 2)
