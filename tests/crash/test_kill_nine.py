"""The real thing: a process killed with -9 at a random moment, again and again, until its work is done."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from tests.crash.lives import live
from tests.crash.test_enumeration import judge

LONGEST = 1.2
"""Seconds a life may have at most before it is killed; a whole run at this pace takes about as long."""


def kill_until_done(home: Path, source: random.Random) -> int:
    """How often it was killed before it came to its end."""
    kills = 0
    while True:
        patience = source.uniform(0.05, LONGEST) if kills < 12 else None
        code = live(home, pace=0.02, kill_after=patience)
        if code == 0:
            return kills
        assert code == -9, f"a life ended with {code}"
        kills += 1


def test_a_killed_process_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    kill_until_done(tmp_path, random.Random(0))
    assert judge(tmp_path) == []


@pytest.mark.prove
@pytest.mark.timeout(3000)
def test_two_hundred_kills_at_random_moments_lose_nothing() -> None:
    source = random.Random(200)
    kills = runs = 0
    while kills < 200:
        with tempfile.TemporaryDirectory(prefix="greenroom-kill-") as name:
            kills += kill_until_done(Path(name), source)
            assert judge(Path(name)) == []
        runs += 1
    print(f"\n{kills} kills in {runs} runs, 0 violations")
