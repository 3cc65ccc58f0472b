"""Connection faults: it hangs, drips, breaks, or ends in the middle."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import encode, evolve
from tests.fake_openai.answers import Asked
from tests.fake_openai.faults.shape import ADD, Fault
from tests.fake_openai.speech import chunk, chunks, completion, event
from tests.fake_openai.wire import JSON, LAST_CHUNK, SSE, Ending, Wire, head, streamed, until_closed

COMMENT: Final = b": keep-alive\n\n"


def half(asked: Asked, fault: Fault) -> list[bytes]:
    """Return the first half of the answer: some events, or the beginning of a JSON object."""
    if asked.streaming:
        said = chunks(fault.answer, asked)
        return [event(one) for one in said[: len(said) // 2 + 1]]
    body = encode(completion(fault.answer, asked))
    return [body[: len(body) // 2]]


def cut_off(asked: Asked, fault: Fault, ending: Ending) -> Wire:
    """Return half an answer with this ending."""
    if asked.streaming:
        return streamed(half(asked, fault), ending=ending)
    length = len(encode(completion(fault.answer, asked)))
    begin = head(200, JSON, (("Content-Length", str(length)),))
    return Wire(head=begin, pieces=tuple(half(asked, fault)), ending=ending)


def hang_after_headers(asked: Asked, _: Fault) -> Wire:
    """Headers, and then nothing forever."""
    return streamed((), kind=SSE if asked.streaming else JSON, ending="hang")


def slow_drip(asked: Asked, fault: Fault) -> Wire:
    """Single bytes forever: endless words in a stream, blanks before a JSON object."""
    word = event(chunk(asked.model, {"content": "drip "})) if asked.streaming else b" "
    drops = tuple(bytes((one,)) for one in word)
    return evolve(streamed((), pace=fault.wait, kind=SSE if asked.streaming else JSON), endless=drops)


def comments_for_ever(asked: Asked, fault: Fault) -> Wire:
    """Keep-alives forever without an answer: comments in a stream, blank lines before a JSON object."""
    sign = COMMENT if asked.streaming else b"\n"
    return evolve(streamed((), pace=fault.wait, kind=SSE if asked.streaming else JSON), endless=(sign,))


def closed_in_text(asked: Asked, fault: Fault) -> Wire:
    """Closed cleanly in the middle: no finish, no [DONE], and no sign in HTTP that it is incomplete."""
    return until_closed(half(asked, fault), kind=SSE if asked.streaming else JSON)


def ended_in_text(asked: Asked, fault: Fault) -> Wire:
    """A correct last HTTP chunk, but an incomplete answer."""
    return streamed(half(asked, fault), kind=SSE if asked.streaming else JSON)


def chunk_cut(asked: Asked, fault: Fault) -> Wire:
    """An HTTP chunk that is shorter than announced, then the last one: broken framing."""
    body = b"".join(half(asked, fault))
    begin = head(200, SSE if asked.streaming else JSON, (("Transfer-Encoding", "chunked"),))
    return Wire(head=begin, pieces=(b"%x\r\n%b\r\n" % (len(body) + 100, body), LAST_CHUNK), ending="close")


CONNECTIONS: Final = (
    Fault(name="hang_before_headers", about="Not a byte, for ever.", make=lambda _, __: Wire(ending="hang")),
    Fault(name="hang_after_headers", about="Headers, and then nothing for ever.", make=hang_after_headers),
    Fault(
        name="hang_in_text", about="Half an answer, and then nothing for ever.", make=lambda a, f: cut_off(a, f, "hang")
    ),
    Fault(name="slow_drip", about="One byte per `wait` seconds, for ever.", make=slow_drip),
    Fault(name="comments_for_ever", about="Signs of life for ever, no answer.", make=comments_for_ever),
    Fault(name="closed_before_headers", about="Closed without a byte.", make=lambda _, __: Wire(ending="close")),
    Fault(name="reset_before_headers", about="Reset without a byte.", make=lambda _, __: Wire(ending="reset")),
    Fault(name="reset_in_text", about="Reset in the middle of a text.", make=lambda a, f: cut_off(a, f, "reset")),
    Fault(
        name="reset_in_call",
        about="Reset in the middle of a tool call.",
        make=lambda a, f: cut_off(a, f, "reset"),
        answer=evolve(ADD, chunk=3),
    ),
    Fault(name="closed_in_text", about="Closed in the middle; HTTP sees nothing wrong.", make=closed_in_text),
    Fault(name="ended_in_text", about="Ended in the middle; HTTP sees nothing wrong.", make=ended_in_text),
    Fault(name="body_cut", about="Closed before its length is reached.", make=lambda a, f: cut_off(a, f, "close")),
    Fault(name="chunk_cut", about="An HTTP chunk shorter than it says.", make=chunk_cut),
)
