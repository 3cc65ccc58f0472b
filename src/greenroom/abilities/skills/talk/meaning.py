"""What a reply means: what is asked for, what each call is answered at once, and whether there is another turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec import DecodeError, json

from greenroom.abilities.skills.prompts.builder import say
from greenroom.abilities.skills.talk import endings, own
from greenroom.abilities.skills.talk.cast import Role
from greenroom.abilities.skills.talk.endings import Circle, CompletionSignal
from greenroom.abilities.skills.talk.reply import Reply
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.model import ToolCall
from greenroom.core.ports.reading import Reader
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, Work

ENDS: Final = frozenset({"finish", own.ANSWER})
SUMMED_UP: Final = "summarize"
"""The skill that ends the work of an agent which is to sum it up."""


@dataclass(slots=True, kw_only=True)
class Situation:
    """In which a reply of this `role` is read. `alone` says that the thread has no other open step.

    `last` is the turn in which the agent must not act any more, because it went in `circles` or as often as it may;
    `told` that somebody has said something that it has not read.
    """

    step: Step
    role: Role
    alone: bool
    last: bool
    circles: Circle | None
    nudges: int
    misread: int
    told: bool
    reader: Reader | None

    def says(self, what: str, *, name: str = "", names: str = "", text: str = "") -> str:
        """What the agent is told of a call, in its language."""
        return say(self.role.spec.language, what, name=name, names=names, text=text)


@dataclass(slots=True)
class Meaning:
    """Filled while a reply is read. `signal` is the end of the work, `pauses` only that of the turn."""

    intents: list[Consequence] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    misread: bool = False
    again: str | None = None
    signal: CompletionSignal | None = None
    pauses: bool = False

    def consequences(self, step: Step) -> tuple[Consequence, ...]:
        """All that is asked for: first what the house does itself, then the steps, then another turn."""
        works = list(self.works)
        if self.again is not None and self.signal is None and not self.pauses:
            works.append(Work(type="skill", executor="converse", intention="Go on.", text_content=self.again))
        queued = QueueSteps(agent_id=step.agent_id, works=tuple(works), place="next")
        return (*self.intents, queued) if works else tuple(self.intents)


def read(here: Situation, reply: Reply) -> Meaning:
    """What the reply means. What ends the work comes last, whatever place it has among the calls."""
    meaning = Meaning()
    if not reply.calls:
        _text(here, meaning, reply.text)
        return meaning
    ends = [call for call in reply.calls if call.name in ENDS and not call.unread and call.name in here.role.offered]
    for call in reply.calls:
        if call not in ends:
            _call(here, meaning, call)
    waits = any(call.name == "send_message" and call.arguments.get("waiting") for call in reply.calls)
    for call in ends:
        _ending(here, meaning, call, waits=waits)
    _after_calls(here, meaning, reply, waits=waits)
    return meaning


def _call(here: Situation, meaning: Meaning, call: ToolCall) -> None:
    if call.unread:
        meaning.told[call.call_id] = here.says("unread", text=here.reader.flaw(call.unread) if here.reader else "")
        meaning.again = ""
    elif call.name in own.HOUSE and call.name not in here.role.offered:
        meaning.told[call.call_id] = here.says("no_call", name=call.name, names=", ".join(sorted(here.role.offered)))
        meaning.again = ""
    elif call.name in own.OWN:
        meaning.intents.append(own.done(here.step, call))
    elif here.last:
        meaning.told[call.call_id] = here.says("no_more")
    elif call.name == own.CALL_AGENT.name and own.words(call.arguments, "agent_name") not in here.role.others:
        name, others = repr(call.arguments.get("agent_name")), ", ".join(here.role.others)
        meaning.told[call.call_id] = here.says("nobody", name=name, names=others)
        meaning.again = ""
    else:
        if call.name == own.CALL_AGENT.name:
            meaning.intents.append(own.called(here.step, call))
        work = Work(type="tool", executor=call.name, intention=f"Call {call.name}.", call_id=call.call_id)
        meaning.works.append(evolve(work, instruction_content=call.arguments))
        meaning.again = ""


def _ending(here: Situation, meaning: Meaning, call: ToolCall, *, waits: bool) -> None:
    """The work is over only when nothing is left to be read: nobody knows yet what comes of the other calls."""
    if here.told:
        meaning.told[call.call_id] = here.says("not_yet")
        meaning.pauses = True  # what was said is read in the next turn
    elif meaning.works or meaning.again is not None or waits:
        meaning.told[call.call_id] = here.says("first")
    elif meaning.signal is not None:
        meaning.told[call.call_id] = here.says("over")
    elif call.name == own.ANSWER and here.role.spec.answer is not None:
        _answer(here, meaning, here.role.spec.answer, call)
    elif here.role.spec.proof and not own.gave_up(call.arguments):
        meaning.told[call.call_id] = here.says("taken")
        files, tests = own.listed(call.arguments, "files"), own.listed(call.arguments, "tests")
        text = own.words(call.arguments, "summary")
        _end(here, meaning, CompletionSignal(source="finish", text=text, files=files, tests=tests))
    else:
        meaning.intents.append(own.done(here.step, call))
        meaning.signal = CompletionSignal(source="finish", text=own.words(call.arguments, "summary"))


def _answer(here: Situation, meaning: Meaning, schema: Data, call: ToolCall) -> None:
    """An answer that fits ends the work. One that does not comes back with the reason, a few times."""
    value = own.given(schema, call.arguments)
    wrong = here.reader.misfit(schema, value) if here.reader else ""
    if not wrong:
        meaning.told[call.call_id] = here.says("taken")
        _end(here, meaning, CompletionSignal(source="answer", text=encode(value).decode()))
        return
    meaning.told[call.call_id] = here.says("misfit", text=wrong)
    _misread(here, meaning, wrong, "")


def misread(here: Situation, why: str, told: str = "") -> Meaning:
    """What a reply means that wants to act, but not so that anybody may do it."""
    meaning = Meaning()
    _misread(here, meaning, why, told or why)
    return meaning


def _misread(here: Situation, meaning: Meaning, wrong: str, told: str) -> None:
    """What cannot be used is asked for again, as often as the spec allows; then the work has failed."""
    meaning.misread = True
    if here.misread < here.role.spec.turn.repairs:
        meaning.again = told
        return
    meaning.failed = f"Its answer could not be used, {here.misread + 1} times in a row: {wrong}."
    if here.role.unattended and here.step.answers is None:
        meaning.intents.append(own.ended(here.step, meaning.failed, failed=True))


def _answer_in_text(here: Situation, meaning: Meaning, schema: Data, text: str) -> None:
    """Who cannot call gives the answer as JSON."""
    try:
        value: object = json.decode(unfenced(text))
        wrong = here.reader.misfit(schema, value) if here.reader else ""
    except (DecodeError, UnicodeEncodeError, RecursionError):
        value, wrong = None, "it is text, not a call of `answer`"
    if wrong:
        _misread(here, meaning, wrong, endings.nudge(here.role.spec, "answer", empty=not text, why=wrong))
    else:
        _end(here, meaning, CompletionSignal(source="answer", text=encode(value).decode()))


def unfenced(text: str) -> str:
    """The text without a code fence around it."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text.strip()


