"""A research run that is killed ends with the same report, and no page that was read is asked for again."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from tests.crash.lives import Moment
from tests.crash.research import ResearchStory
from tests.site import Site

FIFTY = 50


@pytest.mark.parametrize(("at", "moment"), [(4, "after"), (8, "before"), (12, "after"), (15, "before"), (18, "after")])
def test_research_killed_at_a_commit_asks_for_no_page_again(tmp_path: Path, at: int, moment: Moment) -> None:
    with Site() as site:
        story = ResearchStory(tmp_path, site)
        assert story.live(at=at, moment=moment), "this shows nothing"
        assert not story.live()
        story.check()


@pytest.mark.prove
@pytest.mark.timeout(3000)
def test_fifty_kills_of_research_ask_for_no_page_again() -> None:
    source, kills, runs = random.Random(50), 0, 0
    while kills < FIFTY:
        with tempfile.TemporaryDirectory(prefix="greenroom-research-") as name, Site() as site:
            story = ResearchStory(Path(name), site)
            story.tell(source)
        kills, runs = kills + story.kills, runs + 1
    print(f"\n{kills} kills in {runs} research runs, the same report each time, no page asked for twice")
