"""One answer, chunk by chunk: token counts, tool calls, thoughts and text, wherever a provider puts them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from msgspec import DecodeError
from msgspec.json import decode

from greenroom.adapters.models.openai.faults import complaint_in
from greenroom.core.ports.model import (
    Finished,
    FinishReason,
    ModelEvent,
    Opaque,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Usage,
)

INPUT: Final = ("prompt_tokens", "input_tokens")
OUTPUT: Final = ("completion_tokens", "output_tokens")
DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
WRITTEN: Final = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")


def usage_in(chunk: Mapping[str, object]) -> Usage | None:
    """The usage that a chunk or a body tells of: at the top, in its choice, under Groq's or llama.cpp's own name."""
    told = chunk.get("usage") or _inside(chunk.get("choices")) or _inside(chunk.get("x_groq"))
    if told is not None:
        return read_usage(told) if isinstance(told, dict) else None
    timings = chunk.get("timings")
    return _timed(timings) if isinstance(timings, dict) else None


def read_usage(told: Mapping[str, object]) -> Usage | None:
    """Read one usage object; None when it holds no count at all."""
    known = _count(told, INPUT), _count(told, OUTPUT), number(told.get("total_tokens"))
    if all(one is None for one in known):
        return None
    read_, written, total = (one or 0 for one in known)
    if not read_ + written + total:
        return None  # nothing costs nothing: whoever says so has not counted
    thought = _detail(told, ("completion_tokens_details", "output_tokens_details"), ("reasoning_tokens",))
    thought = thought or number(told.get("reasoning_tokens")) or 0
    # Some do not count what was thought as written: then only the total tells, or that it is more than all.
    written = max(written + thought if thought > written else written, total - read_)
    cached = _count(told, CACHED) or _detail(told, DETAILS, CACHED)
    stored = _count(told, WRITTEN) or _detail(told, DETAILS, WRITTEN)
    if cached + stored > read_:
        read_ += cached + stored  # Anthropic's way of counting: what came from the cache is not in the rest
    return Usage(
        input=read_,
        output=written,
        cached=cached,
        written=stored,
        thought=thought,
        money=_cost(told),
    )


def number(value: object) -> int | None:
    """A count: not negative, and not what only looks like one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def _timed(timings: Mapping[str, object]) -> Usage | None:
    new, said, cached = (number(timings.get(name)) for name in ("prompt_n", "predicted_n", "cache_n"))
    if new is None and said is None:
        return None
    return Usage(input=(new or 0) + (cached or 0), output=said or 0, cached=cached or 0)


def _inside(holder: object) -> object:
    """The usage in a choice, or in another object, if there is one."""
    if isinstance(holder, list):
        holder = holder[0] if holder else None
    return (holder.get("usage") or None) if isinstance(holder, dict) else None


def _count(told: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := number(told.get(name))) is not None), None)


def _detail(told: Mapping[str, object], holders: tuple[str, ...], names: tuple[str, ...]) -> int:
    for holder in holders:
        details = told.get(holder)
        if isinstance(details, dict):
            return _count(details, names) or 0
    return 0


def _cost(told: Mapping[str, object]) -> int | None:
    """What OpenRouter says it took, and what it made the user's own provider take."""
    taken, details = _money(told.get("cost")), told.get("cost_details")
    beyond = _money(details.get("upstream_inference_cost")) if isinstance(details, dict) and told.get("is_byok") else 0
    return None if taken is None else taken + (beyond or 0)


