"""A language model: one request, one asynchronous stream of events. No third-party type crosses this port.

A stream ends with exactly one `Finished` or `Failed`. Provider errors never make it raise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import Data, encode, record

# ---------------------------------------------------------------------------------------------- the request


@record
class Purpose:
    """The agent, skill and step of a request. Scripted models match on it; providers never see it.

    `answering` means that another agent waits for the answer; `turn` counts the thread's other turns.
    """

    agent: AgentId
    skill: str
    step: StepId
    thread: ThreadId
    turn: int
    team: str = ""
    answering: bool = False
    attempt: int = 1


@record
class Opaque:
    """Part of an answer that only its provider understands (a thinking signature). It returns to that provider only."""

    provider: str
    data: Data


@record
class ToolCall:
    """A complete native tool call. `unread` holds arguments that are not a JSON object.

    `extra` is what its provider added; it goes back with the call.
    """

    call_id: str
    name: str
    arguments: Data
    unread: str = ""
    extra: Opaque | None = None


@record
class Media:
    """An image or file inside a message, already fetched: adapters never follow an address."""

    media_type: str
    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a conversation. A tool result names the call that it answers.

    Not a record, because it caches its encoded bytes: they are made once per wire format and reused by every request.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    media: tuple[Media, ...] = ()
    _encoded_by_wire: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    def encode_for(self, wire: str, encode: Callable[[ChatMessage], bytes]) -> bytes:
        """Return the bytes in this wire format."""
        data = self._encoded_by_wire.get(wire)
        if data is None:
            data = self._encoded_by_wire[wire] = encode(self)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as described to a model. Its encoded bytes are cached. `pure` is not sent: the tool changes nothing."""

    name: str
    description: str
    parameters: Data = field(default_factory=lambda: {"type": "object", "properties": {}})
    pure: bool = False
    _encoded_by_wire: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def size(self) -> int:
        """An upper estimate of the bytes it adds to a request."""
        return len(self.encode_for("size", lambda tool: encode((tool.name, tool.description, tool.parameters)))) + 100

    def encode_for(self, wire: str, encode: Callable[[ToolSpec], bytes]) -> bytes:
        """Return the bytes in this wire format."""
        data = self._encoded_by_wire.get(wire)
        if data is None:
            data = self._encoded_by_wire[wire] = encode(self)
        return data


@record
class ModelRequest:
    """A request to a model. None leaves a value to the provider."""

    purpose: Purpose
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none", "required"] = "auto"
    schema: Data | None = None
    max_output: int = 4096
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    effort: Literal["low", "medium", "high"] | None = None
    streaming: bool = True


# ---------------------------------------------------------------------------------------------- the answer


@record
class ModelTextDelta:
    """A piece of the answer."""

    text: str


@record
class ModelReasoningDelta:
    """A piece of the model's reasoning before its answer."""

    text: str


@record
class Usage:
    """Tokens as the provider counts them: `cached` and `written` are part of `input`, `thought` is part of `output`.

    `money` is in millionths of a dollar; None if unknown.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    thought: int = 0
    money: int | None = None

    @property
    def amounts(self) -> Amounts:
        """The amounts to charge to a budget."""
        return Amounts(tokens=self.input + self.output, money=self.money or 0)


FinishReason = Literal["stop", "calls", "length", "filter"]


@record
class Finished:
    """The answer is complete, or (`length`) reached its maximum length. `said` is the provider's own reason.

    `model` is the provider's name for the model, `by` is ours: in a group it is not known before who answers.
    """

    reason: FinishReason = "stop"
    said: str = ""
    model: str = ""
    response_id: str = ""
    by: str = ""


FaultKind = Literal[
    "auth",  # no key, a wrong key, or a key without the right
    "credit",  # the credit is used up
    "address",  # no server with this API is there
    "model",  # the model does not exist
    "request",  # the request is not understood
    "too_long",  # the conversation does not fit into the window
    "filter",  # the provider refuses to answer
    "tls",  # the server's certificate cannot be trusted
    "rate",  # too many requests
    "overloaded",
    "server",  # the provider's own error
    "network",  # no connection, or it was lost
    "timeout",
    "malformed",  # the answer cannot be parsed
    "cut_off",  # the answer has no end
    "too_large",  # the answer exceeds its maximum size
    "truncated",  # the model did not read the whole request
]
FaultAction = Literal["retry", "stop", "ask"]

FAULT_ACTIONS: Final[Mapping[FaultKind, FaultAction]] = {
    "auth": "ask",
    "credit": "ask",
    "address": "ask",
    "model": "ask",
    "request": "stop",
    "too_long": "stop",
    "filter": "stop",
    "tls": "ask",
    "rate": "retry",
    "overloaded": "retry",
    "server": "retry",
    "network": "retry",
    "timeout": "retry",
    "malformed": "retry",
    "cut_off": "retry",
    "too_large": "stop",
    "truncated": "ask",
}
"""Whether a retry may help, is useless, or needs a person to act first."""


FREE_FAULT_KINDS: Final = frozenset(
    {"auth", "credit", "address", "model", "request", "too_long", "tls", "rate", "overloaded", "server"}
)
"""Faults that providers do not charge for."""


@record
class Failed:
    """There is no answer. `why` is a sentence for people; `said` is the provider's own text.

    `again` means that the caller may retry, with budget for it: this request may have cost something. `unsent` means
    that the provider never had the whole request, so it cost nothing.
    """

    kind: FaultKind
    why: str
    said: str = ""
    status: int | None = None
    retry_after: float | None = None
    again: bool = False
    unsent: bool = False

    @property
    def is_free(self) -> bool:
        """Whether the request cost nothing, because not even part of an answer came."""
        return self.unsent or self.kind in FREE_FAULT_KINDS

    @property
    def action(self) -> FaultAction:
        """What to do next."""
        return FAULT_ACTIONS[self.kind]


@record
class Retried:
    """The request is repeated after `wait` seconds, to `model` if another one is asked. Earlier events of the stream
    are void."""

    attempt: int
    wait: float
    failed: Failed
    model: str = ""


ModelEvent = ModelTextDelta | ModelReasoningDelta | ToolCall | Opaque | Usage | Finished | Failed | Retried


# ---------------------------------------------------------------------------------------------- the models


@record
class ModelCard:
    """Facts about a model: its window, its maximum output and the most that an image counts, in tokens, and what its
    endpoint supports."""

    family: str = ""
    window: int = 32_768
    output: int = 4096
    max_output_name: str = "max_tokens"
    temperature: bool = True
    effort: bool = False
    parallel_calls: bool = True
    strict: bool = False
    cache: Literal["none", "prefix", "breakpoints"] = "none"
    tools: bool = True
    images: bool = False
    files: bool = False
    image_tokens: int = 6_000


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    @property
    def card(self) -> ModelCard:
        """The facts about the model."""
        ...

    def price(self, read: int, written: int) -> int | None:
        """Return the maximum price of so many tokens read and written, in millionths of a dollar; None if unknown."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send a request and yield the answer as it arrives."""
        ...


class ClosingStream:
    """Closes a stream when its block ends, without waiting for the rest of an answer."""

    __slots__ = ("_stream",)

    def __init__(self, stream: AsyncIterator[ModelEvent]) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterator[ModelEvent]:
        return self._stream

    async def __aexit__(self, *_: object) -> None:
        end = getattr(self._stream, "aclose", None)
        if end is not None:
            await end()


class Models(Protocol):
    """All models that a team may use, by role or name."""

    def get_model(self, name: str) -> Model:
        """Return the model of this name, role or group; the default one for no name. Raise `WorldFault` if missing."""
        ...
