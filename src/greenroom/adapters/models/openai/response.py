"""Read a response chunk by chunk: tool calls, thoughts and text, in each provider's format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from msgspec import DecodeError
from msgspec.json import decode

from greenroom.adapters.models.openai.faults import is_error
from greenroom.adapters.models.openai.usage import find_usage
from greenroom.core.base.records import Record
from greenroom.core.ports.model import (
    Finished,
    FinishReason,
    ModelEvent,
    ModelReasoningDelta,
    ModelTextDelta,
    Opaque,
    ToolCall,
    Usage,
)


class _CallParts:
    """The received parts of one call."""

    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.whole: Mapping[str, object] | None = None
        self.extra: Mapping[str, object] | None = None

    @property
    def text(self) -> str:
        """The arguments without what some proxies add: `{}` before them, or all of them a second time."""
        text = "".join(self.arguments)
        text = text if text.strip() == "{}" else text.removeprefix("{}")
        half = text[: len(text) // 2]
        return half if half.startswith("{") and half * 2 == text else text

    @property
    def is_placeholder(self) -> bool:
        """Whether nothing is called: some providers send an empty call beside an answer."""
        return not self.name and not self.whole and self.text.strip() in ("", "{}", "null")


class ToolCallCollector:
    """Collects deltas of tool calls in any format, and builds the calls at the end."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._parts: list[_CallParts] = []
        self._by_index: dict[int, _CallParts] = {}

    def __len__(self) -> int:
        return sum(not parts.is_placeholder for parts in self._parts)

    def take(self, deltas: object) -> None:
        """Add the `tool_calls` of a chunk or message."""
        for delta in deltas if isinstance(deltas, list) else [deltas]:
            if isinstance(delta, dict):
                self._take_delta(delta)

    def _take_delta(self, delta: Mapping[str, object]) -> None:
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        parts = self._find_parts(delta, _as_text(function.get("name")))
        parts.call_id = parts.call_id or _as_text(delta.get("id"))
        name = _as_text(function.get("name"))
        if name and name != parts.name:
            parts.name += name  # names may come in pieces, or be repeated in every chunk
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            parts.whole = arguments
        elif isinstance(arguments, str):
            parts.arguments.append(arguments)
        extra = delta.get("extra_content")
        if isinstance(extra, dict):
            parts.extra = extra

    def _find_parts(self, delta: Mapping[str, object], name: str) -> _CallParts:
        """Return the call of a delta, by its index. A new id or a new name starts another call."""
        index, call_id = delta.get("index"), _as_text(delta.get("id"))
        place = index if isinstance(index, int) else None
        parts = self._by_index.get(place) if place is not None else self._find_by_id(call_id, name)
        if parts is None or (name and _is_new_call(parts, name, call_id, delta)):
            parts = _CallParts()
            self._parts.append(parts)
        if place is not None:
            self._by_index[place] = parts
        return parts

    def _find_by_id(self, call_id: str, name: str) -> _CallParts | None:
        """Find the call of a delta without index: by id. Otherwise, a name starts a new call, anything else continues
        the last."""
        if call_id:
            return next((parts for parts in self._parts if parts.call_id == call_id), None)
        return None if name or not self._parts else self._parts[-1]

    def build_calls(self) -> Iterator[ToolCall]:
        """Yield the calls, each with a unique id."""
        used: set[str] = set()
        for number, parts in enumerate(self._parts, start=1):
            if parts.is_placeholder:
                continue
            call_id = parts.call_id
            if not call_id or call_id in used:
                call_id = f"call_{number}"
            used.add(call_id)
            arguments, unread = _parse_arguments(parts)
            extra = None if parts.extra is None else Opaque(provider=self._provider, data=parts.extra)
            yield ToolCall(call_id=call_id, name=parts.name, arguments=arguments, unread=unread, extra=extra)


def _is_new_call(parts: _CallParts, name: str, call_id: str, delta: Mapping[str, object]) -> bool:
    """Return whether a delta at a known index starts a new call: the id differs, or the known call is complete."""
    if call_id and parts.call_id and call_id != parts.call_id:
        return True
    is_whole = bool(parts.name and (parts.whole or "".join(parts.arguments).strip())) and not _parse_arguments(parts)[1]
    function = delta.get("function")
    has_arguments = isinstance(function, dict) and bool(function.get("arguments"))
    return is_whole and has_arguments and (name != parts.name or not call_id)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parse_arguments(parts: _CallParts) -> tuple[Mapping[str, object], str]:
    """Return the arguments, or the raw text if they are not a JSON object. A call with raw text cannot run."""
    if parts.whole is not None:
        return parts.whole, ""
    text = parts.text
    if not text.strip():
        return {}, ""
    try:
        value = _decode_strict(text := join_halves(text))
        # Some providers encode arguments twice.
        value = _decode_strict(value) if isinstance(value, str) else value
    except (RecursionError, ValueError):
        return {}, text.encode(errors="replace").decode()
    if isinstance(value, dict):
        return cast("dict[str, object]", value), ""
    return {}, "" if value is None and text.strip() == "null" else text


