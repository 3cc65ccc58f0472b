"""The port of models: what is kept once, and how faults are judged."""

from collections.abc import AsyncIterator
from typing import get_args

from greenroom.core.base.amounts import Amounts
from greenroom.core.ports.model import (
    FAULT_ACTIONS,
    FREE_FAULT_KINDS,
    ChatMessage,
    ClosingStream,
    Failed,
    FaultKind,
    Finished,
    ModelEvent,
    ToolSpec,
    Usage,
)


def test_a_message_and_a_tool_are_encoded_once_for_each_wire() -> None:
    made: list[str] = []

    def encode(one: ChatMessage | ToolSpec) -> bytes:
        made.append(type(one).__name__)
        return b"bytes"

    message, tool = ChatMessage(role="user", content="Hi"), ToolSpec(name="add", description="Adds.")
    for _ in range(3):
        assert message.encode_for("one", encode) is message.encode_for("one", encode)
        assert tool.encode_for("one", encode) == b"bytes"
    message.encode_for("other", encode)
    assert made == ["ChatMessage", "ToolSpec", "ChatMessage"]
    assert message == ChatMessage(role="user", content="Hi"), "what is kept is no part of what it is"


def test_a_tool_says_how_much_of_a_request_it_takes() -> None:
    assert ToolSpec(name="add", description="x" * 500).size > ToolSpec(name="add", description="").size + 499


def test_every_fault_has_a_verdict_and_none_that_costs_is_free() -> None:
    assert set(get_args(FaultKind)) == set(FAULT_ACTIONS)
    assert set(FAULT_ACTIONS) >= FREE_FAULT_KINDS
    assert not {"network", "timeout", "cut_off", "malformed", "too_large", "truncated", "filter"} & FREE_FAULT_KINDS
    assert (Failed(kind="auth", why="").action, Failed(kind="auth", why="").is_free) == ("ask", True)


def test_usage_takes_tokens_and_money_from_a_budget() -> None:
    assert Usage(input=3, output=4, cached=2, money=9).amounts == Amounts(tokens=7, money=9)
    assert Usage(input=3).amounts == Amounts(tokens=3)


class Endless:
    """A stream that is no generator."""

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        return Finished()


async def test_a_stream_ends_when_nobody_listens() -> None:
    ended = []

    async def stream() -> AsyncIterator[ModelEvent]:
        try:
            while True:
                yield Finished()
        finally:
            ended.append(True)

    async with ClosingStream(stream()) as events:
        await anext(events)
    assert ended
    async with ClosingStream(Endless()) as events:
        assert await anext(events) == Finished()
