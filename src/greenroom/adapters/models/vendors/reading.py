"""Reading an answer: events of a stream, and at its end the whole of it, as pydantic-ai has put it together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from greenroom.adapters.models.openai.calls import Calls
from greenroom.adapters.models.openai.reading import MOST_CALLS, TooMuch
from greenroom.adapters.models.vendors.keepsakes import keepsake
from greenroom.core.ports.model import (
    Finished,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Usage,
)

Piece = ModelResponseStreamEvent | ModelResponse

REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "calls",
    "content_filter": "filter",
}

THOUGHT: Final = ("thoughts_tokens", "thinking_tokens", "reasoning_tokens")
"""The names under which tokens of thoughts are counted."""


async def heard(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    *,
    streaming: bool,
) -> AsyncGenerator[Piece, None]:
    """Ask; what comes, and last of all the whole answer. Who stops listening closes the connection."""
    if streaming:
        async with model.request_stream(messages, settings, parameters) as streamed:
            async for event in streamed:
                yield event
            whole = streamed.get()
    else:
        whole = await model.request(messages, settings, parameters)
        for index, part in enumerate(whole.parts):
            yield PartStartEvent(index=index, part=part)
    yield whole


class Reading:
    """One answer. `most` is how many characters it may have."""

    def __init__(self, provider: str, most: int) -> None:
        self._provider = provider
        self._left = most
        self._calls = 0
        self._whole = ModelResponse(parts=[])

    async def events(self, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[ModelEvent, None]:
        """What the pieces tell, as they come."""
        async with aclosing(pieces):
            async for piece in pieces:
                event = self.take(piece)
                if event is not None:
                    yield event

    def take(self, piece: Piece) -> ModelEvent | None:
        """What a piece tells, if it tells something now."""
        match piece:
            case ModelResponse():
                self._whole = piece
            case PartStartEvent(part=TextPart(content=text)):
                return self._text(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                return self._text(text)
            case PartStartEvent(part=ThinkingPart(content=text)):
                return self._thought(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                return self._thought(text)
            case PartStartEvent(part=ToolCallPart()):
                self._count_call()
            case _:
                pass
        return None

    def _text(self, text: str) -> TextDelta | None:
        self._weigh(text)
        return TextDelta(text=text) if text else None

    def _thought(self, text: str) -> ReasoningDelta | None:
        self._weigh(text)
        return ReasoningDelta(text=text) if text else None

    def _weigh(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise TooMuch("more text than the answer may have")

    def _count_call(self) -> None:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise TooMuch(f"more than {MOST_CALLS} tool calls in one answer")

    @property
    def said(self) -> str:
        """The provider's word for why it ended; empty when there was no end."""
        details = self._whole.provider_details or {}
        told = details.get("finish_reason") or details.get("block_reason") or self._whole.finish_reason
        return str(told or "")

    @property
    def broken(self) -> bool:
        """Whether the provider says that the model's answer is of no use."""
        return self._whole.finish_reason == "error"

    @property
    def usage(self) -> Usage | None:
        """What it took: pydantic-ai counts what came from the cache, and what went into it, as read."""
        told = self._whole.usage
        if not (told.input_tokens or told.output_tokens):
            return None
        thought = told.output_reasoning_tokens or next(
            (told.details[name] for name in THOUGHT if name in told.details), 0
        )
        return Usage(
            input=told.input_tokens,
            output=told.output_tokens,
            cached=told.cache_read_tokens,
            written=told.cache_write_tokens,
            thought=min(thought, told.output_tokens),
        )

    def rest(self) -> Iterator[ModelEvent]:
        """What can only be told at the end: whole calls, and what goes back unchanged."""
        yield from self._whole_calls()
        kept = keepsake(self._provider, self._whole)
        if kept is not None:
            yield kept

    def _whole_calls(self) -> Iterator[ToolCall]:
        calls = Calls(self._provider)
        for index, part in enumerate(self._whole.parts):
            if isinstance(part, ToolCallPart):
                function = {"name": part.tool_name, "arguments": part.args}
                calls.take({"index": index, "id": part.tool_call_id, "function": function})
        yield from calls.whole()

    def finished(self, by: str) -> Finished:
        """How it ended."""
        whole = self._whole
        reason = REASONS.get(whole.finish_reason or "", "stop")
        if reason == "stop" and any(isinstance(part, ToolCallPart) for part in whole.parts):
            reason = "calls"
        return Finished(
            reason=reason,
            said=self.said,
            model=whole.model_name or "",
            response_id=whole.provider_response_id or "",
            by=by,
        )
