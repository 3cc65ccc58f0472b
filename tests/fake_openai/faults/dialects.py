"""Vendor differences: where finish and usage are, and how an error looks inside a 200."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import Data, encode
from tests.fake_openai.answers import Asked, usage
from tests.fake_openai.faults.shape import Fault, error
from tests.fake_openai.speech import Chunk, chunk, chunks, completion, ended, envelope, event, events
from tests.fake_openai.wire import Wire, streamed, told

OOPS: Final = error("The server had an error while processing your request.", "server_error")
NO_LOGIN: Final = {
    "choices": None,
    "usage": {"total_tokens": 0},
    "base_resp": {"status_code": 1004, "status_msg": "login fail: Please carry the API secret key in the header"},
}
PROVIDER_ERROR: Final = {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "Fake"}}


def without_usage(asked: Asked, fault: Fault) -> Chunk:
    """Return the whole answer as one object without usage."""
    said = completion(fault.answer, asked)
    del said["usage"]
    return said


def first_choice(said: Chunk) -> Chunk:
    """Return the only choice of an object or a chunk."""
    match said["choices"]:
        case [dict() as choice]:
            return choice
        case other:
            raise TypeError(f"one choice was made, not {other!r}")


def no_finish(asked: Asked, fault: Fault) -> Wire:
    """The finish_reason stays null."""
    if asked.streaming:
        return streamed(events(chunks(fault.answer, asked)[:-1]))
    said = completion(fault.answer, asked)
    first_choice(said)["finish_reason"] = None
    return told(said)


def finish_twice(asked: Asked, fault: Fault) -> Wire:
    """The chunk with the finish_reason comes twice."""
    said = chunks(fault.answer, asked)
    return streamed(ended([*said, said[-1]], fault.answer, asked))


def usage_in_choices(asked: Asked, fault: Fault) -> Wire:
    """The usage is in the choice, as with Moonshot."""
    spent = usage(fault.answer, asked)
    if not asked.streaming:
        said = without_usage(asked, fault)
        first_choice(said)["usage"] = spent
        return told(said)
    said_in_chunks = chunks(fault.answer, asked)
    first_choice(said_in_chunks[-1])["usage"] = spent
    return streamed(events(said_in_chunks))


def usage_in_x_groq(asked: Asked, fault: Fault) -> Wire:
    """The usage is in `x_groq`."""
    theirs = {"x_groq": {"id": "req_fake", "usage": usage(fault.answer, asked)}}
    if not asked.streaming:
        return told(without_usage(asked, fault) | theirs)
    *said, last = chunks(fault.answer, asked)
    return streamed(events([*said, last | theirs]))


def usage_in_every_chunk(asked: Asked, fault: Fault) -> Wire:
    """Every chunk has the usage so far; only the last is right."""
    said = chunks(fault.answer, asked)
    spent = usage(fault.answer, asked)
    counted: list[Data] = [one | {"usage": {**spent, "completion_tokens": n}} for n, one in enumerate(said)]
    return streamed(events([*counted[:-1], said[-1] | {"usage": spent}]))


def no_usage(asked: Asked, fault: Fault) -> Wire:
    """No usage, although it was requested."""
    return streamed(events(chunks(fault.answer, asked))) if asked.streaming else told(without_usage(asked, fault))


def error_in_stream(asked: Asked, fault: Fault) -> Wire:
    """Half an answer, and then an error as data."""
    said = chunks(fault.answer, asked)
    return streamed(events([*said[: len(said) // 2], OOPS]))


def error_event(asked: Asked, fault: Fault) -> Wire:
    """Half an answer, and then an event of the type error."""
    said = chunks(fault.answer, asked)
    named = b"event: error\ndata: %b\n\n" % encode(OOPS)
    return streamed([*map(event, said[: len(said) // 2]), named])


def minimax_error(asked: Asked, _: Fault) -> Wire:
    """A 200 with an error in `base_resp`."""
    said = envelope("", "") | NO_LOGIN
    return streamed([event(said)]) if asked.streaming else told(said)


def openrouter_error(asked: Asked, fault: Fault) -> Wire:
    """A choice that contains an error."""
    if not asked.streaming:
        said = completion(fault.answer, asked)
        first_choice(said).update(error=PROVIDER_ERROR, finish_reason="error")
        return told(said)
    last = chunk(asked.model, {"content": ""}, "error")
    first_choice(last)["error"] = PROVIDER_ERROR
    return streamed(events([*chunks(fault.answer, asked)[:-1], last]))


DIALECTS: Final = (
    Fault(name="no_finish", about="finish_reason stays null, then [DONE].", make=no_finish),
    Fault(name="finish_twice", about="finish_reason comes twice.", make=finish_twice, plain=False, usable=True),
    Fault(name="usage_in_choices", about="The usage stands in the choice.", make=usage_in_choices, usable=True),
    Fault(name="usage_in_x_groq", about="The usage stands in x_groq.", make=usage_in_x_groq, usable=True),
    Fault(
        name="usage_in_every_chunk",
        about="Every chunk tells the usage so far.",
        make=usage_in_every_chunk,
        plain=False,
        usable=True,
    ),
    Fault(name="no_usage", about="No usage anywhere.", make=no_usage, usable=True),
    Fault(name="error_in_body", about="An error object in a 200.", make=lambda _, __: told(OOPS)),
    Fault(name="error_in_stream", about="An error as data in a stream.", make=error_in_stream, plain=False),
    Fault(name="error_event", about="An event of the type error.", make=error_event, plain=False),
    Fault(name="minimax_error", about="An error in base_resp, in a 200.", make=minimax_error),
    Fault(name="openrouter_error", about="An error in the choice, in a 200.", make=openrouter_error),
)
