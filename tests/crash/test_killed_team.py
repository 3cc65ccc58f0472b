"""A team run that is killed at a commit of its log, or at any moment, ends with the same tree and leaves nothing."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from greenroom.testing.demo_run import fingerprint
from tests.app.teams.play import make_repository
from tests.crash.lives import Moment
from tests.crash.team import FILES, MERGED, REVIEWED, TeamStory, live, look
from tests.tiers import has_bubblewrap

needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
KILLED = -9
FIFTY = 50


def judge(folder: Path, before: str) -> list[str]:
    """Return what is wrong with a run that has ended."""
    found = look(folder)
    wrong = [] if found.files == FILES else [f"the tree has {found.files}"]
    wrong += [] if found.merges == len(FILES) else [f"{found.merges} merges"]
    wrong += [f"{step} ended twice" for step in found.twice]
    wrong += [f"the worktree {name} is left" for name in found.worktrees - {"main"}]
    return wrong + ([] if found.fingerprint == before else ["the person's files changed"])


def crash_and_recover(folder: Path, at: int, moment: Moment) -> bool:
    """Kill a run there and let another process end it. Return whether the first one came so far."""
    make_repository(folder / "shop")
    before = fingerprint(folder / "shop")
    first = live(folder, at=at, moment=moment)
    assert first in (0, KILLED), f"the first life ended with {first}"
    if first == KILLED:
        assert live(folder) == 0
    assert judge(folder, before) == []
    return first == KILLED


@pytest.mark.req("RC-128")
# How many appends a run has depends on how many fall into one commit: these come in every run.
@pytest.mark.parametrize(("at", "moment"), [(4, "after"), (11, "before"), (18, "after"), (25, "before")])
def test_a_team_killed_at_a_commit_ends_like_one_that_was_not(tmp_path: Path, at: int, moment: Moment) -> None:
    assert crash_and_recover(tmp_path, at, moment)


@pytest.mark.prove
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_team_can_be_killed_at_every_commit(moment: Moment) -> None:
    points = 0
    while True:
        with tempfile.TemporaryDirectory(prefix="greenroom-team-") as name:
            if not crash_and_recover(Path(name), points + 1, moment):
                break
        points += 1
    print(f"\n{points} crash points {moment} a commit of a team run, the same tree each time, nothing left behind")
    assert points > 25


def crash_review(folder: Path, at: int, moment: Moment) -> bool:
    """Kill a run with a fix and a second review there, and let another process end it."""
    make_repository(folder / "shop")
    first = live(folder, at=at, moment=moment, story="review")
    assert first in (0, KILLED)
    assert first == 0 or live(folder, story="review") == 0
    found = look(folder)
    assert (found.files, found.merges, found.twice) == (REVIEWED, 2, ())
    return first == KILLED


@pytest.mark.parametrize(("at", "moment"), [(15, "before"), (20, "after"), (25, "before"), (30, "after")])
def test_a_team_killed_between_a_review_and_its_fixes_loses_no_finding(tmp_path: Path, at: int, moment: Moment) -> None:
    assert crash_review(tmp_path, at, moment)


@pytest.mark.prove
@pytest.mark.timeout(4000)
def test_a_review_can_be_killed_at_every_commit() -> None:
    points, is_killed = 0, True
    while is_killed:
        with tempfile.TemporaryDirectory(prefix="greenroom-team-") as name:
            points, is_killed = points + 1, crash_review(Path(name), points + 1, "after")
    assert points > 25


def crash_merge(folder: Path, at: int, moment: Moment) -> bool:
    """Kill a run whose work goes back to its author once, and let another process end it."""
    make_repository(folder / "shop")
    before = fingerprint(folder / "shop")
    first = live(folder, at=at, moment=moment, story="merge")
    assert first in (0, KILLED)
    assert first == 0 or live(folder, story="merge") == 0
    found = look(folder)
    assert (found.files, found.twice, found.fingerprint) == (MERGED, (), before)
    assert found.worktrees <= {"main"}
    return first == KILLED


@pytest.mark.parametrize(("at", "moment"), [(14, "after"), (18, "before"), (22, "after"), (26, "before")])
def test_a_team_killed_while_it_merges_ends_like_one_that_was_not(tmp_path: Path, at: int, moment: Moment) -> None:
    assert crash_merge(tmp_path, at, moment)


@pytest.mark.prove
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_merges_can_be_killed_at_every_commit(moment: Moment) -> None:
    points, is_killed = 0, True
    while is_killed:
        with tempfile.TemporaryDirectory(prefix="greenroom-team-") as name:
            points, is_killed = points + 1, crash_merge(Path(name), points + 1, moment)
    print(f"\n{points - 1} crash points {moment} a commit of a run with merges, the same tree each time")
    assert points > 25


@needs_sandbox
@pytest.mark.timeout(240)
def test_the_killed_team_of_the_demo_ends_like_one_that_was_not(tmp_path: Path) -> None:
    story = TeamStory(tmp_path, random.Random(1))
    story.tell()
    assert story.kills, "this shows nothing"


@needs_sandbox
@pytest.mark.prove
@pytest.mark.timeout(4000)
def test_fifty_kills_of_the_demos_team_end_with_the_same_tree() -> None:
    source, kills, runs = random.Random(50), 0, 0
    while kills < FIFTY:
        with tempfile.TemporaryDirectory(prefix="greenroom-team-") as name:
            story = TeamStory(Path(name), source)
            story.tell()
        kills, runs = kills + story.kills, runs + 1
    print(f"\n{kills} kills in {runs} team runs, the same tree each time, no worktree that is not listed")
