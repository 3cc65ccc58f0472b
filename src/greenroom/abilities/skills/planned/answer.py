"""What a model answers: JSON Schemas, whom a name means, and from a plan to steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from greenroom.abilities.skills.planned.skill import NOT_PLANNED, TEXT, Moment
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data
from greenroom.core.state.agent import Agent
from greenroom.core.state.step import Work, lacks_instruction

NULL: Final[Data] = {"type": "null"}
MEMORY: Final[Data] = {"type": "string"}

_KNOWN: Final = frozenset(
    {
        *("type", "properties", "required", "items", "enum", "const", "anyOf"),
        *("description", "title", "additionalProperties"),
    }
)
"""Keywords that every provider takes in a strict schema."""


def strict(schema: Data) -> Data | None:
    """The same schema as strict output wants it: every field is there, and no other. None if it cannot be said so.

    What may be missing may then be null: see `without_nulls`.
    """
    if not _KNOWN.issuperset(schema):
        return None
    if "anyOf" in schema:
        choices = [strict(one) for one in _maps(schema["anyOf"])]
        return None if None in choices else {**schema, "anyOf": choices}
    if schema.get("type") == "array":
        items = schema.get("items")
        inner = strict(cast("Data", items)) if isinstance(items, Mapping) else None
        return None if inner is None else {**schema, "items": inner}
    return _closed(schema) if schema.get("type") == "object" else schema


def _closed(schema: Data) -> Data | None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties or schema.get("additionalProperties", False) is not False:
        return None
    required = cast("Sequence[object]", schema.get("required", ()))
    found: dict[str, Data] = {}
    for name, one in properties.items():
        inner = strict(one) if isinstance(one, Mapping) else None
        if inner is None:
            return None
        found[name] = inner if name in required else {"anyOf": [inner, NULL]}
    return {**schema, "properties": found, "required": list(found), "additionalProperties": False}


def enclosed(schema: Data) -> Data:
    """What a structured reply is: the answer, and what is to be kept for good."""
    fields = {"answer": schema, "persistent_memory": MEMORY}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def without_nulls(value: object) -> object:
    """The value without fields that are null: a strict schema has no other way to leave one out."""
    if isinstance(value, Mapping):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def check(moment: Moment, schema: Data, value: object) -> None:
    """`ModelFault` says where an answer does not fit. Of several forms it is held against the one that it names."""
    misfit = moment.reader.misfit(_form(schema, value), value)
    if misfit:
        raise ModelFault(f"Your answer does not fit: {misfit}.")


def _form(schema: Data, value: object) -> Data:
    if "anyOf" not in schema:
        return schema
    forms: dict[str, Data] = {}
    for one in _maps(schema["anyOf"]):
        properties = cast("Mapping[str, Data]", one.get("properties", {}))
        for name in cast("Sequence[object]", properties.get("action", {}).get("enum", ())):
            forms[str(name)] = one
    action = value.get("action") if isinstance(value, Mapping) else None
    if str(action) not in forms:
        raise ModelFault(f"There is no action {action!r}. Choose one: {', '.join(forms)}.")
    return forms[str(action)]


def _maps(value: object) -> list[Data]:
    return [cast("Data", one) for one in cast("Sequence[object]", value) if isinstance(one, Mapping)]


def form(action: str, **fields: Data) -> Data:
    """One form of an answer that has several: its action and its fields, all of which are wanted."""
    return fields_of(action={"type": "string", "enum": [action]}, **fields)


def fields_of(**fields: Data) -> Data:
    """An object with these fields, all of which are wanted."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def list_of(item: Data) -> Data:
    """A list of such."""
    return {"type": "array", "items": item}


def one_of(*words: str) -> Data:
    """One of these words."""
    return {"type": "string", "enum": list(words)}


