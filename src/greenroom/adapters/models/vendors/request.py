"""Opaque data: what a vendor expects back with its own responses (signatures of thoughts and calls), as plain data.

It contains the parts of the response in order, in the storage format of pydantic-ai. Texts and arguments are left out,
because the message has them.
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

IDENTITY_FIELDS: Final = ("provider_name", "provider_url", "canonical_system", "model_name")
"""Fields by which pydantic-ai decides whether a signature may be sent back."""

TRANSFORMATIONS_KEY: Final = "input_transformations"
"""Anthropic's list of what it removed from the conversation. It must be sent back."""


def make_opaque(provider: str, response: ModelResponse) -> Opaque | None:
    """Return the opaque data of a response; None if text and calls are enough."""
    parts = [part for part in response.parts if not is_unsigned_thought(part)]
    details = response.provider_details or {}
    transformations = {TRANSFORMATIONS_KEY: details[TRANSFORMATIONS_KEY]} if TRANSFORMATIONS_KEY in details else None
    if transformations is None and all(is_plain(part) for part in parts):
        return None
    signed = ModelResponse(parts=parts, provider_details=transformations)
    dumped = cast(
        "list[dict[str, Any]]", ModelMessagesTypeAdapter.dump_python([signed], mode="json", exclude_none=True)
    )
    fields: dict[str, object] = {
        name: value for name in IDENTITY_FIELDS if (value := getattr(response, name)) is not None
    }
    if transformations is not None:
        fields["provider_details"] = dumped[0]["provider_details"]
    fields["parts"] = [_drop_message_fields(part) for part in dumped[0]["parts"]]
    return Opaque(provider=provider, data=fields)


def is_unsigned_thought(part: ModelResponsePart) -> bool:
    """Return whether a part is a thought without signature. Sent back, it would count as text."""
    return isinstance(part, ThinkingPart) and not (part.signature or part.provider_details)


def is_plain(part: ModelResponsePart) -> bool:
    """Return whether a part is only text or a call."""
    return isinstance(part, TextPart | ToolCallPart) and not (part.id or part.provider_details)


def _drop_message_fields(part: dict[str, object]) -> dict[str, object]:
    fields = {name: value for name, value in part.items() if name not in ("args", "timestamp", "outcome")}
    if part["part_kind"] == "text":
        fields["content"] = len(cast("str", part["content"]))
    return fields


def restore_response(message: ChatMessage, provider: str) -> ModelResponse:
    """Rebuild the response of a message, with its opaque data if that belongs to this provider."""
    for opaque in message.opaque:
        if opaque.provider == provider and (response := _restore_with_opaque(message, opaque.data)) is not None:
            return response
    text = [TextPart(content=message.content)] if message.content else []
    return ModelResponse(parts=[*text, *(make_call_part(call) for call in message.calls)])


def make_call_part(call: ToolCall) -> ToolCallPart:
    """Convert a tool call. Arguments that could not be parsed are left out."""
    return ToolCallPart(tool_name=call.name, args=to_plain_data(call.arguments), tool_call_id=call.call_id)


def _restore_with_opaque(message: ChatMessage, data: Data) -> ModelResponse | None:
    """Rebuild the original response; None if the message no longer matches the opaque data."""
    parts = _fill_parts(message, cast("Sequence[Mapping[str, object]]", data.get("parts") or ()))
    if parts is None:
        return None
    try:
        (response,) = ModelMessagesTypeAdapter.validate_python(
            [{**to_plain_data(data), "kind": "response", "parts": parts}]
        )
    except ValueError:
        return None  # stored by a version with another format
    return cast("ModelResponse", response)


