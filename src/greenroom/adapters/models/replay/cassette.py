"""The file of a recording: JSON lines, the first with its version, each other one with a request and its answer."""

from __future__ import annotations

import difflib
import hashlib
import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import MsgspecError, convert
from msgspec.json import Decoder, Encoder, decode

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, as_dict, encode, evolve, record
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    ModelEvent,
    ModelRequest,
    Opaque,
    Purpose,
    ReasoningDelta,
    Retried,
    TextDelta,
    ToolCall,
    Usage,
)

MASK: Final = "[redacted]"
SHORTEST: Final = 6
"""A shorter secret is no secret, and taking it out would make holes in ordinary words."""

ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

OUR_WORDS: Final = (
    "cassette request events finish error model messages settings schema tools content answers reasoning opaque "
    "provider arguments unread extra call_id parameters description name sha256 retried attempt response_id "
    "retry_after status reason filter length calls address overloaded server network timeout malformed cut_off "
    "too_long too_large truncated assistant system tool_choice max_output temperature effort required "
    "cached written thought"
)
"""What a file is made of. A secret that is one of these is none, and without them nobody could read the file."""

KEYS: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"(?<=Bearer )\s*[A-Za-z0-9._~+/=-]{8,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|gsk_|xox[abprs]-)[A-Za-z0-9_-]{16,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
)


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables whose name says that they are secret."""
    return tuple(value for name, value in environment.items() if name.upper().endswith(ENDINGS))


class Redaction:
    """Finds these secrets, and whatever looks like a key."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one secret may begin like another.
        known = sorted(
            {one for one in secrets if len(one) >= SHORTEST and one not in OUR_WORDS}, key=lambda one: (-len(one), one)
        )
        self._found = re.compile("|".join((*map(re.escape, known), *KEYS)))

    def text(self, text: str) -> str:
        """The text without them."""
        return self._found.sub(MASK, text)

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """The same for a text in pieces, which keeps its cuts: a key may come in several of them."""
        masked = list(pieces)
        starts = [0, *accumulate(map(len, pieces))]
        for found in reversed(list(self._found.finditer("".join(pieces)))):
            first = True
            for number in range(len(pieces)):
                low, high = (min(max(at - starts[number], 0), len(pieces[number])) for at in found.span())
                if low < high:
                    masked[number] = masked[number][:low] + MASK * first + masked[number][high:]
                    first = False
        return masked


Clean: TypeAlias = Callable[[str], str]

CALL: Final = ("name", "arguments", "unread", "extra")
TOOL: Final = ("name", "description", "parameters")
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
        "tools": [{name: getattr(tool, name) for name in TOOL} for tool in request.tools],
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
        "calls": [
            {"id": _renamed(call.call_id, ids), **_without_nothing({name: getattr(call, name) for name in CALL})}
            for call in message.calls
        ],
        "answers": None if message.call_id is None else _renamed(message.call_id, ids),
        "reasoning": message.reasoning,
        "opaque": [{"provider": one.provider, "data": one.data} for one in message.opaque],
        "media": [
            {"type": one.media_type, "name": one.name, "sha256": hashlib.sha256(one.data).hexdigest()}
            for one in message.media
        ],
    }


def _renamed(call_id: str, ids: dict[str, str]) -> str:
    """Ids are drawn at random by the provider; who answers whom is what counts."""
    return ids.setdefault(call_id, f"call {len(ids) + 1}")


def _without_nothing(data: Data) -> Data:
    return {name: value for name, value in data.items() if value not in (None, "", [], ())}


LINES: Final = 800
"""Lines that are compared: difflib is thorough, not fast."""

SHOWN: Final = 120
WIDTH: Final = 400
CONTEXT: Final = 2


def nearest(wanted: Data, recorded: Sequence[Data]) -> str:
    """A unified diff from the nearest of the recorded requests to the wanted one; "" when there is none.

    The nearest has as many messages (the same turn of a conversation), the same lines, and ends in the same letters.
    """
    lines = shown(wanted)

    def likeness(request: Data) -> tuple[int, int, float]:
        other = shown(request)
        ends = "\n".join(lines)[-WIDTH:], "\n".join(other)[-WIDTH:]
        letters = difflib.SequenceMatcher(None, *ends, autojunk=False).quick_ratio()
        return (
            -abs(len(_list(request.get("messages"))) - len(_list(wanted.get("messages")))),
            len(set(lines) & set(other)),
            letters,
        )

    if not recorded:
        return ""
    best = shown(max(recorded, key=likeness))
    diff = difflib.unified_diff(best[-LINES:], lines[-LINES:], "recorded", "asked", lineterm="", n=CONTEXT)
    short = (line if len(line) <= WIDTH else f"{line[:WIDTH]} … ({len(line)} characters)" for line in diff)
    return "\n".join(islice(short, SHOWN))


def shown(request: Data) -> list[str]:
    """A canonical request as lines: the text of a message has its own."""
    lines = [f"model: {request.get('model')}"]
    lines.extend(f"{name}: {_json(request[name])}" for name in ("settings", "schema") if name in request)
    lines.extend(f"tool: {_json(tool)}" for tool in _list(request.get("tools")))
    for message in _list(request.get("messages")):
        lines.extend(_message_lines(message))
    return lines


def _message_lines(message: object) -> Iterator[str]:
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
        why = "has no answer to this request. Record it again, or undo the change."
        if times:
            why = f"has this request {times} ×, and it is asked once more."
        elif not left:
            why = f"is exhausted: each of its {len(self._tapes)} answers has been given."
        near = nearest(decode(form, type=dict[str, object]), [tape.request for tape in left])
        return Failed(kind="request", why=f"The recording {self.path.name!r} {why}", said=near)
