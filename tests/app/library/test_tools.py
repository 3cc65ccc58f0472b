"""`@tool`: a function as a tool."""

from typing import Annotated

import pytest
from msgspec import Meta

from greenroom import Bench, Tool, WorldFault, tool
from greenroom.core.ports.executor import Outcome


@tool
def weather(city: str, days: int = 1, *, units: Annotated[str, Meta(pattern="^[CF]$")] = "C") -> str:
    """Tell the weather.

    Use it for the days to come.

    Args:
        city: Its English name.
        days (int): How many days,
            at most ten.

    Returns:
        A sentence.
    """
    return f"{city} {days} {units}"


def test_a_model_is_told_what_stands_in_the_docstring_and_the_hints() -> None:
    spec = weather.spec
    assert spec.name == "weather"
    assert spec.description == "Tell the weather.\n\nUse it for the days to come."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its English name."},
            "days": {"type": "integer", "description": "How many days,", "default": 1},
            "units": {"type": "string", "pattern": "^[CF]$", "default": "C"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_people_call_it_as_before() -> None:
    assert weather("Oslo", 2, units="F") == "Oslo 2 F"


def test_sphinx_docstrings_are_read_too() -> None:
    @tool(name="look-up", effect="pure")
    def look(word: str) -> str:
        """Look a word up.

        :param word: What to look up.
        """
        return word

    assert look.name == "look-up"
    assert look.effect == "pure"
    assert look.spec.description == "Look a word up."
    assert look.spec.parameters["properties"] == {"word": {"type": "string", "description": "What to look up."}}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: _documented(lambda x: x), "is no name for a tool"),
        (lambda: tool(_silent), "has no docstring"),
        (lambda: tool(_untyped), "'x' of the tool '_untyped' has no type hint"),
        (lambda: tool(_open), "only fill in parameters that have a name"),
        (lambda: tool(_odd), "cannot be told to a model"),
        (lambda: tool(_lost), "cannot be read: name 'Nowhere' is not defined"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(WorldFault, match=said):
        make()


def _documented(function: object) -> Tool[..., object]:
    assert callable(function)
    function.__doc__ = "A function without a name."
    return Tool(function)


def _silent(x: int) -> int:
    return x


def _untyped(x: int) -> int:
    """Say."""
    return x


del _untyped.__annotations__["x"]


def _open(*args: int) -> int:
    """Say."""
    return sum(args)


def _odd(x: Bench, y: "type[int]", z: Outcome) -> None:
    """Say."""


def _lost(x: int) -> None:
    """Say."""


_lost.__annotations__["x"] = "Nowhere"
