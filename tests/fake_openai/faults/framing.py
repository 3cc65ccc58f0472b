"""Unusual server-sent events that the standard allows. Each contains a good answer."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import encode, evolve
from tests.fake_openai.answers import Asked
from tests.fake_openai.faults.shape import Fault
from tests.fake_openai.speech import chunks, completion, ended
from tests.fake_openai.wire import JSON, SSE, Wire, streamed, whole

BOM: Final = b"\xef\xbb\xbf"


def said(asked: Asked, fault: Fault) -> list[bytes]:
    """Return the answer as regular events."""
    return ended(chunks(fault.answer, asked), fault.answer, asked)


def changed(asked: Asked, fault: Fault, old: bytes, new: bytes) -> Wire:
    """Return the same events with a replacement. JSON contains no line endings."""
    return streamed(one.replace(old, new) for one in said(asked, fault))


def bom(asked: Asked, fault: Fault) -> Wire:
    """A byte order mark at the start."""
    if not asked.streaming:
        return whole(BOM + encode(completion(fault.answer, asked)))
    return streamed((BOM, *said(asked, fault)))


def multi_line_data(asked: Asked, fault: Fault) -> Wire:
    """The JSON of an event over two lines of data."""
    return streamed(one.replace(b',"choices"', b',\ndata: "choices"') for one in said(asked, fault))


def other_fields(asked: Asked, fault: Fault) -> Wire:
    """Comments, ids, retry times and event names around the data."""
    around = (b": OPENROUTER PROCESSING\n\nid: 7\nretry: 1000\nevent: message\n" + one for one in said(asked, fault))
    return streamed(around)


def torn_bytes(asked: Asked, fault: Fault) -> Wire:
    """One byte at a time: every event, line ending and character is split."""
    pieces = said(asked, fault) if asked.streaming else [encode(completion(fault.answer, asked))]
    return evolve(streamed(pieces, kind=SSE if asked.streaming else JSON), tear=1)


def unended(asked: Asked, fault: Fault) -> Wire:
    """No blank line after the last event."""
    *before, last = said(asked, fault)
    return streamed((*before, last.rstrip(b"\n")))


FRAMING: Final = tuple(
    Fault(name=name, about=about, make=make, plain=plain, usable=True)
    for name, about, make, plain in (
        ("crlf", "Lines end in CR LF.", lambda a, f: changed(a, f, b"\n", b"\r\n"), False),
        ("cr", "Lines end in CR.", lambda a, f: changed(a, f, b"\n", b"\r"), False),
        ("no_space", "No space after `data:`.", lambda a, f: changed(a, f, b"data: ", b"data:"), False),
        ("bom", "A byte order mark before all else.", bom, True),
        ("multi_line_data", "The JSON of an event over two lines.", multi_line_data, False),
        ("other_fields", "Comments, ids, retry times and event names.", other_fields, False),
        ("torn_bytes", "One byte at a time.", torn_bytes, True),
        ("unended", "No line end after [DONE].", unended, False),
    )
)
