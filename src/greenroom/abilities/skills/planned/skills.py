"""All twelve skills of agents that plan, made for one another. A thirteenth is a `Skill` and its prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal, cast, get_args

from greenroom.abilities.skills.compact import Compact
from greenroom.abilities.skills.planned.answer import (
    STEPS,
    agents,
    check_call,
    fields_of,
    filling,
    list_of,
    one_of,
    works,
)
from greenroom.abilities.skills.planned.executor import PlannedSkill
from greenroom.abilities.skills.planned.managers import AGENT_MANAGER, TASK_MANAGER
from greenroom.abilities.skills.planned.prompt import chain, of_stage
from greenroom.abilities.skills.planned.skill import ANSWER_TO, PACK, TEXT, Answer, Meant, Moment, Skill, asked_by
from greenroom.abilities.skills.planned.windows import PLANS, exchanges
from greenroom.abilities.skills.talk.transcript import begins, from_people
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import NO_RELATIVE, AgentId, StageId, WaitingId
from greenroom.core.base.records import Data, evolve, whole
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.reading import AnswerReader
from greenroom.core.rules.intents import (
    AskInfo,
    ModifyStep,
    Query,
    QueueSteps,
    SendMessage,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
)
from greenroom.core.state.message import Wait
from greenroom.core.state.step import Step, Work

CALLS: Final = 50
"""How often a tool may be used in one go, if the agent's spec does not say: then it has to look back."""

TOOL_DECISION_SHAPE: Final = fields_of(decision=one_of("continue", "end"), direction=TEXT)


def _tool_decision_meaning(moment: Moment, answer: Answer) -> Meant:
    """To go on is an instruction and a call, before everything else. To end is nothing."""
    said = cast("Mapping[str, str]", answer.value)
    name, direction = moment.step.work.text_content.strip(), said["direction"].strip()
    value = {"tool_name": name, "decision": said["decision"], "direction": direction}
    if said["decision"] == "end":
        return Meant(value=value)
    used = sum(one.work.type == "tool" for one in chain(of_stage(moment.history, moment.step), name))
    if used >= (moment.spec.turn.rounds or CALLS):
        return Meant(value={**value, "decision": "end"}, more={"limit": "It was used as often in a row as it may be."})
    if not direction:
        raise ModelFault("To go on, say in `direction` what the next call is to achieve.")
    call = Work(type="tool", executor=name, intention=f"Go on with {name}.", text_content=direction)
    queued = QueueSteps(agent_id=moment.agent.agent_id, works=(filling(call), call), place="next")
    return Meant(value=value, intents=(queued,))


TOOL_DECISION: Final = Skill(
    name="tool_decision",
    said="Tool Decision",
    order="tool_history",
    shape=lambda _: TOOL_DECISION_SHAPE,
    meaning=_tool_decision_meaning,
)


# What stands in <think> is thought, not said: models put their reasoning there.
THINK: Final = Skill(name="think", tag="think_result")


SUMMARY_SHAPE: Final = fields_of(completion_summary=TEXT, state=one_of("finished", "failed"))


def _summary_meaning(moment: Moment, answer: Answer) -> Meant:
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


SUMMARY: Final = Skill(name="summary", shape=lambda _: SUMMARY_SHAPE, meaning=_summary_meaning)


LONGEST: Final = 50
"""How often in a row an agent may answer with another question: then what it writes needs no answer any more."""

UNRELATED: Final = frozenset({"", NO_RELATIVE, "no_stage"})
_WAITING: Final = re.compile(r"<return_waiting_id>\s*(.*?)\s*</return_waiting_id>", re.DOTALL)
_TRUTH: Final[Data] = {"type": "boolean"}

SEND_MESSAGE_SHAPE: Final = fields_of(
    receiver=list_of(TEXT), message=TEXT, stage_relative=TEXT, need_reply=_TRUTH, waiting=_TRUTH
)


