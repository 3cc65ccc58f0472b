"""All twelve skills of planning agents. To add a skill, write a `Skill` and its prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal, cast, get_args

from greenroom.abilities.skills.compact import CompactSkill
from greenroom.abilities.skills.conversation.transcript import is_from_people, is_new_request
from greenroom.abilities.skills.planned.answer import (
    STEPS_SCHEMA,
    build_enum,
    build_filling_step,
    build_list,
    build_object,
    build_works,
    check_call,
    resolve_agents,
)
from greenroom.abilities.skills.planned.compaction import PLAN_COMPACTION, count_exchanges
from greenroom.abilities.skills.planned.executor import PlannedSkill
from greenroom.abilities.skills.planned.managers import AGENT_MANAGER, TASK_MANAGER
from greenroom.abilities.skills.planned.prompt import filter_stage_steps, find_tool_chain
from greenroom.abilities.skills.planned.skill import (
    PACK,
    TEXT_SCHEMA,
    WAITING_ID_TAG,
    Skill,
    SkillAnswer,
    SkillContext,
    SkillResult,
    find_sender,
)
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import NO_RELATIVE, AgentId, StageId, WaitingId
from greenroom.core.base.records import Data, evolve, to_full_dict
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.reply_reader import AnswerReader
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

DEFAULT_MAX_CALLS: Final = 50
"""Maximum number of consecutive calls of a tool, unless the agent's spec sets it. Then the agent must reflect."""

TOOL_DECISION_SHAPE: Final = build_object(decision=build_enum("continue", "end"), direction=TEXT_SCHEMA)


