"""Run a planned skill as a step: build the prompt, call the model, parse the answer, derive the consequences."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.reply import ModelReply, refuse_filtered, stream_reply
from greenroom.abilities.skills.conversation.transcript import BYTES_PER_TOKEN
from greenroom.abilities.skills.planned.answer import check_answer, drop_nulls, make_strict, wrap_schema
from greenroom.abilities.skills.planned.compaction import HISTORY_WINDOW_SHARE, plan_compaction
from greenroom.abilities.skills.planned.prompt import build_messages, cut_text
from greenroom.abilities.skills.planned.skill import (
    MESSAGE_SKILLS,
    PACK,
    Skill,
    SkillAnswer,
    SkillContext,
    SkillResult,
    build_retry,
    count_repairs,
    extract_request,
    find_requesting_step,
    find_sender,
    read_use_guide,
)
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.base.text import is_heading, is_underline_of, lower_headings, origins_of
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.ports.reply_reader import ParsedValue, ReplyProblem
from greenroom.core.rules.agents import MAX_MEMORY_CHARS
from greenroom.core.rules.intents import (
    Consequence,
    PostNote,
    QueueSteps,
    Remember,
    RemoveStep,
    SendMessage,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
)
from greenroom.core.rules.origins import filter_people
from greenroom.core.state.origin import Labels, make_label, merge_labels
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")


def extract_new_memory(said: str, known: str) -> str:
    """Return the new part of what the agent wants to remember, formatted for its memory, or ""."""
    old = {_fold_spaces(paragraph) for paragraph in _split_paragraphs(known)}
    lines = {_fold_spaces(line) for line in known.splitlines()}
    fresh: list[str] = []
    for paragraph in _split_paragraphs(lower_headings(said)):
        new = "\n".join(line for line in paragraph.splitlines() if _is_empty(line) or _fold_spaces(line) not in lines)
        if _fold_spaces(new) and _fold_spaces(paragraph) not in old and not all(map(_is_empty, new.splitlines())):
            fresh.append(new.strip())
            old.add(_fold_spaces(paragraph))
    text = "\n\n".join(fresh)
    while is_underline_of(known, text):  # it would turn the agent's last paragraph into a heading
        text = text.partition("\n")[2].lstrip()
    return text


def _split_paragraphs(text: str) -> list[str]:
    return [paragraph.strip("\n") for paragraph in _PARAGRAPHS.split(text) if paragraph.strip()]


def _fold_spaces(text: str) -> str:
    return " ".join(text.split())


def _is_empty(line: str) -> bool:
    """Return whether a line has no content: a heading or a blank line."""
    return is_heading(line) or not line.strip()


MAX_INTENTION_CHARS = 300
"""Maximum characters of the original request in a failure message."""

UNSTARTED_STATES = frozenset({"init", "pending"})

Recipients: TypeAlias = tuple[TaskId, tuple[AgentId, ...]]
"""The task and the receivers of a message."""


def report_success(skill_context: SkillContext, skill: Skill, answer: SkillAnswer) -> Iterator[Consequence]:
    """Mark the agent as working, and save its new memory."""
    yield from _post_note(skill_context, skill, "finished")
    member = skill_context.member
    if member is not None and member.state == "idle" and skill_context.stage is not None:
        yield UpdateStageAgentState(stage_id=skill_context.stage.stage_id, agent_id=member.agent_id, state="working")
    memory = extract_new_memory(answer.memory, skill_context.agent.memory)
    if memory and not is_memory_full(skill_context, answer):
        yield Remember(content=memory)


def is_memory_full(skill_context: SkillContext, answer: SkillAnswer) -> bool:
    """Return whether the new memory does not fit. Then the agent is told, and not asked again."""
    new = extract_new_memory(answer.memory, skill_context.agent.memory)
    return bool(new) and len(skill_context.agent.memory) + len(new) > MAX_MEMORY_CHARS


def explain_unusable(skill_context: SkillContext, why: str) -> str:
    """Explain what is wrong with a reply: to the model if it is asked again, otherwise to people."""
    if not _is_last(skill_context):
        return why
    return PACK.render(
        skill_context.spec.language, "unusable", {"times": count_repairs(skill_context.step) + 1, "why": why}
    )


def _is_last(skill_context: SkillContext) -> bool:
    return count_repairs(skill_context.step) >= skill_context.spec.turn.repairs


def retry_or_fail(skill_context: SkillContext, skill: Skill, why: str) -> Iterator[Consequence]:
    """Repeat the work with an explanation. After the last attempt it has failed."""
    if _is_last(skill_context):
        yield from report_failure(skill_context, skill, why)
        return
    yield QueueSteps(
        agent_id=skill_context.agent.agent_id,
        works=(build_retry(skill_context.step, why),),
        place="next",
        stage_id=skill_context.stage.stage_id if skill_context.stage is not None else None,
    )


def report_failure(skill_context: SkillContext, skill: Skill, why: str) -> Iterator[Consequence]:
    """Mark the agent as failed in its stage, drop its remaining plan, and notify the requester."""
    yield from _post_note(skill_context, skill, "failed")
    yield from _notify_asker(skill_context, why)
    member = skill_context.member
    if member is None or skill_context.stage is None:
        return
    # In reverse: remove a tool step before its filling step, which would remove it too.
    for step in reversed(tuple(skill_context.state.steps_of(member.agent_id))):
        planned = step.thread_id == skill_context.step.thread_id and step.message_id is None and step.answers is None
        if planned and step.state in UNSTARTED_STATES and step.step_id != skill_context.step.step_id:
            yield RemoveStep(step_id=step.step_id)
    stage, agent = skill_context.stage.stage_id, member.agent_id
    yield UpdateStageAgentCompletion(
        stage_id=stage, agent_id=agent, completion_summary=_render_failure(skill_context, why)
    )
    yield UpdateStageAgentState(stage_id=stage, agent_id=agent, state="failed")


def _render_failure(skill_context: SkillContext, why: str) -> str:
    """Render the agent's failure message, with the original request."""
    wanted = (
        extract_request(find_requesting_step(skill_context.step, skill_context.history))
        or skill_context.step.work.intention
    )
    return PACK.render(
        skill_context.spec.language, "failure", {"intention": cut_text(wanted, MAX_INTENTION_CHARS), "why": why}
    )