def _after_calls(here: Situation, meaning: Meaning, reply: Reply, *, waits: bool) -> None:
    """Whether there is another turn after calls that the house has done itself."""
    step = here.step
    if meaning.signal is not None or meaning.pauses or meaning.failed or meaning.works:
        return
    if here.last:
        if here.role.unattended or step.answers is not None:
            _end_at_limit(here, meaning, reply.text)
        return
    sent = any(call.name == "send_message" for call in reply.calls)
    owes = step.answers is not None and not sent
    if meaning.again is None and (owes or (here.role.unattended and here.alone and step.answers is None)) and not waits:
        meaning.again = ""


def _text(here: Situation, meaning: Meaning, text: str) -> None:
    """A reply without calls: an answer that is owed, the end of the work, or neither."""
    step = here.step
    if here.role.spec.answer is not None:
        _answer_in_text(here, meaning, here.role.spec.answer, text)
        return
    if step.answers is not None:
        meaning.intents.append(own.reply(step, text))
        return
    if not text and not here.last:
        if here.alone:
            meaning.again = endings.nudge(here.role.spec, here.role.ends, empty=True)
        return
    over = endings.is_over(here.role.ends, text, auto_complete=here.role.auto_complete, nudges=here.nudges)
    if not here.role.unattended:
        if over == "mark" and here.role.owns:
            _end(here, meaning, CompletionSignal(source="mark", text=text))
    elif here.last:
        _end_at_limit(here, meaning, text)
    elif here.alone and over is None:
        meaning.again = endings.nudge(here.role.spec, here.role.ends, empty=False)
    elif here.alone and over is not None:
        _end(here, meaning, endings.signal(over, text))


def _end_at_limit(here: Situation, meaning: Meaning, text: str) -> None:
    """Whoever may not act any more has said all that it will; to have said nothing is no answer."""
    if here.circles:
        _end(here, meaning, endings.signal("circles", text, here.circles))
    elif text.strip() and here.role.ends == "text":
        _end(here, meaning, CompletionSignal(source="text", text=text))
    else:
        _end(here, meaning, endings.signal("limit", text))


def _end(here: Situation, meaning: Meaning, signal: CompletionSignal) -> None:
    """The work is over, as far as this agent can say so; with a summary where one is wanted."""
    meaning.signal = signal
    if here.step.answers is not None:
        meaning.intents.append(own.reply(here.step, signal.text))
    elif not here.role.owns or (signal.source == "answer" and not here.role.unattended):
        return  # to somebody who talks with the agent, an answer of some shape is a turn like any other
    elif here.role.spec.history.need_summary and not signal.failed:
        meaning.works.append(Work(type="skill", executor=SUMMED_UP, intention="Sum up the work."))
    elif here.role.spec.proof and not signal.failed:
        meaning.works.append(
            own.proving(here.role.spec.proof, endings.without_mark(signal.text), signal.files, signal.tests)
        )
    else:
        meaning.intents.append(own.ended(here.step, endings.without_mark(signal.text), failed=signal.failed))
