"""A model that follows a script, for tests: replies in order, or cues that match the state, never a prompt's wording.

`use_models` gives it to the agents under test; `forbid_requests` makes sure that no test asks a real model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from greenroom.app.library.greenroom import MODELS_FOR_TESTS
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import (
    Failed,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Models,
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


ScriptItem: TypeAlias = str | ScriptedCall | ScriptedReply | Failed
"""A text, a tool call, a reply with several calls, or a failure of the provider."""

ReplyMaker: TypeAlias = ScriptItem | Callable[[ModelRequest], ScriptItem]


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
    """A model with scripted replies: each is given once, in order, but those of a `Cue` whenever it matches.

    A request without a reply fails with an explanation. `requests` are those that the model got. `pace` is in seconds
    per reply.
    """

    name = "scripted:script"

    def __init__(self, script: Iterable[Cue | ReplyMaker], *, pace: float = 0.0) -> None:
        items = list(script)
        self._cues = sorted((cue for cue in items if isinstance(cue, Cue)), key=lambda cue: -cue.exactness)
        self._replies = [item for item in items if not isinstance(item, Cue)]
        self._pace = pace
        self.purposes: list[Purpose] = []
        self.requests: list[ModelRequest] = []

    @property
    def card(self) -> ModelCard:
        """A card with an unlimited window, for images and files too."""
        return ModelCard(family="scripted", window=1_000_000, images=True, files=True)

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
        self.requests.append(request)
        cue = next((cue for cue in self._cues if cue.matches(purpose)), None)
        if cue is None and not self._replies:
            why = (
                f"The script has no reply for {purpose.agent!r} in {purpose.skill!r}, thread {purpose.thread!r}, "
                f"turn {purpose.turn}. Add one, or a cue for it."
            )
            yield Failed(kind="request", why=why)
            return
        maker = cue.reply if cue is not None else self._replies.pop(0)
        reply = _make_reply(maker(request) if callable(maker) else maker)
        if isinstance(reply, Failed):
            yield reply
            return
        words = reply.text.split(" ") if reply.text else []
        for index, word in enumerate(words):
            await asyncio.sleep(self._pace / (len(words) + 1))
            yield ModelTextDelta(text=word if index == 0 else f" {word}")
        await asyncio.sleep(self._pace / (len(words) + 1))
        for number, call in enumerate(reply.calls, start=1):
            yield ToolCall(call_id=f"{purpose.step}/{number}", name=call.name, arguments=call.arguments)
        yield Usage(output=reply.spent.tokens, money=reply.spent.money)
        yield Finished(reason="calls" if reply.calls else "stop")


def _make_reply(item: ScriptItem) -> ScriptedReply | Failed:
    match item:
        case str():
            return ScriptedReply(text=item)
        case ScriptedCall():
            return ScriptedReply(calls=(item,))
        case _:
            return item


@contextmanager
def use_models(models: Models) -> Iterator[None]:
    """Give these models to agents whose model is a name, or the default one, in all runs and conversations of this
    process that start inside. `Greenroom(models=…)` keeps its own."""
    MODELS_FOR_TESTS.append(models)
    try:
        yield
    finally:
        MODELS_FOR_TESTS.remove(models)


@contextmanager
def forbid_requests() -> Iterator[None]:
    """Refuse every agent of this process whose model is a name, or the default one, so that no test costs money. A
    `Model` object of an agent, or of `Greenroom(models=…)`, is asked as usual."""
    with use_models(_NoModels()):
        yield


class _NoModels:
    def get_model(self, name: str) -> Model:
        raise WorldFault("library.requests_forbidden", name=name or "the default model")
