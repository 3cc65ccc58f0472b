"""Text of agents, files and people that contains HTML and scripts: it is shown, and nothing of it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from greenroom.testing.demo_run import ScriptedTurn
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

ATTACK: Final = "<img src=x onerror=window.stolen=1><script>window.stolen=2</script><svg onload=window.stolen=3>"
LINKS: Final = (
    "[press](javascript:window.stolen=4) <a href=javascript:window.stolen=5>here</a> ![p](https://evil.example/p.png)"
)
MARKDOWN: Final = f"# Done\n\n{ATTACK}\n\n{LINKS}\n\n<iframe srcdoc='<script>top.stolen=6</script>'></iframe>\n"
UNSEEN: Final = "rm \u202etxt\u200b.\u00ad\u2028\U000e0041"
FILE: Final = "<img src=x onerror=window.stolen=7>.md"
ARTIFACT: Final = {"id": "report", "title": ATTACK, "reason": ATTACK}
AGENT: Final = f"""---
name: scribe
description: "{ATTACK}"
tools: [create_artifact, rewrite_artifact, save_memory, ask_user, rewrite, read_code]
---
{MARKDOWN}
"""
SKILL: Final = f'---\nname: hostile\ndescription: "{ATTACK}"\n---\n\n{MARKDOWN}\n'
TURNS: Final = (
    ScriptedTurn(ATTACK, "read_code", {"file": "notes.html"}),
    ScriptedTurn(ATTACK, "create_artifact", {**ARTIFACT, "content": MARKDOWN}),
    ScriptedTurn("", "rewrite_artifact", {"id": "report", "content": f"{MARKDOWN}\nMore.\n", "reason": ATTACK}),
    ScriptedTurn(
        "",
        "save_memory",
        {
            "memories": [
                {
                    "content": MARKDOWN,
                    "tags": ["<img src=x onerror=window.stolen=8>"],
                    "memory_type": "global_long_term",
                }
            ]
        },
    ),
    ScriptedTurn(ATTACK, "rewrite", {"file": FILE, "content": MARKDOWN}),
    ScriptedTurn(ATTACK, "ask_user", {"question": MARKDOWN + UNSEEN}),
    ScriptedTurn(MARKDOWN),
)
TABS: Final = (
    "plan?view=gantt",
    "activity?all=1",
    "messages",
    "agents?sel=agent:scribe",
    "costs",
    "log?q=stolen",
    "changes",
)
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


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a shop whose agent, skill, file and model are hostile."""
    with open_playground(tmp_path_factory.mktemp("hostile"), pace=0.0) as playground:
        write(playground.folder / "config" / "greenroom" / "agents" / "scribe.md", AGENT)
        write(playground.root / ".greenroom" / "skills" / "hostile" / "SKILL.md", SKILL)
        write(playground.root / "notes.html", MARKDOWN)
        playground.provider.script = TURNS
        playground.serve()
        yield playground


@pytest.fixture(scope="module")
def run(playground: Playground) -> str:
    """Run the hostile agent until it asks."""
    started = playground.ask("/runs", request=f"{ATTACK} {LINKS}", agent="scribe", allow_unverified=True)
    playground.wait_for_inbox(1)
    playground.ask(f"/runs/{started['id']}/messages", text=MARKDOWN, to="")
    return str(started["id"])


def write(path: Path, text: str) -> None:
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check(page: Page) -> None:
    """Nothing ran, and no element of the text is part of the page."""
    assert page.evaluate("window.stolen") == 0
    assert (
        page.locator(
            "main script, main iframe, main img, main [onerror], main [onload], a[href^='javascript' i]"
        ).count()
        == 0
    )


def test_no_text_of_a_run_becomes_part_of_the_page(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, f"/runs/{run}/artifacts", expected="status of 404")
    expect(page.get_by_role("heading", name=ATTACK).first).to_be_visible()
    for choice in ("Text", "Read"):
        page.locator(".run-tab").get_by_role("button", name=choice, exact=True).click()
        expect(page.locator(".side-main")).to_contain_text("<iframe srcdoc=")
        check(page)
    for tab in TABS:
        page.goto(f"{playground.base_url}/runs/{run}/{tab}")
        expect(page.locator(".run-tab > *").first).to_be_visible()
        expect(page.locator(".run-header h1")).to_contain_text("<img src=x")
        check(page)
    expect(page.get_by_role("region", name=f"Diff of {FILE}")).to_contain_text("<iframe srcdoc=")
    check(page)
    page.goto(f"{playground.base_url}/runs/{run}/activity")
    page.get_by_role("region", name="Activity").get_by_role("button").filter(has_text="rewrite").first.click()
    page.get_by_role("button", name="Show the step").first.click()
    expect(page.get_by_role("complementary", name="Selection")).to_contain_text("window.stolen")
    check(page)


def test_no_text_of_a_place_becomes_part_of_the_page(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, "/inbox", expected="status of 404")
    card = page.get_by_role("article", name="Question")
    expect(card).to_contain_text("<iframe srcdoc=")
    expect(card).to_contain_text(r"rm \u202Etxt\u200B.\u00AD\u2028\u{E0041}")
    for place in PLACES:
        page.goto(playground.base_url + place)
        expect(page.locator("main > * > *").first).to_be_visible()
        check(page)
        if place in {"/", "/knowledge", "/knowledge?view=skills"}:
            expect(page.locator("main")).to_contain_text("window.stolen")
    page.goto(f"{playground.base_url}/{quote(ATTACK)}?q={quote(ATTACK)}")
    expect(page.get_by_role("main")).to_contain_text("nothing at this address")
    check(page)
    assert run in json.dumps(playground.ask("/runs"))


def test_an_answer_and_its_end_are_text_too(playground: Playground, run: str, open_page: OpenPage) -> None:
    page = open_page(playground, "/inbox")
    page.get_by_role("article", name="Question").get_by_label("Your answer").fill(MARKDOWN)
    page.get_by_role("article", name="Question").get_by_role("button", name="Answer", exact=True).click()
    expect(page.get_by_text("All answered")).to_be_visible()
    page.goto(f"{playground.base_url}/runs/{run}/log")
    page.get_by_text("Agent's summary").click()
    expect(page.locator(".answer")).to_contain_text("<iframe srcdoc=")
    check(page)
