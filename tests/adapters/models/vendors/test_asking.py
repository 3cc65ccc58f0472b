"""Messages, tools, keepsakes and settings on their way to pydantic-ai."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile

from greenroom.adapters.models.vendors.model import VendorSettings, is_open_schema
from greenroom.adapters.models.vendors.request import VendorRequestBuilder, make_opaque, restore_response
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ChatMessage, Media, ModelCard, Opaque, ToolCall
from tests.adapters.models.vendors.talk import ASKING, CARD, HI, LOOK

CALL = ToolCall(call_id="c1", name="look", arguments={"at": {"x": [1, None]}})
SIGNED = ModelResponse(
    parts=[
        TextPart(content="One. "),
        ThinkingPart(content="Hm.", signature="sig", provider_name="anthropic"),
        ThinkingPart(content="unsigned"),
        TextPart(content="Two."),
        ToolCallPart(tool_name="look", args={"at": {"x": [1, None]}}, tool_call_id="c1"),
    ],
    provider_name="anthropic",
    provider_url="https://api.anthropic.com",
    model_name="claude",
)

OF_TOMORROW = Opaque(
    provider="anthropic", data={"parts": [{"part_kind": "text", "content": 4}, {"part_kind": "of tomorrow"}]}
)


def kept(**changes: object) -> ChatMessage:
    """The message of a signed answer."""
    opaque = make_opaque("anthropic", SIGNED)
    assert opaque is not None
    told: dict[str, Any] = {"content": "One. Two.", "calls": (CALL,), "opaque": (opaque,), **changes}
    return ChatMessage(role="assistant", **told)


def test_a_signed_answer_comes_back_as_the_very_same_parts() -> None:
    again = restore_response(kept(), "anthropic")
    assert list(again.parts) == [part for part in SIGNED.parts if part != ThinkingPart(content="unsigned")]
    assert (again.provider_name, again.provider_url, again.model_name) == (
        "anthropic",
        "https://api.anthropic.com",
        "claude",
    )


@pytest.mark.parametrize(
    "message",
    [
        kept(content="One. Two. Three."),
        kept(content="One."),
        kept(calls=()),
        kept(calls=(CALL, CALL)),
        kept(calls=(ToolCall(call_id="c1", name="hear", arguments={}),)),
        kept(opaque=(Opaque(provider="anthropic", data={"parts": [{"part_kind": "text", "content": "One. Two."}]}),)),
        kept(content="One.", calls=(), opaque=(OF_TOMORROW,)),
        kept(opaque=(Opaque(provider="anthropic", data={}),)),
        kept(opaque=(Opaque(provider="openai", data={"reasoning_content": "Hm."}),)),
    ],
)
def test_a_keepsake_that_does_not_fit_is_left_out(message: ChatMessage) -> None:
    calls = [(call.name, dict(call.arguments), call.call_id) for call in message.calls]
    first, *rest = restore_response(message, "anthropic").parts
    assert first == TextPart(content=message.content)
    assert [(one.tool_name, one.args, one.tool_call_id) for one in rest if isinstance(one, ToolCallPart)] == calls
    assert len(rest) == len(calls)


def test_an_answer_of_text_and_calls_needs_no_keepsake() -> None:
    response = ModelResponse(parts=[ThinkingPart(content="Hm."), TextPart(content="Hi."), ToolCallPart("look", {})])
    assert make_opaque("anthropic", response) is None


def test_a_result_knows_the_name_of_its_call_and_may_be_an_image() -> None:
    shot = ChatMessage(role="tool", content="", call_id="c1", media=(Media(media_type="image/png", data=b"png"),))
    asked = VendorRequestBuilder("anthropic", CARD).build_messages((HI, kept(), shot))[-1]
    assert isinstance(asked, ModelRequest)
    (part,) = asked.parts
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_name, part.tool_call_id) == ("look", "c1")
    assert len(cast("list[object]", part.content)) == 1


def test_what_a_model_cannot_be_shown_is_named() -> None:
    media = (
        Media(media_type="image/png", data=b"png", name="sky.png"),
        Media(media_type="application/pdf", data=b"pdf"),
        Media(media_type="application/json", data=b"{}"),
    )
    asked = VendorRequestBuilder("x", ModelCard()).build_messages((ChatMessage(role="user", content="", media=media),))[
        0
    ]
    assert isinstance(asked, ModelRequest)
    (part,) = asked.parts
    assert isinstance(part, UserPromptPart)
    assert part.content == [
        "[sky.png: 3 bytes that this model cannot be shown]",
        "[application/pdf: 3 bytes that this model cannot be shown]",
        "[application/json: 2 bytes that this model cannot be shown]",
    ]


def test_a_model_without_tools_is_told_of_none() -> None:
    assert VendorRequestBuilder("x", ModelCard(tools=False)).build_tools((LOOK,)) == []


def told(
    profile: Mapping[str, object], *, provider: str = "anthropic", card: ModelCard = CARD, **changes: object
) -> Mapping[str, object]:
    """The settings of a request to a model of this profile."""
    model = TestModel(profile=cast("ModelProfile", profile))
    request = evolve(ASKING, **changes)
    return cast("Mapping[str, object]", VendorSettings(provider, card, model).build_settings(request, idle=5.0))


def test_asking_again_is_left_to_whoever_asks() -> None:
    assert told({}, card=ModelCard()) == {"max_tokens": 4096, "timeout": 5.0, "max_retries": 0}


@pytest.mark.parametrize(
    ("profile", "effort", "expected"),
    [
        ({}, None, "required"),
        ({"supports_forced_tool_choice": False}, None, None),
        ({"supports_forced_tool_choice_with_thinking": False}, None, "required"),
        ({"supports_forced_tool_choice_with_thinking": False, "thinking_enabled_by_default": True}, None, None),
        ({"supports_thinking": True}, "high", "required"),
    ],
)
def test_a_call_is_forced_where_the_model_can_be(
    profile: Mapping[str, object], effort: str | None, expected: str | None
) -> None:
    settings = told(profile, tool_choice="required", effort=effort)
    assert settings.get("tool_choice") == expected
    assert "anthropic_thinking" not in settings


def test_an_answer_too_short_for_thoughts_has_none() -> None:
    thinks = {"supports_thinking": True}
    assert "anthropic_thinking" not in told(thinks, effort="low", max_output=2000)
    assert "anthropic_thinking" in told(thinks, effort="low", max_output=2048)


def test_a_model_that_always_thinks_is_told_how_much() -> None:
    always = {"thinking_always_enabled": True}
    assert told(always, provider="bedrock", effort="low", temperature=0.5) == {
        "max_tokens": 4096,
        "timeout": 5.0,
        "max_retries": 0,
        "thinking": "low",
        "cache": True,
    }


def test_a_temperature_is_left_out_where_it_is_refused() -> None:
    assert told({}, temperature=0.5)["temperature"] == 0.5
    assert "temperature" not in told({"anthropic_disallows_sampling_settings": True}, temperature=0.5)
    assert "temperature" not in told({}, card=ModelCard(temperature=False), temperature=0.5)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}, True),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, True),
        ({"type": "array", "items": {"type": "integer"}}, False),
    ],
)
def test_open_objects_are_found(schema: Mapping[str, object], expected: bool) -> None:
    assert is_open_schema(schema) is expected
