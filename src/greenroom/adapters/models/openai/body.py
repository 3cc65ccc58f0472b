"""The body of a response, piece by piece: a stream of events, or one JSON object, whatever its header calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, cast

from msgspec import DecodeError, json

from greenroom.adapters.models.openai.faults import Faults
from greenroom.adapters.models.openai.reading import Complaint, Reading, TooMuch
from greenroom.adapters.models.openai.sse import BOM, Events, Sent
from greenroom.core.ports.model import Failed, ModelEvent

PAGE: Final = 64 * 1024
"""Bytes of something that is no answer that are looked at."""

BYTES_PER_CHARACTER: Final = 32
"""What an answer may weigh on its way, for each character that it may have: every word of a stream is wrapped."""

DONE: Final = b"[DONE]"
_SSE: Final = (b"data:", b"event:", b":", b"id:", b"retry:")

_decode: Final = json.Decoder().decode


class Response(Protocol):
    """What matters of an HTTP response."""

    @property
    def status(self) -> int:
        """Its status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, found whatever their case."""
        ...


class Body:
    """Takes bytes, gives events. A `Failed` among them is the last one."""

    def __init__(self, reading: Reading, faults: Faults, response: Response) -> None:
        self.failed = False
        self._reading = reading
        self._faults = faults
        self._response = response
        streams = response.status == 200 and "text/event-stream" in response.headers.get("Content-Type", "")
        self._events = Events() if streams else None
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def over(self) -> bool:
        """Whether nothing that still comes matters."""
        return self.failed or self._reading.done or (self._response.status != 200 and self._size > PAGE)

    def feed(self, piece: bytes) -> list[ModelEvent]:
        """What is known now."""
        self._size += len(piece)
        if self._size > BYTES_PER_CHARACTER * self._reading.most + PAGE:
            raise TooMuch(f"more than {self._size:,} bytes")
        if self._events is not None:
            return self._read(self._events.feed(piece))
        self._pieces.append(piece)
        return []

    def end(self) -> list[ModelEvent]:
        """What was left; a body that came in one piece is read now."""
        if self.failed:
            return []
        if self._events is not None:
            return self._read(self._events.end())
        data = b"".join(self._pieces)
        if self._response.status != 200:
            return self._fails(self._faults.answered(self._response.status, self._response.headers, data[:PAGE]))
        if data.removeprefix(BOM).lstrip().startswith(_SSE):
            events = Events()
            return self._read([*events.feed(data), *events.end()])
        return self._whole(data)

    def _read(self, sent: list[Sent]) -> list[ModelEvent]:
        found: list[ModelEvent] = []
        for one in sent:
            found += self._chunk(one)
            if self.failed:
                break
        return found

    def _fails(self, failed: Failed) -> list[ModelEvent]:
        self.failed = True
        return [failed]

    def _chunk(self, sent: Sent) -> list[ModelEvent]:
        data = sent.data.strip()
        if data == DONE:
            self._reading.done = True
        if not data or self._reading.done:
            return []
        try:
            chunk: object = _decode(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            said = data[:120].decode(errors="replace")
            if sent.name == "error":
                raise Complaint({"error": said}) from None
            return self._fails(self._faults.fault("malformed", f"a chunk that is no JSON: {said}"))
        if not isinstance(chunk, dict):
            return []
        if sent.name == "error" and "error" not in chunk:
            raise Complaint({"error": chunk})
        return self._reading.take(cast("dict[str, object]", chunk))

    def _whole(self, data: bytes) -> list[ModelEvent]:
        try:
            body: object = _decode(data.removeprefix(BOM))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return self._fails(self._faults.answered(200, self._response.headers, data[:PAGE]))
        if not isinstance(body, dict):
            said = data[:120].decode(errors="replace")
            return self._fails(self._faults.fault("malformed", f"JSON that is no object: {said}"))
        found = self._reading.take(cast("dict[str, object]", body))
        # What came whole is complete, unless nothing that could be an answer was in it.
        self._reading.done = self._reading.begun or bool(body.get("choices"))
        return found
