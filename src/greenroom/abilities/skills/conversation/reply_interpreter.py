"""Interpret a reply: its consequences, the immediate answers to its calls, and whether another turn follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec import DecodeError, json

from greenroom.abilities.skills.conversation import builtin_calls, completion
from greenroom.abilities.skills.conversation.completion import CompletionSignal, LoopKind
from greenroom.abilities.skills.conversation.reply import ModelReply
from greenroom.abilities.skills.conversation.roles import Role
from greenroom.abilities.skills.prompts.builder import VALUE_FIELD, render_notice
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.model import ToolCall
from greenroom.core.ports.reply_reader import ReplyReader
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, Work

ENDING_CALLS: Final = frozenset({"finish", builtin_calls.ANSWER_CALL})
SUMMARIZE_SKILL: Final = "summarize"
"""The skill that summarises the work before it ends."""

SAVE_MEMORY: Final = "save_memory"
SAVE_MEMORY_SKILL: Final = "prompt_memory_save"
"""The skill that asks what is worth remembering, and the tool that it calls."""

RETROSPECT_SKILL: Final = "retrospect"
"""The skill that asks the person and the model what can be learned from the work."""

END_WORK_SKILL: Final = "end_work"
"""The skill that ends work whose closing steps are done."""


@dataclass(slots=True, kw_only=True)
class ReplyContext:
    """The context of a reply of this `role`. `alone` means that no other open step goes on with the work.

    `closed` are the closing steps that the task already had. In the `last` turn the agent may not act any more, because
    of a `loop` or the turn limit. `has_unread_message` means that a new message waits in the conversation. `clear`:
    handing the task over now empties it.
    """

    step: Step
    role: Role
    alone: bool
    last: bool
    loop: LoopKind | None
    nudges: int
    misread: int
    closed: frozenset[str]
    has_unread_message: bool
    reader: ReplyReader | None
    clear: bool = False

    def render_notice(self, what: str, *, name: str = "", names: str = "", text: str = "") -> str:
        """Render a notice about a call in the agent's language."""
        return render_notice(self.role.spec.language, what, name=name, names=names, text=text)


@dataclass(slots=True)
class Interpretation:
    """The interpretation of a reply. `signal` ends the work, `ends_turn` only the turn. `accepted` is a typed
    answer, as JSON, that the reply does not hold in this form."""

    intents: list[Consequence] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    call_answers: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    misread: bool = False
    next_prompt: str | None = None
    signal: CompletionSignal | None = None
    accepted: str | None = None
    ends_turn: bool = False

    def build_consequences(self, step: Step) -> tuple[Consequence, ...]:
        """Return all consequences: first immediate intents, then the steps, then another turn."""
        works = list(self.works)
        if self.next_prompt is not None and self.signal is None and not self.ends_turn:
            works.append(Work(type="skill", executor="converse", intention="Go on.", text_content=self.next_prompt))
        queued = QueueSteps(agent_id=step.agent_id, works=tuple(works), place="next")
        return (*self.intents, queued) if works else tuple(self.intents)


async def interpret_reply(reply_context: ReplyContext, reply: ModelReply) -> Interpretation:
    """Interpret the reply. Calls that end the work are handled last, regardless of their position."""
    interpretation = Interpretation()
    if not reply.calls:
        await _interpret_text(reply_context, interpretation, reply.text)
        return interpretation
    ends = [
        call
        for call in reply.calls
        if call.name in ENDING_CALLS and not call.unread and call.name in reply_context.role.offered_names
    ]
    for call in reply.calls:
        if call not in ends:
            _interpret_call(reply_context, interpretation, _read_call_by_name(reply_context.role, call))
    waits = any(call.name == "send_message" and call.arguments.get("waiting") for call in reply.calls)
    for call in ends:
        await _interpret_ending_call(reply_context, interpretation, call, waits=waits)
    _decide_next_turn(reply_context, interpretation, reply, waits=waits)
    return interpretation


def _read_call_by_name(role: Role, call: ToolCall) -> ToolCall:
    """Return a call of an agent by its name as the call `call_agent` that was meant."""
    if call.name in role.offered_names or call.name not in role.others or call.unread:
        return call
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    instruction = texts[0] if len(texts) == len(call.arguments) == 1 else encode(call.arguments).decode()
    return evolve(
        call,
        name=builtin_calls.CALL_AGENT.name,
        arguments={"agent_name": call.name, "instruction": instruction if call.arguments else ""},
    )