def _decode_strict(text: str) -> object:
    """Decode JSON. Duplicate keys raise `ValueError`, because it is unclear which value is meant."""
    value = decode(text)
    json.loads(text, object_pairs_hook=_refuse_duplicate_keys)
    return cast("object", value)


def _refuse_duplicate_keys(pairs: Sequence[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("duplicate key")


_HALVES: Final = re.compile(r"[\ud800-\udfff]*+")
"""Halves of surrogate pairs, and single bytes of UTF-8 sequences."""


def join_halves(text: str) -> str:
    """Join surrogate pairs, and bytes that were decoded one by one. Raise `UnicodeError` if a half is missing."""
    if text.isascii():
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return paired.encode("utf-8", "surrogateescape").decode()


class CharacterJoiner:
    """Joins characters that are split over two pieces of a text."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Add a piece and return the text that is complete now. Raise `UnicodeError` if a half is missing."""
        text, self._half = self._half + text, ""
        for size in range(4):
            whole, half = text[: len(text) - size], text[len(text) - size :]
            with suppress(UnicodeError):
                joined = join_halves(whole)
                if _HALVES.fullmatch(half):
                    self._half = half
                    return joined
        return join_halves(text)

    def end(self) -> None:
        """Raise `UnicodeError` if the last character is not complete."""
        join_halves(self._half)


def decode_chunk(data: bytes) -> object:
    """Decode JSON. Halves of characters stay in its texts, for a `CharacterJoiner`; elsewhere they are an error."""
    try:
        return cast("object", decode(data))
    except (DecodeError, UnicodeDecodeError):
        chunk: object = json.loads(data.decode("utf-8", "surrogateescape"), strict=False)
        _refuse_halves(chunk)
        return chunk


def _refuse_halves(value: object, name: str = "", *, is_argument: bool = False) -> None:
    """Raise `UnicodeError` if a string that is not a piece of text contains half a character."""
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_halves(item, key, is_argument=is_argument or name == "arguments")
    elif isinstance(value, list):
        for item in value:
            _refuse_halves(item, name, is_argument=is_argument)
    elif isinstance(value, str) and (is_argument or name not in TEXT_FIELDS):
        value.encode()


THOUGHT_TAGS: Final = ("<think>", "<thinking>", "<reasoning>")


class TextPiece(Record, frozen=True):
    """A piece of text, and whether it is a thought."""

    text: str
    thought: bool


class ThoughtSplitter:
    """Splits streamed text into thoughts and answer. Tags may be torn across pieces."""

    def __init__(self) -> None:
        self._buffer = ""
        self._closing_tag: str | None = None
        self._has_begun = False
        self._is_answering = False
        self._trims_newlines = False

    def feed(self, text: str) -> Iterator[TextPiece]:
        """Add text and yield the pieces that are decided now."""
        if self._is_answering:
            yield from self._emit_answer(text)
            return
        self._buffer += text
        if not self._has_begun and not self._has_decided_start():
            return
        if self._closing_tag is None:
            buffered, self._buffer = self._buffer, ""
            yield from self._emit_answer(buffered)
        else:
            yield from self._split_thought(self._closing_tag)

    def end(self) -> Iterator[TextPiece]:
        """Yield the text that was held back."""
        if self._buffer:
            yield TextPiece(self._buffer, thought=self._closing_tag is not None)
        self._buffer = ""

    def _has_decided_start(self) -> bool:
        """Return whether it is clear if the text starts with a tag."""
        start = self._buffer.lstrip()
        for tag in THOUGHT_TAGS:
            if start.startswith(tag):
                self._closing_tag, self._buffer, self._has_begun = f"</{tag[1:]}", start[len(tag) :], True
                return True
        if any(tag.startswith(start) for tag in THOUGHT_TAGS):
            return False
        self._has_begun = True
        return True

    def _split_thought(self, close: str) -> Iterator[TextPiece]:
        thought, found, rest = self._buffer.partition(close)
        if found:
            if thought:
                yield TextPiece(thought, thought=True)
            self._buffer, self._trims_newlines = "", True
            yield from self._emit_answer(rest)
            return
        keep = _count_overlap(thought, close)
        self._buffer = thought[len(thought) - keep :]
        if len(thought) > keep:
            yield TextPiece(thought[: len(thought) - keep], thought=True)

    def _emit_answer(self, text: str) -> Iterator[TextPiece]:
        """Yield answer text, without the empty lines after a thought."""
        self._is_answering = True
        text = text.lstrip("\n") if self._trims_newlines else text
        if text:
            self._trims_newlines = False
            yield TextPiece(text, thought=False)


def _count_overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may start the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-size:])), 0)


REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
TEXT_FIELDS: Final = frozenset(("content", "arguments", "text", "summary", "refusal", *REASONING_FIELDS))
"""Fields in which a character may be split over two chunks."""

THOUGHT_FIELDS: Final = frozenset((*REASONING_FIELDS, "reasoning_details"))
"""Fields that contain thoughts. A provider that sends several repeats the same text."""

MAX_CALLS: Final = 128
"""How many tool calls a response may have."""

_FINISH_REASONS: Final[Mapping[str, FinishReason]] = {
    "tool_calls": "calls",
    "tool_call": "calls",
    "tool_use": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
    "safety": "filter",
    "refusal": "filter",
    "sensitive": "filter",
    "recitation": "filter",
    "prohibited_content": "filter",
    "blocklist": "filter",
}
"""All other reasons (stop, eos, end_turn, stop_sequence, …) mean a normal end."""


BROKEN_REASONS: Final = frozenset(
    {"network_error", "insufficient_system_resource", "abort", "failed", "model_error", "malformed_function_call"}
)
"""Finish reasons of an aborted response."""


class ErrorInResponse(Exception):
    """The provider reported an error inside a response."""

    def __init__(self, body: Mapping[str, object]) -> None:
        super().__init__("an error instead of a response")
        self.body = body


class ResponseTooLarge(Exception):
    """The response is larger than requested."""


