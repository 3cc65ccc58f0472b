"""Cases of which a few are tested always, and all of them by `./go prove`."""

from collections.abc import Collection, Iterable

import pytest


def sampled(cases: Iterable[object], always: Collection[object]) -> list[object]:
    """All cases, marked so that only those of `always` run with every test run."""
    cases = [*cases]
    assert all(one in cases for one in always), "what is always to run is among the cases"
    return [one if one in always else pytest.param(one, marks=pytest.mark.prove) for one in cases]


def first(*cases: object) -> list[object]:
    """The same, where the first one speaks for the others. A case may be several values."""
    rest = (one if isinstance(one, tuple) else (one,) for one in cases[1:])
    return [*cases[:1], *(pytest.param(*one, marks=pytest.mark.prove) for one in rest)]