def _post_note(skill_context: SkillContext, skill: Skill, state: Literal["finished", "failed"]) -> Iterator[PostNote]:
    if skill_context.agent.agent_id in skill_context.group:
        content = PACK.render(skill_context.spec.language, "note", {"said": skill.said, "state": state})
        stage = skill_context.stage
        yield PostNote(task_id=skill_context.step.task_id, content=content, stage_id=stage.stage_id if stage else None)


def _notify_asker(skill_context: SkillContext, why: str) -> Iterator[SendMessage]:
    """Notify an agent that waits for an answer. Outside of a stage, notify the requester or people instead."""
    step = skill_context.step
    wait = skill_context.state.waits.get(step.answers) if step.answers is not None else None
    if wait is not None:
        recipients: Recipients | None = (wait.task_id, (wait.waiter,))
    else:
        recipients = _find_asker(skill_context) or _find_people(skill_context) if skill_context.member is None else None
    if recipients is None or skill_context.agent.agent_id in recipients[1]:
        return
    yield SendMessage(
        task_id=recipients[0],
        receiver=recipients[1],
        message=_render_failure(skill_context, why),
        return_waiting_id=step.answers if wait is not None else None,
        kind="response" if wait is not None else "notification",
    )


def _find_asker(skill_context: SkillContext) -> Recipients | None:
    """Return the sender of the original message, if a reply is expected. Notifications between agents get no reply: two
    failing agents would write to each other forever."""
    first = find_requesting_step(skill_context.step, skill_context.history)
    asker = find_sender(first)
    if asker is None or asker not in skill_context.group:
        return None
    if first.work.executor == MESSAGE_SKILLS[0] and not filter_people(skill_context.state, (asker,)):
        return None
    return skill_context.step.task_id, (asker,)


def _find_people(skill_context: SkillContext) -> Recipients | None:
    """Return the people of the task, or of the nearest parent task that has people."""
    state, here = skill_context.state, skill_context.step.task_id
    for task in (state.tasks[task_id] for task_id in (here, *state.list_ancestors(here)) if task_id in state.tasks):
        people = filter_people(state, task.group) if skill_context.agent.agent_id in task.group else ()
        if people:
            return task.task_id, people
    return None


MEMORY_TAG: Final = "persistent_memory"