def agents(moment: Moment, names: Iterable[object], among: Iterable[AgentId] | None = None) -> tuple[AgentId, ...]:
    """The agents of these names, each once; `ModelFault` lists who there is. Without `among` all of the house."""
    known = moment.world.agents
    there = [known[one] for one in (sorted(known) if among is None else among) if one in known]
    return tuple(dict.fromkeys(_agent(str(name).strip(), there) for name in names))


def _agent(name: str, there: list[Agent]) -> AgentId:
    for one in there:
        if one.agent_id == name:
            return one.agent_id
    called = [one.agent_id for one in there if one.spec.name == name]
    if len(called) == 1:
        return called[0]
    listed = ", ".join(f"{one.agent_id} ({one.spec.name})" for one in there) or "nobody"
    why = f"{len(called)} agents are called {name!r}" if called else f"There is no {name!r} here"
    raise ModelFault(f"{why}. Use an agent's id: {listed}.")


FILLS: Final = "instruction_generation"
MOST: Final = 50
"""Steps of one plan."""

STEPS: Final[Data] = list_of(
    fields_of(step_intention=TEXT, type=one_of("skill", "tool"), executor=TEXT, text_content=TEXT)
)
"""What a plan looks like."""


def works(moment: Moment, plan: object, *, also: frozenset[str] = frozenset()) -> tuple[Work, ...]:
    """The steps of a plan; `ModelFault` says which one cannot be and why. `also` are skills that it may have too."""
    steps = cast("Sequence[Mapping[str, object]]", plan)
    if len(steps) > MOST:
        raise ModelFault(f"The plan has {len(steps)} steps; {MOST} is the most. Plan less, and plan again later.")
    return tuple(_filled([_work(moment, number, one, also) for number, one in enumerate(steps, start=1)]))


def _work(moment: Moment, number: int, step: Mapping[str, object], also: frozenset[str]) -> Work:
    name = str(step["executor"]).strip()
    if name in NOT_PLANNED - also:
        raise ModelFault(f"Step {number}: {name!r} cannot be planned. {WHY[name]}")
    given: Data | None = None
    is_skill = name in (*moment.may_plan, *also)
    if not is_skill:
        if name not in moment.spec.tools:
            skills, tools = ", ".join(moment.may_plan), ", ".join(moment.spec.tools) or "none"
            raise ModelFault(f"Step {number}: you have no {name!r}. Your skills: {skills}. Your tools: {tools}.")
        found = step.get("instruction_content")
        given = cast("Data", found) if isinstance(found, Mapping) and found else None
        if given is not None:
            check_call(moment, name, given, f"Step {number}: ")
    return Work(
        type="skill" if is_skill else "tool",
        executor=name,
        intention=str(step["step_intention"]),
        text_content=str(step["text_content"]),
        instruction_content=given,
    )


WHY: Final = {
    "summary": "It follows by itself when a reflection finds that all is done.",
    "tool_decision": "It follows by itself after a tool that needs one.",
}


def check_call(moment: Moment, tool: str, arguments: Data, where: str = "") -> None:
    """`ModelFault` says where the arguments of a tool do not fit its schema."""
    known = moment.tools.get(tool)
    misfit = moment.reader.misfit(known.parameters, arguments) if known is not None else ""
    if misfit:
        raise ModelFault(f"{where}the instruction does not fit what {tool!r} wants: {misfit}.")


def _filled(plan: Sequence[Work]) -> Iterator[Work]:
    """The plan with a step before each tool step that fills it in, where the plan has forgotten one."""
    spare = 0
    for work in plan:
        if work.executor == FILLS:
            spare += 1
        elif lacks_instruction(work):
            if spare == 0:
                yield filling(work)
            spare = max(0, spare - 1)
        yield work
    if spare:
        raise ModelFault(
            f"A step {FILLS!r} has no tool step behind it that it could fill in. Leave it out, or add one."
        )


def filling(tool: Work) -> Work:
    """The step that fills in a tool step."""
    intention = f"Write the instruction for {tool.executor}."
    return Work(type="skill", executor=FILLS, intention=intention, text_content=tool.text_content)
