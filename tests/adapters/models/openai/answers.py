"""Parse answers from bytes with the adapter, into a form that is easy to compare."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.json import encode

from greenroom.adapters.models.openai.faults import FaultMaker
from greenroom.adapters.models.openai.model import ResponseBodyReader
from greenroom.adapters.models.openai.response import ErrorInResponse, ResponseReader, ResponseTooLarge
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelTextDelta,
    Opaque,
    Retried,
    ToolCall,
    Usage,
)

SSE = {"Content-Type": "text/event-stream"}
JSON = {"Content-Type": "application/json"}


@dataclass
class Heard:
    """The parsed answer."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    opaque: list[Opaque] = field(default_factory=list)
    usage: Usage | None = None
    counted: Usage | None = None
    end: Finished | Failed | None = None
    complete: bool = False

    def take(self, event: ModelEvent) -> None:
        match event:
            case ModelTextDelta():
                self.text += event.text
            case ModelReasoningDelta():
                self.reasoning += event.text
            case ToolCall():
                self.calls.append(event)
            case Opaque():
                self.opaque.append(event)
            case Usage():
                self.usage = event
            case Finished() | Failed():
                self.end = event
            case Retried():
                raise AssertionError("an adapter does not repeat itself")

    @property
    def called(self) -> list[tuple[str, str, object]]:
        """The calls as plain tuples."""
        return [(call.call_id, call.name, dict(call.arguments)) for call in self.calls]


def heard(pieces: Iterable[bytes], headers: dict[str, str] = SSE, most: int = 100_000) -> Heard:
    reading, faults, found = ResponseReader("fake", most), FaultMaker("fake:m", "http://fake/v1"), Heard()
    body = ResponseBodyReader(reading, faults, 200, headers)
    try:
        for piece in pieces:
            for event in body.feed(piece):
                found.take(event)
        for event in body.end():
            found.take(event)
    except ErrorInResponse as error:
        found.end = faults.from_error_body(error.body)
    except ResponseTooLarge as error:
        found.end = faults.make_fault("too_large", str(error))
    found.usage = reading.usage
    found.counted = reading.counted_usage
    if body.has_failed:
        return found
    found.complete = reading.is_complete
    if found.end is None:
        for event in reading.emit_rest():
            found.take(event)
        found.end = reading.make_finished("fake:m") if reading.is_complete else None
    return found


def sse(*chunks: object, done: bool = True) -> bytes:
    """Chunks as a stream."""
    lines = [b"data: " + (chunk if isinstance(chunk, bytes) else encode(chunk)) + b"\n\n" for chunk in chunks]
    return b"".join([*lines, b"data: [DONE]\n\n" if done else b""])


def delta(finish: str | None = None, /, **fields: object) -> dict[str, object]:
    """A chunk with this delta."""
    choice: dict[str, object] = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "chatcmpl-1", "model": "m-1", "choices": [choice]}


def body(finish: str | None = "stop", /, usage: object = None, **fields: object) -> bytes:
    """A whole answer with this message."""
    message = {"role": "assistant", **fields}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return encode({"id": "chatcmpl-1", "model": "m-1", "choices": [choice], "usage": usage})


def calls(*deltas: dict[str, object]) -> dict[str, object]:
    """A chunk with these parts of calls."""
    return delta(tool_calls=list(deltas))


def part(
    index: int | None = 0, call_id: object = None, name: object = None, arguments: object = None
) -> dict[str, object]:
    """Build a part of a call. None is left out."""
    found: dict[str, object] = {"function": {}}
    given = {"name": name, "arguments": arguments}
    found["function"] = {key: value for key, value in given.items() if value is not None}
    if index is not None:
        found["index"] = index
    if call_id is not None:
        found["id"] = call_id
    return found
