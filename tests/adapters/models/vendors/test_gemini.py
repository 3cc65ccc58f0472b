"""Gemini through its SDK."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from greenroom.core.base.records import evolve
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    FaultKind,
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelTextDelta,
    Opaque,
    ToolCall,
    Usage,
)
from greenroom.testing.conformance.models import AnswerPlan, collect_events, text_of
from tests.adapters.models.vendors.talk import (
    ASKING,
    CARD,
    HI,
    KEY,
    failure,
    further,
    message,
    others,
    reasoning_of,
    result,
    talking,
)
from tests.adapters.models.vendors.test_anthropic import halves
from tests.adapters.models.vendors.wire import Answer, Json, told

MODEL = "gemini-2.5-pro"
STOPS = {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}


def chunk(*parts: Json, finish: str = "", usage: Json | None = None, **more: object) -> bytes:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    body: Json = {"candidates": [candidate], "modelVersion": MODEL, "responseId": "resp_1", **more}
    if usage is not None:
        body["usageMetadata"] = usage
    return f"data: {json.dumps(body)}\r\n\r\n".encode()


def thought(words: str, **more: object) -> Json:
    """A summary of a thought."""
    return {"text": words, "thought": True, **more}


def call(name: str, arguments: object, **more: object) -> Json:
    return {"functionCall": {"name": name, "args": arguments}, **more}


def counted(usage: Usage) -> Json:
    """A usage as Google tells it: thoughts are not among the candidates' tokens."""
    return {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.thought,
        "totalTokenCount": usage.input + usage.output,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.thought,
    }


def error(status: int, code: str, words: str, **more: object) -> Answer:
    """An error instead of an answer."""
    return told({"error": {"code": status, "message": words, "status": code, **more}}, status)


def planned(plan: AnswerPlan) -> Answer:
    """The answer that the conformance suite wants."""
    return error(400, "INVALID_ARGUMENT", "Bad schema.") if plan.fault else Answer(list(spoken(plan)))


def spoken(plan: AnswerPlan) -> Iterator[bytes]:
    """A plan as events."""
    if plan.reasoning:
        yield from (chunk(thought(half)) for half in halves(plan.reasoning))
    if plan.text:
        yield from (chunk({"text": half}) for half in halves(plan.text))
    if plan.calls:
        yield chunk(*(call(one.name, one.arguments) for one in plan.calls))
    usage = plan.usage or Usage(input=20, output=7)
    yield chunk({"text": ""}, finish=STOPS[plan.finish or "stop"], usage=counted(usage))


LEVELS = "gemini-3-pro-preview"
SIGNATURE = base64.b64encode(b"signed by Google").decode()
USAGE = Usage(input=150, output=42, cached=100, thought=12)


def thoughtful() -> Answer:
    """A thought, text, and a signed call."""
    return Answer(
        [
            chunk(thought("I should look.")),
            chunk({"text": "Let me "}, usage=counted(Usage(input=150, output=3))),
            chunk({"text": "look."}),
            chunk(call("look", {"at": "the sky"}, thoughtSignature=SIGNATURE)),
            chunk({"text": ""}, finish="STOP", usage=counted(USAGE)),
        ]
    )


def plain(words: str = "Blue.") -> Answer:
    return Answer([chunk({"text": words}, finish="STOP", usage=counted(Usage(input=9, output=2)))])


async def test_an_answer_is_told_field_by_field() -> None:
    async with talking("google", MODEL, thoughtful()) as (model, wire):
        events = await collect_events(model, ASKING)
    assert [event for event in events if isinstance(event, ModelTextDelta | ModelReasoningDelta)] == [
        ModelReasoningDelta(text="I should look."),
        ModelTextDelta(text="Let me "),
        ModelTextDelta(text="look."),
    ]
    made, usage, finished = others(events)
    assert isinstance(made, ToolCall)
    assert (made.name, made.arguments, bool(made.call_id)) == ("look", {"at": "the sky"}, True)
    assert usage == evolve(USAGE, money=150 + 84)
    assert finished == Finished(reason="calls", said="STOP", model=MODEL, response_id="resp_1", by=f"google:{MODEL}")
    (asked,) = wire.asked
    assert asked.path == f"/v1/models/{MODEL}:streamGenerateContent"
    assert asked.query["alt"] == "sse"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]


async def test_the_signature_goes_back_with_the_call_that_it_signs() -> None:
    async with talking("google", MODEL, thoughtful(), plain()) as (model, wire):
        said = message(await collect_events(model, ASKING))
        await collect_events(model, further(ASKING, said, result(said.calls[0], "It is blue.")))
    _, answer, back = wire.asked[1].body["contents"]
    assert answer["role"] == "model"
    assert answer["parts"][0] == {"text": "Let me look."}
    signed = answer["parts"][1]
    assert (signed["functionCall"]["name"], signed["functionCall"]["args"]) == ("look", {"at": "the sky"})
    assert base64.urlsafe_b64decode(signed["thoughtSignature"]) == b"signed by Google"
    assert back["parts"][0]["functionResponse"]["name"] == "look"


async def test_a_signature_on_text_goes_back_with_it() -> None:
    signed = Answer([chunk({"text": "Blue."}), chunk({"text": "", "thoughtSignature": SIGNATURE}, finish="STOP")])
    async with talking("google", LEVELS, signed, plain()) as (model, wire):
        said = message(await collect_events(model, ASKING))
        await collect_events(model, further(ASKING, said, HI))
    parts = wire.asked[1].body["contents"][1]["parts"]
    assert "".join(part["text"] for part in parts) == "Blue."
    assert base64.urlsafe_b64decode(parts[-1]["thoughtSignature"]) == b"signed by Google"


