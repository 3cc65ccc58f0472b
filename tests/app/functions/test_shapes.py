"""Shapes: types of Python as schemas, and data as values of them."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypedDict

import pytest
from pydantic import BaseModel

from greenroom.app.function_tool import adapt_type, format_value, to_json_data
from greenroom.core.base.errors import OutputError, WorldFault


class Colour(Enum):
    """A closed set."""

    RED = "red"


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: int = 0


@dataclass
class Line:
    """Points."""

    points: list[Point]
    colour: Colour = Colour.RED
    next: "Line | None" = None


class Word(TypedDict):
    """A word."""

    text: str


class Model(BaseModel):
    """A pydantic model."""

    name: str
    inner: list[int] = []


def test_a_schema_is_written_out_where_it_does_not_refer_to_itself() -> None:
    schema = adapt_type(Point).schema
    assert schema == {
        "type": "object",
        "description": "Two numbers.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }


def test_what_refers_to_itself_keeps_its_reference_and_what_it_refers_to() -> None:
    schema = adapt_type(Line).schema
    assert schema["type"] == "object"
    defs = schema["$defs"]
    assert isinstance(defs, dict)
    assert set(defs) == {"Line", "Point", "Colour"}


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (int, 3, 3),
        (list[str], ["a"], ["a"]),
        (Literal["a", "b"], "b", "b"),
        (Point, {"x": 1}, Point(x=1)),
        (Line, {"points": [{"x": 1, "y": 2}]}, Line(points=[Point(1, 2)])),
        (Word, {"text": "hi"}, {"text": "hi"}),
        (Model, {"name": "a", "inner": [1]}, Model(name="a", inner=[1])),
        (int | None, None, None),
    ],
)
def test_data_becomes_a_value_of_the_type_and_back(kind: object, data: object, value: object) -> None:
    shape = adapt_type(kind)
    assert shape.validate(data) == value
    assert shape.validate(to_json_data(value)) == value


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (Point, {"x": "one"}, "Expected `int`, got `str` - at `$.x`"),
        (Point, {}, "missing required field `x`"),
        (Model, {"name": 3}, "Input should be a valid string - at `name`"),
        (Literal["a"], "b", "Invalid enum value 'b'"),
    ],
)
def test_what_does_not_fit_says_what_and_where(kind: object, data: object, said: str) -> None:
    with pytest.raises(OutputError, match=said.replace("$", r"\$").replace("[", r"\[")):
        adapt_type(kind).validate(data)


def test_a_type_that_json_does_not_know_is_refused() -> None:
    class Odd:
        pass

    with pytest.raises(WorldFault, match="Odd cannot be described to a model"):
        adapt_type(Odd)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "Done."),
        (3, "3"),
        ([1, {"a": None}], '[1,{"a":null}]'),
        (Point(1), '{"x":1,"y":0}'),
    ],
)
def test_a_model_reads_text_as_it_is_and_all_else_as_json(value: object, text: str) -> None:
    assert format_value(value) == text


def test_what_json_cannot_say_is_said_as_python_does() -> None:
    @dataclass
    class Holder:
        what: object = field(default_factory=lambda: {1, 2}.__iter__)

    assert "Holder" in format_value(Holder())
