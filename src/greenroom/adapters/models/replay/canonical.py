"""A request in its canonical form: two requests that ask the same have the same bytes, whoever asks and when.

Left out are who asks (`purpose`) and how the answer comes (`streaming`). What is empty is left out too, so that a new
field does not make old recordings worthless.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec.json import Encoder

from greenroom.core.base.records import Data, as_dict
from greenroom.core.ports.model import ChatMessage, Media, ModelRequest, ToolCall, ToolSpec

Clean: TypeAlias = Callable[[str], str]

SETTINGS: Final = ("tool_choice", "max_output", "temperature", "stop", "effort")

_sorted: Final = Encoder(enc_hook=as_dict, order="sorted").encode


def canonical(request: ModelRequest, model: str, clean: Clean = str) -> bytes:
    """The request to this model as bytes; `clean` takes out of every string what must not be written down."""
    ids: dict[str, str] = {}
    said = [_without_nothing(_message(message, ids)) for message in request.messages]
    settings = {name: getattr(request, name) for name in SETTINGS}
    form = {
        "model": model,
        "messages": said,
        "tools": [_tool(tool) for tool in request.tools],
        "schema": request.schema,
        "settings": _without_nothing(settings),
    }
    return _sorted(cleaned(_without_nothing(form), lambda text: clean(text.replace("\r\n", "\n"))))


def key(form: bytes) -> str:
    """The name of a canonical form."""
    return hashlib.sha256(form).hexdigest()


def cleaned(value: object, clean: Clean) -> object:
    """The same data with clean strings."""
    match value:
        case str():
            return clean(value)
        case Mapping():
            return {clean(str(name)): cleaned(one, clean) for name, one in value.items()}
        case list() | tuple():
            return [cleaned(one, clean) for one in value]
        case _:
            return value


def _message(message: ChatMessage, ids: dict[str, str]) -> Data:
    return {
        "role": message.role,
        "content": message.content,
        "calls": [_call(call, ids) for call in message.calls],
        "answers": None if message.call_id is None else _renamed(message.call_id, ids),
        "reasoning": message.reasoning,
        "opaque": [{"provider": one.provider, "data": one.data} for one in message.opaque],
        "media": [_media(one) for one in message.media],
    }


def _call(call: ToolCall, ids: dict[str, str]) -> Data:
    said = {"name": call.name, "arguments": call.arguments, "unread": call.unread, "extra": call.extra}
    return {"id": _renamed(call.call_id, ids), **_without_nothing(said)}


def _renamed(call_id: str, ids: dict[str, str]) -> str:
    """Ids are drawn at random by the provider; who answers whom is what counts."""
    return ids.setdefault(call_id, f"call {len(ids) + 1}")


def _media(media: Media) -> Data:
    digest = hashlib.sha256(media.data).hexdigest()
    return {"type": media.media_type, "name": media.name, "sha256": digest}


def _tool(tool: ToolSpec) -> Data:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _without_nothing(data: Data) -> Data:
    return {name: value for name, value in data.items() if value not in (None, "", [], ())}
