"""Claude over Anthropic's SDK: what goes wrong, and what is left in the middle."""

import asyncio
from contextlib import aclosing

import pytest

from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Failed, FaultKind, TextDelta, Usage
from greenroom.testing.conformance.models import answered, generator, text_of
from tests.adapters.models.vendors.claude import MODEL, block, end, error, event, plain, start, text, use
from tests.adapters.models.vendors.talk import ASKING, failure, others, talking
from tests.adapters.models.vendors.wire import Answer


@pytest.mark.parametrize(
    ("status", "kind", "words", "expected"),
    [
        (401, "authentication_error", "invalid x-api-key", "auth"),
        (403, "permission_error", "no access", "auth"),
        (400, "invalid_request_error", "Your credit balance is too low to access the API.", "credit"),
        (404, "not_found_error", f"model: {MODEL}", "model"),
        (404, "not_found_error", "Not Found", "address"),
        (400, "invalid_request_error", "messages.0: unexpected role", "request"),
        (400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum", "too_long"),
        (413, "request_too_large", "Request exceeds the maximum size", "too_long"),
        (500, "api_error", "Internal server error", "server"),
        (504, "timeout_error", "Request timed out", "timeout"),
        (529, "overloaded_error", "Overloaded", "overloaded"),
    ],
)
async def test_an_error_has_its_kind_and_the_words_of_anthropic(
    status: int, kind: str, words: str, expected: FaultKind
) -> None:
    failed = await failure("anthropic", MODEL, error(kind, words, status))
    assert (failed.kind, failed.status, failed.said) == (expected, status, words)
    assert words.rstrip(".") in failed.why
    assert f"HTTP {status}" in failed.why
    assert failed.why.endswith(".")


async def test_too_many_requests_say_how_long_to_wait() -> None:
    failed = await failure("anthropic", MODEL, error("rate_limit_error", "Slow down", 429, retry_after="7.5"))
    assert (failed.kind, failed.retry_after, failed.verdict) == ("rate", 7.5, "retry")


async def test_an_error_in_the_middle_of_an_answer_ends_it() -> None:
    complaint = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    async with talking("anthropic", MODEL, Answer([start(), text(0, "Bl"), complaint])) as (model, _):
        events = await answered(model, ASKING)
    assert text_of(events) == "Bl"
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.status, failed.said) == ("overloaded", None, "Overloaded")


async def test_an_unknown_error_in_the_middle_of_an_answer_ends_it() -> None:
    complaint = event("error", error={"type": "strange_error", "message": "Who knows"})
    failed = await failure("anthropic", MODEL, Answer([start(), complaint]))
    assert (failed.kind, failed.said) == ("server", "Who knows")


async def test_an_answer_without_its_end_is_cut_off_but_its_cost_is_known() -> None:
    async with talking("anthropic", MODEL, Answer([start(), text(0, "Bl")])) as (model, _):
        events = await answered(model, ASKING)
    assert others(events)[0] == Usage(input=20, output=1, money=22)
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.kind == "cut_off"


async def test_a_connection_that_breaks_is_a_matter_of_the_network() -> None:
    failed = await failure("anthropic", MODEL, Answer([start(), text(0, "Bl")], breaks=True))
    assert failed.kind == "network"


async def test_silence_is_a_timeout() -> None:
    failed = await failure("anthropic", MODEL, Answer([start()], holds=True), idle=0.2)
    assert failed.kind == "timeout"
    assert "nothing came for 0.2 s" in failed.why


async def test_an_answer_that_drips_for_ever_is_ended() -> None:
    failed = await failure("anthropic", MODEL, Answer([start()], holds=True), longest=0.3)
    assert failed.kind == "timeout"
    assert "not whole after 0.3 s" in failed.why


async def test_a_web_page_is_no_answer() -> None:
    page = Answer([b"<html><title>Bad gateway</title></html>"], 502, {"Content-Type": "text/html"})
    failed = await failure("anthropic", MODEL, page)
    assert (failed.kind, failed.said) == ("server", "Bad gateway")


async def test_nobody_is_followed_to_another_address() -> None:
    moved = Answer([], 307, {"Location": "http://127.0.0.1:9/v1/messages"})
    failed = await failure("anthropic", MODEL, moved)
    assert failed.kind == "address"


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"data: nonsense\n\n"]),
        Answer([]),
        Answer([event("content_block_stop", index=0)]),
        Answer([b"event: message_start\ndata: {nonsense\n\n"]),
    ],
)
async def test_what_cannot_be_read_is_said_to_be_so(answer: Answer) -> None:
    assert (await failure("anthropic", MODEL, answer)).kind == "malformed"


async def test_more_text_than_was_asked_for_is_not_listened_to() -> None:
    async with talking("anthropic", MODEL, plain("x" * 5000)) as (model, _):
        failed = (await answered(model, evolve(ASKING, max_output=1)))[-1]
    assert isinstance(failed, Failed)
    assert failed.kind == "too_large"


async def test_more_calls_than_anybody_means_are_not_listened_to() -> None:
    many = [use(number, f"toolu_{number}", "look", "{}") for number in range(200)]
    failed = await failure("anthropic", MODEL, Answer([start(), *many, end("tool_use")]))
    assert failed.kind == "too_large"


async def test_a_stream_that_is_left_closes_its_connection() -> None:
    held = Answer([start(), block(0, {"type": "text", "text": "Blue"})], holds=True)
    async with talking("anthropic", MODEL, held) as (model, wire):
        async with aclosing(generator(model.stream(ASKING))) as events:
            assert await anext(events) == TextDelta(text="Blue")
        async with asyncio.timeout(10):
            await wire.left.wait()


async def test_a_reader_that_is_cancelled_closes_its_connection() -> None:
    async with talking("anthropic", MODEL, Answer([start()], holds=True)) as (model, wire):
        reader = asyncio.create_task(answered(model, ASKING))
        async with asyncio.timeout(10):
            await wire.reached.wait()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            await wire.left.wait()
