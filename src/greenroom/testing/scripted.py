"""A model that follows a script. Cues match the state (agent, skill, thread, turn), never the wording of a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeAlias

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    Purpose,
    ToolCall,
    Usage,
)


@record
class ScriptedCall:
    """A tool call in a scripted reply."""

    name: str
    arguments: Data


@record
class ScriptedReply:
    """The text, calls and cost of a reply."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    spent: Amounts = Amounts(tokens=50)


ReplyMaker: TypeAlias = ScriptedReply | Callable[[ModelRequest], ScriptedReply]


@record
class Cue:
    """When to give a reply. None matches anything; the most specific cue wins. A step that owes an answer matches only
    `answering` cues."""

    reply: ReplyMaker
    agent: str | None = None
    skill: str | None = None
    thread: str | None = None
    turn: int | None = None
    answering: bool = False

    def matches(self, purpose: Purpose) -> bool:
        """Return whether this cue matches the purpose."""
        conditions = ((self.agent, purpose.agent), (self.skill, purpose.skill), (self.thread, purpose.thread))
        if self.answering != purpose.answering or self.turn not in (None, purpose.turn):
            return False
        return all(expected is None or expected == actual for expected, actual in conditions)

    @property
    def exactness(self) -> int:
        """The number of conditions."""
        return sum(condition is not None for condition in (self.agent, self.skill, self.thread, self.turn))


class ScriptedModel:
    """A model with scripted replies. A turn without a cue fails with an explanation. `pace` is in seconds per reply."""

    name = "scripted:script"

    def __init__(self, cues: Iterable[Cue], *, pace: float = 0.0) -> None:
        self._cues = sorted(cues, key=lambda cue: -cue.exactness)
        self._pace = pace
        self.purposes: list[Purpose] = []

    @property
    def card(self) -> ModelCard:
        """A card with an unlimited window."""
        return ModelCard(family="scripted", window=1_000_000)

    def get_model(self, _: str) -> ScriptedModel:
        """Return this model for every name."""
        return self

    def price(self, _: int, __: int) -> int | None:
        """Return 0: a script costs nothing."""
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream the reply of the most specific cue."""
        purpose = request.purpose
        self.purposes.append(purpose)
        cue = next((cue for cue in self._cues if cue.matches(purpose)), None)
        if cue is None:
            why = (
                f"The script has no reply for {purpose.agent!r} in {purpose.skill!r}, thread {purpose.thread!r}, "
                f"turn {purpose.turn}. Add a cue for it."
            )
            yield Failed(kind="request", why=why)
            return
        reply = cue.reply if isinstance(cue.reply, ScriptedReply) else cue.reply(request)
        words = reply.text.split(" ") if reply.text else []
        for index, word in enumerate(words):
            await asyncio.sleep(self._pace / (len(words) + 1))
            yield ModelTextDelta(text=word if index == 0 else f" {word}")
        await asyncio.sleep(self._pace / (len(words) + 1))
        for number, call in enumerate(reply.calls, start=1):
            yield ToolCall(call_id=f"{purpose.step}/{number}", name=call.name, arguments=call.arguments)
        yield Usage(output=reply.spent.tokens, money=reply.spent.money)
        yield Finished(reason="calls" if reply.calls else "stop")
