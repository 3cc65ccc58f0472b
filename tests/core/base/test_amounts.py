"""Sums of what work costs, and the limits they may break."""

import pytest

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts, Limits

SOME = Amounts(money=1, tokens=2, steps=3, millis=4, hops=5, estimated=6)


def test_amounts_add_and_subtract_exactly() -> None:
    assert SOME.plus(SOME) == Amounts(money=2, tokens=4, steps=6, millis=8, hops=10, estimated=12)
    assert SOME.plus(SOME).minus(SOME) == SOME


def test_nothing_changes_nothing() -> None:
    assert SOME.plus(NOTHING) is SOME
    assert NOTHING.plus(SOME) is SOME
    assert SOME.minus(NOTHING) is SOME
    assert NOTHING.minus(SOME).plus(SOME) == NOTHING


@pytest.mark.parametrize("name", ["money", "tokens", "steps", "millis", "hops"])
def test_a_limit_holds_up_to_its_value_and_is_named_when_it_breaks(name: str) -> None:
    limits = Limits(**{name: 3})
    assert limits.exceeded_by(Amounts(**{name: 3})) is None
    assert limits.exceeded_by(Amounts(**{name: 4})) == name


def test_without_limits_nothing_is_exceeded() -> None:
    assert UNLIMITED.exceeded_by(SOME) is None


def test_what_is_left_of_limits_is_never_negative_and_no_limit_stays_none() -> None:
    left = Limits(money=100, tokens=None, millis=50, steps=7).minus(Amounts(money=30, tokens=9, millis=80, steps=5))
    assert left == Limits(money=70, tokens=None, millis=0, steps=7)
