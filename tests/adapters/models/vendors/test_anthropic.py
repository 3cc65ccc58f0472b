"""Claude over Anthropic's SDK: the wire in both directions."""

import base64

from greenroom.core.base.records import evolve
from greenroom.core.ports.model import (
    ChatMessage,
    Finished,
    Media,
    Opaque,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Usage,
)
from greenroom.testing.conformance.models import answered, text_of
from tests.adapters.models.vendors.claude import (
    MODEL,
    end,
    plain,
    redacted,
    start,
    text,
    thinking,
    use,
)
from tests.adapters.models.vendors.talk import (
    ASKING,
    CARD,
    HI,
    KEY,
    further,
    message,
    others,
    reasoning_of,
    result,
    talking,
)
from tests.adapters.models.vendors.wire import Answer, told

ADAPTIVE = "claude-sonnet-5"
CACHED = {"type": "ephemeral", "ttl": "5m"}


def thoughtful() -> Answer:
    """A thought, a hidden thought, text and a call."""
    return Answer(
        [
            start(input_tokens=20, cache_read_input_tokens=100, cache_creation_input_tokens=30),
            thinking(0, "I should ", "look.", signature="EqQBsig=="),
            redacted(1, "hidden=="),
            text(2, "Let me ", "look."),
            use(3, "toolu_1", "look", '{"at": "th', 'e sky"}'),
            end("tool_use", output_tokens=42, output_tokens_details={"thinking_tokens": 12}),
        ]
    )


async def test_an_answer_is_told_field_by_field() -> None:
    async with talking("anthropic", MODEL, thoughtful()) as (model, wire):
        events = await answered(model, ASKING)
    assert [event for event in events if isinstance(event, TextDelta)] == [
        TextDelta(text="Let me "),
        TextDelta(text="look."),
    ]
    assert [event for event in events if isinstance(event, ReasoningDelta)] == [
        ReasoningDelta(text="I should "),
        ReasoningDelta(text="look."),
    ]
    assert others(events) == [
        ToolCall(call_id="toolu_1", name="look", arguments={"at": "the sky"}),
        Usage(input=150, output=42, cached=100, written=30, thought=12, money=150 + 84),
        Finished(
            reason="calls", said="tool_use", model=f"{MODEL}-20251001", response_id="msg_1", by=f"anthropic:{MODEL}"
        ),
    ]
    (asked,) = wire.asked
    assert asked.path == "/v1/messages"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body["stream"] is True


async def test_thoughts_go_back_with_their_signatures_unchanged_and_in_their_places() -> None:
    async with talking("anthropic", MODEL, thoughtful(), plain()) as (model, wire):
        said = message(await answered(model, ASKING))
        await answered(model, further(ASKING, said, result(said.calls[0], "It is blue.")))
    first, second = (asked.body for asked in wire.asked)
    assert second["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I should look.", "signature": "EqQBsig=="},
            {"type": "redacted_thinking", "data": "hidden=="},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "the sky"}},
        ],
    }
    (back,) = second["messages"][2]["content"]
    assert (back["type"], back["tool_use_id"]) == ("tool_result", "toolu_1")
    assert back["content"] == [{"type": "text", "text": "It is blue."}]
    assert second["tools"] == first["tools"]
    assert second["system"] == first["system"]


async def test_what_a_model_said_is_in_the_keepsake_only_once() -> None:
    async with talking("anthropic", MODEL, thoughtful()) as (model, _):
        (kept,) = message(await answered(model, ASKING)).opaque
    assert kept.provider == "anthropic"
    assert kept.data["provider_name"] == "anthropic"
    parts = kept.data["parts"]
    assert isinstance(parts, list)
    assert [part["part_kind"] for part in parts] == ["thinking", "thinking", "text", "tool-call"]
    assert "sky" not in repr(kept)
    assert parts[2]["content"] == len("Let me look.")


async def test_opaque_parts_of_others_are_dropped() -> None:
    foreign = Opaque(provider="google", data={"parts": [{"part_kind": "thinking", "content": "x", "signature": "s"}]})
    said = ChatMessage(role="assistant", content="Hello.", reasoning="Hm.", opaque=(foreign,))
    async with talking("anthropic", MODEL, plain()) as (model, wire):
        await answered(model, further(ASKING, said, HI))
    assert wire.asked[0].body["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hello."}],
    }


async def test_the_cache_has_breakpoints_after_tools_system_and_the_newest_message() -> None:
    async with talking("anthropic", MODEL, plain(), plain()) as (model, wire):
        said = message(await answered(model, ASKING))
        await answered(model, further(ASKING, said, HI))
    for asked in wire.asked:
        body = asked.body
        assert body["tools"][-1]["cache_control"] == CACHED
        assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": CACHED}]
        assert body["messages"][-1]["content"][-1]["cache_control"] == CACHED
        assert "cache_control" not in body
    assert "cache_control" not in wire.asked[1].body["messages"][0]["content"][0]


async def test_without_breakpoints_on_the_card_nothing_is_marked() -> None:
    async with talking("anthropic", MODEL, plain(), card=evolve(CARD, cache="none")) as (model, wire):
        await answered(model, ASKING)
    assert "cache_control" not in repr(wire.asked[0].body)


