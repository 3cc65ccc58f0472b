"""Answers in the shapes that real providers send."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.ports.model import Failed, Finished, Opaque, Usage
from tests.adapters.models.openai.answers import JSON, SSE, body, calls, delta, heard, part, sse

STREAM = sse(
    delta(role="assistant", content=""),
    delta(content="Hello"),
    delta(content=", wörld ☃"),
    delta("stop"),
    {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
)


def test_a_stream_is_text_usage_and_an_end() -> None:
    found = heard([STREAM])
    assert found.text == "Hello, wörld ☃"
    assert found.usage == Usage(input=9, output=4)
    assert found.end == Finished(reason="stop", said="stop", model="m-1", response_id="chatcmpl-1", by="fake:m")


def test_a_whole_body_says_the_same() -> None:
    found = heard([body(content="Hello", usage={"prompt_tokens": 1, "completion_tokens": 2})], JSON)
    assert (found.text, found.usage, found.complete) == ("Hello", Usage(input=1, output=2), True)


@given(
    st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=200), st.sampled_from([b"\n", b"\r\n", b"\r"])
)
def test_bytes_torn_anywhere_read_the_same(cuts: list[int], line_end: bytes) -> None:
    data = STREAM.replace(b"\n", line_end)
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(data[at : at + size])
        at += size
    found = heard(pieces)
    assert (found.text, found.usage) == ("Hello, wörld ☃", Usage(input=9, output=4))


def test_a_stream_may_come_under_another_name_and_a_body_as_a_stream() -> None:
    assert heard([STREAM], JSON).text == "Hello, wörld ☃"
    assert heard([b"\xef\xbb\xbf: hi\n\n", STREAM], {}).text == "Hello, wörld ☃"
    assert heard([body(content="Hello")], SSE).text == "Hello"


def test_keep_alives_ids_and_a_byte_order_mark_are_no_news() -> None:
    odd = b"\xef\xbb\xbf: OPENROUTER PROCESSING\n\nid: 7\nretry: 10\nevent: message\n" + STREAM
    assert heard([odd]).text == "Hello, wörld ☃"


def test_data_over_several_lines_and_without_a_space_is_one_chunk() -> None:
    chunk = b'data:{"choices":[{"index":0,\ndata:"delta":{"content":"Hi"},\ndata: "finish_reason":"stop"}]}\n\n'
    assert heard([chunk]).text == "Hi"


def test_what_comes_without_the_last_empty_line_counts() -> None:
    assert heard([sse(delta(content="Hi"), delta("stop"), done=False).rstrip()]).complete


# ---------------------------------------------------------------------------------------------- the end


def test_an_end_that_is_told_twice_is_the_first_one() -> None:
    found = heard([sse(delta(content="Hi"), delta("length"), delta("stop"))])
    assert isinstance(found.end, Finished)
    assert found.end.reason == "length"


@pytest.mark.parametrize(
    ("stream", "complete"),
    [
        (sse(delta(content="Hi")), True),
        (sse(delta(content="Hi"), {"choices": [], "usage": {"prompt_tokens": 3}}, done=False), True),
        (sse(delta(content="Hi"), done=False), False),
        (sse(done=False), False),
    ],
    ids=["only [DONE]", "only usage", "nothing", "an empty stream"],
)
def test_an_end_that_is_never_told_is_seen_by_what_comes_after_it(stream: bytes, complete: bool) -> None:
    assert heard([stream]).complete is complete


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("tool_calls", "calls"),
        ("content_filter", "filter"),
        ("RECITATION", "filter"),
        ("SAFETY", "filter"),
    ],
)
def test_each_provider_has_its_own_word_for_the_end(said: str, reason: str) -> None:
    end = heard([sse(delta(content="Hi"), delta(said))]).end
    assert isinstance(end, Finished)
    assert (end.reason, end.said) == (reason, said)


def test_calls_end_an_answer_whatever_its_word_is() -> None:
    end = heard([sse(calls(part(0, "c1", "add", "{}")), delta("stop"))]).end
    assert isinstance(end, Finished)
    assert end.reason == "calls"


# ---------------------------------------------------------------------------------------------- reasoning


@pytest.mark.parametrize(
    "thought",
    [
        {"reasoning": "hmm"},
        {"reasoning_content": "hmm"},
        {"thinking": "hmm"},
        {"reasoning_content": "hmm", "reasoning": "hmm"},
        {"reasoning_content": None, "reasoning": "hmm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hmm", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hmm"}]},
        {"reasoning": "hmm", "reasoning_details": [{"type": "reasoning.text", "text": "hmm"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}]},
        {"content": [{"type": "reasoning", "text": "hmm"}]},
    ],
)
def test_thoughts_have_many_names(thought: dict[str, object]) -> None:
    streamed = heard([sse(delta(None, **thought), delta(content="Yes"), delta("stop"))])
    assert (streamed.reasoning, streamed.text) == ("hmm", "Yes")
    whole = heard([body("stop", None, **{"content": "Yes", **thought})], JSON)
    assert whole.reasoning == "hmm"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>a < b, so </thi no</think>\n\nYes <think> stays", "a < b, so </thi no", "Yes <think> stays"),
        ("\n <thinking>hmm</thinking>Yes", "hmm", "Yes"),
        ("<reasoning>hmm</reasoning>Yes", "hmm", "Yes"),
        ("<think></think>Yes", "", "Yes"),
        ("<thin ice>", "", "<thin ice>"),
        ("<thi", "", "<thi"),
        ("<think>never ends", "never ends", ""),
        ("Yes", "", "Yes"),
        ("  ", "", "  "),
    ],
)
def test_thoughts_in_the_text_are_not_the_answer(size: int, text: str, reasoning: str, answer: str) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    found = heard([sse(*(delta(content=piece) for piece in pieces), delta("stop"))])
    assert (found.reasoning, found.text) == (reasoning, answer)


def test_what_only_the_provider_understands_is_kept_whole() -> None:
    first = {"type": "reasoning.text", "text": "hm", "index": 0, "format": "x", "signature": None}
    more = {"type": "reasoning.text", "text": "m", "index": 0, "signature": "sig"}
    secret = {"type": "reasoning.encrypted", "data": "gAAA", "index": 1}
    found = heard([sse(delta(reasoning_details=[first]), delta(reasoning_details=[more, secret]), delta("stop"))])
    assert found.reasoning == "hmm"
    (opaque,) = found.opaque
    assert opaque.provider == "fake"
    assert opaque.data == {
        "reasoning_details": [
            {"type": "reasoning.text", "text": "hmm", "index": 0, "format": "x", "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "gAAA", "index": 1},
        ]
    }


def test_who_thinks_before_calling_gets_its_thoughts_back_with_the_call() -> None:
    thinks = delta(reasoning_content="hmm")
    with_call = heard([sse(thinks, calls(part(0, "c1", "add", "{}")), delta("tool_calls"))])
    assert [one.data for one in with_call.opaque] == [{"reasoning_content": "hmm"}]
    assert heard([sse(thinks, delta(content="Yes"), delta("stop"))]).opaque == []


# ---------------------------------------------------------------------------------------------- calls

ADD = ("c1", "add", {"a": 1})


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([part(0, "c1", "add", ""), part(0, None, None, '{"a"'), part(0, None, None, ":1}")], [ADD]),
        ([part(0, "c1", "add", '{"a"'), part(0, "", "", ":1}")], [ADD]),
        ([part(0, "c1", "add", '{"a"'), part(0, "c1", "add", ":1}")], [ADD]),
        ([part(0, "c1", "ad", ""), part(0, None, "d", '{"a":1}')], [ADD]),
        ([part(0, "c1", None, None), part(0, None, "add", '{"a":1}')], [ADD]),
        ([part(None, "c1", "add", '{"a":1}')], [ADD]),
        ([part(None, "c1", "add", '{"a"'), part(None, None, None, ":1}")], [ADD]),
        ([part(0, "c1", "add", {"a": 1})], [ADD]),
        ([part(0, "c1", "add", '"{\\"a\\":1}"')], [ADD]),
        ([part(0, "c1", "now", None)], [("c1", "now", {})]),
        ([part(0, "c1", "now", "")], [("c1", "now", {})]),
        ([part(0, "c1", "now", "null")], [("c1", "now", {})]),
        ([part(0, "", "add", '{"a":1}')], [("call_1", "add", {"a": 1})]),
        (
            [part(0, None, "add", '{"a":1}'), part(1, None, "add", '{"a":2}')],
            [("call_1", "add", {"a": 1}), ("call_2", "add", {"a": 2})],
        ),
        (
            [part(0, "x", "add", '{"a":1}'), part(0, "y", "add", '{"a":2}')],
            [("x", "add", {"a": 1}), ("y", "add", {"a": 2})],
        ),
        (
            [part(0, "", "add", '{"a":1}'), part(0, "", "mul", "{}")],
            [("call_1", "add", {"a": 1}), ("call_2", "mul", {})],
        ),
        ([part(None, "x", "add", '{"a":1}'), part(None, "y", "mul", "{}")], [("x", "add", {"a": 1}), ("y", "mul", {})]),
        (
            [part(None, "x", "add", '{"a":1}'), part(None, "x", "mul", "{}")],
            [("x", "add", {"a": 1}), ("call_2", "mul", {})],
        ),
        ([part(0, "x", "add", '{"a":1}'), part(1, "x", "mul", "{}")], [("x", "add", {"a": 1}), ("call_2", "mul", {})]),
        (
            [part(1, "b", "mul", "{"), part(0, "a", "add", '{"a":1}'), part(1, None, None, "}")],
            [("b", "mul", {}), ("a", "add", {"a": 1})],
        ),
    ],
    ids=[
        "as OpenAI does",
        "empty id and name after the first",
        "id and name in every chunk",
        "name in pieces",
        "name later",
        "no index",
        "no index, in pieces",
        "arguments as an object",
        "arguments encoded twice",
        "no arguments",
        "empty arguments",
        "null arguments",
        "empty id",
        "no ids",
        "all at index 0",
        "all at index 0 without ids",
        "two without index",
        "the same id and two names",
        "the same id twice",
        "interleaved",
    ],
)
def test_calls_are_put_together(chunks: list[dict[str, object]], expected: list[tuple[str, str, object]]) -> None:
    found = heard([sse(*(calls(chunk) for chunk in chunks), delta("tool_calls"))])
    assert found.called == expected
    assert not any(call.unread for call in found.calls)


@pytest.mark.parametrize("pieces", [("{}", '{"a":', "1}"), ('{"a":1}', '{"a":1}'), ("{}", '{"a":1}', '{"a":1}')])
def test_arguments_that_a_proxy_sends_after_an_empty_object_or_twice_are_read_once(pieces: tuple[str, ...]) -> None:
    found = heard([sse(*(calls(part(0, "c1", "add", piece)) for piece in pieces), delta("tool_calls"))])
    assert (found.called, found.calls[0].unread) == ([ADD], "")


def test_calls_of_a_whole_body_are_read_too() -> None:
    assert heard([body("tool_calls", content=None, tool_calls=[part(None, "c1", "add", '{"a":1}')])], JSON).called == [
        ADD
    ]


TWICE = [
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":1}',
    '{"a":{"b":1,"b":2}}',
    '{"a":[{"b":1,"b":1}]}',
    '"{\\"a\\":1,\\"a\\":2}"',
]


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", "7", "add(1)", '"no"', '"[1]"', '"null"', '{"a":NaN}', *TWICE])
def test_arguments_that_are_no_object_are_kept_and_never_run(arguments: str) -> None:
    (call,) = heard([sse(calls(part(0, "c1", "add", arguments)), delta("tool_calls"))]).calls
    assert (call.name, call.arguments, call.unread) == ("add", {}, arguments)


def test_a_key_in_two_places_is_there_once_in_each() -> None:
    (call,) = heard([sse(calls(part(0, "c1", "add", '{"a":{"b":1},"b":{"a":1}}')), delta("tool_calls"))]).calls
    assert (call.arguments, call.unread) == ({"a": {"b": 1}, "b": {"a": 1}}, "")


def test_what_a_vendor_adds_to_a_call_is_kept() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    (call,) = heard([sse(calls({**part(0, "c1", "add", "{}"), "extra_content": extra}), delta("stop"))]).calls
    assert call.extra == Opaque(provider="fake", data=extra)


def test_a_thousand_calls_are_too_many() -> None:
    end = heard([sse(*(calls(part(n, f"c{n}", "add", "{}")) for n in range(1000)))]).end
    assert isinstance(end, Failed)
    assert end.kind == "too_large"


def test_more_text_than_was_asked_for_is_not_listened_to() -> None:
    for found in (
        heard([sse(*[delta(content="x" * 99)] * 20)], most=1000),
        heard([body(content="x" * 9_000_000)], JSON, most=1000),
    ):
        assert isinstance(found.end, Failed)
        assert found.end.kind == "too_large"


# ---------------------------------------------------------------------------------------------- content


def test_content_may_be_a_list_of_parts_and_a_refusal_is_an_answer() -> None:
    parts = [{"type": "text", "text": "He"}, "llo", {"type": "image"}, 7]
    assert heard([sse(delta(content=parts), delta("stop"))]).text == "Hello"
    refused = heard([body(None, content=None, refusal="I won't.")], JSON)
    assert refused.text == "I won't."
    assert isinstance(refused.end, Finished)
    assert refused.end.reason == "filter"


def test_a_message_in_a_stream_is_read() -> None:
    odd = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert heard([sse(odd)]).text == "Hi"


def test_what_is_said_again_at_the_end_is_said_once() -> None:
    together = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}
    whole = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}],
    }
    assert heard([sse(together, whole)]).text == "Hi"


@pytest.mark.parametrize(
    ("said", "kind"),
    [("network_error", "server"), ("insufficient_system_resource", "overloaded"), ("abort", "server")],
)
def test_an_answer_that_was_given_up_is_none(said: str, kind: str) -> None:
    end = heard([sse(delta(content="Ha"), delta(said))]).end
    assert isinstance(end, Failed)
    assert (end.kind, end.action) == (kind, "retry")


def test_other_choices_and_odd_chunks_are_no_part_of_the_answer() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "No"}}]}
    strange = [{"choices": None}, {"choices": "x"}, {"choices": [7]}, {"choices": [{"delta": 7}]}, [1], 7]
    assert heard([sse(delta(content="Hi"), other, *strange, delta("stop"))]).text == "Hi"


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{}]},
        {"tool_calls": [None]},
        {"tool_calls": [{"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ""}}]},
        {"tool_calls": {"function": {"name": None, "arguments": " "}}},
        {"tool_calls": [{"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": "{}"}}]},
        {"function_call": {"name": "", "arguments": ""}},
        {"function_call": {"name": "", "arguments": "{}"}},
        {"function_call": {"name": None, "arguments": None}},
    ],
)
def test_an_empty_placeholder_beside_an_answer_is_not_a_call(message: dict[str, object]) -> None:
    for found in (
        heard([body(**{"content": "Hi", **message})], JSON),
        heard([sse(delta(content="Hi", **message), delta(**message), delta("stop"))]),
    ):
        assert (found.text, found.calls) == ("Hi", [])
        assert isinstance(found.end, Finished)
        assert found.end.reason == "stop"


def test_a_call_in_openais_older_form_is_read() -> None:
    pieces = [{"function_call": {"name": "weather", "arguments": ""}}, {"function_call": {"arguments": '{"city": "Ul'}}]
    pieces += [{"function_call": {"arguments": 'm"}'}}]
    found = heard([sse(*(delta(**piece) for piece in pieces), delta("function_call"))])
    assert found.called == [("call_1", "weather", {"city": "Ulm"})]
    assert isinstance(found.end, Finished)
    assert found.end.reason == "calls"


@pytest.mark.parametrize("name", ["content", "reasoning_content"])
@pytest.mark.parametrize(
    "pieces",
    [
        [b"a\\ud83d", b"\\ude00b"],
        [b"\\ud83d", b"\\ude00"],
        [b"a\xf0\x9f", b"\x98\x80b"],
        [b"a\xf0", b"\x9f\x98\x80"],
        [b"a\xf0\x9f\x98", b"\x80"],
        [b"\xf0\x9f", b"\x98", b"\x80\xf0\x9f", b"\x98\x80"],
    ],
)
def test_a_character_that_is_split_over_two_chunks_is_one(pieces: list[bytes], name: str) -> None:
    chunks = [b'data: {"choices":[{"delta":{"%s":"%s"}}]}\n\n' % (name.encode(), piece) for piece in pieces]
    found = heard([*chunks, sse(delta("stop"))])
    whole = b"".join(pieces).replace(b"\\ud83d\\ude00", "😀".encode()).decode()
    assert (found.text or found.reasoning, type(found.end)) == (whole, Finished)


@pytest.mark.parametrize(
    "chunk",
    [
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f\\ud83d","arguments":"{}"}}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"text":"\\ud83d"}}}]}}]}',
        b'{"id":"\\ud83d","choices":[{"delta":{"content":"Hi"}}]}',
    ],
)
def test_half_a_character_elsewhere_is_no_answer(chunk: bytes) -> None:
    end = heard([sse(chunk, delta("stop"))]).end
    assert isinstance(end, Failed)
    assert end.kind == "malformed"


def test_a_split_character_in_arguments_is_one() -> None:
    pieces = ['{"text": "\ud83d', '\ude00"}']
    calls = [{"tool_calls": [{"index": 0, "function": {"name": "say", "arguments": piece}}]} for piece in pieces]
    chunks = [f"data: {json.dumps(delta(**call))}\n\n".encode() for call in calls]
    assert heard([*chunks, sse(delta("tool_calls"))]).called == [("call_1", "say", {"text": "😀"})]


def test_a_stream_that_counts_in_every_chunk_and_stops_in_the_middle_is_not_whole() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    cut = heard([f"data: {json.dumps({**delta(content='Half an ans'), 'usage': usage})}\n\n".encode()])
    assert not cut.complete
    assert cut.text == "Half an ans"
    assert heard([sse(delta(content="Hi"), {"choices": [], "usage": usage})]).complete