def _interpret_tool_decision(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    """Interpret a decision. To continue adds an instruction and a call, before everything else. To end adds nothing."""
    said = cast("Mapping[str, str]", answer.value)
    name, direction = skill_context.step.work.text_content.strip(), said["direction"].strip()
    value = {"tool_name": name, "decision": said["decision"], "direction": direction}
    if said["decision"] == "end":
        return SkillResult(value=value)
    used = sum(
        step.work.type == "tool"
        for step in find_tool_chain(filter_stage_steps(skill_context.history, skill_context.step), name)
    )
    if used >= (skill_context.spec.turn.rounds or DEFAULT_MAX_CALLS):
        return SkillResult(
            value={**value, "decision": "end"}, more={"limit": "It was used as often in a row as it may be."}
        )
    if not direction:
        raise ModelFault("To go on, say in `direction` what the next call is to achieve.")
    call = Work(type="tool", executor=name, intention=f"Go on with {name}.", text_content=direction)
    queued = QueueSteps(agent_id=skill_context.agent.agent_id, works=(build_filling_step(call), call), place="next")
    return SkillResult(value=value, intents=(queued,))


TOOL_DECISION: Final = Skill(
    name="tool_decision",
    said="Tool Decision",
    order="tool_history",
    build_schema=lambda _: TOOL_DECISION_SHAPE,
    interpret=_interpret_tool_decision,
)


# Text in <think> is reasoning, not output: some models write it there.
THINK: Final = Skill(name="think", tag="think_result")


SUMMARY_SHAPE: Final = build_object(completion_summary=TEXT_SCHEMA, state=build_enum("finished", "failed"))


def _interpret_summary(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    said = cast("Mapping[str, str]", answer.value)
    text, state = said["completion_summary"].strip(), said["state"]
    if not text:
        raise ModelFault("The completion_summary is empty. Say what was done.")
    more = {"state": state}
    if skill_context.stage is None or skill_context.member is None:
        return SkillResult(value=text, more=more)
    stage, agent = skill_context.stage.stage_id, skill_context.agent.agent_id
    completed = UpdateStageAgentCompletion(stage_id=stage, agent_id=agent, completion_summary=text)
    ended = UpdateStageAgentState(stage_id=stage, agent_id=agent, state="finished" if state == "finished" else "failed")
    return SkillResult(value=text, more=more, intents=(completed, ended))


SUMMARY: Final = Skill(name="summary", build_schema=lambda _: SUMMARY_SHAPE, interpret=_interpret_summary)


MAX_EXCHANGES: Final = 50
"""Maximum number of consecutive answers with another question. Later messages need no answer."""

NO_STAGE_NAMES: Final = frozenset({"", NO_RELATIVE, "no_stage"})
_WAITING_ID: Final = re.compile(r"<return_waiting_id>\s*(.*?)\s*</return_waiting_id>", re.DOTALL)
_BOOLEAN_SCHEMA: Final[Data] = {"type": "boolean"}

SEND_MESSAGE_SHAPE: Final = build_object(
    receiver=build_list(TEXT_SCHEMA),
    message=TEXT_SCHEMA,
    stage_relative=TEXT_SCHEMA,
    need_reply=_BOOLEAN_SCHEMA,
    waiting=_BOOLEAN_SCHEMA,
)


def _interpret_send_message(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    said = cast("Mapping[str, object]", answer.value)
    wait = _find_wait(skill_context)
    text = str(said["message"]).strip()
    if not text:
        raise ModelFault("The message is empty.")
    receiver = _resolve_receivers(skill_context, cast("list[object]", said["receiver"]), wait)
    answers = wait is not None and wait.waiter in receiver
    # Two agents that always ask back would never end.
    closed = find_sender(skill_context.step) is not None and count_exchanges(skill_context.history) >= MAX_EXCHANGES
    waiting = bool(said["waiting"]) and not closed
    reply = (bool(said["need_reply"]) and not closed) or waiting
    sent = SendMessage(
        task_id=wait.task_id if wait is not None and answers else skill_context.step.task_id,
        receiver=receiver,
        message=text,
        stage_relative=_resolve_stage(skill_context, str(said["stage_relative"]).strip()),
        need_reply=reply,
        waiting=waiting,
        return_waiting_id=wait.waiting_id if wait is not None and answers else None,
        kind="request" if reply else "response" if answers else "notification",
    )
    # The step keeps MAS's fields. Greenroom sets the waiting ids.
    names = ("task_id", "receiver", "message", "stage_relative", "need_reply", "waiting", "return_waiting_id")
    fields = to_full_dict(sent)
    value = {"sender_id": skill_context.agent.agent_id, **{name: fields[name] for name in names}}
    return SkillResult(value=value, more={"closed": True} if closed else {}, intents=(sent,))


def _find_wait(skill_context: SkillContext) -> Wait | None:
    """Return the wait that this answer ends, if it is still open. The step's own record comes first. An id in the text
    counts only if the text is not a received message, because any sender could write an id there."""
    step = skill_context.step
    written = _WAITING_ID.findall(step.work.text_content) if find_sender(step) is None else []
    name = step.answers or (WaitingId(written[-1]) if written else None)  # Greenroom writes it last
    wait = skill_context.state.waits.get(name) if name is not None else None
    return wait if wait is not None and wait.on == skill_context.agent.agent_id else None


def _resolve_receivers(skill_context: SkillContext, names: list[object], wait: Wait | None) -> tuple[AgentId, ...]:
    among = dict.fromkeys((*skill_context.group, *((wait.waiter,) if wait is not None else ())))
    found = resolve_agents(skill_context, names, among)
    if not found:
        raise ModelFault(f"The message has no receiver. The group: {', '.join(skill_context.group)}.")
    if skill_context.agent.agent_id in found:
        raise ModelFault("You cannot write to yourself. Leave your own id out.")
    return found


def _resolve_stage(skill_context: SkillContext, name: str) -> StageId | Literal["no_relative"]:
    if name in NO_STAGE_NAMES:
        return NO_RELATIVE
    stages = skill_context.task.stages if skill_context.task is not None else ()
    if name not in stages:
        known = ", ".join((*stages, NO_RELATIVE))
        raise ModelFault(f"There is no open stage {name!r} in this task. stage_relative is one of: {known}.")
    return StageId(name)


SEND_MESSAGE: Final = Skill(
    name="send_message",
    said="Send Message",
    build_schema=lambda _: SEND_MESSAGE_SHAPE,
    interpret=_interpret_send_message,
)


DEFAULT_MAX_REFLECTIONS: Final = 20
"""Maximum number of reflections that extend a plan, unless the agent's spec sets it. Then a stage is summarised;
elsewhere the agent stops until the next request."""

MAX_AGENT_RESTARTS: Final = 20
"""How often messages of other agents restart an agent's count after a person has written. Without this limit, agents
that write to each other would never end."""

REFLECTION_SUMMARY: Final = "summary"


def _interpret_reflection(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    plan = build_works(
        skill_context,
        answer.value,
        also=frozenset({REFLECTION_SUMMARY}) if skill_context.stage is not None else frozenset(),
    )
    if any(work.executor == REFLECTION_SUMMARY for work in plan[:-1]):
        raise ModelFault("A summary ends the stage: nothing comes after it. Put it last, or leave it out.")
    steps = _extend_plan(skill_context, plan)
    queued = (QueueSteps(agent_id=skill_context.agent.agent_id, works=steps),) if steps else ()
    return SkillResult(value=answer.value, intents=queued)


def _extend_plan(skill_context: SkillContext, plan: tuple[Work, ...]) -> tuple[Work, ...]:
    """Return the steps to add to the plan. In a stage they end with another reflection or the summary."""
    enough = bool(plan) and _count_rounds(skill_context) >= (skill_context.spec.turn.rounds or DEFAULT_MAX_REFLECTIONS)
    if skill_context.stage is None:
        return () if enough else plan
    if not plan:
        return () if _has_later_reflection(skill_context) else (_build_follow_up(skill_context, REFLECTION_SUMMARY),)
    if enough:
        return (_build_follow_up(skill_context, REFLECTION_SUMMARY, limit=True),)
    if any(work.executor in (REFLECTION_SUMMARY, "reflection") for work in plan):
        return plan
    return (*plan, _build_follow_up(skill_context, "reflection"))


def _has_later_reflection(skill_context: SkillContext) -> bool:
    """Return whether another reflection follows. A plan may have several, but ends once."""
    own_steps = skill_context.state.steps_of(skill_context.agent.agent_id)
    behind = [
        step
        for step in own_steps
        if step.thread_id == skill_context.step.thread_id and step.step_id != skill_context.step.step_id
    ]
    return any(step.work.executor in (REFLECTION_SUMMARY, "reflection") for step in behind)


def _count_rounds(skill_context: SkillContext) -> int:
    """Count the extensions of the plan in this stage; outside of a stage, since the last request."""
    own_steps = filter_stage_steps(skill_context.history, skill_context.step)
    if skill_context.stage is None:
        own_steps = own_steps[_find_last_request(skill_context, own_steps) :]
    return sum(
        bool((step.result or {}).get("reflection_step")) for step in own_steps if step.work.executor == "reflection"
    )


def _find_last_request(skill_context: SkillContext, steps: Sequence[Step]) -> int:
    """Return the position of the last new request.

    A message that an agent repeats since a person last wrote does not count. Neither do messages of agents after
    `MAX_AGENT_RESTARTS`: two agents that write to each other would restart each other forever.
    """
    place, known = 0, set[tuple[AgentId | None, str]]()
    for number, step in enumerate(steps):
        if not is_new_request(step):
            continue
        said = (find_sender(step), step.work.text_content.partition(WAITING_ID_TAG)[0])
        if is_from_people(skill_context.state, step):
            known.clear()
        if said not in known and len(known) <= MAX_AGENT_RESTARTS:
            place = number
        known.add(said)
    return place


def _build_follow_up(skill_context: SkillContext, skill: str, *, limit: bool = False) -> Work:
    told = PACK.render(skill_context.spec.language, "follow_up", {"skill": skill, "limit": limit}).partition("\n")
    return Work(type="skill", executor=skill, intention=told[0], text_content=told[2].strip())


REFLECTION: Final = Skill(
    name="reflection",
    tag="reflection_step",
    key="reflection_step",
    said="Reflection",
    build_schema=lambda _: STEPS_SCHEMA,
    interpret=_interpret_reflection,
)


QUICK_THINK: Final = Skill(name="quick_think", order="plain")
PROCESS_MESSAGE: Final = Skill(name="process_message", order="message")

PLANNING_NAME: Final = "planning"


def _interpret_planning(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    """Append the steps to the queue. Add a reflection if the plan has none."""
    plan = build_works(skill_context, answer.value)
    if not plan:
        raise ModelFault("The plan has no steps. Plan at least one.")
    again = next((number for number, work in enumerate(plan, start=1) if work.executor == PLANNING_NAME), None)
    if again is not None:
        raise ModelFault(f"Step {again}: a plan that only plans again never begins. Write the steps themselves.")
    return SkillResult(value=answer.value, intents=(QueueSteps(agent_id=skill_context.agent.agent_id, works=plan),))


PLANNING: Final = Skill(
    name=PLANNING_NAME,
    tag="planned_step",
    key="planned_step",
    said="Planning",
    order="plain",
    build_schema=lambda _: STEPS_SCHEMA,
    interpret=_interpret_planning,
)


OBJECT_SCHEMA: Final[Data] = {"type": "object"}


def _build_instruction_schema(skill_context: SkillContext) -> Data:
    """Return the parameter schema of the tool."""
    step = skill_context.step_to_fill
    tool = skill_context.tools.get(step.work.executor) if step is not None else None
    return OBJECT_SCHEMA if tool is None else tool.parameters


def _interpret_instruction_generation(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    step = skill_context.step_to_fill
    if step is None:
        return SkillResult(value={}, more={"nothing_to_fill": True})
    tool = skill_context.tools.get(step.work.executor)
    if answer.repaired and not (tool is not None and tool.pure):
        raise ModelFault(f"The instruction was not taken: {answer.repaired}. A tool that acts needs valid JSON.")
    given = cast("Mapping[str, object]", answer.value)
    check_call(skill_context, step.work.executor, given)
    filled = ModifyStep(step_id=step.step_id, work=evolve(step.work, instruction_content=given))
    return SkillResult(value=given, intents=(filled,))


INSTRUCTION_GENERATION: Final = Skill(
    name="instruction_generation",
    tag="tool_instruction",
    order="tool",
    build_schema=_build_instruction_schema,
    interpret=_interpret_instruction_generation,
)


QUERIES: Final[tuple[Query, ...]] = get_args(Query)
"""Query types in the order of MAS, numbered from 1."""

SUBJECT_FIELDS: Final = ("task_id", "stage_id", "agent_id", "agents", "task", "stage", "agent")
"""Fields in which MAS names the subject of a query."""

ASK_INFO_SHAPE: Final = build_object(type=TEXT_SCHEMA, about=build_list(TEXT_SCHEMA))


def _interpret_ask_info(skill_context: SkillContext, answer: SkillAnswer) -> SkillResult:
    said = cast("Mapping[str, object]", answer.value)
    about = tuple(str(subject).strip() for subject in cast("Sequence[object]", said["about"]))
    query = _find_query(str(said["type"]).strip())
    asked = AskInfo(query=query, task_id=skill_context.step.task_id, about=about)
    value = {
        "type": query,
        "about": list(about),
        "sender_id": skill_context.agent.agent_id,
        "sender_task_id": skill_context.step.task_id,
    }
    return SkillResult(value=value, intents=(asked,))


def _find_query(name: str) -> Query:
    if name.isdecimal() and 1 <= int(name) <= len(QUERIES):
        return QUERIES[int(name) - 1]
    for query in QUERIES:
        if query == name:
            return query
    listed = ", ".join(f"{number} {query}" for number, query in enumerate(QUERIES, start=1))
    raise ModelFault(f"There is no question {name!r}. Ask one of: {listed}.")


def normalize_ask_info(value: object) -> object:
    """Normalise the answer: a type may be a number, and the subject may have its own field."""
    if not isinstance(value, Mapping):
        return value
    told = value.get("type")
    kind = str(told) if isinstance(told, int) and not isinstance(told, bool) else told
    named = [found if isinstance(found, list) else [found] for name in SUBJECT_FIELDS if (found := value.get(name))]
    about = value.get("about", [subject for subjects in named for subject in subjects])
    return {"type": kind, "about": [about] if isinstance(about, str) else about}


ASK_INFO: Final = Skill(
    name="ask_info",
    tag="ask_instruction",
    key="ask_instruction",
    said="Ask Info",
    order="plain",
    build_schema=lambda _: ASK_INFO_SHAPE,
    normalize=normalize_ask_info,
    interpret=_interpret_ask_info,
)


PLANNED_SKILLS: Final = (
    *(PLANNING, REFLECTION, SUMMARY, INSTRUCTION_GENERATION, THINK, QUICK_THINK),
    *(SEND_MESSAGE, PROCESS_MESSAGE, TASK_MANAGER, AGENT_MANAGER, ASK_INFO, TOOL_DECISION),
)


def build_planned_skills(
    models: Models,
    tools: Sequence[ToolSpec] = (),
    *,
    reader: AnswerReader,
    project: str = "",
    extra: Sequence[Skill] = (),
) -> tuple[Executor, ...]:
    """Build the twelve skills, `extra` custom skills, and `compact`. `tools` are all available tools; `project` is the
    workspace's text for agents."""
    skills = {skill.name: skill for skill in (*extra, *PLANNED_SKILLS)}
    known = {tool.name: tool for tool in tools}
    moment = partial(SkillContext, tools=known, skills=skills, reader=reader, project=project)
    return (
        *(PlannedSkill(skill, models, moment) for skill in skills.values()),
        CompactSkill(models, {"plan": PLAN_COMPACTION}),
    )
