"""Requests on the wire: each message encoded once, what is opaque given back to whom it came from."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.models.openai.request import RequestEncoder, count_words
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ChatMessage, Media, ModelCard, ModelRequest, Opaque, ToolCall, ToolSpec
from greenroom.testing.conformance.models import make_request

PURPOSE = make_request().purpose
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
TEXTS = st.text(max_size=40)


def wire(request: ModelRequest, card: ModelCard | None = None, provider: str = "fake") -> dict[str, Any]:
    """The request as a server reads it."""
    found = json.loads(RequestEncoder(provider, "m", card or ModelCard()).encode_request(request))
    assert isinstance(found, dict)
    return found


def said(*messages: ChatMessage, card: ModelCard | None = None, provider: str = "fake") -> list[dict[str, Any]]:
    """The messages as a server reads them."""
    found = wire(ModelRequest(purpose=PURPOSE, messages=messages), card, provider)["messages"]
    assert isinstance(found, list)
    return found


def test_a_request_says_what_is_asked_and_nothing_that_was_not() -> None:
    message = ChatMessage(role="user", content='Hi "you"\n☃')
    assert wire(ModelRequest(purpose=PURPOSE, messages=(message,), streaming=False)) == {
        "model": "m",
        "messages": [{"role": "user", "content": 'Hi "you"\n☃'}],
        "max_tokens": 4096,
    }


def test_settings_are_said_as_the_model_wants_to_hear_them() -> None:
    request = ModelRequest(
        purpose=PURPOSE,
        messages=(),
        tools=(ADD,),
        tool_choice="required",
        temperature=0.5,
        effort="low",
        stop=("END",),
        max_output=9000,
        schema={"type": "object"},
    )
    found = wire(request)
    assert (found["temperature"], found["tool_choice"], found["stop"]) == (0.5, "required", ["END"])
    assert (found["stream"], found["stream_options"]) == (True, {"include_usage": True})
    assert found["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert found["tools"] == [
        {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": ADD.parameters}}
    ]
    assert "reasoning_effort" not in found
    assert found["max_tokens"] == 4096, "no more than the model can write"
    thinker = ModelCard(temperature=False, effort=True, max_output_name="max_completion_tokens", tools=False)
    found = wire(request, thinker)
    assert "temperature" not in found
    assert "tools" not in found
    assert "tool_choice" not in found
    assert (found["reasoning_effort"], found["max_completion_tokens"]) == ("low", 4096)
    assert wire(request, ModelCard(strict=True))["tools"][0]["function"]["strict"] is False


def test_a_call_and_its_result_name_each_other() -> None:
    call = ToolCall(
        call_id="c1", name="add", arguments={"a": 1}, extra=Opaque(provider="fake", data={"google": {"sig": "x"}})
    )
    asked, answered = said(
        ChatMessage(role="assistant", content="", calls=(call,)), ChatMessage(role="tool", content="2", call_id="c1")
    )
    assert asked["content"] is None
    assert asked["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "add", "arguments": '{"a":1}'},
            "extra_content": {"google": {"sig": "x"}},
        }
    ]
    assert answered == {"role": "tool", "content": "2", "tool_call_id": "c1"}


def test_what_another_provider_added_to_a_call_is_dropped() -> None:
    call = ToolCall(call_id="c1", name="add", arguments={}, extra=Opaque(provider="google", data={"sig": "x"}))
    (asked,) = said(ChatMessage(role="assistant", content="", calls=(call,)))
    assert "extra_content" not in asked["tool_calls"][0]


def test_what_could_not_be_read_is_not_given_back() -> None:
    broken = ToolCall(call_id="c1", name="add", arguments={}, unread="{oops")
    (asked,) = said(ChatMessage(role="assistant", content="Hm", calls=(broken,)))
    assert asked["tool_calls"][0]["function"]["arguments"] == "{}"
    assert asked["content"] == "Hm"


def test_opaque_parts_go_back_to_their_own_provider_only() -> None:
    part = Opaque(provider="fake", data={"reasoning_details": [{"data": "x"}]})
    message = ChatMessage(role="assistant", content="Yes", opaque=(part,))
    assert said(message)[0]["reasoning_details"] == [{"data": "x"}]
    assert said(message, provider="other") == [{"role": "assistant", "content": "Yes"}]
    assert said(message)[0]["reasoning_details"] == [{"data": "x"}], "asked in between or not"


def test_images_and_files_are_parts_where_the_endpoint_takes_them() -> None:
    image, file = (
        Media(media_type="image/png", data=b"png"),
        Media(media_type="application/pdf", data=b"pdf", name="a.pdf"),
    )
    message = ChatMessage(role="user", content="Look", media=(image, file))
    (found,) = said(message, card=ModelCard(images=True, files=True))
    encoded = base64.b64encode(b"png").decode()
    assert found["content"][0] == {"type": "text", "text": "Look"}
    assert found["content"][1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}}
    assert found["content"][2]["file"]["filename"] == "a.pdf"
    (blind,) = said(message)
    assert [part["type"] for part in blind["content"]] == ["text"] * 3
    assert "a.pdf: 3 bytes" in blind["content"][2]["text"]
    (bare,) = said(ChatMessage(role="user", content="", media=(image,)), card=ModelCard(images=True))
    assert len(bare["content"]) == 1


@given(st.lists(TEXTS, min_size=1, max_size=8), TEXTS)
def test_a_longer_talk_begins_with_the_very_bytes_of_the_shorter_one(texts: list[str], more: str) -> None:
    messages = tuple(ChatMessage(role="user", content=text) for text in texts)
    encoding = RequestEncoder("fake", "m", ModelCard())
    short = encoding.encode_request(ModelRequest(purpose=PURPOSE, messages=messages, tools=(ADD,)))
    longer = (*messages, ChatMessage(role="user", content=more))
    long = encoding.encode_request(ModelRequest(purpose=PURPOSE, messages=longer, tools=(ADD,)))
    shared = short.rpartition(b"]")[0]
    assert long.startswith(shared)


def test_a_message_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def content(one: ChatMessage, _: ModelCard) -> str:
        made.append(one.content)
        return one.content

    monkeypatch.setattr("greenroom.adapters.models.openai.request._build_content", content)
    messages = tuple(ChatMessage(role="user", content=str(number)) for number in range(5))
    encoding = RequestEncoder("fake", "m", ModelCard())
    for length in range(1, 6):
        encoding.encode_request(ModelRequest(purpose=PURPOSE, messages=messages[:length]))
    assert made == ["0", "1", "2", "3", "4"]


def test_words_are_a_lower_bound_of_tokens() -> None:
    request = make_request("one two, three-four\nfünf")
    assert count_words(evolve(request, messages=request.messages[1:])) == 5
