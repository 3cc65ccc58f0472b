"""Requests as bytes. A message and a tool are encoded once; a request is what is new and a join of what is known."""

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


class Encoding:
    """How one model of one provider is asked."""

    def __init__(self, provider: str, model: str, card: ModelCard) -> None:
        self._provider = provider
        self._card = card
        self._model = _encode(model)
        self._wire = f"openai/{provider}/{card.images:d}{card.files:d}"
        self._message: Callable[[ChatMessage], bytes] = partial(message, provider=provider, card=card)
        self._tool: Callable[[ToolSpec], bytes] = partial(tool, strict=card.strict)

    def body(self, request: ModelRequest) -> bytes:
        """The whole request."""
        wire, encoded = self._wire, self._message
        said = b",".join([one.encoded(wire, encoded) for one in request.messages])
        tools = b""
        if request.tools and self._card.tools:
            known = b",".join([one.encoded(f"{wire}/{self._card.strict:d}", self._tool) for one in request.tools])
            tools = b',"tools":[%s]' % known
        rest = _encode(self._settings(request))
        return b'{"model":%s%s,"messages":[%s],%s' % (self._model, tools, said, rest[1:])

    def _settings(self, request: ModelRequest) -> dict[str, object]:
        card = self._card
        found: dict[str, object] = {card.max_output_name: min(request.max_output, card.output)}
        if request.streaming:
            found["stream"] = True
            found["stream_options"] = {"include_usage": True}
        if request.temperature is not None and card.temperature:
            found["temperature"] = request.temperature
        if request.stop:
            found["stop"] = list(request.stop)
        if request.effort is not None and card.effort:
            found["reasoning_effort"] = request.effort
        if request.tools and card.tools and request.tool_choice != "auto":
            found["tool_choice"] = request.tool_choice
        if request.schema is not None:
            shape = {"name": "answer", "schema": request.schema, "strict": True}
            found["response_format"] = {"type": "json_schema", "json_schema": shape}
        return found


def words_of(request: ModelRequest) -> int:
    """How many tokens the texts of a request have at least: no tokeniser makes one of two words."""
    return sum(len(_WORDS.findall(one.content)) for one in request.messages)


def message(one: ChatMessage, *, provider: str, card: ModelCard) -> bytes:
    """A message on the wire. What is opaque goes back to whom it came from, and to nobody else."""
    found: dict[str, object] = {"role": one.role, "content": _content(one, card)}
    if one.calls:
        found["content"] = one.content or None
        found["tool_calls"] = [_call(call, provider) for call in one.calls]
    if one.role == "tool":
        found["tool_call_id"] = one.call_id or ""
    for part in one.opaque:
        if part.provider == provider:
            found.update(part.data)
    return encode(found)


def _call(call: ToolCall, provider: str) -> dict[str, object]:
    # What could not be read is not given back either: servers that parse it would refuse the whole conversation.
    found: dict[str, object] = {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": encode(call.arguments).decode()},
    }
    if call.extra is not None and call.extra.provider == provider:
        found["extra_content"] = call.extra.data
    return found


def _content(one: ChatMessage, card: ModelCard) -> object:
    if not one.media:
        return one.content
    parts: list[object] = [{"type": "text", "text": one.content}] if one.content else []
    return parts + [_part(media, card) for media in one.media]


def _part(media: Media, card: ModelCard) -> object:
    """An image or a file; where the endpoint takes none, that there is one."""
    image = media.media_type.startswith("image/")
    if (image and card.images) or (not image and card.files):
        address = f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"
        if image:
            return {"type": "image_url", "image_url": {"url": address}}
        return {"type": "file", "file": {"filename": media.name or "file", "file_data": address}}
    name = media.name or media.media_type
    return {"type": "text", "text": f"[{name}: {len(media.data)} bytes that this model cannot be shown]"}


def tool(one: ToolSpec, *, strict: bool) -> bytes:
    """A tool on the wire."""
    function: dict[str, object] = {
        "name": one.name,
        "description": one.description,
        "parameters": one.parameters,
    }
    if strict:
        function["strict"] = False  # our schemas have optional fields, which strict ones may not
    return encode({"type": "function", "function": function})