def parse_answer(skill_context: SkillContext, skill: Skill, text: str, schema: Data, *, tags: bool) -> SkillAnswer:
    """Parse the answer in a reply. Raise `ModelFault` if there is no usable answer."""
    found = _parse_tagged(skill_context, skill, text, schema) if tags else _parse_structured(skill_context, text)
    found = replace(found, value=skill.normalize(found.value))
    check_answer(skill_context, schema, found.value)
    if schema.get("type") == "string" and not str(found.value).strip():
        raise ModelFault("Your answer is empty.")
    return found


def _parse_structured(skill_context: SkillContext, text: str) -> SkillAnswer:
    datum = _parse_datum(skill_context, text, "Your reply")
    whole = drop_nulls(datum.value)
    if not isinstance(whole, Mapping) or "answer" not in whole:
        raise ModelFault("Your reply is not a JSON object with the field `answer`.")
    return SkillAnswer(value=whole["answer"], memory=str(whole.get(MEMORY_TAG, "")), repaired=datum.repaired)


def _parse_tagged(skill_context: SkillContext, skill: Skill, text: str, schema: Data) -> SkillAnswer:
    kind: Literal["text", "data"] = "text" if schema.get("type") == "string" else "data"
    blocks = skill_context.reader.read_blocks(text, {skill.tag: kind, MEMORY_TAG: "text"})
    if isinstance(blocks, ReplyProblem):
        raise ModelFault(blocks.why)
    bodies = blocks[skill.tag]
    if len(bodies) != 1:
        many = f"{len(bodies)} blocks" if bodies else "no block"
        raise ModelFault(
            f"Your reply has {many} <{skill.tag}>. Put the answer into one, and end it with </{skill.tag}>."
        )
    memory = "\n\n".join(blocks[MEMORY_TAG])
    if kind == "text":
        return SkillAnswer(value=bodies[0], memory=memory)
    datum = _parse_datum(skill_context, bodies[0], f"<{skill.tag}>")
    return SkillAnswer(value=datum.value, memory=memory, repaired=datum.repaired)


def _parse_datum(skill_context: SkillContext, body: str, where: str) -> ParsedValue:
    found = skill_context.reader.parse_json(body)
    if isinstance(found, ReplyProblem):
        raise ModelFault(f"{where} cannot be used. {found.why}")
    return found


STEP_OVERHEAD_BYTES: Final = 600
"""Bytes that a step takes in a history in addition to its texts."""

MEMORY_FULL_NOTICE: Final = "Your persistent memory is full: nothing more was kept."

