"""Transcripts: what was said in a thread, as messages. Each ended step is read once, however long the talk becomes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, cast

from greenroom.abilities.skills.prompts.builder import PACK, say
from greenroom.abilities.skills.talk.endings import Circles
from greenroom.abilities.skills.talk.own import OWN
from greenroom.core.base.ids import TeamId, ThreadId, sender_of
from greenroom.core.base.records import Data
from greenroom.core.base.text import fenced
from greenroom.core.ports.model import ChatMessage, Opaque, ToolCall
from greenroom.core.state.origin import untrusted
from greenroom.core.state.step import Step
from greenroom.core.state.world import World


def begins(step: Step) -> bool:
    """Whether somebody gives the agent something to do with it: a person, the house, another agent. Word of what it has
    asked for itself is nothing new: else it could go on for ever by asking once more."""
    if step.goes_on:
        return False
    said = bool((step.work.instruction_content or {}).get("begins"))
    return step.cause is None or step.message_id is not None or said


def from_people(world: World, step: Step) -> bool:
    """Whether those say it for whom the agent works: a person, or the house that hands out their tasks."""
    if step.message_id is None:
        told = (step.work.instruction_content or {}).get("people", step.cause is None)
        return bool(told) and not step.goes_on
    known = world.agents.get(sender_of(step.message_id))
    return known is not None and known.spec.kind == "human"


def told_meanwhile(world: World, step: Step) -> bool:
    """Whether somebody for whom the agent works has said something in this conversation that waits to be read."""
    others = (one for one in world.steps_of(step.agent_id) if one.thread_id == step.thread_id)
    return any(
        one.step_id != step.step_id and one.work.executor == "converse" and from_people(world, one) for one in others
    )


def origin(world: World, step: Step) -> Data:
    """What a turn that is put off tells the one that takes its place."""
    return {"begins": begins(step), "people": from_people(world, step)}


INTERRUPTED: Final = " […]"
"""What an agent reads at the end of its own words when a person did not let it finish them."""

KEPT: Final = 4096
"""Threads whose messages are kept in memory; the others are read again."""

BYTES_PER_TOKEN: Final = 3
"""Of what no provider has counted yet: English has four and more, Chinese about three."""

MOST_BYTES: Final = 8
"""What a token has at most, about: a provider that counts fewer has not counted all."""


class Transcript:
    """One thread's messages. They only grow at the end: each keeps its bytes, and every prefix stays the same.

    `native` is whether calls and their results are told as such; if not, all is text. `turns` are all turns, `rounds`
    those since the agent was last given something to do in which it acted, `nudges` those in which it only talked.
    `returned` is what a tool has answered in the agent's place since it last spoke, `size` how many bytes there are.
    """

    def __init__(self, *, native: bool = True, language: str = "") -> None:
        self.messages: list[ChatMessage] = []
        self.native = native
        self.language = language
        self.turns = self.empty = self.rounds = self.nudges = self.misread = self.fresh = self.stuck = 0
        self.returned: str | None = None
        self.circles = Circles()
        self.size = 0
        self._counted = self._uncounted = self._read = self._begins = 0

    @property
    def last_words(self) -> str:
        """What the agent said last."""
        return next((one.content for one in reversed(self.messages) if one.role == "assistant" and one.content), "")

    def tokens(self, size: int) -> int:
        """About how many tokens a request has: what the provider counted last, or `size` bytes, and what came since."""
        counted = (self._counted or size // BYTES_PER_TOKEN) + self._uncounted // BYTES_PER_TOKEN
        return max(counted, (size + self.size) // MOST_BYTES)

    def at(self, step: Step) -> None:
        """A turn with which somebody gives the agent something to do: what is counted is counted from here."""
        if begins(step):
            self.rounds = self.nudges = self.misread = 0
            self.circles.begin()

    def fits(self, history: Sequence[Step]) -> bool:
        """Whether this is how the history begins; its window may have moved, or its thread be another one's."""
        return self._read == 0 or (len(history) >= self._read and history[0].ended_in == self._begins)

    def follow(self, history: Sequence[Step]) -> None:
        """Read what ended since. What sums up stands before what it has left over."""
        if self._read == 0:
            for step in history:
                if step.work.executor == "compact":
                    self._say(told(step, native=self.native, language=self.language))
        for place in range(self._read, len(history)):
            self._take(history[place])
        self._read = len(history)
        self._begins = history[0].ended_in if history else 0

    def _say(self, messages: Sequence[ChatMessage]) -> None:
        self.messages += messages
        size = sum(len(one.content.encode()) for one in messages)
        self._uncounted += size
        self.size += size

    def _take(self, step: Step) -> None:
        if step.work.executor == "compact":
            self.stuck = 0 if step.state == "finished" else self.stuck + 1
            if not self.stuck:  # what the provider counted before was another conversation
                self.fresh, self._counted, self._uncounted = 0, 0, self.size
            return
        self._say(told(step, native=self.native, language=self.language))
        if step.work.type == "tool" and step.state == "finished" and (step.result or {}).get("need_return"):
            self.returned = str((step.result or {}).get("output", ""))
        if step.work.type == "tool":
            self.circles.take(step)
        if step.work.executor == "converse":
            self._count(step, step.result or {})

    def _count(self, step: Step, result: Data) -> None:
        if "deferred" in result:
            return
        self.turns += step.answers is None
        self.returned = None
        self.fresh += 1
        self.at(step)
        if "circles" in result:
            self.circles.tell()
        calls = _items(result, "calls")
        if all("told" in call for call in calls):  # all answered at once: no step of theirs tells of them
            for call in calls:
                self.circles.made(str(call["name"]), call.get("arguments"), "", str(call["told"]))
        acted, said = bool(result.get("calls")), bool(result.get("text"))
        self.misread = self.misread + 1 if "misread" in result else 0
        self.rounds += acted
        self.nudges = self.nudges + 1 if said and not acted and "misread" not in result else 0
        self.empty = 0 if said or acted else self.empty + 1
        usage = result.get("usage")
        if isinstance(usage, dict):
            self._counted, self._uncounted = int(usage.get("input", 0)) + int(usage.get("output", 0)), 0


