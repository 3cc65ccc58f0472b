"""instruction_generation: the concrete instruction of the next tool step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from greenroom.abilities.skills.planned.skill import Answer, Meant, Moment, Skill
from greenroom.abilities.skills.planned.works import check_call
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.intents import ModifyStep

OBJECT: Final[Data] = {"type": "object"}


def _shape(moment: Moment) -> Data:
    """What the tool wants."""
    step = moment.to_fill
    tool = moment.tools.get(step.work.executor) if step is not None else None
    return OBJECT if tool is None else tool.parameters


def _meaning(moment: Moment, answer: Answer) -> Meant:
    step = moment.to_fill
    if step is None:
        return Meant(value={}, more={"nothing_to_fill": True})
    tool = moment.tools.get(step.work.executor)
    if answer.repaired and not (tool is not None and tool.pure):
        raise ModelFault(f"The instruction was not taken: {answer.repaired}. A tool that acts needs valid JSON.")
    given = cast("Mapping[str, object]", answer.value)
    check_call(moment, step.work.executor, given)
    filled = ModifyStep(step_id=step.step_id, work=evolve(step.work, instruction_content=given))
    return Meant(value=given, intents=(filled,))


INSTRUCTION_GENERATION: Final = Skill(
    name="instruction_generation",
    tag="tool_instruction",
    key="instruction_generation",
    said="instruction_generation",
    order="tool",
    shape=_shape,
    meaning=_meaning,
)
