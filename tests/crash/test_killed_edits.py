"""Kill -9 in the middle of an edit: each file is old or new, and after a restart all are new, once."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path
from typing import get_args

import pytest

from tests.crash.edits import Kind, cut_off, live, states, unfinished, violations, workspace

KINDS: tuple[Kind, ...] = get_args(Kind)
CALLS: dict[Kind, int] = {"patch": 6, "rewrite": 6, "several": 18}
"""Calls that change the disk: write, mode, fsync, before the rename, after it, fsync of the folder; for each file."""

HUNDRED = 100


def killed_at(home: Path, kind: Kind, at: int) -> bool:
    """Kill a life there, look, let another one go on, look; False when it came to its end before."""
    root = workspace(home, kind)
    code = live(home, kind, at=at)
    assert code in (0, -9), f"a life ended with {code}"
    assert violations(root, kind) == []
    if code == -9:
        assert asyncio.run(cut_off(home)), "or it was not in the middle"
        assert live(home, kind) == 0
    assert unfinished(root, kind) == []
    assert set(asyncio.run(states(home))) == {"finished"}
    return code == -9


@pytest.mark.req("MA-52", "MA-53", "AG-63", "AG-66", "AG-68")
@pytest.mark.parametrize(("kind", "at"), [("patch", 1), ("rewrite", 4), ("several", 11)])
def test_a_killed_edit_is_old_or_new_and_is_finished_by_the_next_life(tmp_path: Path, kind: Kind, at: int) -> None:
    assert killed_at(tmp_path, kind, at)


def test_files_that_are_written_in_place_are_torn_by_the_same_kill(tmp_path: Path) -> None:
    root = workspace(tmp_path, "patch")
    assert live(tmp_path, "patch", at=1, careless=True) == -9
    assert violations(root, "patch") == ["a.txt"], "this kill proves nothing"


@pytest.mark.parametrize("kind", ["several"])
def test_a_life_that_is_not_killed_makes_as_many_calls_as_are_tried(tmp_path: Path, kind: Kind) -> None:
    assert not killed_at(tmp_path, kind, CALLS[kind] + 1)


def killed_sometime(home: Path, kind: Kind, source: random.Random) -> tuple[bool, bool]:
    """The same, at a random moment of a life instead of a chosen call. Whether it was killed, and in the middle."""
    root = workspace(home, kind)
    code = live(home, kind, kill_after=lambda: source.uniform(0.02, 0.3))
    assert violations(root, kind) == []
    middle = asyncio.run(cut_off(home))
    assert live(home, kind) == 0
    assert unfinished(root, kind) == []
    return code == -9, middle


@pytest.mark.prove
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_kills_in_the_middle_of_an_edit_tear_and_double_nothing(kind: Kind) -> None:
    kills = 0
    while kills < HUNDRED:
        with tempfile.TemporaryDirectory(prefix="greenroom-edit-") as name:
            kills += killed_at(Path(name), kind, kills % CALLS[kind] + 1)
    print(f"\n{kind}: {kills} kills at chosen calls, 0 files torn or doubled")


@pytest.mark.prove
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", KINDS)
def test_kills_at_random_moments_tear_nothing(kind: Kind) -> None:
    source = random.Random(kind)
    kills = middles = 0
    while kills < HUNDRED:
        with tempfile.TemporaryDirectory(prefix="greenroom-edit-") as name:
            killed, middle = killed_sometime(Path(name), kind, source)
            kills, middles = kills + killed, middles + middle
    print(f"\n{kind}: {kills} kills at random moments, {middles} in the middle of the edit, 0 files torn or doubled")
