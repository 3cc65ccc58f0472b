"""Every fault of the fake server, as a plain client sees it."""

import asyncio
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from tests.fake_openai import FAULTS, Answer, Call, FakeOpenAI, fault
from tests.fake_openai.asking import Got, ask, asked
from tests.fake_openai.faults.dialects import first_choice

TEXT = "Hello from the fake server."
BOTH = [True, False]

STATUSES = {
    "too_long_openai": (400, "context_length_exceeded"),
    "too_long_vllm": (400, "BadRequestError"),
    "too_long_llama_cpp": (400, "exceed_context_size_error"),
    "too_long_deepseek": (400, "maximum context length is 65536"),
    "bad_request": (400, "Unrecognized request argument"),
    "content_filter": (400, "content_filter"),
    "wrong_key": (401, "invalid_api_key"),
    "no_credit": (402, "Insufficient Balance"),
    "forbidden": (403, "not supported"),
    "no_model": (404, "model_not_found"),
    "no_model_ollama": (404, "try pulling it first"),
    "no_path": (404, "nginx"),
    "no_method": (405, "Method Not Allowed"),
    "request_timeout": (408, "timed out"),
    "conflict": (409, "locked"),
    "too_large": (413, "Request Entity Too Large"),
    "no_media_type": (415, "Unsupported content type"),
    "unprocessable": (422, '"loc":["body","messages",0,"role"]'),
    "no_quota": (429, "insufficient_quota"),
    "rate_seconds": (429, "rate_limit_exceeded"),
    "rate_date": (429, "rate_limit_exceeded"),
    "rate_ms": (429, "rate_limit_exceeded"),
    "rate_words": (429, "Please try again in 1.5s."),
    "rate_bare": (429, "rate_limit_exceeded"),
    "server_error": (500, "server_error"),
    "bad_gateway": (502, "<h1>502 Bad Gateway</h1>"),
    "unavailable": (503, "overloaded"),
    "gateway_timeout": (504, "<h1>504 Gateway Time-out</h1>"),
    "unknown_error": (520, "cloudflare"),
    "overloaded": (529, "overloaded_error"),
}

BROKEN = {
    "hang_before_headers": ("SocketTimeoutError", 0, False),
    "hang_after_headers": ("SocketTimeoutError", 200, False),
    "hang_in_text": ("SocketTimeoutError", 200, True),
    "closed_before_headers": ("ServerDisconnectedError", 0, False),
    "reset_before_headers": ("ClientOSError", 0, False),
    "reset_in_text": ("ClientPayloadError", 200, True),
    "reset_in_call": ("ClientPayloadError", 200, True),
    "body_cut": ("ClientPayloadError", 200, True),
    "chunk_cut": ("ClientPayloadError", 200, True),
    "gzip_garbage": ("ClientPayloadError", 200, False),
}

ODD = {
    "invalid_utf8": b"\xff\xfe",
    "not_json": b"upstream connect error",
    "json_list": b"[1,2]",
    "json_number": b"42",
    "no_choices": b'"choices":[]',
    "html_200": b"<html>It works!",
    "login_redirect": b"<title>Sign in</title>",
    "login_page": b"<title>Sign in</title>",
    "error_in_body": b'{"error":{"message":',
    "minimax_error": b'"base_resp":{"status_code":1004',
    "openrouter_error": b'"error":{"code":502',
}


def modes(name: str) -> list[bool]:
    return [streaming for streaming in BOTH if (FAULTS[name].streaming if streaming else FAULTS[name].plain)]


USABLE = [(name, streaming) for name, one in FAULTS.items() if one.usable for streaming in modes(name)]


def test_there_are_enough_and_each_says_what_it_is() -> None:
    assert len(FAULTS) >= 45
    assert all(one.name == name and one.about.endswith(".") for name, one in FAULTS.items())


def test_an_unknown_fault_names_its_neighbours() -> None:
    with pytest.raises(KeyError, match=r"no fault 'rate_second'\. Near: rate_seconds"):
        fault("rate_second")
    with pytest.raises(KeyError, match="Near: none"):
        fault("%%%")


async def test_a_fault_that_makes_no_sense_here_says_so() -> None:
    got = await asked(fault("crlf"), streaming=False)
    assert (got.status, "'crlf' of the fake server makes sense only in a stream." in got.body.decode()) == (500, True)
    got = await asked(fault("sse_for_plain"))
    assert (got.status, "makes sense only when it is not streamed." in got.body.decode()) == (500, True)