class Transcripts:
    """The transcripts of all threads by team. A cache: everything in it can be read again."""

    def __init__(self) -> None:
        self._kept: dict[TeamId, OrderedDict[ThreadId, Transcript]] = {}

    def of(
        self, team: TeamId, thread: ThreadId, history: Sequence[Step], *, native: bool = True, language: str = ""
    ) -> Transcript:
        """The thread's transcript, up to now. A skill may serve several teams, whose threads are called alike."""
        kept = self._kept.setdefault(team, OrderedDict())
        found = kept.get(thread)
        alike = found is not None and (found.native, found.language) == (native, language)
        if found is None or not alike or not found.fits(history):
            found = kept[thread] = Transcript(native=native, language=language)
            if len(kept) > KEPT:
                kept.popitem(last=False)
        else:
            kept.move_to_end(thread)
        found.follow(history)
        return found

    def forget(self, team: TeamId) -> None:
        """The team is closed here."""
        self._kept.pop(team, None)


def told(step: Step, *, native: bool = True, language: str = "") -> list[ChatMessage]:
    """What an ended step looks like in the conversation."""
    result = step.result or {}
    if step.work.executor == "compact":
        spoken = str(result.get("language", ""))
        return [ChatMessage(role="user", content=summed_up(result, spoken))] if step.state == "finished" else []
    if step.work.executor == "filter_tools":
        return []
    if "deferred" in result:
        # Its question is asked by the step after it; only a person's turn does not know what this one would have said.
        said = step.work.text_content if result["deferred"] == "told" else ""
        return [ChatMessage(role="user", content=said)] if said else []
    if step.work.type == "tool":
        return [_brought(step, result, native=native, language=language)]
    question = str(result.get("asked", step.work.text_content))
    found = [ChatMessage(role="user", content=question)] if question else []
    if step.result is None and step.state != "finished":
        return found  # nothing was answered: an error of ours is not what the model said
    calls = calls_of(result) if native else ()
    cut = INTERRUPTED if step.state == "cancelled" else ""
    found.append(
        ChatMessage(
            role="assistant",
            content=str(result.get("text", "")) + cut,
            calls=calls,
            reasoning=str(result.get("reasoning", "")),
            opaque=tuple(_opaque(one) for one in _items(result, "opaque")),
        )
    )
    # Tools are steps of their own and answer for themselves; what the house does itself is answered here.
    answers = answers_of(result, language) if native else {}
    return [*found, *(ChatMessage(role="tool", content=text, call_id=name) for name, text in answers.items())]


def _brought(step: Step, result: Data, *, native: bool, language: str) -> ChatMessage:
    """What a tool has brought. What strangers may have written stands in a fence, behind where it comes from."""
    # Of a call that was cut off, what it had said by then is worth knowing too.
    said = str(result.get("output", "" if step.error else result))
    content = "\n".join(part for part in (step.error, said) if part)
    strange = ", ".join(untrusted(step.origins))
    if native and step.work.call_id is not None:
        shown = say(language, "data", name=strange, text=fenced(content)) if strange else content
        return ChatMessage(role="tool", content=shown, call_id=step.work.call_id)
    shown = say(language, "result", name=step.work.executor, names=strange, text=fenced(content))
    return ChatMessage(role="user", content=shown)


def summed_up(result: Data, language: str) -> str:
    """What a conversation begins with that was summed up."""
    return PACK.render(language, "summed_up", result)


def answers_of(result: Data, language: str = "") -> dict[str, str]:
    """What is answered at once to calls of a reply that is in the log, by call."""
    found: dict[str, str] = {}
    for one in _items(result, "calls"):
        if "told" in one:
            found[str(one["id"])] = str(one["told"])
        elif one.get("unread"):
            found[str(one["id"])] = say(language, "unread")
        elif one["name"] in OWN:
            found[str(one["id"])] = say(language, "taken_up")
    return found


def _opaque(kept: dict[str, Any]) -> Opaque:
    return Opaque(provider=str(kept["provider"]), data=kept["data"])


def calls_of(result: Data) -> tuple[ToolCall, ...]:
    """The calls of a reply that is in the log."""
    return tuple(
        ToolCall(
            call_id=str(one["id"]),
            name=str(one["name"]),
            arguments=one["arguments"],
            unread=str(one.get("unread", "")),
            extra=_opaque(one["extra"]) if "extra" in one else None,
        )
        for one in _items(result, "calls")
    )


def _items(result: Data, name: str) -> list[dict[str, Any]]:
    found = result.get(name, ())
    items = found if isinstance(found, list | tuple) else ()
    return [cast("dict[str, Any]", one) for one in items if isinstance(one, dict)]
