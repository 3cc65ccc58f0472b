"""A person who has only the page: from the request to the undo, and back in time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from greenroom.testing.demo_team import REQUEST, STORY
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

ACTS: Final = re.compile("^(Pause|Resume|Cancel run|Rewind|Apply|Branch…|Discard…|Undo|Send|Restore)$")


def plan_run(page: Page) -> None:
    """Ask for a plan, break its text, read what is wrong in which line, and mend it."""
    page.get_by_label("What should be done?").fill(REQUEST)
    page.get_by_role("button", name="Plan", exact=True).click()
    start = page.get_by_role("button", name="Start the team")
    expect(start).to_be_enabled()
    page.get_by_text("Limits and model").click()
    page.get_by_label("Stop at (dollars)").fill("0.01")
    expect(page.get_by_text(re.compile(r"The limit of \$0\.01\d* is below this estimate"))).to_be_visible()
    page.get_by_label("Stop at (dollars)").fill("")
    expect(page.get_by_text("is below this estimate")).to_have_count(0)
    page.get_by_text("Edit the plan").click()
    text = page.get_by_label("Text of the plan")
    good = text.input_value()
    wrong = good.replace('dependencies = ["architect"]', 'dependencies = ["achitect"]', 1)
    text.fill(wrong)
    expect(start).to_be_disabled()
    page.get_by_role("button", name="Check the plan").click()
    line = wrong[: wrong.index("achitect")].count("\n") + 1
    expect(page.get_by_role("alert")).to_contain_text(f"Line {line}:")
    expect(text).to_have_value(wrong)
    expect(start).to_be_disabled()
    text.fill(good.replace('name = "Test Writing"', 'name = "Prove both formats"'))
    page.get_by_role("button", name="Check the plan").click()
    expect(page.get_by_role("region", name="Subtasks of the plan")).to_contain_text("Prove both formats")


def start_run(page: Page) -> str:
    """Start the team and watch its graph move. Return the id of the run."""
    page.get_by_role("button", name="Start the team").click()
    page.wait_for_url("**/runs/*")
    nodes = page.locator(".react-flow__node")
    expect(nodes.filter(has_text="Prove both formats")).to_be_visible()
    before = nodes.count()
    expect(nodes.filter(has_text="Architecture Design").locator(".node")).to_have_class(re.compile("running|finished"))
    expect(nodes.filter(has_text="Architecture Design").locator(".node")).to_have_class(re.compile("finished"))
    expect(nodes).not_to_have_count(before)
    return page.url.rpartition("/")[2]


def answer_permission(page: Page) -> None:
    """Allow the one call that asks."""
    page.get_by_role("link", name="Inbox Waiting for you").click()
    card = page.get_by_role("article", name="Permission")
    expect(card).to_contain_text("docs/formats.md")
    card.get_by_role("button", name="Allow once").click()
    expect(card.get_by_role("status")).to_be_visible()


def settle_conflict(page: Page) -> None:
    """Read three versions of a file, and take what is proposed."""
    page.get_by_role("link", name="See both versions and decide").click()
    panes = page.locator("figure.pane")
    expect(panes).to_have_count(4)
    expect(panes.nth(0)).to_contain_text("from to_json import to_json")
    expect(panes.nth(1)).to_contain_text("csv.writer(out).writerows(rows)")
    expect(panes.nth(2)).to_contain_text("from to_xml import to_xml")
    page.get_by_role("button", name="Accept the proposal").click()
    expect(page.locator(".conflict").first).to_contain_text("Decided by a person.")
    expect(page.locator(".conflict").first).not_to_contain_text("chose")


def header(page: Page) -> Locator:
    """Return the header of the run."""
    return page.locator(".run-header")


def read_change(page: Page) -> None:
    """Read the verdict with its receipts, a diff and who wrote a line."""
    expect(header(page)).to_contain_text("finished", timeout=60_000)
    page.get_by_role("tab", name=re.compile("^Files")).click()
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("verified")
    expect(verdict.get_by_role("row", name=re.compile("unittest"))).to_contain_text("passed")
    verdict.get_by_role("button", name="Open the log of").click()
    expect(page.get_by_role("dialog").get_by_role("region", name="Log")).to_contain_text("test_rows_become_xml")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    path, line = STORY.line
    page.get_by_role("button", name=re.compile(re.escape(path))).click()
    diff = page.get_by_role("region", name=f"Diff of {path}")
    expect(diff).to_contain_text(line)
    diff.locator(".diff-line", has_text=line).get_by_role("button", name="see who wrote it").click()
    expect(diff.locator(".blame")).to_contain_text(f"rewrite {path}")
    expect(diff.locator(".blame")).to_contain_text("code-writer-1")


def read_figures(page: Page, base_url: str, run: str) -> None:
    """Read the integration report, and how well each profile works."""
    page.get_by_role("tab", name="Report").click()
    expect(page.locator(".report")).to_contain_text("Integration report")
    expect(page.locator(".report")).to_contain_text("code-writer")
    page.goto(f"{base_url}/costs")
    table = page.get_by_role("region", name="How well each profile works")
    heads = ["Profile", "Completed", "Failed", "Success", "Average time"]
    expect(table.get_by_role("columnheader").filter(has_not_text="tokens")).to_contain_text(heads)
    expect(table.get_by_role("row", name=re.compile("^code-writer"))).to_contain_text("100%")
    page.goto(f"{base_url}/runs/{run}/changes")


def press(page: Page, verb: str) -> None:
    """Press a verb of the change and confirm it."""
    actions = page.get_by_role("region", name="What to do with the change")
    actions.get_by_role("button", name=verb, exact=True).click()
    page.get_by_role("dialog", name=verb).get_by_role("button", name=verb, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def discard_change(page: Page, address: str) -> None:
    """Discard the change, confirm that it is not applied, and read what became of it."""
    page.goto(address)
    actions = page.get_by_role("region", name="What to do with the change")
    actions.get_by_role("button", name="Discard…").click()
    dialog = page.get_by_role("dialog", name="Discard")
    dialog.get_by_role("button", name="Discard", exact=True).click()
    expect(dialog).to_contain_text("unapplied changes")
    dialog.get_by_role("button", name="Do it all the same").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("its commits stay in the repository").first).to_be_visible()
    expect(header(page).get_by_role("link", name="Read the change")).to_have_count(0)


def go_back_in_time(page: Page, run: str) -> None:
    """Scrub to a past version: every tab shows it, and nothing there acts."""
    slider = page.get_by_role("slider", name="Timeline")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("PageUp")
    band = page.get_by_role("status").filter(has_text="You see version")
    expect(band).to_be_visible()
    at = re.search(r"at=(\d+)", page.url)
    assert at is not None
    for tab in ("Plan", "Activity", "Messages", "Changes", "Artifacts", "Agents", "Costs", "Log"):
        page.get_by_role("navigation", name="Views of this run").get_by_role("link", name=tab, exact=True).click()
        expect(band).to_be_visible()
        expect(header(page)).not_to_contain_text("finished")
        assert f"at={at[1]}" in page.url
        for button in page.get_by_role("button", name=ACTS).all():
            expect(button).to_be_disabled()
        if tab == "Log":
            newest = page.locator(".log-row").last
            expect(newest).to_be_visible()
            assert int(newest.inner_text().split()[0]) <= int(at[1])
    band.get_by_role("button", name="Fork from here").click()
    page.wait_for_url(lambda url: "/runs/" in url and run not in url)
    header(page).get_by_role("link", name=re.compile(f"Forked from {run} at version")).click()
    expect(band).to_be_visible()
    band.get_by_role("button", name="Back to live").click()
    expect(band).to_have_count(0)
    expect(header(page)).to_contain_text("finished")


def change_looks(page: Page) -> None:
    """Switch to Chinese and back, and to the dark theme."""
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("link", name="改动", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.lang").startswith("zh")
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", name="Language")).to_be_visible()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


def check_folder(playground: Playground, *, applied: bool) -> None:
    """See in the folder of the person whether the change is there."""
    assert [path for path in STORY.files if not (playground.root / path).exists()] == (
        [] if applied else ["docs/formats.md", "tests/test_formats.py", "to_json.py", "to_xml.py"]
    )


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    """Serve a shop where agents ask before they write documentation."""
    with open_playground(tmp_path, pace=0.05) as playground:
        playground.run("permissions", "add", "ask", "path", "docs/**")
        playground.serve()
        yield playground


@pytest.mark.req("MAS-37", "MAS-261", "RC-118", "RC-119", "RC-120", "RC-121")
def test_a_person_who_has_only_the_page_does_everything(playground: Playground, open_page: OpenPage) -> None:
    page = open_page(playground, expected="status of (422|409)")
    plan_run(page)
    run = start_run(page)
    answer_permission(page)
    settle_conflict(page)
    read_change(page)
    read_figures(page, playground.base_url, run)
    check_folder(playground, applied=False)
    press(page, "Apply")
    check_folder(playground, applied=True)
    press(page, "Undo")
    check_folder(playground, applied=False)
    go_back_in_time(page, run)
    change_looks(page)
    discard_change(page, f"{playground.base_url}/runs/{run}/changes")