@pytest.mark.parametrize("streaming", BOTH)
@pytest.mark.parametrize("name", STATUSES)
async def test_a_status_comes_with_its_words(name: str, streaming: bool) -> None:
    got = await asked(fault(name), streaming=streaming)
    status, words = STATUSES[name]
    assert (got.status, got.broken) == (status, "")
    assert words in got.body.decode()


async def test_waiting_times_stand_where_vendors_put_them() -> None:
    assert (await asked(fault("rate_seconds", wait=3))).headers["Retry-After"] == "3"
    assert (await asked(fault("rate_ms", wait=0.5))).headers["retry-after-ms"] == "500"
    assert (await asked(fault("unavailable", wait=2))).headers["Retry-After"] == "2"
    assert "try again in 7s" in (await asked(fault("rate_words", wait=7))).body.decode()
    assert "Retry-After" not in (await asked(fault("rate_bare"))).headers
    when = parsedate_to_datetime((await asked(fault("rate_date", wait=100))).headers["Retry-After"])
    assert 95 < (when - datetime.now(UTC)).total_seconds() <= 100


@pytest.mark.parametrize("streaming", BOTH)
@pytest.mark.parametrize("name", BROKEN)
async def test_a_connection_breaks(name: str, streaming: bool) -> None:
    got = await asked(fault(name), streaming=streaming)
    assert (got.broken, got.status, bool(got.body)) == BROKEN[name]
    assert b"[DONE]" not in got.body


@pytest.mark.parametrize("streaming", BOTH)
@pytest.mark.parametrize("name", ["slow_drip", "comments_for_ever"])
async def test_what_has_no_end_ends_with_the_server(name: str, streaming: bool) -> None:
    def enough(got: Got) -> bool:
        return len(got.body) > 20

    async with FakeOpenAI(fault(name, wait=0.001)) as server:
        got = await ask(server, streaming=streaming, until=enough)
        assert enough(got)
        assert server.in_flight == 1


async def test_what_hangs_ends_with_the_server() -> None:
    async with FakeOpenAI(fault("hang_in_text")) as server, asyncio.TaskGroup() as group:
        asking = group.create_task(ask(server))
        await server.until(in_flight=1)
        await server.__aexit__(None, None, None)
        assert (await asking).broken == "ClientPayloadError"


@pytest.mark.parametrize("streaming", BOTH)
@pytest.mark.parametrize("name", ["closed_in_text", "ended_in_text"])
async def test_half_an_answer_can_look_whole_to_http(name: str, streaming: bool) -> None:
    got = await asked(fault(name), streaming=streaming)
    assert (got.status, got.broken) == (200, "")
    assert got.body
    assert b"finish_reason" not in got.body or b'"finish_reason":"stop"' not in got.body
    assert b"[DONE]" not in got.body


@pytest.mark.parametrize("streaming", BOTH)
@pytest.mark.parametrize("name", ODD)
async def test_a_body_is_not_what_was_asked_for(name: str, streaming: bool) -> None:
    got = await asked(fault(name), streaming=streaming)
    assert (got.status, got.broken) == (200, "")
    assert ODD[name] in got.body


@pytest.mark.parametrize(("name", "streaming"), USABLE)
async def test_a_usable_answer_is_whole(name: str, streaming: bool) -> None:
    answer = FAULTS[name].answer
    got = await asked(fault(name), streaming=streaming, stream_options={"include_usage": True})
    assert (got.status, got.broken) == (200, "")
    if name == "huge_text":
        assert len(got.text) == 10 * 1024 * 1024
        return
    assert got.text == answer.text
    assert {call["function"]["name"] for call in got.calls if "name" in call.get("function", {})} == {
        call.name for call in answer.calls
    }
    if name.startswith("call") or name == "thousand_calls":
        assert "prompt_tokens" in str(got.chunks[-1] if streaming else got.json)


async def test_an_empty_answer_comes_in_three_ways() -> None:
    assert (await asked(fault("empty_body"))).body == b""
    assert (await asked(fault("empty_body"), streaming=False)).body == b""
    assert (await asked(fault("empty_stream"))).data == ["[DONE]"]


async def test_json_can_stop_in_the_middle() -> None:
    got = await asked(fault("half_json"))
    assert got.data[-1] == "[DONE]"
    with pytest.raises(ValueError, match="truncated"):
        _ = got.chunks
    with pytest.raises(ValueError, match="truncated"):
        _ = (await asked(fault("half_json"), streaming=False)).json


