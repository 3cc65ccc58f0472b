"""Tool calls, put together from what a provider sends of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from msgspec import DecodeError
from msgspec.json import decode

from greenroom.core.ports.model import Opaque, ToolCall


class _Parts:
    """One call, as far as it has come."""

    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.whole: Mapping[str, object] | None = None
        self.extra: Mapping[str, object] | None = None


class Calls:
    """Takes deltas in whichever shape, gives whole calls at the end."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._parts: list[_Parts] = []
        self._places: dict[int, _Parts] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def take(self, deltas: object) -> None:
        """Take the `tool_calls` of one chunk or message."""
        for delta in deltas if isinstance(deltas, list) else [deltas]:
            if isinstance(delta, dict):
                self._take(delta)

    def take_old(self, delta: object) -> None:
        """Take a `function_call`: how there was one call per message, once."""
        if isinstance(delta, dict):
            self._take({"index": 0, "function": delta})

    def _take(self, delta: Mapping[str, object]) -> None:
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        parts = self._part(delta, _text(function.get("name")))
        parts.call_id = parts.call_id or _text(delta.get("id"))
        name = _text(function.get("name"))
        if name and name != parts.name:
            parts.name += name  # in pieces; sent again with every chunk it is the same name still
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            parts.whole = arguments
        elif isinstance(arguments, str):
            parts.arguments.append(arguments)
        extra = delta.get("extra_content")
        if isinstance(extra, dict):
            parts.extra = extra

    def _part(self, delta: Mapping[str, object], name: str) -> _Parts:
        """The call that this belongs to: by its index; a new id and a new name begin another one all the same."""
        index, call_id = delta.get("index"), _text(delta.get("id"))
        place = index if isinstance(index, int) else None
        known = self._places.get(place) if place is not None else self._by_id(call_id, name)
        if known is None or (name and _is_another(known, name, call_id, delta)):
            known = _Parts()
            self._parts.append(known)
        if place is not None:
            self._places[place] = known
        return known

    def _by_id(self, call_id: str, name: str) -> _Parts | None:
        """Without an index: the call with this id; else a name begins a new one, and all else goes on with the last."""
        if call_id:
            return next((one for one in self._parts if one.call_id == call_id), None)
        return None if name or not self._parts else self._parts[-1]

    def whole(self) -> Iterator[ToolCall]:
        """The calls, each with an id of its own."""
        used: set[str] = set()
        for number, parts in enumerate(self._parts, start=1):
            call_id = parts.call_id
            if not call_id or call_id in used:
                call_id = f"call_{number}"
            used.add(call_id)
            arguments, unread = _read(parts)
            extra = None if parts.extra is None else Opaque(provider=self._provider, data=parts.extra)
            yield ToolCall(call_id=call_id, name=parts.name, arguments=arguments, unread=unread, extra=extra)


def _is_another(known: _Parts, name: str, call_id: str, delta: Mapping[str, object]) -> bool:
    """Whether a call in the place of a known one is a new one: it has another id, or that one is whole already."""
    if call_id and known.call_id and call_id != known.call_id:
        return True
    whole = bool(known.name and (known.whole or "".join(known.arguments).strip())) and not _read(known)[1]
    function = delta.get("function")
    more = isinstance(function, dict) and bool(function.get("arguments"))
    return whole and more and (name != known.name or not call_id)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _read(parts: _Parts) -> tuple[Mapping[str, object], str]:
    """The arguments; what is no JSON object stays as it came and is nothing that can be run."""
    if parts.whole is not None:
        return parts.whole, ""
    text = "".join(parts.arguments)
    if not text.strip():
        return {}, ""
    try:
        found = _decoded(text)
        # Some encode their arguments twice.
        found = _decoded(found) if isinstance(found, str) else found
    except (DecodeError, UnicodeEncodeError, RecursionError, ValueError):
        return {}, text
    if isinstance(found, dict):
        return cast("dict[str, object]", found), ""
    return {}, "" if found is None and text.strip() == "null" else text


def _decoded(text: str) -> object:
    """The value; a key that is there twice is no JSON: nobody knows which of its values was meant."""
    found = decode(text)
    json.loads(text, object_pairs_hook=_once)
    return cast("object", found)


def _once(pairs: Sequence[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
