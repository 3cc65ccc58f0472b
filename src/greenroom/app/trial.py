"""Trying a model with three tiny calls: streamed, whole, with a tool. Nothing of it gets into a log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Final, Literal

from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Listening,
    Model,
    ModelEvent,
    ModelRequest,
    Purpose,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)

Way = Literal["streamed", "whole", "tool"]
WAYS: Final[tuple[Way, ...]] = ("streamed", "whole", "tool")
LONGEST: Final = 256
"""Tokens of an answer: enough for a model that thinks before it says two words."""

ROOM: Final = 600
"""More tokens than the question has, with the tool."""

ADD: Final = ToolSpec(
    name="add",
    description="Add two numbers. Use it whenever you are asked for a sum.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


@record
class Trial:
    """How one call went. `fault` is empty when it worked; `first` and `whole` are seconds to first and last word."""

    way: Way
    fault: str = ""
    hopeless: bool = False
    first: float = 0.0
    whole: float = 0.0
    usage: Usage | None = None


def bound(model: Model) -> int | None:
    """What all three calls cost at most, in millionths of a dollar; None when nobody knows."""
    one = model.price(ROOM, LONGEST)
    return None if one is None else one * len(WAYS)


async def trials(model: Model, *, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[Trial]:
    """One call after the other; after a fault that only a person can mend the others are not tried."""
    for way in WAYS:
        one = await tried(model, way, clock)
        yield one
        if one.hopeless:
            return


async def tried(model: Model, way: Way, clock: Callable[[], float]) -> Trial:
    """One call."""
    begun, first, called = clock(), 0.0, False
    usage: Usage | None = None
    end: Failed | None = Failed(kind="cut_off", why=f"{model.name} stopped without an end.")
    async with Listening(model.stream(request(model, way))) as events:
        async for event in events:
            first = first or (clock() - begun if is_content(event) else 0.0)
            called = called or (isinstance(event, ToolCall) and event.name == ADD.name and not event.unread)
            match event:
                case Usage():
                    usage = event
                case Failed():
                    end = event
                case Finished():
                    end = None
                case _:
                    pass
    found = Trial(way=way, first=first, whole=clock() - begun, usage=usage)
    if end is not None:
        return evolve(found, fault=end.why, hopeless=end.verdict == "ask")
    return found if called or way != "tool" else evolve(found, fault="It answered without calling the tool.")


def is_content(event: ModelEvent) -> bool:
    """Whether something of the answer has come."""
    return isinstance(event, TextDelta | ToolCall)


def request(model: Model, way: Way) -> ModelRequest:
    """A tiny one."""
    asks = "Use the tool: what is 2 + 3?" if way == "tool" else "Answer with one word: what colour is grass?"
    purpose = Purpose(
        agent=AgentId("check"), skill="check", step=StepId("check#1"), thread=ThreadId("check"), turn=1, answering=True
    )
    return ModelRequest(
        purpose=purpose,
        messages=(ChatMessage(role="user", content=asks),),
        tools=(ADD,) if way == "tool" else (),
        max_output=min(LONGEST, model.card.output),
        effort="low" if model.card.effort else None,
        streaming=way != "whole",
    )
