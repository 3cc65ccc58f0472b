"""A vendor's model keeps the contract of every model: over a function, and over the real SDKs."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import FinishReason, ModelMessage, UserPromptPart
from pydantic_ai.messages import ModelRequest as Asked
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingCalls,
    DeltaThinkingPart,
    DeltaToolCall,
    DeltaToolCalls,
    FunctionModel,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from greenroom.adapters.models.vendors.model import VendorModel
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.ports.model import Model
from greenroom.testing.conformance.models import AnswerPlan, Feature, ModelContract
from tests.adapters.models.vendors import test_anthropic as claude
from tests.adapters.models.vendors import test_gemini as gemini
from tests.adapters.models.vendors.test_anthropic import halves
from tests.adapters.models.vendors.wire import Answer, Wire

FINISHES: Mapping[str, FinishReason] = {
    "stop": "stop",
    "calls": "tool_call",
    "length": "length",
    "filter": "content_filter",
}


def last_words(messages: list[ModelMessage]) -> str:
    """What the user said last."""
    asked = messages[-1]
    assert isinstance(asked, Asked)
    part = asked.parts[-1]
    assert isinstance(part, UserPromptPart)
    assert isinstance(part.content, str)
    return part.content


class Playing(FunctionModel):
    """A model of pydantic-ai that plays plans, and says why it ended."""

    def __init__(self, plans: Mapping[str, AnswerPlan]) -> None:
        super().__init__(stream_function=self.play, model_name="played")
        self.plans = plans

    async def play(
        self, messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls | DeltaThinkingCalls]:
        plan = self.plans[last_words(messages)]
        if plan.fault:
            raise ModelHTTPError(400, "played", {"error": {"message": "no such field"}})
        if plan.reasoning:
            yield {0: DeltaThinkingPart(content=plan.reasoning)}
        for half in halves(plan.text) if plan.text else ():
            yield half
        for number, call in enumerate(plan.calls, start=1):
            yield {number: DeltaToolCall(call.name, json.dumps(call.arguments), tool_call_id=call.call_id)}

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as streamed:
            plan = self.plans[last_words(messages)]
            streamed.finish_reason = FINISHES[plan.finish or "stop"]
            yield streamed


class TestVendorModelOverAFunction(ModelContract):
    lacks: ClassVar[frozenset[Feature]] = frozenset({"usage"})

    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        yield VendorModel(Vendor("function", make=lambda _: Playing(plans)), "played")


@asynccontextmanager
async def spoken(
    provider: str,
    name: str,
    plans: Mapping[str, AnswerPlan],
    planned: Callable[[AnswerPlan], Answer],
    said: Callable[[Any], str],
) -> AsyncIterator[Model]:
    """A model over the wire of its vendor."""
    async with Wire(lambda asked: planned(plans[said(asked.body)])) as wire:
        model = VendorModel(Vendor(provider, key=lambda: "sk-secret-1", base_url=wire.base_url), name)
        yield model
        await model.close()


class TestVendorModelOverAnthropic(ModelContract):
    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        def said(body: Any) -> str:
            return str(body["messages"][-1]["content"][-1]["text"])

        async with spoken("anthropic", claude.MODEL, plans, claude.planned, said) as model:
            yield model


class TestVendorModelOverGemini(ModelContract):
    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        def said(body: Any) -> str:
            return str(body["contents"][-1]["parts"][-1]["text"])

        async with spoken("google", gemini.MODEL, plans, gemini.planned, said) as model:
            yield model
