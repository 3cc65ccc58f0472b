"""Constraints of pydantic and msgspec in the types of answers and of tools' arguments."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, NewType, TypedDict

import annotated_types
import msgspec
import pytest
from pydantic import AfterValidator, BaseModel, Field, PositiveInt, StringConstraints
from pydantic.dataclasses import dataclass as pydantic_dataclass

from greenroom import Agent, Greenroom, ModelFault, WorldFault, tool
from greenroom.app.function_tool import adapt_type
from tests.abilities.skills.talks import Played, calls, in_order, says

Many = Annotated[int, Field(gt=3)]
MetaMany = Annotated[int, msgspec.Meta(gt=3)]
NewMany = NewType("NewMany", PositiveInt)


@dataclass
class Fact:
    n: Many


@dataclass
class MetaFact:
    n: MetaMany


class Leaf(BaseModel):
    n: Many


@dataclass
class Tree:
    """A class that contains itself and a pydantic model, which is no constraint."""

    leaf: Leaf
    trees: list[Tree]


@dataclass
class Facts:
    all: list[Fact]


@dataclass
class Refusal:
    why: str


class Table(TypedDict):
    n: Many


class Row(NamedTuple):
    n: Many


class Left(msgspec.Struct):
    n: Many


@pydantic_dataclass
class Checked:
    n: int = Field(gt=3)


class Box(BaseModel):
    n: Many


@dataclass
class Family:
    size: Many
    parts: list[Family]


class Thing:
    """Has no JSON form."""


def is_even(value: int) -> int:
    """Return an even number."""
    if value % 2:
        raise ValueError("odd")
    return value


@pytest.mark.parametrize(
    ("kind", "bad", "good", "value"),
    [
        (Many, 1, 5, 5),
        (MetaMany, 2, 5, 5),
        (PositiveInt, -1, 1, 1),
        (NewMany, -1, 1, 1),
        (Annotated[int, annotated_types.Gt(3)], 3, 4, 4),
        (Annotated[int, AfterValidator(is_even)], 5, 6, 6),
        (Annotated[str, StringConstraints(pattern="^a")], "b", "a", "a"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], [1], [1]),
        (list[Many], [5, 1], [5], [5]),
        (list[MetaMany], [5, 1], [5], [5]),
        (tuple[str, Many], ["a", 1], ["a", 5], ("a", 5)),
        (tuple[MetaMany, ...], [1], [5], (5,)),
        (dict[str, Many], {"a": 1}, {"a": 5}, {"a": 5}),
        (Many | None, 1, None, None),
        (Fact, {"n": 1}, {"n": 5}, Fact(5)),
        (MetaFact, {"n": 1}, {"n": 5}, MetaFact(5)),
        (Facts, {"all": [{"n": 1}]}, {"all": [{"n": 5}]}, Facts([Fact(5)])),
        (Fact | Refusal, {"n": 1}, {"n": 5}, Fact(5)),
        (Table, {"n": 1}, {"n": 5}, {"n": 5}),
        (Row, [1], [5], Row(5)),
        (Left, {"n": 1}, {"n": 5}, Left(5)),
        (Checked, {"n": 1}, {"n": 5}, Checked(5)),
        (list[Checked | Box], [{"n": 1}], [{"n": 5}], [Checked(5)]),
    ],
)
def test_a_constraint_counts_wherever_it_is(kind: object, bad: object, good: object, value: object) -> None:
    adapter = adapt_type(kind)
    with pytest.raises(ModelFault) as refused:
        adapter.validate(bad)
    assert "``" not in str(refused.value)
    assert adapter.validate(good) == value


def test_a_class_may_contain_itself_and_a_pydantic_model() -> None:
    read = adapt_type(Tree).validate({"leaf": {"n": 4}, "trees": [{"leaf": {"n": 5}, "trees": []}]})
    assert read == Tree(Leaf(n=4), [Tree(Leaf(n=5), [])])


@pytest.mark.parametrize("kind", [Many, list[Many], Fact, Fact | Refusal, Left, Checked, Row])
def test_the_model_reads_the_constraint(kind: object) -> None:
    assert "'exclusiveMinimum': 3" in str(adapt_type(kind).schema)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Family, "Family contains itself and a union or constraint"),
        (
            list[Annotated[Thing, Field(description="Some thing.")]],
            "Unable to generate pydantic-core schema for .*Thing",
        ),
        (Annotated[int, msgspec.Meta(gt=3), Field(lt=10)], "Can only set `gt` on a numeric type"),
    ],
)
def test_a_constraint_that_cannot_be_checked_is_refused_in_one_line(kind: Any, why: str) -> None:
    with pytest.raises(WorldFault, match=f"cannot be described to a model: .*{why}") as refused:
        Agent("ann", output_type=kind)
    assert "\n" not in str(refused.value)


def test_a_constraint_without_pydantic_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic")
    with pytest.raises(WorldFault, match=r"only pydantic checks .*Gt\(gt=3\).*Import pydantic, or use msgspec\.Meta"):
        Agent("ann", output_type=Annotated[int, annotated_types.Gt(3)])


def test_words_beside_a_type_are_no_constraint() -> None:
    assert adapt_type(Annotated[str, "a city"]).schema == {"type": "string"}


async def test_the_model_is_asked_again_and_a_tool_is_not_called() -> None:
    taken: list[int] = []

    @tool(effect="pure")
    def take(many: Many) -> str:
        """Take some.

        Args:
            many: How many.
        """
        taken.append(many)
        return "Taken."

    assert take.spec.parameters["properties"] == {
        "many": {"type": "integer", "exclusiveMinimum": 3, "description": "How many."}
    }
    model = Played(in_order(calls("take", many=1), calls("take", "c2", many=4), says("1"), says("5")))
    agent = Agent("ann", output_type=Many, tools=[take], model=model)
    async with Greenroom(in_memory=True) as house:
        assert (await house.run(agent, "Take.")).output == 5
    assert taken == [4]
