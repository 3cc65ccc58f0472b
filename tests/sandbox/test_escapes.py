"""Attempts to get out of the sandbox: each succeeds without walls, and none behind them."""

from __future__ import annotations

from collections import Counter
from typing import Final, get_args

import pytest

from tests.sandbox.attempt import MEANING, Attempt, Kind
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.batching import batches, disturbed, fits, made_together
from tests.sandbox.holes import HOLES
from tests.sandbox.judging import DEFAULT, TIERS, Judged, counted, judged, missing, told
from tests.sandbox.report import PAGE, counts, holes

SAMPLE: Final[dict[Kind, tuple[str, ...]]] = {
    "environment": ("a file that the house has open",),
    "git": (
        *("a hook", "a hook in the workspace's own folder of hooks", "a setting that runs a program"),
        *("a setting with another folder of hooks", "settings that include others", "settings of the worktree"),
        *("an included file of the workspace", "another folder for what is common", "another repository in its place"),
        "a worktree's file that leads to a repository",
    ),
    "reads": ("a key of ssh, as the Python of .venv",),
    "network": ("a service of the host that listens in the workspace",),
    "resources": ("processes",),
    "outliving": ("a daemon, after a house that was killed",),
    "afterwards": ("a link where the house reads a file",),
}
"""Some of each class that needs a command for each, for every run of the tests."""

TOGETHER: Final = [one for one in batches(filter(fits, ATTEMPTS)) if len(one) > 1]
"""Those of the other classes that are made together."""


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
    listed = {(kind, name) for holes in HOLES.values() for kind, found in holes.items() for name in found}
    assert listed <= names


def test_every_run_makes_eighty_of_them_in_twelve_classes() -> None:
    alone = [one for kind, names in SAMPLE.items() for one in of_kind(kind) if one.name in names]
    assert len(alone) == sum(map(len, SAMPLE.values()))
    every = [*alone, *(one for batch in TOGETHER for one in batch)]
    assert len(every) >= 80
    assert {one.kind for one in every} == set(get_args(Kind))


@pytest.mark.parametrize("kind", SAMPLE)
async def test_some_of_each_class_succeed_without_walls_and_not_behind_them(kind: Kind) -> None:
    for attempt in of_kind(kind):
        if attempt.name in SAMPLE[kind]:
            (found,) = await judged(attempt, (DEFAULT,))
            assert found.verdict in {"held", "not possible here"}, told([found])


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("batch", TOGETHER, ids=lambda batch: f"{len(batch)}, such as {batch[0]}")
async def test_none_of_those_that_can_be_made_together_gets_out(batch: list[Attempt], tier: str) -> None:
    """That they do without walls is for `./go prove` to say: one by one, which takes ten times as long."""
    known = HOLES[tier]
    possible = [one for one in batch if not missing(one) and one.name not in known.get(one.kind, ())]
    behind = await made_together(possible, tier)
    for attempt, (made, seen) in zip(possible, behind, strict=True):
        assert not seen, f"{attempt} got out: {seen}"
        assert made.begun, f"{attempt} never began: {made.text[-500:]}"
        # Landlock lets links to outside be made, which are then in the way of others.
        assert tier != DEFAULT or not disturbed(attempt, made), f"{attempt} is in the way: {made.text[-500:]}"


async def test_what_gets_out_is_seen_where_several_are_made_together_too() -> None:
    names = ("a file by its path", "TCP to loopback", "io_uring")
    batch = [one for one in ATTEMPTS if one.name in names and one.kind != "reads"]
    assert len(batch) == len(names)
    assert all(seen for _, seen in await made_together(batch, "plain"))


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
