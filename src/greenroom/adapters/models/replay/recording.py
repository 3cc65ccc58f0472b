"""The file format of a recording: JSON lines. The first has the version, each other line a request and its response."""

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

from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, as_dict, encode, evolve, record
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    Purpose,
    Retried,
    ToolCall,
    Usage,
)

MASK: Final = "[redacted]"
MIN_SECRET_CHARS: Final = 6
"""Shortest secret in characters. Redacting shorter values would damage ordinary words."""

SECRET_SUFFIXES: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

FORMAT_WORDS: Final = (
    "cassette request events finish error model messages settings schema tools content answers reasoning opaque "
    "provider arguments unread extra call_id parameters description name sha256 retried attempt response_id "
    "retry_after status reason filter length calls address overloaded server network timeout malformed cut_off "
    "too_long too_large truncated assistant system tool_choice max_output temperature effort required "
    "cached written thought"
)
"""Words of the file format. They are never redacted, or the file would be unreadable."""

KEY_PATTERNS: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"(?<=Bearer )\s*[A-Za-z0-9._~+/=-]{8,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|gsk_|xox[abprs]-)[A-Za-z0-9_-]{16,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
)


def find_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of all variables whose name marks them as secret."""
    return tuple(value for name, value in environment.items() if name.upper().endswith(SECRET_SUFFIXES))


class RecordingRedaction:
    """Redacts these secrets and anything that looks like a key."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first, because one secret may be a prefix of another.
        longest_first = sorted(
            {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS and secret not in FORMAT_WORDS},
            key=lambda secret: (-len(secret), secret),
        )
        self._pattern = re.compile("|".join((*map(re.escape, longest_first), *KEY_PATTERNS)))

    def redact(self, value: str) -> str:
        """Return the text without secrets."""
        return self._pattern.sub(MASK, value)

    def redact_pieces(self, pieces: Sequence[str]) -> list[str]:
        """Redact a text in pieces and keep the pieces. A key may span several of them."""
        masked = list(pieces)
        starts = [0, *accumulate(map(len, pieces))]
        for match in reversed(list(self._pattern.finditer("".join(pieces)))):
            first = True
            for number in range(len(pieces)):
                low, high = (min(max(at - starts[number], 0), len(pieces[number])) for at in match.span())
                if low < high:
                    masked[number] = masked[number][:low] + MASK * first + masked[number][high:]
                    first = False
        return masked


CleanText: TypeAlias = Callable[[str], str]

CALL_FIELDS: Final = ("name", "arguments", "unread", "extra")
TOOL_FIELDS: Final = ("name", "description", "parameters")
SETTING_FIELDS: Final = ("tool_choice", "max_output", "temperature", "stop", "effort")

_sorted: Final = Encoder(enc_hook=as_dict, order="sorted").encode


def encode_canonical(request: ModelRequest, model: str, clean: CleanText = str) -> bytes:
    """Encode a request to this model in canonical form. `clean` redacts every string."""
    ids: dict[str, str] = {}
    messages = [_drop_empty(_build_message(message, ids)) for message in request.messages]
    settings = {name: getattr(request, name) for name in SETTING_FIELDS}
    form = {
        "model": model,
        "messages": messages,
        "tools": [{name: getattr(tool, name) for name in TOOL_FIELDS} for tool in request.tools],
        "schema": request.schema,
        "settings": _drop_empty(settings),
    }
    return _sorted(clean_data(_drop_empty(form), lambda text: clean(text.replace("\r\n", "\n"))))


def hash_request(form: bytes) -> str:
    return hashlib.sha256(form).hexdigest()


def clean_data(value: object, clean: CleanText) -> object:
    """Return the data with `clean` applied to every string."""
    match value:
        case str():
            return clean(value)
        case Mapping():
            return {clean(str(name)): clean_data(item, clean) for name, item in value.items()}
        case list() | tuple():
            return [clean_data(item, clean) for item in value]
        case _:
            return value


