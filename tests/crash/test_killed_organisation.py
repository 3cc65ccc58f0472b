"""An organisation that is killed with -9 at random and begun again: the same end, nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.crash.lives import Moment
from tests.crash.organisation import LONGEST, Death, home, interruptions, judged, live, undisturbed

MOST = 8
"""Kills of one story: then it may come to its end."""


def killed(folder: Path, source: random.Random, language: str) -> int:
    """Play the story, and kill it again and again; how often it was killed before it came to its end."""
    kills = 0
    while True:
        patience = source.uniform(0.05, LONGEST) if kills < MOST else None
        code = live(folder, language, patience)
        if code == 0:
            break
        assert code == -9, f"a life ended with {code}"
        kills += 1
    same(folder, language)
    return kills


def same(folder: Path, language: str) -> None:
    """Nothing is broken, and all is as if nobody had killed anything."""
    found, broken = asyncio.run(judged(folder, language))
    assert broken == []
    wanted = undisturbed(language)
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.req("MAS-220", "MAS-270", "MAS-273")
@pytest.mark.timeout(180)
def test_an_organisation_that_is_killed_a_few_times_ends_like_one_that_was_not() -> None:
    _until(3, random.Random(6), ("en",))


def dies(at: int, moment: Moment) -> bool:
    """Let a life end at this append, and the next one go on; False when the story has not so many."""
    with home() as folder:
        code = live(folder, "en", None, Death(at=at, moment=moment))
        assert code in (0, -9), f"a life ended with {code}"
        if code == -9:
            assert live(folder, "en", None) == 0
        same(folder, "en")
        return code == -9


@pytest.mark.parametrize(("at", "moment"), [(1, "before"), (40, "after")])
def test_an_organisation_that_dies_at_an_append_goes_on_where_it_was(at: int, moment: Moment) -> None:
    assert dies(at, moment), "this shows nothing"


@pytest.mark.prove
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_organisation_survives_its_death_at_every_append(moment: Moment) -> None:
    at = 1
    while dies(at, moment):
        at += 1
    assert at > 50
    print(f"\n{at - 1} deaths {moment} an append; the same facts each time")


@pytest.mark.prove
@pytest.mark.timeout(3000)
def test_a_hundred_kills_of_an_organisation_lose_nothing() -> None:
    kills, stories, cut_off = _until(100, random.Random(100), ("en", "zh"))
    print(f"\n{kills} kills in {stories} stories cut off {cut_off} steps; the same facts each time")


def _until(wanted: int, source: random.Random, languages: tuple[str, ...]) -> tuple[int, int, int]:
    kills = stories = cut_off = 0
    while kills < wanted:
        with home() as folder:
            kills += killed(folder, source, languages[stories % len(languages)])
            cut_off += interruptions(folder)
        stories += 1
    return kills, stories, cut_off
