"""What a reply means: what is asked for, what each call is answered at once, and whether there is another turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec import DecodeError, json

from greenroom.abilities.skills.talk import endings, own
from greenroom.abilities.skills.talk.reply import Reply
from greenroom.core.base.records import Data, encode
from greenroom.core.ports.model import ToolCall
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.spec import AgentSpec, Ends
from greenroom.core.state.step import Step, Work

NO_MORE: Final = "Not run: you were told to answer without calls."
NOT_YET: Final = "Not yet: you were told something more. Read it first."
SUMMED_UP: Final = "summarize"
"""The skill that ends the work of an agent which is to sum it up."""


@dataclass(slots=True, kw_only=True)
class Situation:
    """In which a reply is read. `alone` says that the thread has no other open step.

    `unattended` work goes on until it is over, because nobody is there to say how; `last` is the turn in which the
    agent must not act any more; `told` that somebody has said something that it has not read.
    """

    step: Step
    spec: AgentSpec
    ends: Ends
    auto_complete: bool
    unattended: bool
    owns: bool
    alone: bool
    last: bool = False
    nudges: int = 0
    misread: int = 0
    others: tuple[str, ...] = ()
    told: bool = False
    misfit: Callable[[Data, object], str]


@dataclass(slots=True)
class Meaning:
    """Filled while a reply is read."""

    intents: list[Consequence] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    misread: bool = False
    again: str | None = None
    over: bool = False

    def consequences(self, step: Step) -> tuple[Consequence, ...]:
        """All that is asked for: first what the house does itself, then the steps, then another turn."""
        works = list(self.works)
        if self.again is not None and not self.over:
            works.append(Work(type="skill", executor="converse", intention="Go on.", text_content=self.again))
        queued = QueueSteps(agent_id=step.agent_id, works=tuple(works), place="next")
        return (*self.intents, queued) if works else tuple(self.intents)


def read(here: Situation, reply: Reply) -> Meaning:
    """What the reply means."""
    meaning = Meaning()
    if reply.calls:
        for call in reply.calls:
            _call(here, meaning, call)
        _after_calls(here, meaning, reply)
    else:
        _text(here, meaning, reply.text)
    return meaning


def _call(here: Situation, meaning: Meaning, call: ToolCall) -> None:
    if call.unread:
        meaning.again = ""  # it is told that nobody can read it: see the transcript
    elif call.name in ("finish", own.ANSWER) and here.told:
        meaning.told[call.call_id] = NOT_YET
        meaning.over = True  # of this turn: what was said is read in the next one
    elif call.name in own.OWN:
        meaning.intents.append(own.done(here.step, call))
        meaning.over = meaning.over or call.name == "finish"
    elif call.name == own.ANSWER and here.spec.answer is not None:
        _answer(here, meaning, here.spec.answer, call)
    elif here.last:
        meaning.told[call.call_id] = NO_MORE
    else:
        if call.name == own.CALL_AGENT.name and here.spec.calls and not _calls(here, meaning, call):
            return
        meaning.works.append(_tool(call))
        meaning.again = ""


def _calls(here: Situation, meaning: Meaning, call: ToolCall) -> bool:
    """Ask the agent that is called; False when nobody of that name may be."""
    meaning.again = ""
    if own.words(call.arguments, "agent_name") not in here.others:
        name = call.arguments.get("agent_name")
        meaning.told[call.call_id] = f"Not called: there is no {name!r} here. You can call: {', '.join(here.others)}."
        return False
    meaning.intents.append(own.called(here.step, call))
    return True


def _answer(here: Situation, meaning: Meaning, schema: Data, call: ToolCall) -> None:
    """An answer that fits ends the work. One that does not comes back with the reason, a few times."""
    value = own.given(schema, call.arguments)
    wrong = here.misfit(schema, value)
    if not wrong:
        meaning.told[call.call_id] = "Taken."
        _end(here, meaning, encode(value).decode())
        return
    meaning.told[call.call_id] = f"Not taken: {wrong}. Give the whole answer again."
    _misread(here, meaning, wrong, "")


def misread(here: Situation, why: str, told: str = "") -> Meaning:
    """What a reply means that wants to act, but not so that anybody may do it."""
    meaning = Meaning()
    _misread(here, meaning, why, told or why)
    return meaning


def _misread(here: Situation, meaning: Meaning, wrong: str, told: str) -> None:
    """What cannot be used is asked for again, as often as the spec allows; then the work has failed."""
    meaning.misread = True
    if here.misread < here.spec.turn.repairs:
        meaning.again = told
        return
    meaning.failed = f"Its answer could not be used, {here.misread + 1} times in a row: {wrong}."
    if here.unattended and here.step.answers is None:
        meaning.intents.append(own.ended(here.step, meaning.failed, failed=True))


def _answer_in_text(here: Situation, meaning: Meaning, schema: Data, text: str) -> None:
    """Who cannot call gives the answer as JSON."""
    try:
        value: object = json.decode(unfenced(text))
        wrong = here.misfit(schema, value)
    except (DecodeError, UnicodeEncodeError, RecursionError):
        value, wrong = None, "it is text, not a call of `answer`"
    if wrong:
        _misread(here, meaning, wrong, endings.nudge(here.spec, "answer", empty=not text, why=wrong))
    else:
        _end(here, meaning, encode(value).decode())


def unfenced(text: str) -> str:
    """The text without a code fence around it."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text.strip()


