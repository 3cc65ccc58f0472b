"""Records: frozen, and cheap to make the next version of."""

from collections.abc import Callable
from typing import Any

import pytest

from greenroom.core.base.records import evolve, record


@record
class Cup:
    colour: str
    full: bool = False


def test_a_record_does_not_change() -> None:
    cup: Any = Cup(colour="red")
    with pytest.raises(AttributeError):
        cup.colour = "blue"


def test_evolve_changes_what_is_named_and_keeps_the_rest() -> None:
    old = Cup(colour="red")
    assert evolve(old, full=True) == Cup(colour="red", full=True)
    assert old == Cup(colour="red")


def test_evolve_refuses_a_field_that_is_not_there() -> None:
    with pytest.raises(TypeError, match="size"):
        evolve(Cup(colour="red"), size=3)


def test_a_record_refuses_a_field_that_is_missing_or_not_there() -> None:
    make: Callable[..., Cup] = Cup
    with pytest.raises(TypeError, match="colour"):
        make(full=True)
    with pytest.raises(TypeError, match="size"):
        make(colour="red", size=3)
    with pytest.raises(TypeError, match="positional"):
        make("red")


def test_records_are_equal_by_their_fields_and_their_class() -> None:
    red, others = Cup(colour="red"), [Cup(colour="blue"), "red", None]
    assert red == Cup(colour="red")
    assert hash(red) == hash(Cup(colour="red"))
    assert red not in others
