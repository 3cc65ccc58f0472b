"""tool_decision: after a call of a long-tail tool, whether to go on with it and where to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from greenroom.abilities.skills.planned.chain import chain
from greenroom.abilities.skills.planned.history import of_stage
from greenroom.abilities.skills.planned.schemas import fields_of, one_of
from greenroom.abilities.skills.planned.skill import TEXT, Answer, Meant, Moment, Skill
from greenroom.abilities.skills.planned.works import filling
from greenroom.core.base.errors import ModelFault
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Work

CALLS: Final = 50
"""How often a tool may be used in one go, if the agent's spec does not say: then it has to look back."""

SHAPE: Final = fields_of(decision=one_of("continue", "end"), direction=TEXT)


def _meaning(moment: Moment, answer: Answer) -> Meant:
    """To go on is an instruction and a call, before everything else. To end is nothing."""
    said = cast("Mapping[str, str]", answer.value)
    name, direction = moment.step.work.text_content.strip(), said["direction"].strip()
    value = {"tool_name": name, "decision": said["decision"], "direction": direction}
    if said["decision"] == "end":
        return Meant(value=value)
    if _calls(moment, name) >= (moment.spec.turn.rounds or CALLS):
        return Meant(value={**value, "decision": "end"}, more={"limit": "It was used as often in a row as it may be."})
    if not direction:
        raise ModelFault("To go on, say in `direction` what the next call is to achieve.")
    call = Work(type="tool", executor=name, intention=f"Go on with {name}.", text_content=direction)
    queued = QueueSteps(agent_id=moment.agent.agent_id, works=(filling(call), call), place="next")
    return Meant(value=value, intents=(queued,))


def _calls(moment: Moment, tool: str) -> int:
    """How often it was used in this go."""
    return sum(one.work.type == "tool" for one in chain(of_stage(moment.history, moment.step), tool))


TOOL_DECISION: Final = Skill(
    name="tool_decision",
    tag="tool_decision",
    key="tool_decision",
    said="Tool Decision",
    order="tool_history",
    shape=lambda _: SHAPE,
    meaning=_meaning,
)
