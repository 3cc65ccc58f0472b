"""Use a vendor's model over a fake wire: the requests and the answers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from greenroom.adapters.models.vendors.model import VendorModel
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    ModelCard,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    Purpose,
    ToolCall,
    ToolSpec,
)
from greenroom.testing.conformance.models import calls_of, collect_events, text_of
from tests.adapters.models.vendors.wire import Answer, Asked, Wire, in_turn

KEY = "sk-ant-very-secret"
PURPOSE = Purpose(agent=AgentId("a"), skill="talk", step=StepId("a#1"), thread=ThreadId("a/t"), turn=1)
SYSTEM = ChatMessage(role="system", content="Be brief.")
HI = ChatMessage(role="user", content="hi")
LOOK = ToolSpec(
    name="look",
    description="Looks.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)
ASKING = ModelRequest(purpose=PURPOSE, messages=(SYSTEM, HI), tools=(LOOK,))
CARD = ModelCard(window=200_000, output=64_000, cache="breakpoints", images=True, files=True)


@asynccontextmanager
async def talking(
    provider: str,
    name: str,
    *answers: Answer,
    reply: Callable[[Asked], Answer] | None = None,
    card: ModelCard = CARD,
    idle: float = 20.0,
    longest: float = 20.0,
) -> AsyncIterator[tuple[VendorModel, Wire]]:
    """Open a model over a wire that gives these answers in turn."""
    async with Wire(reply or in_turn(*answers)) as wire:
        vendor = Vendor(provider, key=lambda: KEY, base_url=wire.base_url, idle=idle)
        model = VendorModel(
            vendor, name, card=card, cost=lambda usage: usage.input + 2 * usage.output, max_seconds=longest
        )
        yield model, wire
        await model.close()


async def failure(provider: str, name: str, answer: Answer, *, idle: float = 20.0, longest: float = 20.0) -> Failed:
    """Return how an unanswerable request fails. The request is made once."""
    async with talking(provider, name, reply=lambda _: answer, idle=idle, longest=longest) as (model, wire):
        end = (await collect_events(model, ASKING))[-1]
    assert len(wire.asked) == 1
    assert isinstance(end, Failed)
    assert KEY not in end.why
    return end


def message(events: list[ModelEvent]) -> ChatMessage:
    """Return the model's message as it is stored."""
    return ChatMessage(
        role="assistant",
        content=text_of(events),
        calls=tuple(calls_of(events)),
        reasoning=reasoning_of(events),
        opaque=tuple(event for event in events if isinstance(event, Opaque)),
    )


def reasoning_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ModelReasoningDelta))


def others(events: list[ModelEvent]) -> list[ModelEvent]:
    """Return the events that are neither text nor reasoning nor opaque."""
    return [event for event in events if not isinstance(event, ModelTextDelta | ModelReasoningDelta | Opaque)]


def result(call: ToolCall, content: str) -> ChatMessage:
    return ChatMessage(role="tool", content=content, call_id=call.call_id)


def further(request: ModelRequest, *messages: ChatMessage) -> ModelRequest:
    """Return the same conversation, some messages later."""
    return evolve(request, messages=(*request.messages, *messages))
