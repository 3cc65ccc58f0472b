"""Encode an answer as OpenAI's chat completions: as one JSON object, or as server-sent events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from greenroom.core.base.records import Data, encode
from tests.fake_openai.answers import Answer, Asked, Call, cut, usage
from tests.fake_openai.wire import Wire, streamed, told

RESPONSE_ID: Final = "chatcmpl-fake"
CREATED: Final = 1_700_000_000
DONE: Final = b"data: [DONE]\n\n"
KEPT: Final = 256
"""Maximum number of encoded answers in the cache: scripts repeat the same few."""

Chunk = dict[str, object]


def completion(answer: Answer, asked: Asked) -> Chunk:
    """Return the whole answer as one object."""
    message: Chunk = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message[answer.reasoning_name] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [whole_call(call, number) for number, call in enumerate(answer.calls, start=1)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.ending}
    return {**envelope("chat.completion", asked.model), "choices": [choice], "usage": usage(answer, asked)}


def chunks(answer: Answer, asked: Asked) -> list[Chunk]:
    """Return the chunks of a stream, from the role to the finish_reason, without the usage."""
    said = [chunk(asked.model, delta) for delta in deltas(answer, answer.chunk or asked.chunk)]
    return [*said, chunk(asked.model, {}, answer.ending)]


def chunk(model: str, delta: Data, finish: str | None = None) -> Chunk:
    """Return one chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**envelope("chat.completion.chunk", model), "choices": [choice]}


def usage_chunk(answer: Answer, asked: Asked) -> Chunk:
    """Return the last chunk of a stream, with the usage."""
    return {**envelope("chat.completion.chunk", asked.model), "choices": [], "usage": usage(answer, asked)}


def envelope(kind: str, model: str) -> Chunk:
    """Return the common fields of objects and chunks."""
    return {"id": RESPONSE_ID, "object": kind, "created": CREATED, "model": model}


def deltas(answer: Answer, size: int) -> Iterator[Data]:
    """Yield the delta of each chunk."""
    yield {"role": "assistant", "content": ""}
    yield from ({answer.reasoning_name: piece} for piece in cut(answer.reasoning, size))
    yield from ({"content": piece} for piece in cut(answer.text, size))
    for index, call in enumerate(answer.calls):
        named = whole_call(call, index + 1, arguments="")
        yield {"tool_calls": [{"index": index, **named}]}
        for piece in cut(call.written, size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def whole_call(call: Call, number: int, arguments: str | None = None) -> Chunk:
    """Return a call with its id, name and arguments."""
    function = {"name": call.name, "arguments": call.written if arguments is None else arguments}
    return {"id": call.id or f"call_{number}", "type": "function", "function": function, **(call.extra or {})}


def event(data: object) -> bytes:
    """A server-sent event."""
    return b"data: %b\n\n" % encode(data)


def events(said: Iterable[object]) -> list[bytes]:
    """Return a whole stream of events, including `[DONE]`."""
    return [*map(event, said), DONE]


def ended(said: Iterable[Chunk], answer: Answer, asked: Asked) -> list[bytes]:
    """Do the same with the usage before the end, if it was requested."""
    return events((*said, usage_chunk(answer, asked)) if asked.usage else said)


class Speech:
    """Encodes answers and caches the bytes: a benchmark measures its client, not this server."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, int], tuple[Answer, tuple[bytes, ...]]] = {}

    def wire(self, answer: Answer, asked: Asked) -> Wire:
        """Return the answer as it goes over the wire."""
        if not asked.streaming:
            return told(completion(answer, asked))
        last = (event(usage_chunk(answer, asked)), DONE) if asked.usage else (DONE,)
        return streamed((*self._spoken(answer, asked), *last), pace=answer.pace)

    def _spoken(self, answer: Answer, asked: Asked) -> tuple[bytes, ...]:
        # By identity: an answer contains mappings and has no hash. Keep the answer too, so that its id stays unique.
        key = (id(answer), asked.model, asked.chunk)
        if found := self._kept.get(key):
            return found[1]
        if len(self._kept) >= KEPT:
            self._kept.clear()
        made = tuple(map(event, chunks(answer, asked)))
        self._kept[key] = (answer, made)
        return made
