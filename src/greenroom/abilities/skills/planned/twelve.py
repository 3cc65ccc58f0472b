"""All twelve skills of agents that plan, made for one another. A thirteenth is a `Skill` and its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.skills.compact import Compact
from greenroom.abilities.skills.planned.asking import House, PlannedSkill
from greenroom.abilities.skills.planned.skill import Skill
from greenroom.abilities.skills.planned.skills.agent_manager import AGENT_MANAGER
from greenroom.abilities.skills.planned.skills.ask_info import ASK_INFO
from greenroom.abilities.skills.planned.skills.instruction_generation import INSTRUCTION_GENERATION
from greenroom.abilities.skills.planned.skills.planning import PLANNING
from greenroom.abilities.skills.planned.skills.process_message import PROCESS_MESSAGE
from greenroom.abilities.skills.planned.skills.quick_think import QUICK_THINK
from greenroom.abilities.skills.planned.skills.reflection import REFLECTION
from greenroom.abilities.skills.planned.skills.send_message import SEND_MESSAGE
from greenroom.abilities.skills.planned.skills.summary import SUMMARY
from greenroom.abilities.skills.planned.skills.task_manager import TASK_MANAGER
from greenroom.abilities.skills.planned.skills.think import THINK
from greenroom.abilities.skills.planned.skills.tool_decision import TOOL_DECISION
from greenroom.abilities.skills.planned.windows import PLANS
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.reading import AnswerReader

TWELVE: Final = (
    PLANNING,
    REFLECTION,
    SUMMARY,
    INSTRUCTION_GENERATION,
    THINK,
    QUICK_THINK,
    SEND_MESSAGE,
    PROCESS_MESSAGE,
    TASK_MANAGER,
    AGENT_MANAGER,
    ASK_INFO,
    TOOL_DECISION,
)


def planned(
    models: Models,
    tools: Sequence[ToolSpec] = (),
    *,
    reader: AnswerReader,
    project: str = "",
    more: Sequence[Skill] = (),
) -> tuple[Executor, ...]:
    """The twelve, `more` of one's own, and what sums up a talk that has become too long.

    `tools` are what the house has; `project` is what the workspace says.
    """
    skills = {one.name: one for one in (*TWELVE, *more)}
    house = House(tools={tool.name: tool for tool in tools}, skills=skills, reader=reader, project=project)
    return (*(PlannedSkill(one, models, house) for one in skills.values()), Compact(models, {"plan": PLANS}))