def _interpret_call(reply_context: ReplyContext, interpretation: Interpretation, call: ToolCall) -> None:
    if call.unread:
        interpretation.call_answers[call.call_id] = reply_context.render_notice(
            "unread", text=reply_context.reader.find_json_error(call.unread) if reply_context.reader else ""
        )
        interpretation.next_prompt = ""
    elif call.name in builtin_calls.RESERVED_NAMES and call.name not in reply_context.role.offered_names:
        interpretation.call_answers[call.call_id] = reply_context.render_notice(
            "no_call", name=call.name, names=", ".join(sorted(reply_context.role.offered_names))
        )
        interpretation.next_prompt = ""
    elif call.name == "send_message" and reply_context.role.handoff is not None:
        policy, clear = reply_context.role.handoff, reply_context.clear
        follows = builtin_calls.plan_handoff(reply_context.step, policy, call.arguments, clear=clear)
        if isinstance(follows, Work):
            interpretation.works.append(follows)
        else:
            interpretation.intents.append(follows)
        interpretation.ends_turn = True
    elif call.name in builtin_calls.IMMEDIATE_CALLS:
        interpretation.intents.append(builtin_calls.build_consequence(reply_context.step, call))
    elif reply_context.last:
        interpretation.call_answers[call.call_id] = reply_context.render_notice("no_more")
    elif (
        call.name == builtin_calls.CALL_AGENT.name
        and builtin_calls.read_text(call.arguments, "agent_name") not in reply_context.role.others
    ):
        name, others = repr(call.arguments.get("agent_name")), ", ".join(reply_context.role.others)
        interpretation.call_answers[call.call_id] = reply_context.render_notice("nobody", name=name, names=others)
        interpretation.next_prompt = ""
    else:
        if call.name == builtin_calls.CALL_AGENT.name:
            interpretation.intents.append(builtin_calls.build_agent_request(reply_context.step, call))
        work = Work(type="tool", executor=call.name, intention=f"Call {call.name}.", call_id=call.call_id)
        interpretation.works.append(evolve(work, instruction_content=call.arguments))
        interpretation.next_prompt = ""


async def _interpret_ending_call(
    reply_context: ReplyContext, interpretation: Interpretation, call: ToolCall, *, waits: bool
) -> None:
    """End the work only if nothing is pending: the results of other calls are still unknown."""
    if reply_context.has_unread_message:
        interpretation.call_answers[call.call_id] = reply_context.render_notice("not_yet")
        interpretation.ends_turn = True  # the next turn reads the new message
    elif interpretation.works or interpretation.next_prompt is not None or waits:
        interpretation.call_answers[call.call_id] = reply_context.render_notice("first")
    elif interpretation.signal is not None:
        interpretation.call_answers[call.call_id] = reply_context.render_notice("over")
    elif call.name == builtin_calls.ANSWER_CALL and reply_context.role.spec.answer is not None:
        await _interpret_answer(reply_context, interpretation, reply_context.role.spec.answer, call)
    elif _has_closing_step(reply_context) and not builtin_calls.has_given_up(call.arguments):
        interpretation.call_answers[call.call_id] = reply_context.render_notice("taken")
        files = builtin_calls.read_texts(call.arguments, "files")
        tests = builtin_calls.read_texts(call.arguments, "tests")
        text = builtin_calls.read_text(call.arguments, "summary")
        _end_work(reply_context, interpretation, CompletionSignal(source="finish", text=text, files=files, tests=tests))
    else:
        interpretation.intents.append(builtin_calls.build_consequence(reply_context.step, call))
        interpretation.signal = CompletionSignal(
            source="finish", text=builtin_calls.read_text(call.arguments, "summary")
        )


async def _interpret_answer(
    reply_context: ReplyContext, interpretation: Interpretation, schema: Data, call: ToolCall
) -> None:
    """End the work with a valid answer. Return an invalid answer with the reason, up to the retry limit."""
    given = builtin_calls.extract_answer(schema, call.arguments)
    value, wrong = await _check_answer(reply_context, given)
    if not wrong:
        interpretation.call_answers[call.call_id] = reply_context.render_notice("taken")
        _accept_answer(reply_context, interpretation, value, is_changed=value is not given)
        return
    interpretation.call_answers[call.call_id] = reply_context.render_notice("misfit", text=wrong)
    _ask_again(reply_context, interpretation, wrong, "")