def _build_message(message: ChatMessage, ids: dict[str, str]) -> Data:
    return {
        "role": message.role,
        "content": message.content,
        "calls": [
            {"id": _rename_call(call.call_id, ids), **_drop_empty({name: getattr(call, name) for name in CALL_FIELDS})}
            for call in message.calls
        ],
        "answers": None if message.call_id is None else _rename_call(message.call_id, ids),
        "reasoning": message.reasoning,
        "opaque": [{"provider": item.provider, "data": item.data} for item in message.opaque],
        "media": [
            {"type": item.media_type, "name": item.name, "sha256": hashlib.sha256(item.data).hexdigest()}
            for item in message.media
        ],
    }


def _rename_call(call_id: str, ids: dict[str, str]) -> str:
    """Replace the provider's random call id by a number. Only the link between call and result matters."""
    return ids.setdefault(call_id, f"call {len(ids) + 1}")


def _drop_empty(data: Data) -> Data:
    return {name: value for name, value in data.items() if value not in (None, "", [], ())}


MAX_LINES_COMPARED: Final = 800
"""How many lines are compared. difflib is slow."""

MAX_DIFF_LINES: Final = 120
MAX_LINE_CHARS: Final = 400
CONTEXT_LINES: Final = 2


def find_nearest(wanted: Data, recorded: Sequence[Data]) -> str:
    """Return a unified diff from the most similar recorded request to the wanted one; empty if there is none.

    Similarity is the number of messages, then equal lines, then equal characters at the end.
    """
    lines = render_request(wanted)

    def score_likeness(request: Data) -> tuple[int, int, float]:
        other = render_request(request)
        ends = "\n".join(lines)[-MAX_LINE_CHARS:], "\n".join(other)[-MAX_LINE_CHARS:]
        letters = difflib.SequenceMatcher(None, *ends, autojunk=False).quick_ratio()
        return (
            -abs(len(_as_list(request.get("messages"))) - len(_as_list(wanted.get("messages")))),
            len(set(lines) & set(other)),
            letters,
        )

    if not recorded:
        return ""
    best = render_request(max(recorded, key=score_likeness))
    diff = difflib.unified_diff(
        best[-MAX_LINES_COMPARED:], lines[-MAX_LINES_COMPARED:], "recorded", "asked", lineterm="", n=CONTEXT_LINES
    )
    short = (
        line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} … ({len(line)} characters)" for line in diff
    )
    return "\n".join(islice(short, MAX_DIFF_LINES))


def render_request(request: Data) -> list[str]:
    """Render a canonical request as lines. Message texts are split into their own lines."""
    lines = [f"model: {request.get('model')}"]
    lines.extend(f"{name}: {_to_json(request[name])}" for name in ("settings", "schema") if name in request)
    lines.extend(f"tool: {_to_json(tool)}" for tool in _as_list(request.get("tools")))
    for message in _as_list(request.get("messages")):
        lines.extend(_render_message(message))
    return lines


def _render_message(message: object) -> Iterator[str]:
    if not isinstance(message, Mapping):
        yield _to_json(message)
        return
    yield f"{message.get('role')}:"
    for name, value in message.items():
        if isinstance(value, str) and name != "role":
            mark = "" if name == "content" else f"{name}: "
            yield from (f"  {mark}{line}" for line in value.split("\n"))
        elif name != "role":
            yield f"  {name}: {_to_json(value)}"


def _to_json(value: object) -> str:
    return encode(value).decode()


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


FORMAT_VERSION: Final = 1
FIRST_LINE: Final = b'{"cassette":1}\n'
EVENT_TAGS: Final[dict[type[ModelEvent], str]] = {
    ModelTextDelta: "text",
    ModelReasoningDelta: "reasoning",
    ToolCall: "tool",
    Opaque: "opaque",
    Retried: "retried",
}
_EVENT_TYPES: Final = {tag: kind for kind, tag in EVENT_TAGS.items()}


@record
class RecordedCall:
    """One recorded request and its response: the events in their pieces, and either `finish` or `error`."""

    key: str
    request: Data
    events: tuple[Data, ...] = ()
    usage: Usage | None = None
    finish: Finished | None = None
    error: Failed | None = None

    @property
    def model(self) -> str:
        return str(self.request.get("model", ""))

    def replay(self) -> Iterator[ModelEvent]:
        """Yield the recorded response, at no cost."""
        yield from map(decode_event, self.events)
        if self.usage is not None:
            yield evolve(self.usage, money=0)
        end = self.error or self.finish
        if end is None:
            raise WorldFault("models.recorded_response_unfinished")
        yield end