async def test_opaque_parts_of_others_are_dropped() -> None:
    foreign = Opaque(provider="anthropic", data={"parts": [{"part_kind": "thinking", "content": "secret thought"}]})
    said = ChatMessage(role="assistant", content="Hello.", opaque=(foreign,))
    async with talking("google", MODEL, plain()) as (model, wire):
        await collect_events(model, further(ASKING, said, HI))
    assert wire.asked[0].body["contents"][1] == {"role": "model", "parts": [{"text": "Hello."}]}


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (MODEL, {"include_thoughts": True, "thinking_budget": 2048}),
        (LEVELS, {"include_thoughts": True, "thinking_level": "HIGH"}),
    ],
)
async def test_thinking_is_asked_for_in_the_model_s_own_way(name: str, config: dict[str, object]) -> None:
    async with talking("google", name, plain()) as (model, wire):
        await collect_events(model, evolve(ASKING, effort="high", temperature=0.5, max_output=4096))
    told = wire.asked[0].body["generationConfig"]
    assert told["thinkingConfig"] == config
    assert told["temperature"] == 0.5
    assert told["maxOutputTokens"] == 4096


async def test_a_model_that_cannot_be_told_one_call_at_a_time_is_not_told() -> None:
    async with talking("google", MODEL, plain(), card=evolve(CARD, parallel_calls=False)) as (model, wire):
        await collect_events(model, evolve(ASKING, tool_choice="required"))
    assert wire.asked[0].body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"


@pytest.mark.parametrize(("tools", "held"), [((), True), (ASKING.tools, False)])
async def test_a_schema_beside_tools_is_only_told(tools: tuple[()], held: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    async with talking("google", MODEL, plain('{"a": 1}')) as (model, wire):
        await collect_events(model, evolve(ASKING, tools=tools, schema=schema))
    assert ("responseJsonSchema" in wire.asked[0].body["generationConfig"]) is held


async def test_an_answer_without_streaming_is_told_the_same() -> None:
    body = {
        "candidates": [
            {
                "content": {"role": "model", "parts": [thought("Hm."), {"text": "Blue."}]},
                "finishReason": "MAX_TOKENS",
            }
        ],
        "modelVersion": MODEL,
        "responseId": "resp_2",
        "usageMetadata": counted(Usage(input=5, output=6, thought=4)),
    }
    async with talking("google", MODEL, told(body)) as (model, wire):
        events = await collect_events(model, evolve(ASKING, streaming=False))
    assert wire.asked[0].path.endswith(":generateContent")
    assert (text_of(events), reasoning_of(events)) == ("Blue.", "Hm.")
    assert others(events) == [
        Usage(input=5, output=6, thought=4, money=17),
        Finished(reason="length", said="MAX_TOKENS", model=MODEL, response_id="resp_2", by=f"google:{MODEL}"),
    ]


# ---------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("status", "code", "words", "expected"),
    [
        (400, "INVALID_ARGUMENT", "Bad schema.", "request"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8)",
            "too_long",
        ),
        (401, "UNAUTHENTICATED", "Who are you?", "auth"),
        (403, "PERMISSION_DENIED", "Not you.", "auth"),
        (404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta", "model"),
        (404, "NOT_FOUND", "Requested entity was not found.", "address"),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your billing details.", "rate"),
        (500, "INTERNAL", "An internal error has occurred.", "server"),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", "overloaded"),
        (504, "DEADLINE_EXCEEDED", "Too late.", "timeout"),
    ],
)
async def test_an_error_has_its_kind_and_the_words_of_google(
    status: int, code: str, words: str, expected: FaultKind
) -> None:
    failed = await failure("google", MODEL, error(status, code, words))
    assert (failed.kind, failed.status, failed.said) == (expected, status, words)


async def test_a_wrong_key_is_known_by_its_reason() -> None:
    reason = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    failed = await failure("google", MODEL, error(400, "INVALID_ARGUMENT", "API key not valid.", details=reason))
    assert failed.kind == "auth"


async def test_too_many_requests_say_how_long_to_wait() -> None:
    wait = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "23s"}]
    failed = await failure("google", MODEL, error(429, "RESOURCE_EXHAUSTED", "Quota.", details=wait))
    assert (failed.kind, failed.retry_after) == ("rate", 23.0)


async def ended(answer: Answer) -> ModelEvent:
    async with talking("google", MODEL, answer) as (model, _):
        return (await collect_events(model, ASKING))[-1]


async def test_a_blocked_prompt_is_filtered() -> None:
    blocked = Answer([b'data: {"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"}\r\n\r\n'])
    finished = await ended(blocked)
    assert isinstance(finished, Finished)
    assert (finished.reason, finished.said, finished.response_id) == ("filter", "SAFETY", "r")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer([chunk({"text": "Bl"})]), "cut_off"),
        (Answer([chunk({"text": ""}, finish="MALFORMED_FUNCTION_CALL")]), "malformed"),
        (Answer([b"data: nonsense\r\n\r\n"]), "malformed"),
        (Answer([chunk({"text": "Bl"})], breaks=True), "network"),
    ],
)
async def test_an_answer_that_is_of_no_use_fails(answer: Answer, kind: FaultKind) -> None:
    failed = await ended(answer)
    assert isinstance(failed, Failed)
    assert failed.kind == kind


async def test_silence_is_a_timeout() -> None:
    failed = await failure("google", MODEL, Answer([chunk({"text": "Bl"})], holds=True), idle=0.3)
    assert failed.kind == "timeout"
