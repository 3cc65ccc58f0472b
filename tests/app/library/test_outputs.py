"""Typed answers: unions, plain text where a text is wanted, and validators that send an answer back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from greenroom import Agent, Context, Greenroom, ModelCard, ModelFault, ModelRequest, WorldFault, tool
from greenroom.app.function_tool import adapt_type
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says


@dataclass
class Fact:
    city: str
    people: int


@dataclass
class Refusal:
    city: str
    reason: str


class Town(BaseModel):
    name: str


class River(BaseModel):
    length: float


class Price(TypedDict):
    dollars: float


class Offer(TypedDict):
    euros: float
    until: NotRequired[str]


class Left(msgspec.Struct):
    left: int


class Right(msgspec.Struct):
    right: int


@dataclass
class Report:
    subject: Fact | Refusal
    places: list[Town | River] = field(default_factory=list)


class Basket(TypedDict):
    item: Town | River
    gift: NotRequired[Fact | Town]


class Journey(msgspec.Struct, rename="camel"):
    """Where a person goes."""

    first_stop: Town | River
    days_off: Annotated[int, msgspec.Meta(ge=1, description="How many.")] = 2


@dataclass
class Trip:
    stops: Annotated[list[Town | River], msgspec.Meta(min_length=1, description="At least one.")]
    days: Annotated[int, msgspec.Meta(ge=1, description="How many.")]
    price: Annotated[Town | Price | None, msgspec.Meta(description="What it costs.")] = None


class Plan(TypedDict, total=False):
    stop: Required[Town | River]
    days: Annotated[int, msgspec.Meta(ge=1)]


@dataclass
class Family:
    name: Fact | Refusal
    children: list[Family] = field(default_factory=list)


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (Fact | Refusal, {"city": "Ur", "reason": "gone"}, Refusal("Ur", "gone")),
        (Town | River, {"length": 5.0}, River(length=5.0)),
        (Price | Offer, {"euros": 2.5}, {"euros": 2.5}),
        (Left | Right, {"right": 1}, Right(1)),
        (Fact | Town | None, None, None),
        (Fact | Town, {"name": "Ur"}, Town(name="Ur")),
        (Town | str, "none", "none"),
        (str | Town, {"name": "Ur"}, Town(name="Ur")),
        (list[Fact | Town], [{"name": "Ur"}, {"city": "Ur", "people": 3}], [Town(name="Ur"), Fact("Ur", 3)]),
        (dict[str, Town | River], {"a": {"length": 1}}, {"a": River(length=1)}),
        (tuple[Town | River, ...], [{"name": "Ur"}], (Town(name="Ur"),)),
        (Town | Literal["none"], "none", "none"),
        (Report, {"subject": {"city": "Ur", "reason": "gone"}}, Report(Refusal("Ur", "gone"))),
        (
            list[Report],
            [{"subject": {"city": "Ur", "people": 1}, "places": [{"length": 2}]}],
            [Report(Fact("Ur", 1), [River(length=2)])],
        ),
        (Basket, {"item": {"length": 2}}, {"item": River(length=2)}),
        (set[int] | list[str], ["a"], ["a"]),
        (Journey, {"firstStop": {"length": 2}}, Journey(River(length=2))),
        (list[Journey], [{"firstStop": {"name": "Ur"}, "daysOff": 3}], [Journey(Town(name="Ur"), 3)]),
        (Journey | Town, {"firstStop": {"name": "Ur"}}, Journey(Town(name="Ur"))),
        (Trip, {"stops": [{"length": 2}], "days": 1}, Trip([River(length=2)], 1)),
        (Plan, {"stop": {"length": 2}}, {"stop": River(length=2)}),
    ],
)
def test_a_union_takes_the_first_member_that_fits(kind: object, data: object, value: object) -> None:
    assert adapt_type(kind).validate(data) == value


def test_the_schema_of_a_union_names_its_members() -> None:
    schema: Any = adapt_type(list[Fact | Town | str]).schema
    assert [member.get("title", member["type"]) for member in schema["items"]["anyOf"]] == ["Fact", "Town", "string"]
    assert "$ref" not in str(schema)


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        (Trip, {"stops": [], "days": 1}, "length >= 1"),
        (Trip, {"stops": [{"length": 2}], "days": 0}, r"`int` >= 1 - at `\$\.days`"),
        (Journey, {"firstStop": {"length": 2}, "daysOff": 0}, r"`int` >= 1 - at `\$\.daysOff`"),
        (Plan, {"days": 1}, "missing required field `stop`"),
        (Plan, {"stop": {"length": 2}, "days": 0}, "`int` >= 1"),
    ],
)
def test_constraints_count_beside_unions(kind: object, data: object, why: str) -> None:
    with pytest.raises(ModelFault, match=why):
        adapt_type(kind).validate(data)


def test_descriptions_and_constraints_are_in_the_schema_beside_unions() -> None:
    trip: Any = adapt_type(Trip).schema
    assert [trip["properties"][name]["description"] for name in ("stops", "days", "price")] == [
        "At least one.",
        "How many.",
        "What it costs.",
    ]
    assert (trip["properties"]["stops"]["minItems"], trip["properties"]["days"]["minimum"]) == (1, 1)
    assert adapt_type(Journey).schema["description"] == "Where a person goes."
    assert not any("description" in adapt_type(kind).schema for kind in (Trip, Plan, Report))


def test_a_class_that_contains_itself_and_a_union_is_refused_in_words() -> None:
    with pytest.raises(WorldFault, match="Family cannot be described to a model: Family contains itself and a union"):
        adapt_type(Family)


async def test_a_tool_takes_a_union_of_classes_and_nothing_unknown() -> None:
    taken: list[object] = []

    @tool(effect="pure")
    def look(place: Town | River, many: int = 2) -> str:
        """Look at a place."""
        taken.append((place, many))
        return "Seen."

    model = Played(
        in_order(calls("look", place={"length": 2}), calls("look", "c2", place={"name": "Ur"}, what=1), says("Done."))
    )
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(Agent("guide", tools=[look], model=model), "Look.")).output == "Done."
    assert taken == [(River(length=2), 2)]
    assert "'what' was unexpected" in model.asked[2].messages[-1].content


def test_a_member_that_knows_all_fields_is_preferred() -> None:
    @dataclass
    class Short:
        city: str

    assert adapt_type(Short | Refusal).validate({"city": "Ur", "reason": "gone"}) == Refusal("Ur", "gone")
    assert adapt_type(Short | Refusal).validate({"city": "Ur"}) == Short("Ur")


def test_what_fits_no_member_says_why_and_where() -> None:
    with pytest.raises(ModelFault, match=r"Fact: .*`people`.*; Town: .*at `\$\[1\]`"):
        adapt_type(list[Fact | Town]).validate([{"name": "Ur"}, {"city": "Ur"}])


def test_a_type_without_a_json_form_in_a_union_is_refused() -> None:
    with pytest.raises(WorldFault, match="has no JSON form"):
        adapt_type(Fact | Town | type(pytest))


async def test_an_answer_by_call_is_the_member_that_fits() -> None:
    model = Played(in_order(calls("answer", value={"city": "Ur", "reason": "gone"})))
    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(Agent("guide", output_type=Fact | Refusal, model=model), "Ur?")
    assert result.output == Refusal("Ur", "gone")
    parameters: Any = model.asked[0].tools[0].parameters
    assert [member["title"] for member in parameters["properties"]["value"]["anyOf"]] == ["Fact", "Refusal"]


@pytest.mark.parametrize(
    ("text", "output"),
    [("I do not know.", "I do not know."), ('{"name": "Ur"}', Town(name="Ur")), ('"quoted"', "quoted")],
)
async def test_plain_text_is_the_text_of_a_union_with_str(text: str, output: object) -> None:
    model = Played(in_order(says(text)))
    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(Agent("guide", output_type=Town | str, model=model), "Ur?")
        async with greenroom.chat(Agent("guide", output_type=Town | str, model=model)) as conversation:
            said = await conversation.send("Ur?")
    assert result.output == said.output == output
    assert len(model.asked) == 2


async def test_an_answer_beside_its_field_is_read_and_never_nothing() -> None:
    """Without `value`, the arguments are the answer if they fit; an empty call is sent back."""
    model = Played(in_order(calls("answer"), calls("answer", city="Paris", people=1)))
    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(Agent("clerk", output_type=Fact | None, model=model), "Who?")
    assert result.output == Fact(city="Paris", people=1)


async def test_plain_text_is_no_answer_where_only_a_class_is_wanted() -> None:
    model = Played(in_order(says("I do not know."), calls("answer", length=1)))
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(Agent("guide", output_type=River, model=model), "Nile?")).output == River(length=1)


async def test_a_model_without_calls_gets_an_object_as_its_schema() -> None:
    model = Played(in_order(says('{"value": {"length": 3}}')))
    model.card = ModelCard(tools=False)
    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(Agent("guide", output_type=Town | River, model=model), "Nile?")
    assert result.output == River(length=3)
    schema: Any = model.asked[0].schema
    assert (schema["type"], list(schema["properties"])) == ("object", ["value"])


def known(fact: Fact) -> None:
    if fact.city != "Ur":
        raise ModelFault(f"{fact.city} is not on the list. Take Ur.")


async def doubled(fact: Fact) -> Fact:
    return Fact(fact.city, 2 * fact.people)


async def test_a_validator_sends_an_answer_back_with_its_reason() -> None:
    model = Played(in_order(calls("answer", city="Uruk", people=1), calls("answer", "c2", city="Ur", people=2)))
    agent = Agent("guide", output_type=Fact, output_validators=[known], model=model)
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(agent, "Ur?")).output == Fact("Ur", 2)
    assert "Uruk is not on the list. Take Ur." in model.asked[1].messages[-1].content


async def test_a_validator_may_change_the_answer_also_in_a_conversation() -> None:
    agent = Agent(
        "guide",
        output_type=Fact,
        output_validators=[known, doubled],
        model=Played(lambda _: calls("answer", city="Ur", people=2)),
    )
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(agent, "Ur?")).output == Fact("Ur", 4)
        async with greenroom.chat(agent) as conversation:
            assert (await conversation.send("Ur?")).output == Fact("Ur", 4)
            assert (await conversation.turns())[0].answer == '{"city":"Ur","people":4}'


async def test_a_validator_may_return_models_inside_other_types() -> None:
    agent = Agent(
        "guide",
        output_type=list[Town | River],
        output_validators=[lambda places: [*places, Town(name="Ur")]],
        model=Played(lambda _: calls("answer", value=[{"length": 2}])),
    )
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(agent, "Where?")).output == [River(length=2), Town(name="Ur")]


async def test_an_answer_that_a_validator_never_accepts_is_the_models_fault() -> None:
    model = Played(lambda _: calls("answer", city="Uruk", people=1))
    agent = Agent("guide", output_type=Fact, output_validators=[known], output_retries=1, model=model)
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(ModelFault, match=r"2 times in a row: Uruk is not on the list"):
            await greenroom.run(agent, "Ur?")
    assert len(model.asked) == 2


async def test_a_rejected_answer_of_a_union_with_str_does_not_become_a_text() -> None:
    def refuse(output: Town | str) -> None:
        if isinstance(output, Town):
            raise ModelFault("Say it in words.")

    model = Played(in_order(says('{"name": "Ur"}'), says("A town.")))
    agent = Agent("guide", output_type=Town | str, output_validators=[refuse], model=model)
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(agent, "Ur?")).output == "A town."


async def test_a_validator_checks_plain_text_too_and_gets_the_context() -> None:
    async def short(text: str, most: Context[int]) -> str:
        if len(text) > most:
            raise ModelFault(f"At most {most} characters.")
        return text.upper()

    model = Played(in_order(says("Far too long."), says("Short.")))
    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(Agent("guide", output_validators=[short], model=model), "Ur?", context=8)
    assert (result.output, result.text) == ("SHORT.", "SHORT.")


async def test_a_validator_of_a_called_agent_counts_there() -> None:
    clerk = Agent(
        "clerk",
        output_type=Fact,
        output_validators=[known],
        model=Played(in_order(calls("answer", city="Uruk", people=1), calls("answer", "c2", city="Ur", people=2))),
    )

    def lead(request: ModelRequest) -> Answer:
        told = [message.content for message in request.messages if message.role == "tool"]
        return says(told[0]) if told else calls("clerk", question="Which city?")

    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(Agent("lead", agents=[clerk], model=Played(lead)), "Well?")
    assert result.output == '{"city":"Ur","people":2}'


def broken(_: str) -> None:
    raise KeyError("no such town")


def unusable(_: str) -> object:
    return object()


def offline(_: str) -> None:
    raise WorldFault("The map is offline.")


@pytest.mark.parametrize(
    ("validator", "why"),
    [
        (broken, r"^The output validator `broken` of 'guide' failed: KeyError: 'no such town'\.$"),
        (unusable, "^The output validator `unusable` of 'guide' failed: TypeError: a object has no JSON form"),
        (offline, "^The map is offline.$"),
    ],
)
async def test_a_validator_that_fails_is_named_and_not_the_model(
    validator: Callable[[str], object], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("guide", output_validators=[validator], model=Played(lambda _: says("Ur.")))
    async with Greenroom(in_memory=True) as greenroom:
        twice = await asyncio.gather(*(greenroom.run(agent, "Ur?") for _ in range(2)), return_exceptions=True)
        assert [type(error) for error in twice] == [WorldFault] * 2
        with pytest.raises(WorldFault, match=why) as raised:
            await greenroom.run(agent, "Ur?")
        assert raised.value.run_id == (await greenroom.runs())[0].run_id
        async with greenroom.chat(agent) as conversation:
            with pytest.raises(WorldFault, match=why):
                await conversation.send("Ur?")
    assert (raised.value.__cause__ is None) == (validator is offline), "its traceback is there for the program"
    assert not caplog.records


async def test_a_validator_may_change_the_answer_in_place() -> None:
    def fix(fact: Fact) -> Fact:
        fact.people += 1
        return fact

    def fix_silently(fact: Fact) -> None:
        fact.people *= 10

    model = Played(lambda _: calls("answer", city="Ur", people=2))
    agent = Agent("guide", output_type=Fact, output_validators=[fix, fix_silently], model=model)
    async with Greenroom(in_memory=True) as greenroom:
        result = await greenroom.run(agent, "Ur?")
    assert (result.output, result.text) == (Fact("Ur", 30), '{"city":"Ur","people":30}')


class Named(BaseModel):
    own_name: str = Field(alias="ownName")


@pytest.mark.parametrize("new_name", ["Ur", "Uruk"])
async def test_a_validated_model_keeps_the_names_of_its_schema(new_name: str) -> None:
    def rename(named: Named) -> None:
        named.own_name = new_name

    model = Played(lambda _: calls("answer", ownName="Ur"))
    agent = Agent("guide", output_type=Named, output_validators=[rename], model=model)
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(agent, "Ur?")).output.own_name == new_name
