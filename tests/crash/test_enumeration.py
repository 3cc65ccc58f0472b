"""Kill the scenario at every append boundary and inside its effects; recover; the checker finds nothing broken."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.crash.checker import check, check_effects, check_end, projection
from tests.crash.lives import Moment, Spot, events_of, live

SPOTS: tuple[Spot, ...] = ("file_half", "file_done", "ledger_before", "ledger_done")
KILLED = -9


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder in memory where there is one: a crash of a process does not care, and fsync is quick there."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None, prefix="greenroom-crash-") as name:
        yield Path(name)


@cache
def undisturbed() -> tuple[dict[str, object], int]:
    """The projection of a run that nobody kills, and how many events it has."""
    with tempfile.TemporaryDirectory(prefix="greenroom-crash-") as name:
        assert live(Path(name)) == 0
        _, events = asyncio.run(events_of(Path(name)))
        seen = check(events)
        assert check_end(seen) == []
        return projection(seen), len(events)


def judge(home: Path) -> list[str]:
    """Everything that is broken in a run that has come to its end."""
    team, events = asyncio.run(events_of(home))
    seen = check(events)
    broken = check_end(seen) + check_effects(seen, team, home / "work", ("ledger", "publish"))
    wanted, _ = undisturbed()
    found = projection(seen)
    broken += [f"{key}: {found[key]!r} instead of {wanted[key]!r}" for key in wanted if found[key] != wanted[key]]
    for name, content in (("draft.txt", "green room\n"), ("checked.txt", "checked\n")):
        path = home / "work" / name
        if not path.exists() or path.read_text() != content:
            broken.append(f"{name} is not what was written")
    return broken


def crash_and_recover(home: Path, at: int, moment: Moment) -> bool:
    """Whether the first life reached this point (and died there); the second one must bring it to its end."""
    first = live(home, at=at, moment=moment)
    assert first in (0, KILLED), f"the first life ended with {first}"
    if first == KILLED:
        assert live(home) == 0
    assert judge(home) == []
    return first == KILLED


def test_an_undisturbed_run_breaks_nothing(home: Path) -> None:
    assert live(home) == 0
    assert judge(home) == []


# How many appends a run has depends on how many fall into one commit: these come in every run.
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", [6, 16])
def test_a_crash_at_an_append_boundary_loses_nothing(home: Path, at: int, moment: Moment) -> None:
    assert crash_and_recover(home, at, moment)


@pytest.mark.parametrize("spot", SPOTS)
def test_a_crash_inside_an_effect_loses_nothing(home: Path, spot: Spot) -> None:
    assert live(home, spot=spot) == KILLED
    assert live(home) == 0
    assert judge(home) == []


@pytest.mark.prove
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_every_append_boundary_is_safe(moment: Moment) -> None:
    points = 0
    while True:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="greenroom-crash-") as name:
            if not crash_and_recover(Path(name), points + 1, moment):
                break
        points += 1
    print(f"\n{points} crash points {moment} an append, 0 violations")
    assert points > 20  # fewer on a busy machine: more appends fall into one commit


@pytest.mark.prove
@pytest.mark.timeout(3000)
def test_two_crashes_in_a_row_are_safe() -> None:
    source = random.Random(20261115)
    samples = 60
    for _ in range(samples):
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="greenroom-crash-") as name:
            home = Path(name)
            live(home, at=source.randint(1, 30), moment=source.choice(["before", "after"]))
            live(home, at=source.randint(1, 12), moment=source.choice(["before", "after"]))
            assert live(home) == 0
            assert judge(home) == []
    print(f"\n{samples} double crashes, 0 violations")
