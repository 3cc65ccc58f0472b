"""Cassettes: requests in their canonical form, and no secret in any of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import decode

from greenroom.adapters.models.replay import find_secrets
from greenroom.adapters.models.replay.recording import MASK, RecordingRedaction, encode_canonical, hash_request
from greenroom.core.base.ids import AgentId, StepId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ChatMessage, Media, ModelRequest, Opaque, ToolCall, ToolSpec
from greenroom.testing.conformance.models import make_request


def form(request: ModelRequest, model: str = "p:m") -> dict[str, object]:
    return decode(encode_canonical(request, model), type=dict[str, object])


def saying(*messages: ChatMessage) -> ModelRequest:
    return evolve(make_request(), messages=messages)


def same(one: ModelRequest, other: ModelRequest) -> bool:
    return hash_request(encode_canonical(one, "p:m")) == hash_request(encode_canonical(other, "p:m"))


def calls(first: str, second: str) -> ModelRequest:
    made = tuple(ToolCall(call_id=one, name="add", arguments={}) for one in (first, second))
    return saying(
        ChatMessage(role="assistant", content="", calls=made),
        ChatMessage(role="tool", content="1", call_id=second),
        ChatMessage(role="tool", content="2", call_id=first),
    )


def test_who_asks_and_how_it_comes_do_not_count() -> None:
    other = evolve(make_request().purpose, agent=AgentId("b"), step=StepId("b#7"), turn=9, attempt=3)
    assert same(make_request(), evolve(make_request(), purpose=other))
    assert same(make_request(), evolve(make_request(), streaming=False))


def test_everything_else_counts() -> None:
    asked = make_request()
    different = [
        evolve(asked, messages=asked.messages[1:]),
        evolve(asked, tools=()),
        evolve(asked, tools=(ToolSpec(name="add", description="Other."), asked.tools[1])),
        evolve(asked, tool_choice="required"),
        evolve(asked, schema={"type": "object"}),
        evolve(asked, max_output=1),
        evolve(asked, temperature=0.0),
        evolve(asked, stop=("x",)),
        evolve(asked, effort="low"),
        make_request("other"),
    ]
    assert not any(same(asked, one) for one in different)
    assert hash_request(encode_canonical(asked, "p:m")) != hash_request(encode_canonical(asked, "p:n"))


def test_ids_of_calls_are_renamed_by_first_appearance() -> None:
    assert same(calls("x", "y"), calls("call_123", "call_456"))
    swapped = calls("x", "y").messages
    answers = (swapped[0], evolve_call(swapped[1], "x"), evolve_call(swapped[2], "y"))
    assert not same(calls("x", "y"), saying(*answers))
    assert [one.get("answers") for one in list_of(form(calls("x", "y"))["messages"])] == [None, "call 2", "call 1"]


def evolve_call(message: ChatMessage, call_id: str) -> ChatMessage:
    return ChatMessage(role=message.role, content=message.content, call_id=call_id)


def list_of(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


def test_line_ends_are_one_kind() -> None:
    assert same(make_request("a\r\nb"), make_request("a\nb"))
    assert not same(make_request("a\\r\nb"), make_request("a\\nb"))
    arguments = ToolCall(call_id="x", name="add", arguments={"a": ["1\r\n"]})
    other = ToolCall(call_id="x", name="add", arguments={"a": ["1\n"]})
    assert same(
        saying(ChatMessage(role="assistant", content="", calls=(arguments,))),
        saying(ChatMessage(role="assistant", content="", calls=(other,))),
    )


def test_the_order_of_names_does_not_count() -> None:
    one = evolve(make_request(), schema={"a": {"x": 1, "y": 2}, "b": 2})
    other = evolve(make_request(), schema={"b": 2, "a": {"y": 2, "x": 1}})
    assert same(one, other)


def test_media_count_by_their_digest() -> None:
    def seen(data: bytes) -> ModelRequest:
        return saying(ChatMessage(role="user", content="", media=(Media(media_type="image/png", data=data),)))

    assert same(seen(b"1"), seen(b"1"))
    assert not same(seen(b"1"), seen(b"2"))
    assert b"sha256" in encode_canonical(seen(b"1"), "p:m")


def test_thoughts_and_what_only_the_provider_understands_count() -> None:
    plain = ChatMessage(role="assistant", content="a")
    thought = ChatMessage(role="assistant", content="a", reasoning="hm")
    signed = ChatMessage(role="assistant", content="a", opaque=(Opaque(provider="p", data={"s": "1"}),))
    assert len({hash_request(encode_canonical(saying(one), "p:m")) for one in (plain, thought, signed)}) == 3


def test_what_is_empty_is_left_out() -> None:
    assert form(saying(ChatMessage(role="user", content="hi"))) == {
        "model": "p:m",
        "messages": [{"role": "user", "content": "hi"}],
        "settings": {"max_output": 4096, "tool_choice": "auto"},
        "tools": form(make_request())["tools"],
    }


KEY = "sk-abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        "sk-proj-abc_DEF-123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ghp_abcdefghijklmnopqrst",
        "gsk_abcdefghijklmnopqrst",
        "xoxb-1234567890-abcdefgh",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_key_is_taken_out(secret: str) -> None:
    assert RecordingRedaction().redact(f"use {secret}, please") == f"use {MASK}, please"


def test_a_bearer_keeps_its_name() -> None:
    assert RecordingRedaction().redact("Authorization: Bearer abc.def-ghi_123") == f"Authorization: Bearer {MASK}"


@pytest.mark.parametrize("text", ["sk-learn", "Bearer of bad news", "AKIA", "a sk- b", ""])
def test_ordinary_words_stay(text: str) -> None:
    assert RecordingRedaction().redact(text) == text


def test_known_secrets_are_taken_out_the_longest_first() -> None:
    redaction = RecordingRedaction(["hunter22", "hunter22-long", "short"])
    assert redaction.redact("hunter22-long hunter22 short") == f"{MASK} {MASK} short"


def test_a_secret_that_is_a_word_of_the_format_is_none() -> None:
    assert RecordingRedaction(["messages", "filter"]).redact("messages filter") == "messages filter"


def test_secrets_are_found_by_the_names_of_variables() -> None:
    environment = {"OPENAI_API_KEY": "a", "GH_TOKEN": "b", "My_Secret": "c", "KEYBOARD": "d", "HOME": "e"}
    assert find_secrets(environment) == ("a", "b", "c")


@given(st.lists(st.integers(0, 80), min_size=3, max_size=3))
def test_a_key_in_pieces_is_taken_out_and_the_cuts_stay(cuts: list[int]) -> None:
    text = f"first {KEY} then {KEY}."
    low, middle, high = sorted(cuts)
    pieces = [text[:low], text[low:middle], text[middle:high], text[high:]]
    clean = RecordingRedaction().redact_pieces(pieces)
    assert len(clean) == len(pieces)
    assert "".join(clean) == f"first {MASK} then {MASK}."


def test_pieces_without_a_key_stay_as_they_are() -> None:
    assert RecordingRedaction().redact_pieces(["a", "", "b"]) == ["a", "", "b"]
    assert RecordingRedaction().redact_pieces([]) == []
