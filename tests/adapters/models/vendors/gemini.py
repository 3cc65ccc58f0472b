"""Gemini's streamGenerateContent wire, as its server sends it."""

import json
from collections.abc import Iterator

from greenroom.core.ports.model import Usage
from greenroom.testing.conformance.models import Plan
from tests.adapters.models.vendors.claude import halves
from tests.adapters.models.vendors.wire import Answer, Json, told

MODEL = "gemini-2.5-pro"
STOPS = {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}


def chunk(*parts: Json, finish: str = "", usage: Json | None = None, **more: object) -> bytes:
    """One event."""
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
    """A call."""
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


def planned(plan: Plan) -> Answer:
    """The answer that the conformance suite wants."""
    return error(400, "INVALID_ARGUMENT", "Bad schema.") if plan.fault else Answer(list(spoken(plan)))


def spoken(plan: Plan) -> Iterator[bytes]:
    """A plan as events."""
    if plan.reasoning:
        yield from (chunk(thought(half)) for half in halves(plan.reasoning))
    if plan.text:
        yield from (chunk({"text": half}) for half in halves(plan.text))
    if plan.calls:
        yield chunk(*(call(one.name, one.arguments) for one in plan.calls))
    usage = plan.usage or Usage(input=20, output=7)
    yield chunk({"text": ""}, finish=STOPS[plan.finish or "stop"], usage=counted(usage))
