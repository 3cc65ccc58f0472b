"""The skill `converse`: one model call of a conversing agent. The reply determines the next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from greenroom.abilities.skills.conversation import completion, model_call, reply_interpreter
from greenroom.abilities.skills.conversation.reply import ModelReply, keep_filtered, stream_reply
from greenroom.abilities.skills.conversation.reply_interpreter import Interpretation, ReplyContext
from greenroom.abilities.skills.conversation.roles import Role, RoleFactory
from greenroom.abilities.skills.conversation.transcript import (
    BYTES_PER_TOKEN,
    PLAN_SKILL,
    Transcript,
    Transcripts,
    describe_origin,
    has_unread_message,
    is_new_request,
    render_media,
)
from greenroom.abilities.skills.filter_tools import ALWAYS_OFFERED, find_chosen_tools
from greenroom.abilities.skills.handoff import should_clear
from greenroom.abilities.skills.plan_task import wants_plan
from greenroom.abilities.skills.prompts.builder import PACK, render_notice, wrap_schema
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, Finished, Model, ModelRequest, Models, ModelTextDelta, ToolSpec
from greenroom.core.ports.reply_reader import ReplyCall, ReplyProblem, ReplyReader
from greenroom.core.ports.skill_library import READ_SKILL, SkillLibrary
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.rules.queue import has_further_step
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState

MAX_EMPTY_REPLIES: Final = 2
"""Maximum number of consecutive empty replies after which the agent is asked again."""

COMPACT_ABOVE_SHARE: Final = 0.75
"""Share of the model's window above which a conversation is compacted."""

MAX_WINDOW_SHARE: Final = 0.95
"""Share of the model's window above which the step fails if compaction has failed."""

TOO_LONG: Final = "it is longer than the model may write at once (`max_output`)"

MAX_SKILL_BYTES: Final = 2000 * BYTES_PER_TOKEN
"""Maximum size of the skills that a task is given at its start: 2,000 tokens."""

MAX_FAILED_COMPACTIONS: Final = 2
"""Maximum number of consecutive failed compactions."""


