"""Nothing is run that was not decided about: wild calls through the real registry, and the log as witness."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.app.toolset.wild import WildTeam

FEW, EACH, MANY = 2_000, 400, 100_000


async def under_fire(root: Path, calls: int) -> Counter[str]:
    """So many calls, of as many teams as it takes; the counts."""
    total: Counter[str] = Counter()
    number = 0
    while total["calls"] < calls:
        wrong, counts = await WildTeam(root / f"w{number}", f"seed {number}").run(EACH)
        assert wrong == []
        total += counts
        number += 1
    total["teams"] = number
    return total


# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
async def test_nothing_is_run_that_was_not_decided_about(tmp_path: Path) -> None:
    counts = await under_fire(tmp_path, FEW)
    fates = ("run after allow", "run after notify", "run after ask", "denied by a rule", "denied by a person")
    for fate in (*fates, "not callable", "put in another's place", "on another's behalf"):
        assert counts[fate] > 2, f"nobody tried: {counts}"
    assert not counts["still open"]


@pytest.mark.prove
@pytest.mark.timeout(3000)
async def test_nothing_is_run_that_was_not_decided_about_in_a_hundred_thousand_calls(tmp_path: Path) -> None:
    began = time.monotonic()
    counts = await under_fire(tmp_path, MANY)
    told = ", ".join(f"{name}: {count:,}" for name, count in counts.most_common())
    print(f"\n{told}; 0 without a decision, 0 after a deny; {time.monotonic() - began:.0f} s")
