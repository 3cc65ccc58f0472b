"""The conformance suite of `Model`: every sentence of the port as a test.

    class TestMyModel(ModelContract):
        @asynccontextmanager
        async def serve(self, plans):
            async with FakeOpenAI(lambda request, _: answer(plans[request["messages"][-1]["content"]])) as server:
                yield MyModel(server.base_url)

Requires pytest and pytest-asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import ClassVar, Final, Literal, cast

import pytest

from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    Model,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Purpose,
    Retried,
    ToolCall,
    ToolSpec,
    Usage,
)

WAIT_TIMEOUT_S: Final = 20.0
"""Seconds after which a wait fails the test."""

Feature = Literal["reasoning", "calls", "usage", "fault", "finish", "pieces"]


@record
class AnswerPlan:
    """The answer that a model should give; a long text comes in several pieces. `fault`: a permanent failure."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish: FinishReason | None = None
    fault: bool = False


ADD: Final = ToolCall(call_id="call_a", name="add", arguments={"a": 1, "b": {"c": [1.5, None, "ä"]}})
SUB: Final = ToolCall(call_id="call_b", name="sub", arguments={})
USAGE: Final = Usage(input=120, output=30, cached=100)
LONG_TEXT: Final = " ".join(f"word{number}" for number in range(50))
TOOLS: Final = (ToolSpec(name="add", description="Adds."), ToolSpec(name="sub", description="Subtracts."))


def make_request(words: str = "hi", *, step: str = "a#1") -> ModelRequest:
    """Build a request whose last user message is `words`."""
    purpose = Purpose(agent=AgentId("a"), skill="talk", step=StepId(step), thread=ThreadId("a/t"), turn=1)
    system = ChatMessage(role="system", content="Be brief.")
    return ModelRequest(purpose=purpose, messages=(system, ChatMessage(role="user", content=words)), tools=TOOLS)


async def collect_events(model: Model, request: ModelRequest) -> list[ModelEvent]:
    """Collect the events of an answer, without those before a retry."""
    events: list[ModelEvent] = []
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        async for event in model.stream(request):
            events = [] if isinstance(event, Retried) else [*events, event]
    return events


def text_of(events: list[ModelEvent]) -> str:
    """Return the text of the answer."""
    return "".join(event.text for event in events if isinstance(event, ModelTextDelta))


def calls_of(events: list[ModelEvent]) -> list[ToolCall]:
    """Return the calls of the answer."""
    return [event for event in events if isinstance(event, ToolCall)]