async def _check_answer(reply_context: ReplyContext, value: object) -> tuple[object, str]:
    reader = reply_context.reader
    return (value, "") if reader is None else await reader.check_answer(reply_context.role.spec, value)


def reject_reply(reply_context: ReplyContext, why: str, prompt: str = "") -> Interpretation:
    """Reject a reply that tries to act in an invalid way."""
    interpretation = Interpretation()
    _ask_again(reply_context, interpretation, why, prompt or why)
    return interpretation


def _ask_again(reply_context: ReplyContext, interpretation: Interpretation, wrong: str, prompt: str) -> None:
    """Ask for the reply again, as often as the spec allows. Then the work has failed."""
    interpretation.misread = True
    if reply_context.misread < reply_context.role.spec.turn.repairs:
        interpretation.next_prompt = prompt
        return
    interpretation.failure = f"Its answer could not be used, {reply_context.misread + 1} times in a row: {wrong}."
    if reply_context.role.unattended and reply_context.step.answers is None:
        interpretation.intents.append(
            builtin_calls.build_finish(reply_context.step, interpretation.failure, failed=True)
        )


async def _interpret_text_answer(
    reply_context: ReplyContext, interpretation: Interpretation, schema: Data, text: str
) -> None:
    """Interpret an answer given as text: as JSON, or as itself where the schema takes a text."""
    reader = reply_context.reader
    given, wrong = _parse_text_answer(schema, text, reader.find_schema_error if reader else lambda *_: "")
    value = given
    if not wrong:
        value, wrong = await _check_answer(reply_context, given)
    if wrong:
        _ask_again(
            reply_context,
            interpretation,
            wrong,
            completion.render_nudge(reply_context.role.spec, "answer", empty=not text, why=wrong),
        )
    else:
        _accept_answer(reply_context, interpretation, value, is_changed=value is not given or given is text)


def _accept_answer(
    reply_context: ReplyContext, interpretation: Interpretation, value: object, *, is_changed: bool
) -> None:
    """End the work with a typed answer. One that the reply does not hold as such is stored beside it."""
    text = encode(value).decode()
    interpretation.accepted = text if is_changed else None
    _end_work(reply_context, interpretation, CompletionSignal(source="answer", text=text))


def _parse_text_answer(schema: Data, text: str, find_error: Callable[[Data, object], str]) -> tuple[object, str]:
    """Return the value of a text answer, and why it does not fit."""
    takes_text = bool(text) and not find_error(schema, text)
    try:
        value: object = json.decode(strip_code_fence(text))
    except (DecodeError, UnicodeEncodeError, RecursionError):
        return text, "" if takes_text else "it is text, not a call of `answer`"
    if isinstance(value, dict) and value.keys() == {VALUE_FIELD}:
        value = builtin_calls.extract_answer(schema, value)
    wrong = find_error(schema, value)
    return (text, "") if wrong and takes_text else (value, wrong)


