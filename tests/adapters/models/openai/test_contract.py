from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.adapters.models.retry import ModelGroup, RateLimiter, RetryingModel, RetryPolicy
from greenroom.core.ports.model import Model
from greenroom.testing.conformance.models import AnswerPlan, ModelContract
from tests.fake_openai import Answer, Call, FakeOpenAI, Fault, fault

WORDS = {"length": "length", "filter": "content_filter"}


def answer(plan: AnswerPlan) -> Answer | Fault:
    """The plan, as the fake server plays it."""
    if plan.fault:
        return fault("wrong_key")
    calls = tuple(Call(name=one.name, arguments=one.arguments, id=f"c{n}") for n, one in enumerate(plan.calls))
    told = plan.usage
    usage = None
    if told is not None:
        details = {"cached_tokens": told.cached}
        usage = {"prompt_tokens": told.input, "completion_tokens": told.output, "prompt_tokens_details": details}
    finish = WORDS.get(plan.finish or "", "")
    return Answer(text=plan.text, reasoning=plan.reasoning, calls=calls, finish=finish, usage=usage, pace=0.0005)


class TestTheWire(ModelContract):
    """Over real HTTP, to a server that plays the plans."""

    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        async with FakeOpenAI(lambda asked, _: answer(plans[last(asked)])) as self.server:
            endpoint = Endpoint("fake", self.server.base_url)
            try:
                yield self.made(OpenAICompatible(endpoint, "m"))
            finally:
                await endpoint.close()

    def made(self, model: Model) -> Model:
        return model

    async def at_rest(self) -> None:
        await self.server.until(in_flight=0)


class TestTheWholeStack(TestTheWire):
    """The same behind everything that stands before it in a run."""

    def made(self, model: Model) -> Model:
        retrying = RetryingModel(model, RateLimiter(parallel=8), RetryPolicy(retries=0))
        return ModelGroup("fake:both", [retrying, RetryingModel(model, RateLimiter(), RetryPolicy(retries=0))])


def last(asked: Mapping[str, object]) -> str:
    """What the user said last."""
    messages = asked["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])
