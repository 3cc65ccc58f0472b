"""summary: the agent's part of a stage is over, and how it went. The only skill that says "finished"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from greenroom.abilities.skills.planned.schemas import fields_of, one_of
from greenroom.abilities.skills.planned.skill import TEXT, Answer, Meant, Moment, Skill
from greenroom.core.base.errors import ModelFault
from greenroom.core.rules.intents import UpdateStageAgentCompletion, UpdateStageAgentState

SHAPE: Final = fields_of(completion_summary=TEXT, state=one_of("finished", "failed"))


def _meaning(moment: Moment, answer: Answer) -> Meant:
    said = cast("Mapping[str, str]", answer.value)
    text, state = said["completion_summary"].strip(), said["state"]
    if not text:
        raise ModelFault("The completion_summary is empty. Say what was done.")
    more = {"state": state}
    if moment.stage is None or moment.member is None:
        return Meant(value=text, more=more)
    stage, agent = moment.stage.stage_id, moment.agent.agent_id
    completed = UpdateStageAgentCompletion(stage_id=stage, agent_id=agent, completion_summary=text)
    ended = UpdateStageAgentState(stage_id=stage, agent_id=agent, state="finished" if state == "finished" else "failed")
    return Meant(value=text, more=more, intents=(completed, ended))


SUMMARY: Final = Skill(
    name="summary",
    tag="summary",
    key="summary",
    said="summary",
    order="history",
    shape=lambda _: SHAPE,
    meaning=_meaning,
)