def strip_code_fence(text: str) -> str:
    """Remove a code fence around the text."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text.strip()


def _decide_next_turn(
    reply_context: ReplyContext, interpretation: Interpretation, reply: ModelReply, *, waits: bool
) -> None:
    """Decide whether another turn follows calls that were executed immediately."""
    step = reply_context.step
    if interpretation.signal is not None or interpretation.ends_turn or interpretation.failure or interpretation.works:
        return
    if reply_context.last:
        if reply_context.role.unattended or step.answers is not None:
            _end_at_limit(reply_context, interpretation, reply.text)
        return
    sent = any(call.name == "send_message" for call in reply.calls)
    owes = step.answers is not None and not sent
    if (
        interpretation.next_prompt is None
        and (owes or (reply_context.role.unattended and reply_context.alone and step.answers is None))
        and not waits
    ):
        interpretation.next_prompt = ""


async def _interpret_text(reply_context: ReplyContext, interpretation: Interpretation, text: str) -> None:
    """Interpret a reply without calls: an owed answer, the end of the work, or neither."""
    step = reply_context.step
    if reply_context.role.spec.answer is not None:
        await _interpret_text_answer(reply_context, interpretation, reply_context.role.spec.answer, text)
        return
    if step.answers is not None:
        interpretation.intents.append(builtin_calls.build_response(step, text))
        return
    if not text and not reply_context.last:
        if reply_context.alone:
            interpretation.next_prompt = completion.render_nudge(
                reply_context.role.spec, reply_context.role.ends, empty=True
            )
        return
    over = completion.detect_completion(
        reply_context.role.ends, text, auto_complete=reply_context.role.auto_complete, nudges=reply_context.nudges
    )
    if not reply_context.role.unattended:
        if over == "mark" and reply_context.role.owns:
            _end_work(reply_context, interpretation, CompletionSignal(source="mark", text=text))
    elif reply_context.last:
        _end_at_limit(reply_context, interpretation, text)
    elif reply_context.alone and over is None:
        interpretation.next_prompt = completion.render_nudge(
            reply_context.role.spec, reply_context.role.ends, empty=False
        )
    elif reply_context.alone and over is not None:
        _end_work(reply_context, interpretation, completion.build_signal(over, text))


def _end_at_limit(reply_context: ReplyContext, interpretation: Interpretation, text: str) -> None:
    """End the work of an agent that may not act any more. An empty text does not count as an answer."""
    if reply_context.loop:
        _end_work(reply_context, interpretation, completion.build_signal("circles", text, reply_context.loop))
    elif text.strip() and reply_context.role.ends == "text":
        _end_work(reply_context, interpretation, CompletionSignal(source="text", text=text))
    else:
        _end_work(reply_context, interpretation, completion.build_signal("limit", text))


def _end_work(reply_context: ReplyContext, interpretation: Interpretation, signal: CompletionSignal) -> None:
    """End the work, with a summary or a proof step first if the spec requires it."""
    interpretation.signal = signal
    if reply_context.step.answers is not None:
        interpretation.intents.append(builtin_calls.build_response(reply_context.step, signal.text))
    elif not reply_context.role.owns or (signal.source == "answer" and not reply_context.role.unattended):
        return  # in a conversation with a person, a structured answer is a turn like any other
    else:
        interpretation.works += _list_closing_works(reply_context, signal)
        if not interpretation.works:
            text = completion.strip_mark(signal.text)
            interpretation.intents.append(
                builtin_calls.build_finish(reply_context.step, text, failed=signal.has_failed)
            )


def _must_save(reply_context: ReplyContext) -> bool:
    role = reply_context.role
    return role.owns and bool(role.spec.history.force_save_memory) and SAVE_MEMORY in role.offered_names


def _has_closing_step(reply_context: ReplyContext) -> bool:
    """Return whether a `finish` call is not yet the end."""
    is_open = reply_context.step.answers is None and reply_context.role.owns
    return bool(reply_context.role.spec.proof) or (is_open and bool(_list_closing_skills(reply_context)))


def _list_closing_skills(reply_context: ReplyContext) -> list[Work]:
    """List the skills that run once before the end of a task, if the agent's file or the settings want them."""
    closing = (
        (SAVE_MEMORY_SKILL, _must_save(reply_context), "Save what is worth remembering."),
        (RETROSPECT_SKILL, reply_context.role.spec.history.retrospective, "Look back at the work."),
    )
    return [
        Work(type="skill", executor=name, intention=intention)
        for name, is_wanted, intention in closing
        if is_wanted and name not in reply_context.closed
    ]


def _list_closing_works(reply_context: ReplyContext, signal: CompletionSignal) -> list[Work]:
    """List the steps between the end of an agent's work and the end of its task. The last one ends the task."""
    spec, text = reply_context.role.spec, completion.strip_mark(signal.text)
    if signal.has_failed:
        return []
    works = _list_closing_skills(reply_context)
    if spec.history.need_summary:
        works.append(Work(type="skill", executor=SUMMARIZE_SKILL, intention="Sum up the work."))
    elif spec.proof:
        works.append(builtin_calls.build_proof_step(spec.proof, text, signal.files, signal.tests))
    elif works:
        works.append(Work(type="skill", executor=END_WORK_SKILL, intention="End the work.", text_content=text))
    return works