def _money(cost: object) -> int | None:
    """Dollars, as OpenRouter says them, in millionths; rounded up, because a cap is a cap."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e6:
        return None
    return -int(-cost * 1_000_000 // 1)


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


TAGS: Final = ("<think>", "<thinking>", "<reasoning>")


class Piece(NamedTuple):
    """A piece of text, and whether it was only thought."""

    text: str
    thought: bool


class Thinking:
    """Takes text in pieces, torn anywhere, and says which of it was thought."""

    def __init__(self) -> None:
        self._held = ""
        self._close: str | None = None
        self._begun = False
        self._answers = False
        self._trims = False

    def feed(self, text: str) -> Iterator[Piece]:
        """The pieces that are decided now."""
        if self._answers:
            yield from self._answer(text)
            return
        self._held += text
        if not self._begun and not self._begin():
            return
        if self._close is None:
            held, self._held = self._held, ""
            yield from self._answer(held)
        else:
            yield from self._think(self._close)

    def end(self) -> Iterator[Piece]:
        """What was held back."""
        if self._held:
            yield Piece(self._held, thought=self._close is not None)
        self._held = ""

    def _begin(self) -> bool:
        """Whether it is decided how the text begins."""
        start = self._held.lstrip()
        for tag in TAGS:
            if start.startswith(tag):
                self._close, self._held, self._begun = f"</{tag[1:]}", start[len(tag) :], True
                return True
        if any(tag.startswith(start) for tag in TAGS):
            return False
        self._begun = True
        return True

    def _think(self, close: str) -> Iterator[Piece]:
        thought, found, rest = self._held.partition(close)
        if found:
            if thought:
                yield Piece(thought, thought=True)
            self._held, self._trims = "", True
            yield from self._answer(rest)
            return
        keep = _overlap(thought, close)
        self._held = thought[len(thought) - keep :]
        if len(thought) > keep:
            yield Piece(thought[: len(thought) - keep], thought=True)

    def _answer(self, text: str) -> Iterator[Piece]:
        """The empty lines between a thought and the answer belong to neither."""
        self._answers = True
        text = text.lstrip("\n") if self._trims else text
        if text:
            self._trims = False
            yield Piece(text, thought=False)


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-size:])), 0)


REASONING: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
THOUGHTS: Final = frozenset((*REASONING, "reasoning_details"))
"""The names under which thoughts come; whoever sends several says the same thing under each."""

MOST_CALLS: Final = 128
"""Calls in one reply that anybody could have meant."""

_REASONS: Final[Mapping[str, FinishReason]] = {
    "tool_calls": "calls",
    "tool_call": "calls",
    "tool_use": "calls",
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
"""All others (stop, eos, end_turn, stop_sequence, …) mean that it said what it wanted."""


BROKEN: Final = frozenset(
    {"network_error", "insufficient_system_resource", "abort", "failed", "model_error", "malformed_function_call"}
)
"""Words for an end that is none: the answer was given up."""


class Complaint(Exception):
    """The provider says in the middle of an answer that there will be none."""

    def __init__(self, said: Mapping[str, object]) -> None:
        super().__init__("a complaint instead of an answer")
        self.said = said


class TooMuch(Exception):
    """More comes than was asked for."""


class Reading:
    """One answer, chunk by chunk. `most` is how many characters it may have."""

    def __init__(self, provider: str, most: int) -> None:
        self.usage: Usage | None = None
        self.said = ""
        self.begun = False
        self.done = False
        self._provider = provider
        self.most = most
        self._left = most
        self._in_pieces = False
        self._thinking = Thinking()
        self._calls = Calls(provider)
        self._details: list[object] = []
        self._thoughts: list[str] = []
        self._thought_name = ""
        self._model = ""
        self._id = ""

    @property
    def complete(self) -> bool:
        """Whether the provider has said, in whichever way, that this is all."""
        return bool(self.said) or self.done or (self.begun and self.usage is not None)

    def take(self, chunk: Mapping[str, object]) -> list[ModelEvent]:
        """What one chunk, or a whole body, tells."""
        if complaint_in(chunk):
            raise Complaint(chunk)
        if not self._id:
            self._model, self._id = _text(chunk.get("model")), _text(chunk.get("id"))
        self._count(usage_in(chunk))
        choices = chunk.get("choices")
        found: list[ModelEvent] = []
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                found += self._choice(choice)
        return found

    def _count(self, told: Usage | None) -> None:
        """Counts grow while an answer comes; one that is smaller than before is a mistake."""
        if told is not None and (self.usage is None or told.spent.tokens >= self.usage.spent.tokens):
            self.usage = told

    @property
    def counted(self) -> Usage | None:
        """What the answer took, unless that cannot be: text of no tokens is not counted."""
        silent = self._left == self.most
        return self.usage if self.usage is not None and (self.usage.output or silent) else None

    def _choice(self, choice: Mapping[str, object]) -> Iterator[ModelEvent]:
        said = choice.get("finish_reason") or choice.get("stop_reason")
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._in_pieces = True
            yield from self._message(delta)
        elif self._in_pieces:
            pass  # some say everything once more at the end
        elif isinstance(message, dict):
            yield from self._message(message)
        if isinstance(said, str) and said and not self.said:
            if said.lower() in BROKEN:
                raise Complaint({"error": {"message": f"the answer ended with {said!r}", "code": said}})
            self.said = said
            self.begun = True

    def _message(self, message: Mapping[str, object]) -> Iterator[ModelEvent]:
        if not THOUGHTS.isdisjoint(message):
            yield from self._reasoning(message)
        content = message.get("content")
        if isinstance(content, str):
            yield from self._content(content)
        elif isinstance(content, list):
            for part in content:
                yield from self._part(part)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            yield from self._content(refusal)
            self.said = self.said or "refusal"
        if message.get("tool_calls"):
            self.begun = True
            self._calls.take(message["tool_calls"])
        if len(self._calls) > MOST_CALLS:
            raise TooMuch(f"more than {MOST_CALLS} tool calls in one answer")

    def _reasoning(self, message: Mapping[str, object]) -> Iterator[ModelEvent]:
        details = message.get("reasoning_details")
        if isinstance(details, list):
            self._details += details
        for name in REASONING:
            thought = message.get(name)
            if isinstance(thought, str) and thought:
                self._thought_name = name
                yield from self._thought(thought)
                return
        if isinstance(details, list):
            for detail in details:
                if isinstance(detail, dict):
                    yield from self._thought(_text(detail.get("text")) or _text(detail.get("summary")))

    def _part(self, part: object) -> Iterator[ModelEvent]:
        """Content in a list: text, and thoughts that are texts or lists of them (Mistral)."""
        if isinstance(part, str):
            yield from self._content(part)
        if not isinstance(part, dict):
            return
        if part.get("type") in ("thinking", "reasoning"):
            inner = part.get("thinking") or part.get("reasoning") or part.get("text") or part.get("summary")
            for one in inner if isinstance(inner, list) else [inner]:
                yield from self._thought(_text(one.get("text")) if isinstance(one, dict) else _text(one))
        else:
            yield from self._content(_text(part.get("text")))

    def _content(self, text: str) -> Iterator[ModelEvent]:
        for piece in self._thinking.feed(text):
            yield from self._thought(piece.text) if piece.thought else self._answer(piece.text)

    def _answer(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._weigh(text)
        return [TextDelta(text=text)]

    def _thought(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._weigh(text)
        self._thoughts.append(text)
        return [ReasoningDelta(text=text)]

    def _weigh(self, text: str) -> None:
        self.begun = True
        self._left -= len(text)
        if self._left < 0:
            raise TooMuch("more text than the answer may have")

    def rest(self) -> Iterator[ModelEvent]:
        """What can only be told at the end: text that was held back, whole calls, what goes back unchanged."""
        for piece in self._thinking.end():
            yield from self._thought(piece.text) if piece.thought else self._answer(piece.text)
        calls = list(self._calls.whole())
        yield from calls
        if self._details:
            yield Opaque(provider=self._provider, data={"reasoning_details": joined(self._details)})
        elif calls and self._thought_name == "reasoning_content":
            # Whoever thinks between calls wants its thoughts back with them.
            yield Opaque(provider=self._provider, data={"reasoning_content": "".join(self._thoughts)})

    def finished(self, by: str) -> Finished:
        """How it ended."""
        reason = _REASONS.get(self.said.lower(), "stop")
        if len(self._calls) and reason == "stop":
            reason = "calls"
        return Finished(reason=reason, said=self.said, model=self._model, response_id=self._id, by=by)


def joined(details: list[object]) -> list[object]:
    """The details of all chunks, those of one index put together again: they go back as if they had come whole."""
    found: list[object] = []
    places: dict[object, dict[str, object]] = {}
    for detail in details:
        if not isinstance(detail, dict):
            continue
        place = (detail.get("index"), detail.get("type"))
        known = places.get(place) if place[0] is not None else None
        if known is None:
            known = places[place] = dict(detail)
            found.append(known)
            continue
        for name, value in detail.items():
            old = known.get(name)
            grows = name in ("text", "summary", "data") and isinstance(old, str) and isinstance(value, str)
            known[name] = f"{old}{value}" if grows else (value if value is not None else old)
    return found