class Converse:
    """The default skill of a conversing agent. `tools` are all available tools; each agent is offered its own.

    With `solo`, a plain answer ends the task that the agent manages. `reader` parses replies of agents that act in
    text. `project` is the workspace's text for agents. An agent with more tools than `filter_above` first chooses the
    tools that its task needs (0: never). `skills` are the person's, from which each task is given what fits.
    """

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Think about what was said and done, then act, write to another agent, or finish."

    def __init__(
        self,
        models: Models,
        tools: Sequence[ToolSpec] = (),
        *,
        solo: bool = False,
        reader: ReplyReader | None = None,
        project: str = "",
        filter_above: int = 0,
        transcripts: Transcripts | None = None,
        skills: SkillLibrary | None = None,
    ) -> None:
        self._models = models
        self._skills = skills
        self._reader = reader
        self._filter_above = filter_above
        self._tool_names = frozenset(tool.name for tool in tools).difference(ALWAYS_OFFERED)
        self.role_factory = RoleFactory(tools, reader, solo=solo, project=project)
        self.transcripts = transcripts or Transcripts()

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the maximum cost of the request and the longest reply."""
        model = model_call.pick_model(self._models, state.agents[step.agent_id].spec)
        role = self.role_factory.get_role(state, step, model.card, find_chosen_tools(state, step))
        thread = state.threads.get(step.thread_id)
        texts = [step.work.text_content, role.addon, *(thread.notices if thread else ())]
        size = role.size + sum(len(text.encode()) for text in texts) + (thread.size if thread else 0)
        size += step.work.media_tokens
        size += MAX_SKILL_BYTES if self._may_get_skills(role) and not (thread and thread.size) else 0
        return model_call.build_terms(model, role.spec, size, prompt=role.version)

    async def run(self, context: StepContext) -> Outcome:
        """Call the model and interpret its reply."""
        step, model = context.step, model_call.pick_model(self._models, context.agent.spec)
        selected = find_chosen_tools(context.state, step)
        if selected is None and 0 < self._filter_above < len(self._tool_names.intersection(context.agent.spec.tools)):
            return _defer_turn(context, "filter_tools", "Choose the tools that are needed.", step.work.text_content)
        role = self.role_factory.get_role(context.state, step, model.card, selected)
        team = context.state.team.team_id
        history = await context.history()
        media = await self.transcripts.load_media(team, chain(history, (step,)), context)
        transcript = self.transcripts.get(
            team, step.thread_id, history, native=role.is_native, language=role.spec.language
        )
        if not is_new_request(step) and has_unread_message(context.state, step):
            return Outcome(result={"deferred": "told"})  # the next turn reads everything
        if wants_plan(context.state, step, history):
            return _defer_turn(context, PLAN_SKILL, "See whether to split the task.", step.work.text_content)
        transcript.start_turn(step)
        if transcript.returned is not None and not is_new_request(step):
            return await self._answer_with_tool_result(context, role, transcript, transcript.returned)
        max_turns = role.spec.turn.rounds or completion.DEFAULT_MAX_TURNS
        last = transcript.rounds >= max_turns or transcript.loop_detector.must_end
        newest = _render_newest(context, role, transcript, last=last)
        newest, chosen_skills = await self._add_skills(role, transcript, newest)
        first = _compact_first(context, role, model, transcript, newest)
        if first is not None:
            return first
        asked = [ChatMessage(role="user", content=newest, media=render_media(step.work, media))] if newest else []
        request = ModelRequest(
            purpose=model_call.build_purpose(context.step, team, transcript.turns + 1),
            messages=(role.system, *transcript.messages, *asked),
            tools=role.tools,
            tool_choice="none" if last and role.tools else "auto",
            schema=wrap_schema(role.spec.answer) if role.spec.answer and not model.card.tools else None,
            max_output=model_call.find_max_output(model, role.spec),
            **model_call.build_request_options(role.spec),
        )
        reply = ModelReply()
        input_tokens = transcript.estimate_tokens(role.size) + len(newest.encode()) // BYTES_PER_TOKEN
        input_tokens += step.work.media_tokens
        context.set_partial_outcome(
            lambda: _build_partial_outcome(
                context, reply, newest, model_call.estimate_partial_cost(model, input_tokens, role.spec, reply.size)
            )
        )
        await stream_reply(context, model, request, reply)
        keep_filtered(reply, model)
        if not reply.text and not reply.calls and not reply.is_cut_off and transcript.empty_turns >= MAX_EMPTY_REPLIES:
            error = f"{model.name} answered nothing {transcript.empty_turns + 1} times in a row."
            return Outcome(state="failed", error=error, spent=reply.cost or step.reserved)
        interpretation = await self._interpret_reply(
            self._build_reply_context(context, role, transcript, last=last), role, reply
        )
        outcome = _build_outcome(context, reply, interpretation, newest, transcript.loop_detector.loop)
        if chosen_skills:
            outcome = evolve(outcome, result={**(outcome.result or {}), "skills": chosen_skills})
        thread = context.state.threads.get(step.thread_id)
        known = thread.origins if thread is not None else ()
        return evolve(outcome, origins=tuple(label for label in role.origins if label not in known))

    def _may_get_skills(self, role: Role) -> bool:
        return self._skills is not None and not self._skills.is_empty and role.spec.use_skills

    async def _add_skills(self, role: Role, transcript: Transcript, newest: str) -> tuple[str, list[str]]:
        """Return the message, and if it is the first, the skills that fit it: their text and their names."""
        if transcript.messages or self._skills is None or not self._may_get_skills(role):
            return newest, []
        offered = await self._skills.choose(newest, MAX_SKILL_BYTES)
        whole = [skill for skill in offered if skill.text]
        listed = [skill for skill in offered if not skill.text] if READ_SKILL in role.offered_names else []
        if not whole and not listed:
            return newest, []
        text = PACK.render(role.spec.language, "skills", {"whole": whole, "listed": listed})
        return f"{newest}\n\n{text}", [skill.name for skill in (*whole, *listed) if skill.chosen]

    async def _answer_with_tool_result(
        self, context: StepContext, role: Role, transcript: Transcript, text: str
    ) -> Outcome:
        """Use a tool result as the agent's reply, without calling the model."""
        reply = ModelReply()
        for event in (ModelTextDelta(text=text), Finished()):
            context.show(event)
            reply.add_event(event)
        reply_context = self._build_reply_context(context, replace(role, ends="text"), transcript, last=False)
        interpretation = await reply_interpreter.interpret_reply(reply_context, reply)
        return evolve(_build_outcome(context, reply, interpretation, ""), spent=NOTHING)

    async def _interpret_reply(self, reply_context: ReplyContext, role: Role, reply: ModelReply) -> Interpretation:
        """Interpret the reply. If the agent acts in text, parse its call first."""
        if reply.is_cut_off:
            reply.keep_text_only()
            return reply_interpreter.reject_reply(
                reply_context, TOO_LONG, PACK.render(role.spec.language, "cut_off", {})
            )
        if role.is_native or self._reader is None or not reply.text:
            return await reply_interpreter.interpret_reply(reply_context, reply)
        ended = reply.finished is not None and reply.finished.reason in ("stop", "calls")
        found = self._reader.read(role.spec, reply.text, role.all_tools, role.others, ended=ended)
        if isinstance(found, ReplyProblem) and (found.sure or not reply_context.misread):
            return reply_interpreter.reject_reply(reply_context, found.why)
        if not isinstance(found, ReplyCall):
            return await reply_interpreter.interpret_reply(reply_context, reply)
        reply.calls.append(evolve(found.call, call_id=reply_context.step.step_id))
        interpretation = await reply_interpreter.interpret_reply(reply_context, reply)
        if found.notes and interpretation.next_prompt is not None:
            interpretation.next_prompt = f"{found.notes}\n{interpretation.next_prompt}".strip()
        return interpretation

    def _build_reply_context(
        self, context: StepContext, role: Role, transcript: Transcript, *, last: bool
    ) -> ReplyContext:
        return ReplyContext(
            step=context.step,
            role=role,
            alone=not has_further_step(context.state, context.step),
            last=last,
            loop=transcript.loop_detector.loop if transcript.loop_detector.must_end else None,
            nudges=transcript.nudges,
            misread=transcript.misread_turns,
            closed=frozenset(transcript.closed),
            has_unread_message=has_unread_message(context.state, context.step),
            reader=self._reader,
            clear=should_clear(role.handoff, transcript, role.size),
        )