async def test_a_finish_can_be_missing_or_doubled() -> None:
    assert {choice["finish_reason"] for choice in (await asked(fault("no_finish"))).choices} == {None}
    assert (await asked(fault("no_finish"), streaming=False)).choices[0]["finish_reason"] is None
    twice = (await asked(fault("finish_twice"))).choices
    assert [choice["finish_reason"] for choice in twice if choice["finish_reason"]] == ["stop", "stop"]


async def test_usage_stands_where_vendors_put_it() -> None:
    got = await asked(fault("usage_in_choices"))
    assert "usage" in got.choices[-1]
    assert "usage" in (await asked(fault("usage_in_choices"), streaming=False)).choices[0]
    assert "usage" in str((await asked(fault("usage_in_x_groq"))).chunks[-1]["x_groq"])
    assert "usage" in str((await asked(fault("usage_in_x_groq"), streaming=False)).json["x_groq"])
    every = [chunk["usage"] for chunk in (await asked(fault("usage_in_every_chunk"))).chunks]
    assert len({str(one) for one in every}) > 1
    for streaming in BOTH:
        got = await asked(fault("no_usage"), streaming=streaming, stream_options={"include_usage": True})
        assert b"usage" not in got.body


async def test_an_error_can_come_in_the_middle_of_a_stream() -> None:
    got = await asked(fault("error_in_stream"))
    assert "error" in got.chunks[-1]
    assert "choices" in got.chunks[0]
    named = await asked(fault("error_event"))
    assert b"\n\nevent: error\ndata: {" in named.body


@pytest.mark.parametrize(
    ("name", "bytes_in_it", "not_in_it"),
    [
        ("crlf", b"\r\n\r\n", b"}\n"),
        ("cr", b"\r\r", b"\n"),
        ("no_space", b"data:{", b"data: "),
        ("bom", b"\xef\xbb\xbfdata: ", b"\r"),
        ("multi_line_data", b',\ndata: "choices"', b"\r"),
        ("other_fields", b"retry: 1000\n", b"\r"),
        ("unended", b"[DONE]", b"[DONE]\n"),
    ],
)
async def test_events_are_written_otherwise(name: str, bytes_in_it: bytes, not_in_it: bytes) -> None:
    got = await asked(fault(name))
    assert bytes_in_it in got.body
    assert not_in_it not in got.body


async def test_torn_bytes_come_one_by_one() -> None:
    got = await asked(fault("torn_bytes"))
    assert got.pieces > len(got.body) * 0.9


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("call_empty_id", {"id": ""}),
        ("call_null_id", {"id": None}),
        ("call_same_id", {"id": "call_1"}),
        ("call_no_arguments", {"function": {"name": "add"}}),
        ("call_empty_arguments", {"function": {"name": "add", "arguments": ""}}),
        ("call_object_arguments", {"function": {"name": "add", "arguments": {"a": 1, "b": 2}}}),
        ("call_broken_arguments", {"function": {"name": "add", "arguments": '{"a": 1, "b":'}}),
        ("call_list_arguments", {"function": {"name": "add", "arguments": "[1, 2]"}}),
    ],
)
@pytest.mark.parametrize("streaming", BOTH)
async def test_a_call_is_odd(name: str, wanted: dict[str, object], streaming: bool) -> None:
    calls = (await asked(fault(name), streaming=streaming)).calls
    assert calls
    assert all(call | wanted == call for call in calls)


async def test_calls_are_streamed_oddly() -> None:
    assert [call.get("index", "none") for call in (await asked(fault("call_no_index"))).calls] == ["none", "none"]
    assert [call["index"] for call in (await asked(fault("call_same_index"))).calls] == [0, 0]
    late = (await asked(fault("call_name_late"))).calls
    assert ["name" in call.get("function", {}) for call in late] == [False, False, True] * 2
    stopped = await asked(fault("call_finish_stop"))
    assert stopped.choices[-1]["finish_reason"] == "stop"


async def test_there_are_a_thousand_calls() -> None:
    for streaming in BOTH:
        got = await asked(fault("thousand_calls"), streaming=streaming)
        assert len({call["id"] for call in got.calls if "id" in call}) == 1000


async def test_a_fault_can_be_done_to_another_answer() -> None:
    assert (await asked(fault("crlf", answer=Answer(text="Other.")))).text == "Other."
    call = Call(name="sub", arguments={})
    assert (await asked(fault("call_null_id", answer=Answer(calls=(call,))))).calls[0]["function"]["name"] == "sub"


def test_only_one_choice_is_ever_made() -> None:
    with pytest.raises(TypeError, match="one choice was made"):
        first_choice({"choices": []})