def _send_message_meaning(moment: Moment, answer: Answer) -> Meant:
    said = cast("Mapping[str, object]", answer.value)
    wait = _waited(moment)
    text = str(said["message"]).strip()
    if not text:
        raise ModelFault("The message is empty.")
    receiver = _receivers(moment, cast("list[object]", said["receiver"]), wait)
    answers = wait is not None and wait.waiter in receiver
    # Two who always ask back would never end.
    closed = asked_by(moment.step) is not None and exchanges(moment.history) >= LONGEST
    waiting = bool(said["waiting"]) and not closed
    reply = (bool(said["need_reply"]) and not closed) or waiting
    sent = SendMessage(
        task_id=wait.task_id if wait is not None and answers else moment.step.task_id,
        receiver=receiver,
        message=text,
        stage_relative=_related(moment, str(said["stage_relative"]).strip()),
        need_reply=reply,
        waiting=waiting,
        return_waiting_id=wait.waiting_id if wait is not None and answers else None,
        kind="request" if reply else "response" if answers else "notification",
    )
    # The step remembers MAS's fields. Which ids it waits for the house says.
    names = ("task_id", "receiver", "message", "stage_relative", "need_reply", "waiting", "return_waiting_id")
    fields = whole(sent)
    value = {"sender_id": moment.agent.agent_id, **{name: fields[name] for name in names}}
    return Meant(value=value, more={"closed": True} if closed else {}, intents=(sent,))


def _waited(moment: Moment) -> Wait | None:
    """Who waits for this answer, if somebody still does.

    What the house says of the step comes first. In the text of a letter anybody may have written an id: it counts only
    in what the agent was told otherwise.
    """
    step = moment.step
    written = _WAITING.findall(step.work.text_content) if asked_by(step) is None else []
    name = step.answers or (WaitingId(written[-1]) if written else None)  # the house writes it last
    wait = moment.world.waits.get(name) if name is not None else None
    return wait if wait is not None and wait.on == moment.agent.agent_id else None


def _receivers(moment: Moment, names: list[object], wait: Wait | None) -> tuple[AgentId, ...]:
    among = dict.fromkeys((*moment.group, *((wait.waiter,) if wait is not None else ())))
    found = agents(moment, names, among)
    if not found:
        raise ModelFault(f"The message has no receiver. The group: {', '.join(moment.group)}.")
    if moment.agent.agent_id in found:
        raise ModelFault("You cannot write to yourself. Leave your own id out.")
    return found


def _related(moment: Moment, name: str) -> StageId | Literal["no_relative"]:
    if name in UNRELATED:
        return NO_RELATIVE
    stages = moment.task.stages if moment.task is not None else ()
    if name not in stages:
        known = ", ".join((*stages, NO_RELATIVE))
        raise ModelFault(f"There is no open stage {name!r} in this task. stage_relative is one of: {known}.")
    return StageId(name)


SEND_MESSAGE: Final = Skill(
    name="send_message",
    said="Send Message",
    shape=lambda _: SEND_MESSAGE_SHAPE,
    meaning=_send_message_meaning,
)


ROUNDS: Final = 20
"""How often an agent may add to its plan, if its spec does not say: then a stage is summed up as it is, and elsewhere
nothing more is done until somebody wants something."""

ANEW: Final = 20
"""How often other agents let one begin anew after a person has spoken: those who only write to each other would
never end, in whichever words."""

REFLECTION_SUMMARY: Final = "summary"


def _reflection_meaning(moment: Moment, answer: Answer) -> Meant:
    plan = works(
        moment, answer.value, also=frozenset({REFLECTION_SUMMARY}) if moment.stage is not None else frozenset()
    )
    if any(one.executor == REFLECTION_SUMMARY for one in plan[:-1]):
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
        return () if _goes_on(moment) else (_work(moment, REFLECTION_SUMMARY),)
    if enough:
        return (_work(moment, REFLECTION_SUMMARY, limit=True),)
    if any(one.executor in (REFLECTION_SUMMARY, "reflection") for one in plan):
        return plan
    return (*plan, _work(moment, "reflection"))


