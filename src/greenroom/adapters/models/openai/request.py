"""Encode requests. Each message and tool is encoded once; a request joins the encoded parts."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import json

from greenroom.core.base.records import encode
from greenroom.core.ports.model import ChatMessage, Media, ModelCard, ModelRequest, ToolCall, ToolSpec

_WORDS: Final = re.compile(r"\w+")
_encode: Final = json.Encoder().encode


class RequestEncoder:
    """Encodes requests to one model of a provider."""

    def __init__(self, provider: str, model: str, card: ModelCard) -> None:
        self._provider = provider
        self._card = card
        self._model = _encode(model)
        self._wire = f"openai/{provider}/{card.images:d}{card.files:d}"
        self._message: Callable[[ChatMessage], bytes] = partial(encode_message, provider=provider, card=card)
        self._tool: Callable[[ToolSpec], bytes] = partial(encode_tool, strict=card.strict)

    def encode_request(self, request: ModelRequest) -> bytes:
        wire, encoded = self._wire, self._message
        messages = b",".join([item.encode_for(wire, encoded) for item in request.messages])
        tools = b""
        if request.tools and self._card.tools:
            tools_json = b",".join(
                [item.encode_for(f"{wire}/{self._card.strict:d}", self._tool) for item in request.tools]
            )
            tools = b',"tools":[%s]' % tools_json
        rest = _encode(self._build_settings(request))
        return b'{"model":%s%s,"messages":[%s],%s' % (self._model, tools, messages, rest[1:])

    def _build_settings(self, request: ModelRequest) -> dict[str, object]:
        card = self._card
        settings: dict[str, object] = {card.max_output_name: min(request.max_output, card.output)}
        if request.streaming:
            settings["stream"] = True
            settings["stream_options"] = {"include_usage": True}
        if request.temperature is not None and card.temperature:
            settings["temperature"] = request.temperature
        if request.stop:
            settings["stop"] = list(request.stop)
        if request.effort is not None and card.effort:
            settings["reasoning_effort"] = request.effort
        if request.tools and card.tools and request.tool_choice != "auto":
            settings["tool_choice"] = request.tool_choice
        if request.schema is not None:
            shape = {"name": "answer", "schema": request.schema, "strict": True}
            settings["response_format"] = {"type": "json_schema", "json_schema": shape}
        return settings


def count_words(request: ModelRequest) -> int:
    """Return a lower bound for the tokens of a request: the number of words."""
    return sum(len(_WORDS.findall(chat_message.content)) for chat_message in request.messages)


def encode_message(chat_message: ChatMessage, *, provider: str, card: ModelCard) -> bytes:
    """Encode a message. Opaque data is sent only to the provider that it came from."""
    fields: dict[str, object] = {"role": chat_message.role, "content": _build_content(chat_message, card)}
    if chat_message.calls:
        fields["content"] = chat_message.content or None
        fields["tool_calls"] = [_build_call(call, provider) for call in chat_message.calls]
    if chat_message.role == "tool":
        fields["tool_call_id"] = chat_message.call_id or ""
    for part in chat_message.opaque:
        if part.provider == provider:
            fields.update(part.data)
    return encode(fields)


def _build_call(call: ToolCall, provider: str) -> dict[str, object]:
    # Arguments that could not be parsed are not sent back: a server that parses them would refuse the conversation.
    fields: dict[str, object] = {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": encode(call.arguments).decode()},
    }
    if call.extra is not None and call.extra.provider == provider:
        fields["extra_content"] = call.extra.data
    return fields


def _build_content(chat_message: ChatMessage, card: ModelCard) -> object:
    if not chat_message.media:
        return chat_message.content
    parts: list[object] = [{"type": "text", "text": chat_message.content}] if chat_message.content else []
    return parts + [_build_part(media, card) for media in chat_message.media]


def _build_part(media: Media, card: ModelCard) -> object:
    """Build an image or file part, or a note about it if the endpoint does not support it."""
    image = media.media_type.startswith("image/")
    if (image and card.images) or (not image and card.files):
        address = f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"
        if image:
            return {"type": "image_url", "image_url": {"url": address}}
        return {"type": "file", "file": {"filename": media.name or "file", "file_data": address}}
    name = media.name or media.media_type
    return {"type": "text", "text": f"[{name}: {len(media.data)} bytes that this model cannot be shown]"}


def encode_tool(spec: ToolSpec, *, strict: bool) -> bytes:
    function: dict[str, object] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    if strict:
        function["strict"] = False  # Greenroom's schemas have optional fields, which strict mode forbids
    return encode({"type": "function", "function": function})
