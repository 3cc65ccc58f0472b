"""Keepsakes: what a vendor wants back with its own answer (signatures of thoughts and calls), as plain data.

A keepsake has the answer's parts in their order, in the form in which pydantic-ai stores messages. Texts and arguments
are not in it a second time: the message has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec import json
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from greenroom.core.base.records import Data, encode
from greenroom.core.ports.model import ChatMessage, Opaque, ToolCall

WHOSE: Final = ("provider_name", "provider_url", "canonical_system", "model_name")
"""By these pydantic-ai knows to whom a signature may be given back."""

TOLD: Final = "input_transformations"
"""What Anthropic says that it has left out of a conversation: it has to be asked to do so again."""


def keepsake(provider: str, response: ModelResponse) -> Opaque | None:
    """What goes back to the provider with this answer; None when text and calls say it all."""
    parts = [part for part in response.parts if not is_unsigned_thought(part)]
    details = response.provider_details or {}
    told = {TOLD: details[TOLD]} if TOLD in details else None
    if told is None and all(is_plain(part) for part in parts):
        return None
    kept = ModelResponse(parts=parts, provider_details=told)
    dumped = cast("list[dict[str, Any]]", ModelMessagesTypeAdapter.dump_python([kept], mode="json", exclude_none=True))
    found: dict[str, object] = {name: value for name in WHOSE if (value := getattr(response, name)) is not None}
    if told is not None:
        found["provider_details"] = dumped[0]["provider_details"]
    found["parts"] = [_short(part) for part in dumped[0]["parts"]]
    return Opaque(provider=provider, data=found)


def is_unsigned_thought(part: ModelResponsePart) -> bool:
    """Nobody wants it back: it would be taken for text."""
    return isinstance(part, ThinkingPart) and not (part.signature or part.provider_details)


def is_plain(part: ModelResponsePart) -> bool:
    """Whether text or a call, and nothing else."""
    return isinstance(part, TextPart | ToolCallPart) and not (part.id or part.provider_details)


def _short(part: dict[str, object]) -> dict[str, object]:
    """Without what the message has."""
    found = {name: value for name, value in part.items() if name not in ("args", "timestamp", "outcome")}
    if part["part_kind"] == "text":
        found["content"] = len(cast("str", part["content"]))
    return found


def recalled(one: ChatMessage, provider: str) -> ModelResponse:
    """What the model said, with what its provider wants back if that is this one: nobody else gets it."""
    for kept in one.opaque:
        if kept.provider == provider and (found := _with(one, kept.data)) is not None:
            return found
    text = [TextPart(content=one.content)] if one.content else []
    return ModelResponse(parts=[*text, *(called(call) for call in one.calls)])


def called(call: ToolCall) -> ToolCallPart:
    """A call. What could not be read is not given back either."""
    return ToolCallPart(tool_name=call.name, args=plain(call.arguments), tool_call_id=call.call_id)


def _with(one: ChatMessage, data: Data) -> ModelResponse | None:
    """The very answer again; None when the message is no longer what the keepsake was made for."""
    parts = _filled(one, cast("Sequence[Mapping[str, object]]", data.get("parts") or ()))
    if parts is None:
        return None
    try:
        (found,) = ModelMessagesTypeAdapter.validate_python([{**plain(data), "kind": "response", "parts": parts}])
    except ValueError:
        return None  # from a version that stored its messages otherwise
    return cast("ModelResponse", found)


def _filled(one: ChatMessage, parts: Sequence[Mapping[str, object]]) -> list[dict[str, object]] | None:
    """The parts with their texts and arguments; None when they do not fit."""
    found: list[dict[str, object]] = []
    place, calls = 0, iter(one.calls)
    for part in parts:
        filled = plain(part)
        if filled.get("part_kind") == "text":
            length = filled.get("content")
            end = place + (length if isinstance(length, int) else len(one.content) + 1)
            filled["content"], place = one.content[place:end], end
        elif filled.get("part_kind") == "tool-call":
            call = next(calls, None)
            if call is None or call.name != filled.get("tool_name"):
                return None
            filled |= {"args": plain(call.arguments), "tool_call_id": call.call_id}
        found.append(filled)
    return found if place == len(one.content) and next(calls, None) is None else None


def plain(data: Data) -> dict[str, Any]:
    """Dictionaries and lists only, and nobody else's."""
    return json.decode(encode(data), type=dict[str, Any])
