"""Keepsakes: what a vendor wants back with its own answer (signatures of thoughts and calls), as plain data.

A keepsake has the answer's parts in their order, in the form in which pydantic-ai stores messages. Texts and arguments
are not in it a second time: the message has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import json
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from greenroom.core.base.records import Data, encode
from greenroom.core.ports.model import ChatMessage, Media, ModelCard, Opaque, ToolCall, ToolSpec

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


PDF: Final = "application/pdf"
TEXTS: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})
"""What is text, though it is not called so."""

Told = SystemPromptPart | UserPromptPart | ToolReturnPart


class Asking:
    """How conversations with one provider's model are put."""

    def __init__(self, provider: str, card: ModelCard) -> None:
        self._provider = provider
        self._card = card

    def tools(self, tools: Iterable[ToolSpec]) -> list[ToolDefinition]:
        """The tools, if the model takes any."""
        return [tool(one) for one in tools] if self._card.tools else []

    def messages(self, messages: Iterable[ChatMessage]) -> list[ModelMessage]:
        """The conversation: all that is said between two answers is one request."""
        found: list[ModelMessage] = []
        told: list[Told] = []
        names: dict[str, str] = {}
        leading = True
        for one in messages:
            leading = leading and one.role == "system"
            if one.role != "assistant":
                told.append(self._part(one, names, leading=leading))
                continue
            found += together(told)
            told = []
            names |= {call.call_id: call.name for call in one.calls}
            found.append(recalled(one, self._provider))
        return found + together(told)

    def _part(self, one: ChatMessage, names: dict[str, str], *, leading: bool) -> Told:
        if one.role == "tool":
            name, call = names.get(one.call_id or "", ""), one.call_id or ""
            return ToolReturnPart(tool_name=name, content=self._content(one), tool_call_id=call)
        if one.role == "user":
            return UserPromptPart(content=self._content(one))
        if leading:
            return SystemPromptPart(content=one.content)
        # What comes in the middle stays there: moved to the front it would make the cache useless.
        return UserPromptPart(content=f"<system>\n{one.content}\n</system>")

    def _content(self, one: ChatMessage) -> str | list[UserContent]:
        if not one.media:
            return one.content
        text: list[UserContent] = [one.content] if one.content else []
        return text + [shown(media, self._card) for media in one.media]


def together(told: list[Told]) -> list[ModelMessage]:
    """One request, or none: instructions first, then results, which have to follow their calls, then the rest."""
    order = {SystemPromptPart: 0, ToolReturnPart: 1, UserPromptPart: 2}
    return [ModelRequest(parts=sorted(told, key=lambda part: order[type(part)]))] if told else []


def shown(media: Media, card: ModelCard) -> UserContent:
    """An image or a file; where the model takes none, that there is one. Never an address."""
    kind = media.media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/") and card.images:
        return BinaryContent(data=media.data, media_type=kind)
    if kind == PDF and card.files:
        return BinaryContent(data=media.data, media_type=PDF)
    if card.files and (kind.startswith("text/") or kind in TEXTS) and is_utf8(media.data):
        return BinaryContent(data=media.data, media_type="text/plain")
    name = media.name or media.media_type
    return f"[{name}: {len(media.data)} bytes that this model cannot be shown]"


def is_utf8(data: bytes) -> bool:
    """Whether it can be read as text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def tool(one: ToolSpec) -> ToolDefinition:
    """A tool."""
    return ToolDefinition(
        name=one.name,
        description=one.description,
        parameters_json_schema=cast("dict[str, object]", plain(one.parameters)),
    )
