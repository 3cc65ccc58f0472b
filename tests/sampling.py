"""Cases of which a few always run, and all with `./go prove`."""

from collections.abc import Collection, Iterable

import pytest


def sampled(cases: Iterable[object], always: Collection[object]) -> list[object]:
    """Return all cases, marked so that only those in `always` run by default."""
    cases = [*cases]
    assert all(one in cases for one in always), "what is always to run is among the cases"
    return [one if one in always else pytest.param(one, marks=pytest.mark.prove) for one in cases]


def first(*cases: object) -> list[object]:
    """Do the same, with only the first case by default. A case may have several values."""
    rest = (one if isinstance(one, tuple) else (one,) for one in cases[1:])
    return [*cases[:1], *(pytest.param(*one, marks=pytest.mark.prove) for one in rest)]