class ModelContract:
    """Inherit from this class and implement `serve`. `lacks` names features that this model does not support here."""

    lacks: ClassVar[frozenset[Feature]] = frozenset()

    def serve(self, plans: Mapping[str, AnswerPlan]) -> AbstractAsyncContextManager[Model]:
        """Open a model that answers by the last user message, any number of times, until the test ends."""
        raise NotImplementedError

    async def at_rest(self) -> None:
        """Wait until the model has no work left, within a few seconds. Does nothing by default."""

    def needs(self, feature: Feature) -> None:
        """Skip the test if the model lacks the feature."""
        if feature in self.lacks:
            pytest.skip(f"this model has no {feature}")

    async def play(self, plan: AnswerPlan) -> list[ModelEvent]:
        """Return the events of the answer to a plan."""
        async with self.serve({"hi": plan}) as model:
            return await collect_events(model, make_request())

    # ------------------------------------------------------------------------------------------- what it says

    async def test_it_has_a_provider_and_a_name(self) -> None:
        async with self.serve({}) as model:
            provider, colon, name = model.name.partition(":")
            assert (bool(provider), colon, bool(name)) == (True, ":", True)

    async def test_its_card_is_sane(self) -> None:
        async with self.serve({}) as model:
            assert model.card.window > 0
            assert 0 < model.card.output <= model.card.window

    async def test_more_tokens_never_cost_less(self) -> None:
        async with self.serve({}) as model:
            prices = [model.price(read, written) for read, written in ((0, 0), (10, 0), (10, 10), (10**6, 10**6))]
        known = [price for price in prices if price is not None]
        assert len(known) in (0, len(prices))
        assert known == sorted(known)
        assert all(price >= 0 for price in known)

    # ------------------------------------------------------------------------------------------- one answer

    async def test_the_deltas_join_to_the_text(self) -> None:
        assert (
            text_of(await self.play(AnswerPlan(text="Grüße, 世界!\n\nTwo  spaces."))) == "Grüße, 世界!\n\nTwo  spaces."
        )

    async def test_a_long_text_comes_in_pieces(self) -> None:
        self.needs("pieces")
        events = await self.play(AnswerPlan(text=LONG_TEXT))
        assert text_of(events) == LONG_TEXT
        assert sum(isinstance(event, ModelTextDelta) for event in events) > 1

    async def test_an_answer_ends_with_exactly_one_finished(self) -> None:
        events = await self.play(AnswerPlan(text="Hello."))
        assert [type(event) for event in events if isinstance(event, Finished | Failed)] == [Finished]
        end = events[-1]
        assert isinstance(end, Finished)
        assert end.reason == "stop"

    async def test_no_delta_is_empty(self) -> None:
        deltas = [
            event
            for event in await self.play(AnswerPlan(text=LONG_TEXT))
            if isinstance(event, ModelTextDelta | ModelReasoningDelta)
        ]
        assert all(delta.text for delta in deltas)

    async def test_reasoning_is_told_apart_from_the_text(self) -> None:
        self.needs("reasoning")
        events = await self.play(AnswerPlan(text="Four.", reasoning="Two and two."))
        assert text_of(events) == "Four."
        assert "".join(event.text for event in events if isinstance(event, ModelReasoningDelta)) == "Two and two."
        kinds = [type(event) for event in events if isinstance(event, ModelTextDelta | ModelReasoningDelta)]
        assert kinds.index(ModelTextDelta) > max(n for n, kind in enumerate(kinds) if kind is ModelReasoningDelta)

    async def test_a_call_is_whole(self) -> None:
        self.needs("calls")
        events = await self.play(AnswerPlan(calls=(ADD,)))
        (call,) = calls_of(events)
        assert (call.name, call.arguments, call.unread) == (ADD.name, ADD.arguments, "")
        assert call.call_id

    async def test_an_answer_with_calls_says_that_it_waits_for_them(self) -> None:
        self.needs("calls")
        self.needs("finish")
        end = (await self.play(AnswerPlan(calls=(ADD,))))[-1]
        assert isinstance(end, Finished)
        assert end.reason == "calls"

    async def test_several_calls_keep_their_order_and_have_different_ids(self) -> None:
        self.needs("calls")
        events = await self.play(AnswerPlan(text="I will.", calls=(ADD, SUB, ADD)))
        calls = calls_of(events)
        assert [(call.name, call.arguments) for call in calls] == [
            (expected.name, expected.arguments) for expected in (ADD, SUB, ADD)
        ]
        assert all(isinstance(call.arguments, Mapping) for call in calls)
        assert len({call.call_id for call in calls}) == 3
        assert text_of(events) == "I will."

    async def test_usage_comes_before_the_end(self) -> None:
        self.needs("usage")
        events = await self.play(AnswerPlan(text="Hello.", usage=USAGE))
        used = [event for event in events if isinstance(event, Usage)]
        assert used
        assert isinstance(events[-1], Finished)
        last = used[-1]
        assert (last.input, last.output, last.cached) == (USAGE.input, USAGE.output, USAGE.cached)

    @pytest.mark.parametrize("reason", ["length", "filter"])
    async def test_an_answer_says_why_it_ended(self, reason: FinishReason) -> None:
        self.needs("finish")
        end = (await self.play(AnswerPlan(text="Hel", finish=reason)))[-1]
        assert isinstance(end, Finished)
        assert end.reason == reason

    async def test_a_fault_is_the_end_and_nothing_is_raised(self) -> None:
        self.needs("fault")
        events = await self.play(AnswerPlan(fault=True))
        end = events[-1]
        assert isinstance(end, Failed)
        assert end.why.strip().endswith(".")
        assert end.action != "retry"
        assert not any(isinstance(event, Finished | Failed) for event in events[:-1])

    # ------------------------------------------------------------------------------------------- more than one

    async def test_two_streams_at_once_do_not_mix(self) -> None:
        plans = {f"q{number}": AnswerPlan(text=" ".join([f"answer{number}"] * 20)) for number in range(10)}
        async with self.serve(plans) as model:
            requests = [make_request(words, step=f"a#{number}") for number, words in enumerate(plans)]
            answers = await asyncio.gather(*(collect_events(model, request) for request in requests))
        assert [text_of(answer) for answer in answers] == [plan.text for plan in plans.values()]

    async def test_messages_can_be_used_again(self) -> None:
        async with self.serve({"hi": AnswerPlan(text="Hello."), "more": AnswerPlan(text="More.")}) as model:
            first = make_request()
            assert text_of(await collect_events(model, first)) == "Hello."
            talk = (
                *first.messages,
                ChatMessage(role="assistant", content="Hello."),
                *make_request("more").messages[1:],
            )
            assert text_of(await collect_events(model, evolve(first, messages=talk))) == "More."
            assert text_of(await collect_events(model, first)) == "Hello."
            assert first == make_request()

    async def test_results_of_calls_go_back(self) -> None:
        self.needs("calls")
        async with self.serve({"hi": AnswerPlan(calls=(ADD,)), "go on": AnswerPlan(text="Done.")}) as model:
            first = make_request()
            (call,) = calls_of(await collect_events(model, first))
            call_message = ChatMessage(role="assistant", content="", calls=(call,))
            result = ChatMessage(role="tool", content="3", call_id=call.call_id)
            talk = (*first.messages, call_message, result, *make_request("go on").messages[1:])
            assert text_of(await collect_events(model, evolve(first, messages=talk))) == "Done."

    # ------------------------------------------------------------------------------------------- left in the middle

    async def test_a_stream_that_is_closed_in_the_middle_leaves_nothing_running(self) -> None:
        self.needs("pieces")
        async with self.serve({"hi": AnswerPlan(text=LONG_TEXT)}) as model:
            before = asyncio.all_tasks()
            async with aclosing(as_generator(model.stream(make_request()))) as events:
                await anext(events)
            await self.wait_until_quiet(before)
            assert text_of(await collect_events(model, make_request())) == LONG_TEXT

    async def test_a_reader_that_is_cancelled_in_the_middle_leaves_nothing_running(self) -> None:
        self.needs("pieces")
        async with self.serve({"hi": AnswerPlan(text=LONG_TEXT)}) as model:
            before = asyncio.all_tasks()
            begun = asyncio.Event()
            reader = asyncio.create_task(read_and_wait(model, begun))
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                await begun.wait()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            await self.wait_until_quiet(before)

    async def test_a_stream_that_nobody_reads_does_nothing(self) -> None:
        async with self.serve({"hi": AnswerPlan(text="Hello.")}) as model:
            before = asyncio.all_tasks()
            await as_generator(model.stream(make_request())).aclose()
            await self.wait_until_quiet(before)

    async def wait_until_quiet(self, before: set[asyncio.Task[object]]) -> None:
        """Wait until the model is idle and all tasks that it started are done."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            await self.at_rest()
            left = [task for task in asyncio.all_tasks() - before if not is_server(task)]
            if left:
                await asyncio.wait(left)


def is_server(task: asyncio.Task[object]) -> bool:
    """Return whether the task is a connection of a fake server on the same loop."""
    return getattr(task.get_coro(), "__qualname__", "").startswith("RequestHandler.")


def as_generator(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
    """Return the stream as a generator, so that it can be closed."""
    assert hasattr(events, "aclose")
    return cast("AsyncGenerator[ModelEvent, None]", events)


async def read_and_wait(model: Model, begun: asyncio.Event) -> None:
    """Read the first event, then wait forever inside the stream."""
    async with aclosing(as_generator(model.stream(make_request()))) as events:
        async for _ in events:
            begun.set()
            await asyncio.Event().wait()
