"""The file of a recording: JSON lines, the first with its version, each other one with a request and its answer."""

from __future__ import annotations

import difflib
import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import MsgspecError, convert
from msgspec.json import Decoder, decode

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, encode, evolve, record
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

LOOKED_AT: Final = 1000
"""So many candidates are looked at, by how many lines they share with the request …"""

COMPARED: Final = 8
"""… and so many are compared line by line: difflib is thorough, not fast."""

LINES: Final = 800
CHARACTERS: Final = 600
SHOWN: Final = 120
WIDTH: Final = 400
CONTEXT: Final = 2


def nearest(wanted: Data, recorded: Sequence[Data]) -> str:
    """A unified diff from the nearest of the recorded requests to the wanted one; "" when there is none."""
    lines = shown(wanted)
    # The same number of messages first: a conversation that is as long is the same turn of it.
    by_length = sorted(recorded, key=lambda one: abs(length(one) - length(wanted)))[:LOOKED_AT]
    if not by_length:
        return ""
    least = abs(length(by_length[0]) - length(wanted))
    as_long = [shown(one) for one in by_length if abs(length(one) - length(wanted)) == least]
    likely = sorted(as_long, key=lambda one: shared(lines, one), reverse=True)[:COMPARED]
    best = max(likely, key=lambda one: likeness(lines, one))
    theirs, mine, _ = apart(best, lines, around=CONTEXT)
    diff = difflib.unified_diff(theirs, mine, "recorded", "asked", lineterm="", n=CONTEXT)
    return "\n".join(short(line) for line in islice(diff, SHOWN))


def length(request: Data) -> int:
    """How many messages it has."""
    return len(_list(request.get("messages")))


def shared(one: Sequence[str], other: Sequence[str]) -> tuple[float, float]:
    """A cheap likeness: the lines that they have in common, and then the letters of the others, in any order."""
    mine, theirs = set(one), set(other)
    by_lines = len(mine & theirs) / len(mine | theirs)
    return by_lines, matcher(*apart(one, other)[:2]).quick_ratio()


def likeness(one: Sequence[str], other: Sequence[str]) -> tuple[float, float]:
    """How alike they are by lines, and then by the characters of those lines that differ."""
    mine, theirs, equal = apart(one, other)
    matches = difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    by_lines = 2 * (equal + sum(block.size for block in matches)) / (len(one) + len(other))
    return by_lines, matcher(mine, theirs).ratio()


def matcher(one: Sequence[str], other: Sequence[str]) -> difflib.SequenceMatcher[str]:
    """Compares their beginnings letter by letter."""
    mine, theirs = ("\n".join(lines)[:CHARACTERS] for lines in (one, other))
    return difflib.SequenceMatcher(None, mine, theirs, autojunk=False)


def apart(one: Sequence[str], other: Sequence[str], around: int = 0) -> tuple[Sequence[str], Sequence[str], int]:
    """Where they differ, and how many lines they begin and end with alike: long talks differ in little."""
    shorter = min(len(one), len(other))
    start = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    end = next((n for n in range(shorter - start) if one[-1 - n] != other[-1 - n]), shorter - start)
    low, high = max(start - around, 0), max(end - around, 0)
    mine, theirs = (lines[low : len(lines) - high][:LINES] for lines in (one, other))
    return mine, theirs, start + end


def shown(request: Data) -> list[str]:
    """A canonical request as lines: the text of a message has its own."""
    lines = [f"model: {request.get('model')}"]
    lines.extend(f"{name}: {_json(request[name])}" for name in ("settings", "schema") if name in request)
    lines.extend(f"tool: {_json(tool)}" for tool in _list(request.get("tools")))
    for message in _list(request.get("messages")):
        lines.extend(_message(message))
    return lines


def _message(message: object) -> Iterator[str]:
    if not isinstance(message, Mapping):
        yield _json(message)
        return
    yield f"{message.get('role')}:"
    for name, value in message.items():
        if isinstance(value, str) and name != "role":
            mark = "" if name == "content" else f"{name}: "
            yield from (f"  {mark}{line}" for line in value.split("\n"))
        elif name != "role":
            yield f"  {name}: {_json(value)}"


def short(line: str) -> str:
    """The line, if it is not too long for a screen."""
    return line if len(line) <= WIDTH else f"{line[:WIDTH]} … ({len(line)} characters)"


def _json(value: object) -> str:
    return encode(value).decode()


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


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
