"""A reply: what came of one request to a model, and how it is kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, ProviderFault
from greenroom.core.base.records import Data, encode
from greenroom.core.ports.codec import plain
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import (
    Failed,
    Finished,
    Listening,
    Model,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    Retried,
    TextDelta,
    ToolCall,
    Usage,
)

Content = TextDelta | ReasoningDelta | ToolCall | Opaque | Usage | Finished


class Audience(Protocol):
    """Those who see an answer as it comes: a bench, for one."""

    def show(self, event: Live) -> None:
        """Let them see it."""
        ...


class Reply:
    """Filled event by event."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self.calls: list[ToolCall] = []
        self.opaque: list[Opaque] = []
        self.usage: Usage | None = None
        self.finished: Finished | None = None

    def forget(self) -> None:
        """It is made again from the beginning."""
        for part in (self._texts, self._thoughts, self.calls, self.opaque):
            part.clear()
        self.usage = self.finished = None

    def only_words(self) -> None:
        """Of a reply that was cut off only what it said can be kept: half a call or half a thought is none."""
        for part in (self._thoughts, self.calls, self.opaque):
            part.clear()

    def take(self, event: Content) -> None:
        """What has come."""
        match event:
            case TextDelta():
                self._texts.append(event.text)
            case ReasoningDelta():
                self._thoughts.append(event.text)
            case ToolCall():
                self.calls.append(event)
            case Opaque():
                self.opaque.append(event)
            case Usage():
                self.usage = event
            case Finished():
                self.finished = event

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(self._texts)

    @property
    def reasoning(self) -> str:
        """What was thought before it."""
        return "".join(self._thoughts)

    @property
    def cut_off(self) -> bool:
        """Whether it had more to say than it was allowed to, or somebody stopped it while it wanted to act."""
        reason = self.finished.reason if self.finished is not None else "stop"
        return reason == "length" or (reason == "filter" and bool(self.calls))

    @property
    def size(self) -> int:
        """The bytes that have come."""
        calls = sum(len(encode(call.arguments)) for call in self.calls)
        return len(self.text.encode()) + len(self.reasoning.encode()) + calls

    @property
    def spent(self) -> Amounts | None:
        """What it cost; None when nobody said."""
        return None if self.usage is None else self.usage.spent

    def kept(
        self,
        asked: str | None = None,
        *,
        told: Mapping[str, str] | None = None,
        misread: bool = False,
        over: str | None = None,
        circles: str | None = None,
    ) -> Data:
        """The reply as the log has it: what is not there takes no room. `asked` is the question, if its step has none.

        So the next request tells of this one word for word. `told` is what calls were answered at once, `over` by what
        the work has ended with it, `circles` in which of them it was told to go.
        """
        answers = told or {}
        found: dict[str, object] = {
            "text": self.text,
            "calls": [_kept(call, answers.get(call.call_id)) for call in self.calls],
            "misread": misread or None,
            "over": over,
            "circles": circles,
            "asked": asked,
            "reasoning": self.reasoning or None,
            "opaque": [{"provider": one.provider, "data": one.data} for one in self.opaque] or None,
            "usage": plain(self.usage) if self.usage is not None else None,
            "by": (self.finished.by or None) if self.finished is not None else None,
        }
        return {name: value for name, value in found.items() if value is not None}


def _kept(call: ToolCall, told: str | None = None) -> dict[str, object]:
    found: dict[str, object] = {"id": call.call_id, "name": call.name, "arguments": call.arguments}
    if told is not None:
        found["told"] = told
    if call.unread:
        found["unread"] = call.unread
    if call.extra is not None:
        found["extra"] = {"provider": call.extra.provider, "data": call.extra.data}
    return found


async def listen(bench: Audience, model: Model, request: ModelRequest, reply: Reply) -> None:
    """Ask, and read the answer to its end; `ModelFault` for one that is no use, `ProviderFault` when there is none."""
    heard = False
    async with Listening(model.stream(request)) as events:
        async for event in events:
            bench.show(event)
            if isinstance(event, Retried):
                reply.forget()
            elif isinstance(event, Failed):
                raise _fault(event, reply.spent, heard=heard)
            else:
                heard = True
                reply.take(event)
    if reply.finished is None:
        raise ModelFault(f"{model.name} stopped before its answer was complete.", spent=reply.spent)
    if not reply.text and not reply.calls:
        refuse_filtered(reply, model)
        logging.getLogger(__name__).warning("%s answered nothing to %s", model.name, request.purpose.step)


async def answer(bench: Audience, model: Model, request: ModelRequest) -> Reply:
    """Ask, and read the whole answer: half of one is no use."""
    reply = Reply()
    await listen(bench, model, request, reply)
    if reply.cut_off:
        why = f"{model.name} stopped before its answer was complete: it may write {request.max_output} tokens at once."
        raise ModelFault(why, spent=reply.spent)
    return reply


def _fault(failed: Failed, spent: Amounts | None, *, heard: bool) -> ModelFault | ProviderFault:
    """What the request has cost nobody knows, unless the provider said, or nothing of an answer ever came."""
    if spent is None and failed.free and not heard:
        spent = Amounts()
    if failed.verdict == "stop":
        return ModelFault(failed.why, spent=spent)
    return ProviderFault(failed.why, again=failed.again, spent=spent)


def refuse_filtered(reply: Reply, model: Model) -> None:
    """`ModelFault` where the provider held back the rest: half of what must be read as a whole is nothing."""
    finished = reply.finished
    if finished is not None and finished.reason == "filter":
        raise ModelFault(f"{model.name} refuses to answer this ({finished.said}).", spent=reply.spent)