async def test_thinking_has_a_budget_within_the_answer_and_no_temperature() -> None:
    async with talking("anthropic", MODEL, plain()) as (model, wire):
        await answered(model, evolve(ASKING, effort="high", temperature=0.5, max_output=8000))
    body = wire.asked[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert body["max_tokens"] == 8000
    assert "temperature" not in body


async def test_a_model_that_decides_for_itself_is_told_an_effort() -> None:
    async with talking("anthropic", ADAPTIVE, plain()) as (model, wire):
        await answered(model, evolve(ASKING, effort="low", temperature=0.5))
    body = wire.asked[0].body
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"]["effort"] == "low"
    assert "temperature" not in body


async def test_an_answer_without_streaming_is_told_the_same() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
        {"type": "text", "text": "Blue."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
    ]
    body = {
        "id": "msg_2",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }
    async with talking("anthropic", MODEL, told(body), plain()) as (model, wire):
        events = await answered(model, evolve(ASKING, streaming=False))
        said = message(events)
        await answered(model, further(ASKING, said, result(said.calls[0], "Blue.")))
    assert wire.asked[0].body.get("stream", False) is False
    assert (text_of(events), reasoning_of(events)) == ("Blue.", "Hm.")
    assert others(events) == [
        ToolCall(call_id="toolu_1", name="look", arguments={"at": "sky"}),
        Usage(input=5, output=6, money=17),
        Finished(reason="calls", said="tool_use", model=MODEL, response_id="msg_2", by=f"anthropic:{MODEL}"),
    ]
    assert wire.asked[1].body["messages"][1]["content"] == content


async def test_images_and_files_are_sent_as_bytes_and_what_cannot_be_shown_is_named() -> None:
    media = (
        Media(media_type="image/png", data=b"png"),
        Media(media_type="application/pdf", data=b"pdf"),
        Media(media_type="text/markdown; charset=utf-8", data=b"# Hi"),
        Media(media_type="text/plain", data=b"\xff"),
        Media(media_type="application/zip", data=b"zip", name="a.zip"),
    )
    shown = ChatMessage(role="user", content="See.", media=media)
    async with talking("anthropic", MODEL, plain()) as (model, wire):
        await answered(model, evolve(ASKING, messages=(shown,)))
    content = wire.asked[0].body["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image", "document", "document", "text", "text"]
    assert content[1]["source"]["data"] == base64.b64encode(b"png").decode()
    assert content[2]["source"]["media_type"] == "application/pdf"
    assert content[3]["source"]["data"] == "# Hi"
    assert content[5]["text"] == "[a.zip: 3 bytes that this model cannot be shown]"


async def test_arguments_that_are_no_object_are_kept_unread_and_not_given_back() -> None:
    broken = Answer([start(), use(0, "toolu_1", "look", '{"at": '), end("max_tokens")])
    async with talking("anthropic", MODEL, broken, plain()) as (model, wire):
        events = await answered(model, ASKING)
        said = message(events)
        await answered(model, further(ASKING, said, result(said.calls[0], "Again.")))
    assert said.calls == (ToolCall(call_id="toolu_1", name="look", arguments={}, unread='{"at": '),)
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.reason == "length"
    assert wire.asked[1].body["messages"][1]["content"][0]["input"] == {}


async def test_results_come_before_words_and_later_instructions_stay_where_they_are() -> None:
    calls = tuple(ToolCall(call_id=f"toolu_{one}", name="look", arguments={"at": one}) for one in "ab")
    said = ChatMessage(role="assistant", content="", calls=calls)
    now = ChatMessage(role="system", content="Hurry.")
    talk = further(ASKING, said, result(calls[0], "A."), HI, now, result(calls[1], "B."))
    async with talking("anthropic", MODEL, plain()) as (model, wire):
        await answered(model, talk)
    body = wire.asked[0].body
    assert [part.get("tool_use_id") or part.get("text") for part in body["messages"][2]["content"]] == [
        "toolu_a",
        "toolu_b",
        "hi",
        "<system>\nHurry.\n</system>",
    ]
    assert body["system"][0]["text"] == "Be brief."


async def test_stop_words_and_a_choice_are_passed_on() -> None:
    async with talking("anthropic", MODEL, plain(), plain(), card=evolve(CARD, parallel_calls=False)) as (model, wire):
        await answered(model, evolve(ASKING, stop=("END",), tool_choice="required", temperature=0.5))
        await answered(model, evolve(ASKING, tool_choice="none"))
    first, second = (asked.body for asked in wire.asked)
    assert first["stop_sequences"] == ["END"]
    assert first["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert first["temperature"] == 0.5
    assert second["tool_choice"]["type"] == "none"


async def test_a_schema_holds_the_answer_to_its_shape() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    async with talking("anthropic", MODEL, plain('{"a": 1}')) as (model, wire):
        await answered(model, evolve(ASKING, tools=(), schema=schema))
    assert wire.asked[0].body["output_config"]["format"]["schema"]["required"] == ["a"]


async def test_a_schema_with_open_objects_is_only_told() -> None:
    async with talking("anthropic", MODEL, plain("{}")) as (model, wire):
        await answered(model, evolve(ASKING, schema={"type": "object", "additionalProperties": True}))
    body = wire.asked[0].body
    assert "format" not in body.get("output_config", {})
    assert "additionalProperties" in body["system"][-1]["text"]


async def test_left_out_thoughts_are_remembered() -> None:
    transformed = [{"type": "thinking_dropped", "reason": "prefix_binding_mismatch", "message_index": 1}]
    opening = start().replace(
        b'"usage"', b'"input_transformations": ' + repr(transformed).replace("'", '"').encode() + b', "usage"'
    )
    async with talking("anthropic", "claude-opus-5-5", Answer([opening, text(0, "Hm."), end()]), plain()) as (
        model,
        wire,
    ):
        said = message(await answered(model, ASKING))
        await answered(model, further(ASKING, said, HI))
    (kept,) = said.opaque
    assert "thinking_dropped" in repr(kept.data["provider_details"])
    assert wire.asked[1].body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
