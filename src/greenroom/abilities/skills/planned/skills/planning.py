"""planning: a goal becomes steps."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.skills.planned.skill import Answer, Meant, Moment, Skill
from greenroom.abilities.skills.planned.works import STEPS, works
from greenroom.core.base.errors import ModelFault
from greenroom.core.rules.intents import QueueSteps

NAME: Final = "planning"


def _meaning(moment: Moment, answer: Answer) -> Meant:
    """The steps go to the end of the queue. The house adds a reflection if the plan has none."""
    plan = works(moment, answer.value)
    if not plan:
        raise ModelFault("The plan has no steps. Plan at least one.")
    again = next((number for number, one in enumerate(plan, start=1) if one.executor == NAME), None)
    if again is not None:
        raise ModelFault(f"Step {again}: a plan that only plans again never begins. Write the steps themselves.")
    return Meant(value=answer.value, intents=(QueueSteps(agent_id=moment.agent.agent_id, works=plan),))


PLANNING: Final = Skill(
    name=NAME,
    tag="planned_step",
    key="planned_step",
    said="Planning",
    order="plain",
    shape=lambda _: STEPS,
    meaning=_meaning,
)
