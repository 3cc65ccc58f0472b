"""From a plan as a model writes it to steps: what is not allowed is said, what was forgotten is added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from greenroom.abilities.skills.planned.schemas import fields_of, list_of, one_of
from greenroom.abilities.skills.planned.skill import NOT_PLANNED, TEXT, Moment
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.state.step import Work, lacks_instruction

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
    if name in (*moment.may_plan, *also):
        return _made("skill", name, step)
    if name not in moment.may_use:
        skills, tools = ", ".join(moment.may_plan), ", ".join(moment.may_use) or "none"
        raise ModelFault(f"Step {number}: you have no {name!r}. Your skills: {skills}. Your tools: {tools}.")
    given = step.get("instruction_content")
    if not isinstance(given, Mapping) or not given:
        return _made("tool", name, step)
    check_call(moment, name, given, f"Step {number}: ")
    return _made("tool", name, step, given)


WHY: Final = {
    "summary": "It follows by itself when a reflection finds that all is done.",
    "tool_decision": "It follows by itself after a tool that needs one.",
}


def _made(type_: str, name: str, step: Mapping[str, object], given: Data | None = None) -> Work:
    return Work(
        type="tool" if type_ == "tool" else "skill",
        executor=name,
        intention=str(step["step_intention"]),
        text_content=str(step["text_content"]),
        instruction_content=given,
    )


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


def filling(tool: Work, direction: str = "") -> Work:
    """The step that fills in a tool step."""
    text = direction or tool.text_content
    return Work(
        type="skill", executor=FILLS, intention=f"Write the instruction for {tool.executor}.", text_content=text
    )