MCP_TOOL_PREFIX: Final = "mcp__"
"""Prefix of the names of tools that an MCP server describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRequest:
    """A request to the model. The answer must match `schema`. With `has_tags`, it stands between tags."""

    messages: tuple[ChatMessage, ...]
    schema: Data
    structured: Data | None
    size: int

    @property
    def has_tags(self) -> bool:
        """Whether the answer is text between tags; otherwise it is plain JSON."""
        return self.structured is None


class PlannedSkill:
    """Runs one planned skill. `build_context` builds the skill context from the team state, the step, its agent and its
    history."""

    type: StepType = "skill"

    def __init__(self, skill: Skill, models: Models, build_context: Callable[..., SkillContext]) -> None:
        self._skill = skill
        self._models = models
        self._build_context = build_context
        self.name = skill.name

    @property
    def description(self) -> str:
        """When to use the skill."""
        return read_use_guide(self._skill)

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call. The reservation covers the longest history that may be shown."""
        agent = state.agents[step.agent_id]
        if self._skill.order == "tool" and step.step_id not in state.steps:
            raise WorldFault(f"It is not known yet what {step.step_id!r} will fill in.")
        model = model_call.pick_model(self._models, agent.spec)
        asked = self._build_skill_request(self._build_context(state=state, step=step, agent=agent, history=()), model)
        version = hashlib.sha256(asked.messages[0].content.encode()).hexdigest()[:12]
        return model_call.build_terms(model, agent.spec, asked.size + _compute_room(state, step, model), prompt=version)

    async def run(self, context: StepContext) -> Outcome:
        """Call the model and return the consequences of its answer."""
        history = await context.history()
        skill_context = self._build_context(
            state=context.state, step=context.step, agent=context.agent, history=history
        )
        model = model_call.pick_model(self._models, skill_context.spec)
        asked = self._build_skill_request(skill_context, model)
        reply = ModelReply()
        tokens = asked.size // BYTES_PER_TOKEN
        context.set_partial_outcome(
            lambda: Outcome(
                spent=reply.cost or model_call.estimate_partial_cost(model, tokens, skill_context.spec, reply.size)
            )
        )
        try:
            if why := model_call.explain_overflow(model, asked.size):  # do not send what fits no window
                raise ModelFault(why, spent=NOTHING)
            await stream_reply(context, model, self._build_model_request(skill_context, model, asked), reply)
            refuse_filtered(reply, model)
        except ModelFault as fault:  # no model answers this: retrying is useless
            return self._build_outcome(
                skill_context, reply, str(fault), report_failure(skill_context, self._skill, str(fault)), fault
            )
        try:
            return self._finish(skill_context, asked, reply, model)
        except ModelFault as fault:
            why = explain_unusable(skill_context, str(fault))
            return self._build_outcome(skill_context, reply, why, retry_or_fail(skill_context, self._skill, why), fault)

    def _finish(self, skill_context: SkillContext, asked: SkillRequest, reply: ModelReply, model: Model) -> Outcome:
        if reply.is_cut_off:
            most = model_call.find_max_output(model, skill_context.spec)
            raise ModelFault(f"Your reply was cut off: you may write {most} tokens at once. Say it in less.")
        answer = parse_answer(skill_context, self._skill, reply.text, asked.schema, tags=asked.has_tags)
        skill_result = self._skill.interpret(skill_context, answer)
        if is_memory_full(skill_context, answer):
            skill_result = replace(skill_result, more={**skill_result.more, "not_kept": MEMORY_FULL_NOTICE})
        first = plan_compaction(skill_context, model.card.window)
        intents = (*report_success(skill_context, self._skill, answer), *skill_result.intents, *first)
        return self._build_outcome(skill_context, reply, "", intents, skill_result=skill_result)

    def _build_outcome(
        self,
        skill_context: SkillContext,
        reply: ModelReply,
        error: str,
        intents: Iterable[Consequence],
        fault: ModelFault | None = None,
        skill_result: SkillResult | None = None,
    ) -> Outcome:
        """Build the outcome: the parsed result under the skill's key, and the reply itself, because it was paid for."""
        spent = reply.cost if reply.cost is not None else (fault.spent if fault is not None else None)
        found = {} if skill_result is None else {self._skill.key: skill_result.value, **skill_result.more}
        return Outcome(
            state="failed" if error else "finished",
            error=error,
            result={**reply.to_result(), **found} if reply.text or found else None,
            spent=skill_context.step.reserved if spent is None else spent,
            intents=tuple(intents),
            origins=_find_new_origins(skill_context),
        )

    def _build_skill_request(self, skill_context: SkillContext, model: Model) -> SkillRequest:
        schema = self._skill.build_schema(skill_context)
        closed = make_strict(schema) if model.card.strict else None
        structured = wrap_schema(closed) if closed is not None else None
        room = _compute_room(skill_context.state, skill_context.step, model) if skill_context.history else 0
        told = build_messages(skill_context, self._skill, tags=structured is None, room=room)
        size = sum(len(message.content.encode()) for message in told)
        return SkillRequest(messages=told, schema=schema, structured=structured, size=size)

    def _build_model_request(self, skill_context: SkillContext, model: Model, asked: SkillRequest) -> ModelRequest:
        before = sum(step.work.executor == self.name for step in skill_context.history)
        return ModelRequest(
            purpose=model_call.build_purpose(skill_context.step, skill_context.state.team.team_id, before + 1),
            messages=asked.messages,
            schema=asked.structured,
            max_output=model_call.find_max_output(model, skill_context.spec),
            **model_call.build_request_options(skill_context.spec),
        )


def _compute_room(state: TeamState, step: Step, model: Model) -> int:
    """Return the maximum bytes of the history of this step."""
    thread = state.threads.get(step.thread_id)
    size = 2 * thread.size + STEP_OVERHEAD_BYTES if thread is not None else 0
    return min(size, int(HISTORY_WINDOW_SHARE * model.card.window) * BYTES_PER_TOKEN)


def _find_new_origins(skill_context: SkillContext) -> Labels:
    """Return the origins of the prompt that the conversation has not read from before."""
    thread = skill_context.state.threads.get(skill_context.step.thread_id)
    servers = (
        name.split("__")[1]
        for name in skill_context.spec.tools
        if name in skill_context.tools and name.startswith(MCP_TOOL_PREFIX)
    )
    told = merge_labels(
        merge_labels(origins_of(skill_context.project), skill_context.agent.origins),
        (make_label("description", item) for item in servers),
    )
    return tuple(item for item in told if thread is None or item not in thread.origins)