def _after_calls(here: Situation, meaning: Meaning, reply: Reply) -> None:
    """Whether there is another turn after calls that the house has done itself."""
    step = here.step
    if meaning.over or meaning.failed or meaning.works:
        return
    if here.last:
        if here.unattended or step.answers is not None:
            _end(here, meaning, reply.text, failed=here.ends != "text")
        return
    sent = any(call.name == "send_message" for call in reply.calls)
    waits = any(call.name == "send_message" and call.arguments.get("waiting") for call in reply.calls)
    owes = step.answers is not None and not sent
    if meaning.again is None and (owes or (here.unattended and here.alone and step.answers is None)) and not waits:
        meaning.again = ""


def _text(here: Situation, meaning: Meaning, text: str) -> None:
    """A reply without calls: an answer that is owed, the end of the work, or neither."""
    step = here.step
    if here.spec.answer is not None:
        _answer_in_text(here, meaning, here.spec.answer, text)
        return
    if step.answers is not None:
        meaning.intents.append(own.reply(step, text))
        return
    if not text and not here.last:
        if here.alone:
            meaning.again = endings.nudge(here.spec, here.ends, empty=True)
        return
    over = endings.is_over(here.ends, text, auto_complete=here.auto_complete, nudges=here.nudges)
    if not here.unattended:
        if over == "yes" and here.ends == "mark" and here.owns:
            _end(here, meaning, text)
    elif here.last:
        _end(here, meaning, text, failed=here.ends != "text")
    elif here.alone:
        _go_on_or_end(here, meaning, text, over)


def _go_on_or_end(here: Situation, meaning: Meaning, text: str, over: endings.Over) -> None:
    match over:
        case "no":
            meaning.again = endings.nudge(here.spec, here.ends, empty=False)
        case "never":
            _end(here, meaning, f"It never said that it was done. Its last words: {text}", failed=True)
        case _:
            _end(here, meaning, text)


def _end(here: Situation, meaning: Meaning, text: str, *, failed: bool = False) -> None:
    """The work is over, as far as this agent can say so; with a summary where one is wanted."""
    meaning.over = True
    if here.step.answers is not None:
        meaning.intents.append(own.reply(here.step, text))
    elif not here.owns:
        return
    elif here.spec.history.need_summary and not failed:
        meaning.works.append(Work(type="skill", executor=SUMMED_UP, intention="Sum up the work."))
    else:
        meaning.intents.append(own.ended(here.step, endings.without_mark(text), failed=failed))


def _tool(call: ToolCall) -> Work:
    return Work(
        type="tool",
        executor=call.name,
        intention=f"Call {call.name}.",
        instruction_content=call.arguments,
        call_id=call.call_id,
    )
