"""Transcripts: what was said in a thread, as messages. Each ended step is read once, however long the talk becomes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, cast

from greenroom.core.base.ids import TeamId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.model import ChatMessage, Opaque, ToolCall
from greenroom.core.state.step import Step

OWN: Final = frozenset({"send_message", "post_note", "finish"})
"""Calls that are no tools: the house does them itself."""

TAKEN: Final = "Taken up. If it was refused, you are told in the next message."

UNREAD: Final = "Not run: its arguments are not a JSON object. Make the call again."

KEPT: Final = 4096
"""Threads whose messages are kept in memory; the others are read again."""


class Transcript:
    """One thread's messages. They only grow at the end: each keeps its bytes, and every prefix stays the same."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        self.turns = 0
        self.empty = 0
        self._read = 0
        self._begins = 0

    def fits(self, history: Sequence[Step]) -> bool:
        """Whether this is how the history begins; its window may have moved, or its thread be another one's."""
        return self._read == 0 or (len(history) >= self._read and history[0].ended_in == self._begins)

    def follow(self, history: Sequence[Step]) -> None:
        """Read what ended since."""
        for place in range(self._read, len(history)):
            self._take(history[place])
        self._read = len(history)
        self._begins = history[0].ended_in if history else 0

    def _take(self, step: Step) -> None:
        self.messages += told(step)
        if step.work.executor != "converse":
            return
        self.turns += step.answers is None
        result = step.result or {}
        self.empty = self.empty + 1 if not (result.get("text") or result.get("calls")) else 0


class Transcripts:
    """The transcripts of all threads. A cache: everything in it can be read again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[TeamId, ThreadId], Transcript] = OrderedDict()

    def of(self, team: TeamId, name: ThreadId, history: Sequence[Step]) -> Transcript:
        """The thread's transcript, up to now. A skill may serve several teams, whose threads are called alike."""
        thread = (team, name)
        found = self._kept.get(thread)
        if found is None or not found.fits(history):
            found = self._kept[thread] = Transcript()
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(thread)
        found.follow(history)
        return found


def told(step: Step) -> list[ChatMessage]:
    """What an ended step looks like in the conversation."""
    result = step.result or {}
    if step.work.type == "tool":
        content = step.error or str(result.get("output", result))
        return [ChatMessage(role="tool", content=content, call_id=step.work.call_id)]
    question = str(result.get("asked", step.work.text_content))
    found = [ChatMessage(role="user", content=question)] if question else []
    if step.result is None and step.state != "finished":
        return found  # nothing was answered: an error of ours is not what the model said
    calls = calls_of(result)
    found.append(
        ChatMessage(
            role="assistant",
            content=str(result.get("text", "")),
            calls=calls,
            reasoning=str(result.get("reasoning", "")),
            opaque=tuple(_opaque(one) for one in _items(result, "opaque")),
        )
    )
    # Tools are steps of their own and answer for themselves; what the house does itself is answered here.
    answers = [(one, UNREAD if one.unread else TAKEN) for one in calls if one.unread or one.name in OWN]
    return [*found, *(ChatMessage(role="tool", content=text, call_id=one.call_id) for one, text in answers)]


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
