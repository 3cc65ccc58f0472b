"""The reply to one request to a model, and how it is stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import IncompleteAnswer, ModelFault, ProviderFault, translate
from greenroom.core.base.records import Data, encode
from greenroom.core.ports.codec import to_json_dict
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import (
    ClosingStream,
    Failed,
    FaultKind,
    Finished,
    Model,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    Retried,
    ToolCall,
    Usage,
)

Content = ModelTextDelta | ModelReasoningDelta | ToolCall | Opaque | Usage | Finished


ENDLESS_FAULTS: Final[frozenset[FaultKind]] = frozenset({"cut_off", "network", "timeout", "malformed"})
"""Faults after which an answer has a beginning and no end."""


class EventSink(Protocol):
    """Receives the events of a reply while it streams: for example a step context."""

    def show(self, event: LiveEvent) -> None: ...


class ModelReply:
    """A reply, built event by event."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._reasoning_parts: list[str] = []
        self.calls: list[ToolCall] = []
        self.opaque: list[Opaque] = []
        self.usage: Usage | None = None
        self.finished: Finished | None = None

    def clear(self) -> None:
        """Discard everything: the request starts again."""
        for part in (self._texts, self._reasoning_parts, self.calls, self.opaque):
            part.clear()
        self.usage = self.finished = None

    def keep_text_only(self) -> None:
        """Keep only the text of an interrupted reply. Partial calls and partial reasoning are useless."""
        for part in (self._reasoning_parts, self.calls, self.opaque):
            part.clear()

    def add_event(self, event: Content) -> None:
        match event:
            case ModelTextDelta():
                self._texts.append(event.text)
            case ModelReasoningDelta():
                self._reasoning_parts.append(event.text)
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
        return "".join(self._texts)

    @property
    def reasoning(self) -> str:
        """The reasoning before the text."""
        return "".join(self._reasoning_parts)

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply reached its length limit, or was filtered while it made a call."""
        reason = self.finished.reason if self.finished is not None else "stop"
        return reason == "length" or (reason == "filter" and bool(self.calls))

    @property
    def size(self) -> int:
        """The bytes received so far."""
        calls = sum(len(encode(call.arguments)) for call in self.calls)
        return len(self.text.encode()) + len(self.reasoning.encode()) + calls

    @property
    def cost(self) -> Amounts | None:
        """The cost, or None if the provider did not report it."""
        return None if self.usage is None else self.usage.amounts

    def to_result(
        self,
        question: str | None = None,
        *,
        call_answers: Mapping[str, str] | None = None,
        misread: bool = False,
        over: str | None = None,
        loop: str | None = None,
        accepted: str | None = None,
    ) -> Data:
        """Return the reply as the log stores it, without empty fields.

        `question` is the prompt, if the step does not have it, so that the next request repeats it verbatim.
        `call_answers` are immediate answers to calls. `over` is what ended the work. `loop` is the loop that the agent
        was warned about. `accepted` is the typed answer if the reply does not hold it in this form.
        """
        answers = call_answers or {}
        found: dict[str, object] = {
            "text": self.text,
            "calls": [_call_to_data(call, answers.get(call.call_id)) for call in self.calls],
            "misread": misread or None,
            "over": over,
            "circles": loop,
            "accepted": accepted,
            "asked": question,
            "reasoning": self.reasoning or None,
            "opaque": [{"provider": part.provider, "data": part.data} for part in self.opaque] or None,
            "usage": to_json_dict(self.usage) if self.usage is not None else None,
            "by": (self.finished.by or None) if self.finished is not None else None,
        }
        return {name: value for name, value in found.items() if value is not None}


def _call_to_data(call: ToolCall, answer_text: str | None = None) -> dict[str, object]:
    found: dict[str, object] = {"id": call.call_id, "name": call.name, "arguments": call.arguments}
    if answer_text is not None:
        found["told"] = answer_text
    if call.unread:
        found["unread"] = call.unread
    if call.extra is not None:
        found["extra"] = {"provider": call.extra.provider, "data": call.extra.data}
    return found


async def stream_reply(sink: EventSink, model: Model, request: ModelRequest, reply: ModelReply) -> None:
    """Send the request and read the reply to its end. Raise `ModelFault` if it is unusable, `ProviderFault` if there is
    none."""
    has_content = False
    async with ClosingStream(model.stream(request)) as events:
        async for event in events:
            sink.show(event)
            if isinstance(event, Retried):
                reply.clear()
            elif isinstance(event, Failed):
                raise _build_fault(event, reply, has_content=has_content)
            else:
                has_content = True
                reply.add_event(event)
    if reply.finished is None:
        raise ModelFault(f"{model.name} stopped before its answer was complete.", spent=reply.cost)
    if not reply.text and not reply.calls:
        refuse_filtered(reply, model)
        logging.getLogger(__name__).warning("%s answered nothing to %s", model.name, request.purpose.step)


async def request_reply(sink: EventSink, model: Model, request: ModelRequest) -> ModelReply:
    """Send the request and return the complete reply. Raise `ModelFault` if it is cut off."""
    reply = ModelReply()
    await stream_reply(sink, model, request, reply)
    if reply.is_cut_off:
        why = f"{model.name} stopped before its answer was complete: it may write {request.max_output} tokens at once."
        raise ModelFault(why, spent=reply.cost)
    return reply


def _build_fault(failed: Failed, reply: ModelReply, *, has_content: bool) -> ModelFault | ProviderFault:
    """Build the fault. Its cost is unknown unless the provider reported it or sent no content."""
    spent = Amounts() if reply.cost is None and failed.is_free and not has_content else reply.cost
    if failed.action == "stop":
        return ModelFault(failed.why, spent=spent)
    if failed.kind in ENDLESS_FAULTS and reply.text:
        return IncompleteAnswer(failed.why, reply.text, again=failed.again, spent=spent)
    return ProviderFault(failed.why, again=failed.again, spent=spent)


def refuse_filtered(reply: ModelReply, model: Model) -> None:
    """Raise `ModelFault` if the provider's filter withheld the rest: a partial reply is useless."""
    finished = reply.finished
    if finished is not None and finished.reason == "filter":
        raise ModelFault(f"{model.name} refuses to answer this ({finished.said}).", spent=reply.cost)


def keep_filtered(reply: ModelReply, model: Model) -> None:
    """Raise `IncompleteAnswer` with the text if the provider's filter withheld the rest."""
    if reply.text and reply.finished is not None and reply.finished.reason == "filter":
        why = translate("provider_faults.rest_withheld", model=model.name, said=reply.finished.said)
        raise IncompleteAnswer(why, reply.text, spent=reply.cost)
