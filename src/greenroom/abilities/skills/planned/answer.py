"""Answers of a model: JSON Schemas, resolving agent names, and turning a plan into steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from greenroom.abilities.skills.planned.skill import TEXT_SCHEMA, UNPLANNABLE_SKILLS, SkillContext
from greenroom.abilities.skills.prompts.builder import wrap_fields
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data
from greenroom.core.state.agent import AgentState
from greenroom.core.state.step import Work, needs_instruction

NULL_SCHEMA: Final[Data] = {"type": "null"}
MEMORY_SCHEMA: Final[Data] = {"type": "string"}

_STRICT_KEYWORDS: Final = frozenset(
    {
        *("type", "properties", "required", "items", "enum", "const", "anyOf"),
        *("description", "title", "additionalProperties"),
    }
)
"""Keywords that every provider accepts in a strict schema."""


def make_strict(schema: Data) -> Data | None:
    """Convert a schema for strict output: all fields required, no others. Return None if that is impossible. Optional
    fields become nullable: see `drop_nulls`."""
    if not _STRICT_KEYWORDS.issuperset(schema):
        return None
    if "anyOf" in schema:
        choices = [make_strict(choice) for choice in _filter_mappings(schema["anyOf"])]
        return None if None in choices else {**schema, "anyOf": choices}
    if schema.get("type") == "array":
        items = schema.get("items")
        inner = make_strict(cast("Data", items)) if isinstance(items, Mapping) else None
        return None if inner is None else {**schema, "items": inner}
    return _close_object(schema) if schema.get("type") == "object" else schema


def _close_object(schema: Data) -> Data | None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties or schema.get("additionalProperties", False) is not False:
        return None
    required = cast("Sequence[object]", schema.get("required", ()))
    found: dict[str, Data] = {}
    for name, property_schema in properties.items():
        inner = make_strict(property_schema) if isinstance(property_schema, Mapping) else None
        if inner is None:
            return None
        found[name] = inner if name in required else {"anyOf": [inner, NULL_SCHEMA]}
    return {**schema, "properties": found, "required": list(found), "additionalProperties": False}


def wrap_schema(schema: Data) -> Data:
    """Build the schema of a structured reply: the answer, and what to keep in memory."""
    return wrap_fields({"answer": schema, "persistent_memory": MEMORY_SCHEMA})


def drop_nulls(value: object) -> object:
    """Remove null fields. A strict schema has no other way to omit a field."""
    if isinstance(value, Mapping):
        return {key: drop_nulls(part) for key, part in value.items() if part is not None}
    return [drop_nulls(part) for part in value] if isinstance(value, list) else value


def check_answer(skill_context: SkillContext, schema: Data, value: object) -> None:
    """Raise `ModelFault` with the place where an answer does not fit. An answer with several forms is checked against
    the form that it names."""
    misfit = skill_context.reader.find_schema_error(_select_form(schema, value), value)
    if misfit:
        raise ModelFault(f"Your answer does not fit: {misfit}.")


def _select_form(schema: Data, value: object) -> Data:
    if "anyOf" not in schema:
        return schema
    forms: dict[str, Data] = {}
    for choice in _filter_mappings(schema["anyOf"]):
        properties = cast("Mapping[str, Data]", choice.get("properties", {}))
        for name in cast("Sequence[object]", properties.get("action", {}).get("enum", ())):
            forms[str(name)] = choice
    action = value.get("action") if isinstance(value, Mapping) else None
    if str(action) not in forms:
        raise ModelFault(f"There is no action {action!r}. Choose one: {', '.join(forms)}.")
    return forms[str(action)]


def _filter_mappings(value: object) -> list[Data]:
    return [cast("Data", part) for part in cast("Sequence[object]", value) if isinstance(part, Mapping)]


def build_form(action: str, **fields: Data) -> Data:
    """Build one form of an answer that has several: its action and its fields, all required."""
    return build_object(action={"type": "string", "enum": [action]}, **fields)


def build_object(**fields: Data) -> Data:
    """Build an object with these fields, all required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def build_list(item: Data) -> Data:
    return {"type": "array", "items": item}


def build_enum(*words: str) -> Data:
    return {"type": "string", "enum": list(words)}


