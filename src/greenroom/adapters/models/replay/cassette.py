"""The file of a recording: JSON lines, the first with its version, each other one with a request and its answer."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import MsgspecError, convert
from msgspec.json import Decoder, decode

from greenroom.adapters.models.replay.nearest import nearest
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelEvent,
    Opaque,
    Purpose,
    ReasoningDelta,
    Retried,
    TextDelta,
    ToolCall,
    Usage,
)

VERSION: Final = 1
FIRST_LINE: Final = b'{"cassette":1}\n'
TAGS: Final[dict[type[ModelEvent], str]] = {
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    ToolCall: "tool",
    Opaque: "opaque",
    Retried: "retried",
}
_KINDS: Final = {tag: kind for kind, tag in TAGS.items()}


@record
class Tape:
    """One request and its answer: the events as they came, with their cuts, and exactly one of `finish` and `error`."""

    key: str
    request: Data
    events: tuple[Data, ...] = ()
    usage: Usage | None = None
    finish: Finished | None = None
    error: Failed | None = None

    @property
    def model(self) -> str:
        """Who was asked."""
        return str(self.request.get("model", ""))

    def played(self) -> Iterator[ModelEvent]:
        """The answer again. Nothing is paid for it."""
        yield from map(event, self.events)
        if self.usage is not None:
            yield evolve(self.usage, money=0)
        end = self.error or self.finish
        if end is None:
            raise WorldFault("The answer has no end.")
        yield end


def event(data: Data) -> ModelEvent:
    """An event as it was written down."""
    fields = {name: value for name, value in data.items() if name != "t"}
    kind = _KINDS.get(str(data.get("t")))
    if kind is None:
        raise WorldFault(f"A recorded event of the kind {data.get('t')!r} is unknown; a newer Greenroom may know it.")
    return convert(fields, kind)


def is_cassette(line: bytes) -> bool:
    """Whether a file that begins with this line is a recording, of whatever version."""
    return _version(line) is not None


def _version(line: bytes) -> int | None:
    try:
        found = decode(line, type=dict[str, object]).get("cassette")
    except (MsgspecError, RecursionError):
        return None
    return found if isinstance(found, int) else None


def refuse_special(path: Path) -> None:
    """A device or a pipe is no recording, and may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise WorldFault(f"{str(path)!r} is no ordinary file. Name one.")


def read(path: Path) -> list[Tape]:
    """All tapes of a recording. `WorldFault` says in one sentence why it cannot be read."""
    refuse_special(path)
    try:
        first, *lines = path.read_bytes().split(b"\n")
    except OSError as fault:
        raise WorldFault(f"The recording {str(path)!r} cannot be read: {fault.strerror or fault}.") from fault
    version = _version(first)
    if version is None:
        raise WorldFault(f"{str(path)!r} is no recording: its first line is not {FIRST_LINE.decode().strip()}.")
    if version > VERSION:
        raise WorldFault(
            f"{str(path)!r} is a recording of version {version}; this Greenroom reads {VERSION}. Update it."
        )
    return list(_tapes(path, lines))


def _tapes(path: Path, lines: Sequence[bytes]) -> Iterator[Tape]:
    decoder = Decoder(Tape)
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            tape = decoder.decode(line)
            list(tape.played())
        except (MsgspecError, RecursionError, WorldFault) as fault:
            # What has no line end was being written when its process died; the answer is lost, the others are whole.
            if number == len(lines) + 1:
                logging.getLogger(__name__).warning("%s: the last line is cut off and is left out", path)
                return
            raise WorldFault(f"Line {number} of the recording {str(path)!r} cannot be read: {fault}") from fault
        yield tape


class Cassette:
    """A recording that is being played. Each tape serves once; equal requests get theirs in the order of the file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._tapes = read(self.path)
        self._waiting: dict[str, deque[int]] = {}
        self._served: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for number, tape in enumerate(self._tapes):
            self._waiting.setdefault(tape.key, deque()).append(number)

    @property
    def models(self) -> tuple[str, ...]:
        """Who was recorded, in the order of first appearance."""
        return tuple(dict.fromkeys(tape.model for tape in self._tapes))

    def unused(self) -> tuple[Tape, ...]:
        """What was never asked for, in the order of the file."""
        return tuple(self._tapes[number] for number in sorted(n for left in self._waiting.values() for n in left))

    def take(self, key: str, purpose: Purpose) -> Tape | None:
        """The tape for this request: for a step that is tried again the answer it had, or else the next unused tape."""
        had = self._served.setdefault((purpose.team, purpose.step, key), [])
        for place, (number, attempt) in enumerate(had):
            if attempt < purpose.attempt and self._tapes[number].finish is not None:
                had[place] = (number, purpose.attempt)
                return self._tapes[number]
        left = self._waiting.get(key)
        if not left:
            return None
        had.append((left.popleft(), purpose.attempt))
        return self._tapes[had[-1][0]]

    def missing(self, key: str, form: bytes) -> Failed:
        """Why there is no tape for this request, with the difference to the nearest one that is unused."""
        times = Counter(tape.key for tape in self._tapes)[key]
        left = self.unused()
        if times:
            why = f"The recording {self.path.name!r} has this request {times} ×, and it is asked once more."
        elif not left:
            why = (
                f"The recording {self.path.name!r} is exhausted: each of its {len(self._tapes)} answers has been given."
            )
        else:
            why = (
                f"The recording {self.path.name!r} has no answer to this request. Record it again, or undo the change."
            )
        near = nearest(decode(form, type=dict[str, object]), [one.request for one in left])
        return Failed(kind="request", why=why, said=near)
