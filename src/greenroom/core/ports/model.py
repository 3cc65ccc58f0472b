"""A language model: one request, an asynchronous stream of events. No third-party type crosses this port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import Data, record


@record
class Purpose:
    """Who asks, in which skill and step: scripts match on this, providers never see it.

    `answering` says that somebody waits for the answer; other turns of the thread are counted by `turn`.
    """

    agent: AgentId
    skill: str
    step: StepId
    thread: ThreadId
    turn: int
    answering: bool = False
    attempt: int = 1


@record
class ChatMessage:
    """One message of a conversation. A tool's result names the call it answers."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@record
class ModelRequest:
    """All that a model is asked with."""

    purpose: Purpose
    messages: tuple[ChatMessage, ...]
    tools: tuple[Data, ...] = ()
    max_output: int = 4096


@record
class TextDelta:
    """A piece of the answer."""

    text: str


@record
class ToolCall:
    """A whole native tool call."""

    call_id: str
    name: str
    arguments: Data


@record
class Usage:
    """What the call cost, as the provider says."""

    spent: Amounts = NOTHING


@record
class Finished:
    """The answer is complete. `length` means it was cut off."""

    reason: Literal["stop", "length"] = "stop"


ModelEvent = TextDelta | ToolCall | Usage | Finished


class Model(Protocol):
    """Something that answers. Faults are raised: `ModelFault` for a reply that is no use, `WorldFault` for the rest."""

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    def price(self, tokens: int) -> int | None:
        """What so many tokens cost at most, in millionths of a dollar; None when nobody knows."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        ...
