"""A run of 1,000 agents and 50,000 steps in a real browser: how soon it is seen, and how soon a past version is."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from bench.kernel import spin_agents
from tests.page.conftest import OpenPage
from tests.page.playground import Playground, open_playground

AGENTS: Final = 1_000
STEPS: Final = 50
PAINT_S: Final = 2.0
SCRUB_MS: Final = 200.0
BUSY: Final = 2
"""How much longer it may take on a machine that does other things too."""

SCRUB: Final = """async version => {
  performance.clearResourceTimings();
  const begin = performance.now(), key = new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true});
  document.querySelector('[role=slider]').dispatchEvent(key);
  const text = () => document.querySelector('.run .band strong')?.textContent ?? '';
  while (!text().includes(`version ${version.toLocaleString('en')},`)) await new Promise(requestAnimationFrame);
  const reads = () => performance.getEntriesByType('resource').filter(entry => entry.name.includes(`at=${version}`));
  while (!reads().length) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begin;
}"""


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Serve a long log."""
    folder = tmp_path_factory.mktemp("size")
    asyncio.run(spin_agents(folder / "home", AGENTS, STEPS))
    with open_playground(folder) as playground:
        playground.serve()
        yield playground


def time_paint(page: Page, address: str) -> float:
    """Return the seconds until the first agents of a run are seen."""
    begin = time.perf_counter()
    page.goto(address, wait_until="commit")
    expect(page.locator(".member-row").nth(5)).to_be_visible()
    return time.perf_counter() - begin


@pytest.mark.prove
@pytest.mark.timeout(1200)
def test_a_run_of_1000_agents_is_seen_and_scrubbed_at_once(playground: Playground, open_page: OpenPage) -> None:
    run = playground.ask("/runs")["items"][0]["id"]
    page = open_page(playground)
    address = f"{playground.base_url}/runs/{run}/agents"
    paints = [time_paint(page, address) for _ in range(5)]
    assert page.locator(".member-row").count() < 200  # of 1,000 only those are made that are seen
    head = int(playground.ask(f"/runs/{run}")["head"])
    scrubs = list[float]()
    for back in range(1, 31):
        scrubs.append(float(page.evaluate(SCRUB, head - back)))
    expect(page).to_have_url(re.compile(f"at={head - 30}"))
    print(f"first paint: {[round(paint, 2) for paint in paints]} s; scrub: median {statistics.median(scrubs):.0f} ms")
    print(f"scrub: 95 % {sorted(scrubs)[28]:.0f} ms, longest {max(scrubs):.0f} ms, {head:,} events")
    assert statistics.median(paints) <= PAINT_S * BUSY
    assert sorted(scrubs)[28] <= SCRUB_MS * BUSY