class ResponseReader:
    """Reads one response of at most `max_chars` characters, chunk by chunk."""

    def __init__(self, provider: str, max_chars: int) -> None:
        self.usage: Usage | None = None
        self.finish_reason = ""
        self.has_begun = False
        self.is_done = False
        self._ends_with_usage = False
        self._provider = provider
        self.max_chars = max_chars
        self._remaining_chars = max_chars
        self._is_streamed = False
        self._splitter = ThoughtSplitter()
        self._text_joiner, self._thought_joiner = CharacterJoiner(), CharacterJoiner()
        self._calls = ToolCallCollector(provider)
        self._details: list[object] = []
        self._thoughts: list[str] = []
        self._thought_name = ""
        self._model = ""
        self._id = ""

    @property
    def is_complete(self) -> bool:
        """Whether the provider marked the end of the response: a reason, [DONE], or a last chunk with only the usage.
        A usage beside text proves nothing, because some providers send it with each chunk."""
        return bool(self.finish_reason) or self.is_done or (self.has_begun and self._ends_with_usage)

    def take(self, chunk: Mapping[str, object]) -> list[ModelEvent]:
        """Return the events of a chunk or whole body."""
        if is_error(chunk):
            raise ErrorInResponse(chunk)
        if not self._id:
            self._model, self._id = _as_text(chunk.get("model")), _as_text(chunk.get("id"))
        usage, choices = find_usage(chunk), chunk.get("choices")
        if usage is not None and (self.usage is None or usage.amounts.tokens >= self.usage.amounts.tokens):
            self.usage = usage  # counts only grow
        self._ends_with_usage = usage is not None and not choices
        events: list[ModelEvent] = []
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                self._read_choice(choice, events)
        return events

    @property
    def received_chars(self) -> int:
        """The length of the answer so far, with its reasoning."""
        return self.max_chars - self._remaining_chars

    @property
    def counted_usage(self) -> Usage | None:
        """The usage, unless it claims no output tokens although there is text."""
        return self.usage if self.usage is not None and (self.usage.output or not self.received_chars) else None

    def _read_choice(self, choice: Mapping[str, object], events: list[ModelEvent]) -> None:
        reason = choice.get("finish_reason") or choice.get("stop_reason")
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._is_streamed = True
            self._read_message(delta, events)
        elif self._is_streamed:
            pass  # some providers repeat the whole message at the end
        elif isinstance(message, dict):
            self._read_message(message, events)
        if isinstance(reason, str) and reason and not self.finish_reason:
            if reason.lower() in BROKEN_REASONS:
                raise ErrorInResponse({"error": {"message": f"the response ended with {reason!r}", "code": reason}})
            self.finish_reason = reason
            self.has_begun = True

    def _read_message(self, message: Mapping[str, object], events: list[ModelEvent]) -> None:
        if not THOUGHT_FIELDS.isdisjoint(message):
            events += self._read_reasoning(message)
        content = message.get("content")
        if isinstance(content, str):
            events += self._read_content(content)
        elif isinstance(content, list):
            for part in content:
                events += self._read_part(part)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            events += self._read_content(refusal)
            self.finish_reason = self.finish_reason or "refusal"
        if calls := message.get("tool_calls") or message.get("function_call"):
            # OpenAI's older form has a single `function_call`.
            self._calls.take({"function": calls} if isinstance(calls, dict) and "function" not in calls else calls)
            self.has_begun = self.has_begun or len(self._calls) > 0
            if len(self._calls) > MAX_CALLS:
                raise ResponseTooLarge(f"more than {MAX_CALLS} tool calls in one response")

    def _read_reasoning(self, message: Mapping[str, object]) -> Iterator[ModelEvent]:
        details = message.get("reasoning_details")
        if isinstance(details, list):
            self._details += details
        for name in REASONING_FIELDS:
            thought = message.get(name)
            if isinstance(thought, str) and thought:
                self._thought_name = name
                yield from self._read_thought(thought)
                return
        if isinstance(details, list):
            for detail in details:
                if isinstance(detail, dict):
                    yield from self._read_thought(_as_text(detail.get("text")) or _as_text(detail.get("summary")))

    def _read_part(self, part: object) -> Iterator[ModelEvent]:
        """Read a part of a content list: text, or thoughts as texts or lists (Mistral)."""
        if isinstance(part, str):
            yield from self._read_content(part)
        if not isinstance(part, dict):
            return
        if part.get("type") in ("thinking", "reasoning"):
            inner = part.get("thinking") or part.get("reasoning") or part.get("text") or part.get("summary")
            for item in inner if isinstance(inner, list) else [inner]:
                yield from self._read_thought(_as_text(item.get("text")) if isinstance(item, dict) else _as_text(item))
        else:
            yield from self._read_content(_as_text(part.get("text")))

    def _read_content(self, text: str) -> Iterator[ModelEvent]:
        for piece in self._splitter.feed(self._text_joiner.feed(text)):
            yield from self._emit_thought(piece.text) if piece.thought else self._emit_text(piece.text)

    def _read_thought(self, text: str) -> list[ModelEvent]:
        return self._emit_thought(self._thought_joiner.feed(text))

    def _emit_text(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._count_chars(text)
        return [ModelTextDelta(text=text)]

    def _emit_thought(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._count_chars(text)
        self._thoughts.append(text)
        return [ModelReasoningDelta(text=text)]

    def _count_chars(self, text: str) -> None:
        self.has_begun = True
        self._remaining_chars -= len(text)
        if self._remaining_chars < 0:
            raise ResponseTooLarge("more text than allowed")

    def emit_rest(self) -> Iterator[ModelEvent]:
        """Yield what is complete only at the end: held-back text, tool calls, and opaque data."""
        self._text_joiner.end()
        self._thought_joiner.end()
        for piece in self._splitter.end():
            yield from self._emit_thought(piece.text) if piece.thought else self._emit_text(piece.text)
        calls = list(self._calls.build_calls())
        yield from calls
        if self._details:
            yield Opaque(provider=self._provider, data={"reasoning_details": merge_details(self._details)})
        elif calls and self._thought_name == "reasoning_content":
            # Models that think between calls need their thoughts back.
            yield Opaque(provider=self._provider, data={"reasoning_content": "".join(self._thoughts)})

    def make_finished(self, by: str) -> Finished:
        """Return the final event with the finish reason."""
        reason = _FINISH_REASONS.get(self.finish_reason.lower(), "stop")
        if len(self._calls) and reason == "stop":
            reason = "calls"
        return Finished(reason=reason, said=self.finish_reason, model=self._model, response_id=self._id, by=by)


def merge_details(details: list[object]) -> list[object]:
    """Merge the reasoning details of all chunks by index, so that they can be sent back whole."""
    merged: list[object] = []
    entries: dict[object, dict[str, object]] = {}
    for detail in details:
        if not isinstance(detail, dict):
            continue
        place = (detail.get("index"), detail.get("type"))
        entry = entries.get(place) if place[0] is not None else None
        if entry is None:
            entry = entries[place] = dict(detail)
            merged.append(entry)
            continue
        for name, value in detail.items():
            old = entry.get(name)
            is_appended = name in ("text", "summary", "data") and isinstance(old, str) and isinstance(value, str)
            entry[name] = f"{old}{value}" if is_appended else (value if value is not None else old)
    return merged
