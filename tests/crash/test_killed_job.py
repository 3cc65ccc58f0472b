"""A job killed with -9 at random moments, in the run, in apply and in undo: the same end, and nothing left behind."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from tests.crash.job import Story
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

HUNDRED = 100


@pytest.mark.timeout(240)
def test_a_killed_job_ends_like_one_that_was_not(tmp_path: Path) -> None:
    story = Story(tmp_path, random.Random(7))
    story.tell()
    assert sum(story.kills.values()) >= 2, "this shows nothing"


@pytest.mark.prove
@pytest.mark.timeout(3000)
def test_a_hundred_kills_in_the_story_lose_nothing() -> None:
    source, kills = random.Random(100), {"run": 0, "apply": 0, "undo": 0}
    stories = 0
    while sum(kills.values()) < HUNDRED:
        with tempfile.TemporaryDirectory(prefix="greenroom-job-") as name:
            story = Story(Path(name), source)
            story.tell()
        stories += 1
        kills = {part: kills[part] + story.kills[part] for part in kills}
    print(f"\n{sum(kills.values())} kills in {stories} stories ({kills}), the same tree each time, nothing left behind")