def _fill_parts(message: ChatMessage, parts: Sequence[Mapping[str, object]]) -> list[dict[str, object]] | None:
    """Fill texts and arguments into the parts; None if they do not match."""
    filled_parts: list[dict[str, object]] = []
    place, calls = 0, iter(message.calls)
    for part in parts:
        filled = to_plain_data(part)
        if filled.get("part_kind") == "text":
            length = filled.get("content")
            end = place + (length if isinstance(length, int) else len(message.content) + 1)
            filled["content"], place = message.content[place:end], end
        elif filled.get("part_kind") == "tool-call":
            call = next(calls, None)
            if call is None or call.name != filled.get("tool_name"):
                return None
            filled |= {"args": to_plain_data(call.arguments), "tool_call_id": call.call_id}
        filled_parts.append(filled)
    return filled_parts if place == len(message.content) and next(calls, None) is None else None


def to_plain_data(data: Data) -> dict[str, Any]:
    """Copy data into plain dictionaries and lists."""
    return json.decode(encode(data), type=dict[str, Any])


PDF: Final = "application/pdf"
TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})
"""Media types that are text without the prefix `text/`."""

RequestPart = SystemPromptPart | UserPromptPart | ToolReturnPart


class VendorRequestBuilder:
    """Builds the requests to a model of one provider."""

    def __init__(self, provider: str, card: ModelCard) -> None:
        self._provider = provider
        self._card = card

    def build_tools(self, tools: Iterable[ToolSpec]) -> list[ToolDefinition]:
        """Return the tools; none if the model does not support tools."""
        return [make_tool_definition(spec) for spec in tools] if self._card.tools else []

    def build_messages(self, messages: Iterable[ChatMessage]) -> list[ModelMessage]:
        """Return the conversation. Messages between two responses form one request."""
        built: list[ModelMessage] = []
        pending: list[RequestPart] = []
        names: dict[str, str] = {}
        leading = True
        for message in messages:
            leading = leading and message.role == "system"
            if message.role != "assistant":
                pending.append(self._build_part(message, names, leading=leading))
                continue
            built += join_parts(pending)
            pending = []
            names |= {call.call_id: call.name for call in message.calls}
            built.append(restore_response(message, self._provider))
        return built + join_parts(pending)

    def _build_part(self, message: ChatMessage, names: dict[str, str], *, leading: bool) -> RequestPart:
        if message.role == "tool":
            name, call = names.get(message.call_id or "", ""), message.call_id or ""
            return ToolReturnPart(tool_name=name, content=self._build_content(message), tool_call_id=call)
        if message.role == "user":
            return UserPromptPart(content=self._build_content(message))
        if leading:
            return SystemPromptPart(content=message.content)
        # A later system message stays in place: moving it to the front would invalidate the cache.
        return UserPromptPart(content=f"<system>\n{message.content}\n</system>")

    def _build_content(self, message: ChatMessage) -> str | list[UserContent]:
        if not message.media:
            return message.content
        text: list[UserContent] = [message.content] if message.content else []
        return text + [make_media_content(media, self._card) for media in message.media]


def join_parts(parts: list[RequestPart]) -> list[ModelMessage]:
    """Join parts to one request: instructions, then tool results, which must follow their calls, then the rest."""
    order = {SystemPromptPart: 0, ToolReturnPart: 1, UserPromptPart: 2}
    return [ModelRequest(parts=sorted(parts, key=lambda part: order[type(part)]))] if parts else []


def make_media_content(media: Media, card: ModelCard) -> UserContent:
    """Return an image or file, or a note about it if the model does not support it. URLs are never used."""
    kind = media.media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/") and card.images:
        return BinaryContent(data=media.data, media_type=kind)
    if kind == PDF and card.files:
        return BinaryContent(data=media.data, media_type=PDF)
    if card.files and (kind.startswith("text/") or kind in TEXT_TYPES) and is_utf8(media.data):
        return BinaryContent(data=media.data, media_type="text/plain")
    name = media.name or media.media_type
    return f"[{name}: {len(media.data)} bytes that this model cannot be shown]"


def is_utf8(data: bytes) -> bool:
    """Return whether the data is valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def make_tool_definition(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name,
        description=spec.description,
        parameters_json_schema=cast("dict[str, object]", to_plain_data(spec.parameters)),
    )
