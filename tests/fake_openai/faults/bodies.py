"""Invalid bodies: no JSON, no events, no end, or far too much."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import encode, evolve
from tests.fake_openai.answers import Answer, Asked
from tests.fake_openai.faults.shape import Fault
from tests.fake_openai.speech import DONE, chunks, completion, ended, envelope, event, events
from tests.fake_openai.wire import HTML, JSON, SSE, Wire, head, streamed, told, whole

HUGE: Final = 10 * 1024 * 1024
LOGIN_PATH: Final = "/login"
LOGIN: Final = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><form>Sign in</form></body></html>\n"


def body(asked: Asked, said: bytes) -> Wire:
    """Return the same bytes as an event of a stream, or as the whole body."""
    return streamed((b"data: %b\n\n" % said, DONE)) if asked.streaming else whole(said)


def invalid_utf8(asked: Asked, fault: Fault) -> Wire:
    """Bytes inside the text that are not UTF-8."""
    marked = evolve(fault.answer, text=fault.answer.text + "@@")
    if not asked.streaming:
        return whole(encode(completion(marked, asked)).replace(b"@@", b"\xff\xfe\xc3("))
    return streamed([one.replace(b"@@", b"\xff\xfe\xc3(") for one in events(chunks(marked, asked))])


def half_json(asked: Asked, fault: Fault) -> Wire:
    """JSON that stops in the middle of a valid HTTP response."""
    if asked.streaming:
        *said, last = map(event, chunks(fault.answer, asked))
        return streamed((*said, last[: len(last) // 2] + b"\n\n", DONE))
    made = encode(completion(fault.answer, asked))
    return whole(made[: len(made) // 2])


def huge_text(asked: Asked, fault: Fault) -> Wire:
    """Ten megabytes of text."""
    answer = evolve(fault.answer, text="x" * HUGE, chunk=64 * 1024)
    return streamed(ended(chunks(answer, asked), answer, asked)) if asked.streaming else told(completion(answer, asked))


def no_choices(asked: Asked, _: Fault) -> Wire:
    """Valid objects without choices."""
    said = envelope("chat.completion.chunk" if asked.streaming else "chat.completion", asked.model) | {"choices": []}
    return streamed(events([said])) if asked.streaming else told(said)


def empty_body(asked: Asked, _: Fault) -> Wire:
    """A 200 with an empty body."""
    return streamed(()) if asked.streaming else whole(b"")


def gzip_garbage(asked: Asked, _: Fault) -> Wire:
    """A body that claims to be gzip, but is not."""
    kind = SSE if asked.streaming else JSON
    return whole(b"this is no gzip at all", kind=kind, headers=(("Content-Encoding", "gzip"),))


def login_redirect(_: Asked, __: Fault) -> Wire:
    """A proxy that requires a login."""
    return Wire(head=head(302, HTML, (("Location", LOGIN_PATH), ("Content-Length", "0"))))


def wrong_content_type(asked: Asked, fault: Fault) -> Wire:
    """A good answer with a wrong content type."""
    if asked.streaming:
        return streamed(ended(chunks(fault.answer, asked), fault.answer, asked), kind="application/octet-stream")
    return whole(encode(completion(fault.answer, asked)), kind="text/plain")


def sse_for_plain(asked: Asked, fault: Fault) -> Wire:
    """Events although a plain object was requested."""
    return streamed(events(chunks(fault.answer, asked)))


BODIES: Final = (
    Fault(name="invalid_utf8", about="Bytes that are no UTF-8 inside the text.", make=invalid_utf8),
    Fault(name="half_json", about="JSON that stops in the middle.", make=half_json),
    Fault(name="not_json", about="No JSON at all.", make=lambda a, _: body(a, b"upstream connect error")),
    Fault(name="json_list", about="A list where an object should be.", make=lambda a, _: body(a, b"[1,2]")),
    Fault(name="json_number", about="A number where an object should be.", make=lambda a, _: body(a, b"42")),
    Fault(name="empty_body", about="A 200 without a byte in it.", make=empty_body),
    Fault(name="empty_stream", about="Only [DONE].", make=lambda _, __: streamed((DONE,)), plain=False),
    Fault(name="no_choices", about="Only objects without a choice.", make=no_choices),
    Fault(name="huge_text", about="10 MB of text.", make=huge_text, answer=Answer(), usable=True),
    Fault(name="html_200", about="HTML with a 200.", make=lambda _, __: whole(b"<html>It works!</html>", kind=HTML)),
    Fault(name="login_redirect", about="302 to a proxy's login page.", make=login_redirect),
    Fault(name="login_page", about="A proxy's login page with a 200.", make=lambda _, __: whole(LOGIN, kind=HTML)),
    Fault(name="gzip_garbage", about="Says that it is gzip, and is not.", make=gzip_garbage),
    Fault(name="wrong_content_type", about="A good answer, wrong content type.", make=wrong_content_type, usable=True),
    Fault(
        name="json_for_stream",
        about="One JSON object, although a stream was asked for.",
        make=lambda a, f: told(completion(f.answer, a)),
        plain=False,
        usable=True,
    ),
    Fault(
        name="sse_for_plain",
        about="A stream, although one JSON object was asked for.",
        make=sse_for_plain,
        streaming=False,
        usable=True,
    ),
)