def decode_event(data: Data) -> ModelEvent:
    """Decode a recorded event. Raise `WorldFault` for an unknown kind."""
    fields = {name: value for name, value in data.items() if name != "t"}
    kind = _EVENT_TYPES.get(str(data.get("t")))
    if kind is None:
        raise WorldFault("models.unknown_recorded_event", get=data.get("t"))
    return convert(fields, kind)


def is_recording(line: bytes) -> bool:
    """Return whether this is the first line of a recording of any version."""
    return _read_version(line) is not None


def _read_version(line: bytes) -> int | None:
    try:
        version = decode(line, type=dict[str, object]).get("cassette")
    except (MsgspecError, RecursionError):
        return None
    return version if isinstance(version, int) else None


def refuse_special_file(path: Path) -> None:
    """Raise `WorldFault` for a device or pipe, because reading it may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise WorldFault("models.not_regular_file", path=str(path))


def read_recording(path: Path) -> list[RecordedCall]:
    """Read all calls of a recording. Raise `WorldFault` if it cannot be read."""
    refuse_special_file(path)
    try:
        first, *lines = path.read_bytes().split(b"\n")
    except OSError as fault:
        raise WorldFault("models.recording_not_readable", path=str(path), strerror=fault.strerror or fault) from fault
    version = _read_version(first)
    if version is None:
        raise WorldFault("models.not_a_recording", path=str(path), first_line=FIRST_LINE.decode().strip())
    if version > FORMAT_VERSION:
        raise WorldFault(
            "models.newer_recording_version", path=str(path), version=version, format_version=FORMAT_VERSION
        )
    return list(_read_calls(path, lines))


def _read_calls(path: Path, lines: Sequence[bytes]) -> Iterator[RecordedCall]:
    decoder = Decoder(RecordedCall)
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            call = decoder.decode(line)
            list(call.replay())
        except (MsgspecError, RecursionError, WorldFault) as fault:
            # The last line is incomplete: its process died while writing. The other lines are complete.
            if number == len(lines) + 1:
                logging.getLogger(__name__).warning("%s: the last line is incomplete and is skipped", path)
                return
            raise WorldFault("models.recording_line_damaged", number=number, path=str(path), fault=fault) from fault
        yield call


class ModelRecording:
    """A recording for replay. Each call is used once; equal requests get their responses in file order."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._calls = read_recording(self.path)
        self._unused: dict[str, deque[int]] = {}
        self._served_calls: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for number, tape in enumerate(self._calls):
            self._unused.setdefault(tape.key, deque()).append(number)

    @property
    def models(self) -> tuple[str, ...]:
        """The recorded models, in order of first appearance."""
        return tuple(dict.fromkeys(tape.model for tape in self._calls))

    def list_unused(self) -> tuple[RecordedCall, ...]:
        """Return the calls that were never requested, in file order."""
        return tuple(self._calls[number] for number in sorted(n for left in self._unused.values() for n in left))

    def take(self, key: str, purpose: Purpose) -> RecordedCall | None:
        """Return the call for this request: the same one again for a retried step, else the next unused one."""
        served = self._served_calls.setdefault((purpose.team, purpose.step, key), [])
        for place, (number, attempt) in enumerate(served):
            if attempt < purpose.attempt and self._calls[number].finish is not None:
                served[place] = (number, purpose.attempt)
                return self._calls[number]
        unused = self._unused.get(key)
        if not unused:
            return None
        served.append((unused.popleft(), purpose.attempt))
        return self._calls[served[-1][0]]

    def make_missing_fault(self, key: str, form: bytes) -> Failed:
        """Return the fault for a request without a recorded call, with a diff to the most similar unused one."""
        count = Counter(tape.key for tape in self._calls)[key]
        unused = self.list_unused()
        code = "models.recording_without_response"
        if count:
            code = "models.recording_request_again"
        elif not unused:
            code = "models.recording_exhausted"
        near = find_nearest(decode(form, type=dict[str, object]), [tape.request for tape in unused])
        why = translate(code, name=self.path.name, count=count, total=len(self._calls))
        return Failed(kind="request", why=why, said=near)