def resolve_agents(
    skill_context: SkillContext, names: Iterable[object], among: Iterable[AgentId] | None = None
) -> tuple[AgentId, ...]:
    """Return the agents with these names, without duplicates. `ModelFault` lists the possible names. Without `among`,
    all agents of the team are possible."""
    known = skill_context.state.agents
    there = [known[agent_id] for agent_id in (sorted(known) if among is None else among) if agent_id in known]
    return tuple(dict.fromkeys(_resolve_agent(str(name).strip(), there) for name in names))


def _resolve_agent(name: str, there: list[AgentState]) -> AgentId:
    for agent in there:
        if agent.agent_id == name:
            return agent.agent_id
    called = [agent.agent_id for agent in there if agent.spec.name == name]
    if len(called) == 1:
        return called[0]
    listed = ", ".join(f"{agent.agent_id} ({agent.spec.name})" for agent in there) or "nobody"
    why = f"{len(called)} agents are called {name!r}" if called else f"There is no {name!r} here"
    raise ModelFault(f"{why}. Use an agent's id: {listed}.")


FILLING_SKILL: Final = "instruction_generation"
MAX_PLAN_STEPS: Final = 50
"""Maximum number of steps in one plan."""

STEPS_SCHEMA: Final[Data] = build_list(
    build_object(
        step_intention=TEXT_SCHEMA, type=build_enum("skill", "tool"), executor=TEXT_SCHEMA, text_content=TEXT_SCHEMA
    )
)
"""The JSON Schema of a plan."""


def build_works(skill_context: SkillContext, plan: object, *, also: frozenset[str] = frozenset()) -> tuple[Work, ...]:
    """Return the steps of a plan. `ModelFault` names the invalid step and the reason. `also` are additional skills that
    the plan may use."""
    steps = cast("Sequence[Mapping[str, object]]", plan)
    if len(steps) > MAX_PLAN_STEPS:
        raise ModelFault(
            f"The plan has {len(steps)} steps; {MAX_PLAN_STEPS} is the most. Plan less, and plan again later."
        )
    return tuple(
        _insert_filling_steps(
            [_build_work(skill_context, number, step, also) for number, step in enumerate(steps, start=1)]
        )
    )


def _build_work(skill_context: SkillContext, number: int, step: Mapping[str, object], also: frozenset[str]) -> Work:
    name = str(step["executor"]).strip()
    if name in UNPLANNABLE_SKILLS - also:
        raise ModelFault(f"Step {number}: {name!r} cannot be planned. {NOT_PLANNED_REASONS[name]}")
    given: Data | None = None
    is_skill = name in (*skill_context.plannable_skills, *also)
    if not is_skill:
        if name not in skill_context.spec.tools:
            skills, tools = ", ".join(skill_context.plannable_skills), ", ".join(skill_context.spec.tools) or "none"
            raise ModelFault(f"Step {number}: you have no {name!r}. Your skills: {skills}. Your tools: {tools}.")
        found = step.get("instruction_content")
        given = cast("Data", found) if isinstance(found, Mapping) and found else None
        if given is not None:
            check_call(skill_context, name, given, f"Step {number}: ")
    return Work(
        type="skill" if is_skill else "tool",
        executor=name,
        intention=str(step["step_intention"]),
        text_content=str(step["text_content"]),
        instruction_content=given,
    )


NOT_PLANNED_REASONS: Final = {
    "summary": "It follows by itself when a reflection finds that all is done.",
    "tool_decision": "It follows by itself after a tool that needs one.",
}


def check_call(skill_context: SkillContext, tool: str, arguments: Data, where: str = "") -> None:
    """Raise `ModelFault` if the arguments of a tool do not match its schema."""
    known = skill_context.tools.get(tool)
    misfit = skill_context.reader.find_schema_error(known.parameters, arguments) if known is not None else ""
    if misfit:
        raise ModelFault(f"{where}the instruction does not fit what {tool!r} wants: {misfit}.")


def _insert_filling_steps(plan: Sequence[Work]) -> Iterator[Work]:
    """Yield the plan with a filling step before each tool step that lacks one."""
    spare = 0
    for work in plan:
        if work.executor == FILLING_SKILL:
            spare += 1
        elif needs_instruction(work):
            if spare == 0:
                yield build_filling_step(work)
            spare = max(0, spare - 1)
        yield work
    if spare:
        raise ModelFault(
            f"A step {FILLING_SKILL!r} has no tool step behind it that it could fill in. Leave it out, or add one."
        )


def build_filling_step(tool: Work) -> Work:
    intention = f"Write the instruction for {tool.executor}."
    return Work(type="skill", executor=FILLING_SKILL, intention=intention, text_content=tool.text_content)