def _goes_on(moment: Moment) -> bool:
    """Whether this was not the last look back: a plan may have several, and ends once."""
    mine = moment.world.steps_of(moment.agent.agent_id)
    behind = [one for one in mine if one.thread_id == moment.step.thread_id and one.step_id != moment.step.step_id]
    return any(one.work.executor in (REFLECTION_SUMMARY, "reflection") for one in behind)


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
    told = PACK.render(moment.spec.language, "follow_up", {"skill": skill, "limit": limit}).partition("\n")
    return Work(type="skill", executor=skill, intention=told[0], text_content=told[2].strip())


REFLECTION: Final = Skill(
    name="reflection",
    tag="reflection_step",
    key="reflection_step",
    said="Reflection",
    shape=lambda _: STEPS,
    meaning=_reflection_meaning,
)


QUICK_THINK: Final = Skill(name="quick_think", order="plain")
PROCESS_MESSAGE: Final = Skill(name="process_message", order="message")

NAME: Final = "planning"


def _planning_meaning(moment: Moment, answer: Answer) -> Meant:
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
    meaning=_planning_meaning,
)


OBJECT: Final[Data] = {"type": "object"}


def _shape(moment: Moment) -> Data:
    """What the tool wants."""
    step = moment.to_fill
    tool = moment.tools.get(step.work.executor) if step is not None else None
    return OBJECT if tool is None else tool.parameters


def _instruction_generation_meaning(moment: Moment, answer: Answer) -> Meant:
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
    order="tool",
    shape=_shape,
    meaning=_instruction_generation_meaning,
)


QUERIES: Final[tuple[Query, ...]] = get_args(Query)
"""In MAS's order: the first is number 1."""

NAMED: Final = ("task_id", "stage_id", "agent_id", "agents", "task", "stage", "agent")
"""Fields in which MAS names what a question is about."""

ASK_INFO_SHAPE: Final = fields_of(type=TEXT, about=list_of(TEXT))


def _ask_info_meaning(moment: Moment, answer: Answer) -> Meant:
    said = cast("Mapping[str, object]", answer.value)
    about = tuple(str(one).strip() for one in cast("Sequence[object]", said["about"]))
    query = _query(str(said["type"]).strip())
    asked = AskInfo(query=query, task_id=moment.step.task_id, about=about)
    value = {
        "type": query,
        "about": list(about),
        "sender_id": moment.agent.agent_id,
        "sender_task_id": moment.step.task_id,
    }
    return Meant(value=value, intents=(asked,))


def _query(name: str) -> Query:
    if name.isdecimal() and 1 <= int(name) <= len(QUERIES):
        return QUERIES[int(name) - 1]
    for one in QUERIES:
        if one == name:
            return one
    listed = ", ".join(f"{number} {one}" for number, one in enumerate(QUERIES, start=1))
    raise ModelFault(f"There is no question {name!r}. Ask one of: {listed}.")


def ask_info_tidied(value: object) -> object:
    """The answer in its one form: a number is a type too, and what it is about may have a field of its own."""
    if not isinstance(value, Mapping):
        return value
    told = value.get("type")
    kind = str(told) if isinstance(told, int) and not isinstance(told, bool) else told
    named = [found if isinstance(found, list) else [found] for name in NAMED if (found := value.get(name))]
    about = value.get("about", [one for some in named for one in some])
    return {"type": kind, "about": [about] if isinstance(about, str) else about}


ASK_INFO: Final = Skill(
    name="ask_info",
    tag="ask_instruction",
    key="ask_instruction",
    said="Ask Info",
    order="plain",
    shape=lambda _: ASK_INFO_SHAPE,
    tidied=ask_info_tidied,
    meaning=_ask_info_meaning,
)


TWELVE: Final = (
    *(PLANNING, REFLECTION, SUMMARY, INSTRUCTION_GENERATION, THINK, QUICK_THINK),
    *(SEND_MESSAGE, PROCESS_MESSAGE, TASK_MANAGER, AGENT_MANAGER, ASK_INFO, TOOL_DECISION),
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
    known = {tool.name: tool for tool in tools}
    moment = partial(Moment, tools=known, skills=skills, reader=reader, project=project)
    return (*(PlannedSkill(one, models, moment) for one in skills.values()), Compact(models, {"plan": PLANS}))
