"""reflection: look back on what was done; more steps, or the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.skills.planned.history import of_stage
from greenroom.abilities.skills.planned.repairs import ANSWER_TO, asked_by
from greenroom.abilities.skills.planned.skill import PACK, Answer, Meant, Moment, Skill
from greenroom.abilities.skills.planned.works import STEPS, works
from greenroom.abilities.skills.talk.origins import begins, from_people
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, Work

ROUNDS: Final = 20
"""How often an agent may add to its plan, if its spec does not say: then a stage is summed up as it is, and elsewhere
nothing more is done until somebody wants something."""

ANEW: Final = 20
"""How often other agents let one begin anew after a person has spoken: those who only write to each other would
never end, in whichever words."""

SUMMARY: Final = "summary"


def _meaning(moment: Moment, answer: Answer) -> Meant:
    plan = works(moment, answer.value, also=frozenset({SUMMARY}) if moment.stage is not None else frozenset())
    if any(one.executor == SUMMARY for one in plan[:-1]):
        raise ModelFault("A summary ends the stage: nothing comes after it. Put it last, or leave it out.")
    steps = _steps(moment, plan)
    queued = (QueueSteps(agent_id=moment.agent.agent_id, works=steps),) if steps else ()
    return Meant(value=answer.value, intents=queued)


def _steps(moment: Moment, plan: tuple[Work, ...]) -> tuple[Work, ...]:
    """What is added to the plan. In a stage it ends with another look back, or with the summary."""
    enough = bool(plan) and _rounds(moment) >= (moment.spec.turn.rounds or ROUNDS)
    if moment.stage is None:
        return () if enough else plan
    if not plan:
        return () if _goes_on(moment) else (_work(moment, SUMMARY),)
    if enough:
        return (_work(moment, SUMMARY, limit=True),)
    if any(one.executor in (SUMMARY, "reflection") for one in plan):
        return plan
    return (*plan, _work(moment, "reflection"))


def _goes_on(moment: Moment) -> bool:
    """Whether this was not the last look back: a plan may have several, and ends once."""
    mine = moment.world.steps_of(moment.agent.agent_id)
    behind = [one for one in mine if one.thread_id == moment.step.thread_id and one.step_id != moment.step.step_id]
    return any(one.work.executor in (SUMMARY, "reflection") for one in behind)


def _rounds(moment: Moment) -> int:
    """How often it has added something in this stage; outside of one, since somebody last wanted something of it."""
    mine = of_stage(moment.history, moment.step)
    if moment.stage is None:
        mine = mine[_wanted(moment, mine) :]
    return sum(bool((one.result or {}).get("reflection_step")) for one in mine if one.work.executor == "reflection")


def _wanted(moment: Moment, steps: Sequence[Step]) -> int:
    """The place where somebody last wanted something new. What an agent says once more since a person spoke is nothing
    new, and neither is all that agents say after they have said a lot: two who write to each other would begin anew
    each time, and never end."""
    place, known = 0, set[tuple[AgentId | None, str]]()
    for number, one in enumerate(steps):
        if not begins(one):
            continue
        said = (asked_by(one), one.work.text_content.partition(ANSWER_TO)[0])
        if from_people(moment.world, one):
            known.clear()
        if said not in known and len(known) <= ANEW:
            place = number
        known.add(said)
    return place


def _work(moment: Moment, skill: str, *, limit: bool = False) -> Work:
    told = PACK.render(moment.language, "follow_up", {"skill": skill, "limit": limit}).partition("\n")
    return Work(type="skill", executor=skill, intention=told[0], text_content=told[2].strip())


REFLECTION: Final = Skill(
    name="reflection",
    tag="reflection_step",
    key="reflection_step",
    said="Reflection",
    order="history",
    shape=lambda _: STEPS,
    meaning=_meaning,
)
