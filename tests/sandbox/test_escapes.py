"""Attempts to get out of the sandbox: each succeeds without walls, and none behind them."""

from __future__ import annotations

from collections import Counter
from typing import Final, get_args

import pytest

from tests.sandbox.attempt import MEANING, Attempt, Kind
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.holes import HOLES, NOT_AS_ROOT
from tests.sandbox.judging import DEFAULT, TIERS, Judged, counted, judged, told
from tests.sandbox.report import PAGE, counts, holes

SAMPLE: Final[dict[Kind, str]] = {
    "writes": "a file through a link",
    "reads": "a key of ssh",
    "environment": "the environment of every process",
    "processes": "killed",
    "network": "TCP to loopback",
    "kernel": "a namespace: user",
    "git": "a setting that runs a program",
    "greenroom": "a folder where there was none",
    "persistence": "what a shell reads at its start",
    "resources": "processes",
    "outliving": "a daemon, after its end",
    "afterwards": "a link where the house reads a file",
}
"""One of each class, for every run of the tests."""


def of_kind(kind: Kind) -> list[Attempt]:
    """The attempts of a class."""
    return [attempt for attempt in ATTEMPTS if attempt.kind == kind]


def test_there_are_at_least_eighty_attempts_in_twelve_classes() -> None:
    kinds = Counter(attempt.kind for attempt in ATTEMPTS)
    assert len(ATTEMPTS) >= 80
    assert set(kinds) == set(get_args(Kind)) == set(MEANING)
    assert len(kinds) >= 12
    assert len({str(attempt) for attempt in ATTEMPTS}) == len(ATTEMPTS), "two have the same name"


def test_every_known_hole_is_an_attempt() -> None:
    names = {(attempt.kind, attempt.name) for attempt in ATTEMPTS}
    listed = {
        (kind, name)
        for tiers in (HOLES, NOT_AS_ROOT)
        for holes in tiers.values()
        for kind, found in holes.items()
        for name in found
    }
    assert listed <= names


@pytest.mark.parametrize("kind", SAMPLE)
async def test_one_of_each_class_succeeds_without_walls_and_not_behind_them(kind: Kind) -> None:
    (attempt,) = (one for one in of_kind(kind) if one.name == SAMPLE[kind])
    (found,) = await judged(attempt, (DEFAULT,))
    assert found.verdict == "held", found.why


@pytest.mark.prove
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", get_args(Kind))
async def test_no_attempt_gets_out_but_by_the_holes_that_are_told_of(kind: Kind) -> None:
    results = [one for attempt in of_kind(kind) for one in await judged(attempt, TIERS)]
    for tier in TIERS:
        here = [one for one in results if one.tier == tier]
        print(f"\n{tier}, {MEANING[kind]}: {len(here)} attempts, {dict(counted(here))}{told(here)}")
    assert not [one for one in results if one.verdict in {"vacuous", "never began"}], told(results)
    assert {_name(one) for one in results if one.verdict == "escaped"} == {_name(one) for one in results if one.known}


def _name(one: Judged) -> tuple[str, str]:
    return one.tier, str(one.attempt)


def test_the_documentation_tells_of_every_attempt_and_every_hole() -> None:
    """Or it is time for `python -m tests.sandbox.report --write`."""
    page = PAGE.read_text("utf-8")
    kinds = Counter(attempt.kind for attempt in ATTEMPTS)
    assert counts(page) == {**{MEANING[kind]: kinds[kind] for kind in kinds}, "**all**": len(ATTEMPTS)}
    assert holes() in page
