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
    Purpose,
    TextDelta,
    ToolCall,
    Usage,
)


@record
class Call:
    """A tool call in a scripted reply."""

    name: str
    arguments: Data


@record
class Reply:
    """What the model says, does and costs."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    spent: Amounts = Amounts(tokens=50)


ReplyMaker: TypeAlias = Reply | Callable[[ModelRequest], Reply]


@record
class Cue:
    """When to give a reply. What is None fits anything; the most exact cue wins.

    A step that owes somebody an answer gets only `answering` cues.
    """

    reply: ReplyMaker
    agent: str | None = None
    skill: str | None = None
    thread: str | None = None
    turn: int | None = None
    answering: bool = False

    def fits(self, purpose: Purpose) -> bool:
        """Whether this cue is for that moment."""
        asked = ((self.agent, purpose.agent), (self.skill, purpose.skill), (self.thread, purpose.thread))
        if self.answering != purpose.answering or self.turn not in (None, purpose.turn):
            return False
        return all(own is None or own == theirs for own, theirs in asked)

    @property
    def exactness(self) -> int:
        """How many things it asks for."""
        return sum(one is not None for one in (self.agent, self.skill, self.thread, self.turn))


class ScriptedModel:
    """Replies are scripted; an uncovered turn says so and fails. `pace` is the time a reply takes, in seconds."""

    name = "scripted:script"

    def __init__(self, cues: Iterable[Cue], *, pace: float = 0.0) -> None:
        self._cues = sorted(cues, key=lambda cue: -cue.exactness)
        self._pace = pace
        self.asked: list[Purpose] = []

    @property
    def card(self) -> ModelCard:
        """A script remembers everything."""
        return ModelCard(family="scripted", window=1_000_000)

    def named(self, _: str) -> ScriptedModel:
        """One script for everybody, whatever model they would have."""
        return self

    def price(self, _: int, __: int) -> int | None:
        """A script costs nothing."""
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The reply of the most exact cue."""
        purpose = request.purpose
        self.asked.append(purpose)
        cue = next((cue for cue in self._cues if cue.fits(purpose)), None)
        if cue is None:
            why = (
                f"The script has no reply for {purpose.agent!r} in {purpose.skill!r}, thread {purpose.thread!r}, "
                f"turn {purpose.turn}. Add a cue for it."
            )
            yield Failed(kind="request", why=why)
            return
        reply = cue.reply if isinstance(cue.reply, Reply) else cue.reply(request)
        words = reply.text.split(" ") if reply.text else []
        for index, word in enumerate(words):
            await asyncio.sleep(self._pace / (len(words) + 1))
            yield TextDelta(text=word if index == 0 else f" {word}")
        await asyncio.sleep(self._pace / (len(words) + 1))
        for number, call in enumerate(reply.calls, start=1):
            yield ToolCall(call_id=f"{purpose.step}/{number}", name=call.name, arguments=call.arguments)
        yield Usage(output=reply.spent.tokens, money=reply.spent.money)
        yield Finished(reason="calls" if reply.calls else "stop")