def _compact_first(
    context: StepContext, role: Role, model: Model, transcript: Transcript, newest: str
) -> Outcome | None:
    """Compact the conversation first if it fills its window or should stay short."""
    tokens = transcript.estimate_tokens(role.size) + len(newest.encode()) // BYTES_PER_TOKEN
    with_media = tokens + context.step.work.media_tokens
    rounds, window = role.spec.history.summary_rounds, model.card.window
    if transcript.turns_since_compaction < 2:
        error = model_call.explain_overflow(model, transcript.size + role.size + len(newest.encode()))
        return Outcome(state="failed", error=error) if error else None
    if not (with_media > COMPACT_ABOVE_SHARE * window or 0 < rounds <= transcript.turns_since_compaction):
        return None
    if transcript.failed_compactions >= MAX_FAILED_COMPACTIONS:
        error = f"The conversation does not fit into the window of {model.name} any more, and could not be summed up."
        return Outcome(state="failed", error=error) if tokens > MAX_WINDOW_SHARE * window else None
    return _defer_turn(context, "compact", "Sum up what was said.", newest)


def _defer_turn(context: StepContext, skill: str, intention: str, text: str) -> Outcome:
    """Run another skill first, then repeat this turn with the same text."""
    step = context.step
    works = (
        Work(type="skill", executor=skill, intention=intention, text_content=text if skill != "compact" else ""),
        evolve(step.work, text_content=text, instruction_content=describe_origin(context.state, step)),
    )
    queued = QueueSteps(agent_id=step.agent_id, works=works, place="next")
    return Outcome(result={"deferred": skill}, intents=(queued,))


def _build_outcome(
    context: StepContext, reply: ModelReply, interpretation: Interpretation, newest: str, circle: str | None = None
) -> Outcome:
    """Build the outcome: the stored reply and its consequences. Work that cannot continue has failed, with a reason."""
    asked = None if newest == context.step.work.text_content else newest
    return Outcome(
        state="failed" if interpretation.failure else "finished",
        error=interpretation.failure,
        result=reply.to_result(
            asked,
            call_answers=interpretation.call_answers,
            misread=interpretation.misread,
            over=interpretation.signal.source if interpretation.signal else None,
            loop=circle,
            accepted=interpretation.accepted,
        ),
        spent=context.step.reserved if reply.cost is None else reply.cost,
        intents=interpretation.build_consequences(context.step),
    )


def _build_partial_outcome(context: StepContext, reply: ModelReply, newest: str, cost: Amounts) -> Outcome:
    """Build the outcome of an interrupted reply: its text so far and an estimate of its cost."""
    reply.keep_text_only()
    spent = cost if reply.cost is None else reply.cost
    if not reply.text.strip():
        return Outcome(spent=spent)
    return evolve(_build_outcome(context, reply, Interpretation(), newest), spent=spent)


def _render_newest(context: StepContext, role: Role, transcript: Transcript, *, last: bool) -> str:
    """Render the newest message. After a tool result it may be empty."""
    thread = context.state.threads.get(context.step.thread_id)
    said = "\n".join((context.step.work.text_content, *(thread.notices if thread else ()))).strip()
    limit = ""
    circle, ends = transcript.loop_detector.loop, transcript.loop_detector.must_end
    if circle is not None and (ends or not last):
        limit = PACK.render(role.spec.language, "circles", {"circle": circle, "ends": ends})
    elif last:
        limit = PACK.render(role.spec.language, "last_turn", {"rounds": transcript.rounds})
    extra = "\n\n".join(filter(None, (limit, role.addon)))
    # A turn that was deferred for compaction already contains it.
    newest = said if said.endswith(extra) else f"{said}\n\n{extra}".strip()
    before = transcript.messages
    speechless = not newest and (not before or before[-1].role == "assistant")
    return render_notice(role.spec.language, "go_on") if speechless else newest
