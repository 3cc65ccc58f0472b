"""A language model: one request, an asynchronous stream of events. No third-party type crosses this port.

A stream ends with exactly one of `Finished` and `Failed`; nothing that a provider does makes it raise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import Data, encode, record

# ---------------------------------------------------------------------------------------------- what is asked


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
    team: str = ""
    answering: bool = False
    attempt: int = 1


@record
class Opaque:
    """Part of an answer that only its provider understands (a thinking signature): given back to it, to nobody else."""

    provider: str
    data: Data


@record
class ToolCall:
    """A whole native tool call. `unread` is what came where its arguments should be, if that is no JSON object.

    `extra` is what its provider added, and goes back with it.
    """

    call_id: str
    name: str
    arguments: Data
    unread: str = ""
    extra: Opaque | None = None


@record
class Media:
    """An image or a file inside a message, already fetched: adapters never follow an address."""

    media_type: str
    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a conversation. A tool's result names the call it answers.

    Not a record, because it carries what `encoded` keeps: its bytes on a wire are made once and serve every request.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    media: tuple[Media, ...] = ()
    _kept: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    def encoded(self, wire: str, encode: Callable[[ChatMessage], bytes]) -> bytes:
        """Its bytes on this wire."""
        found = self._kept.get(wire)
        if found is None:
            found = self._kept[wire] = encode(self)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is told of it; its bytes on a wire are made once. `pure` is not told: it changes nothing."""

    name: str
    description: str
    parameters: Data = field(default_factory=lambda: {"type": "object", "properties": {}})
    pure: bool = False
    _kept: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def size(self) -> int:
        """About how many bytes a request spends on it, never too few."""
        return len(self.encoded("size", lambda tool: encode((tool.name, tool.description, tool.parameters)))) + 100

    def encoded(self, wire: str, encode: Callable[[ToolSpec], bytes]) -> bytes:
        """Its bytes on this wire."""
        found = self._kept.get(wire)
        if found is None:
            found = self._kept[wire] = encode(self)
        return found


@record
class ModelRequest:
    """All that a model is asked with. What is None is left to the provider."""

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


# ---------------------------------------------------------------------------------------------- what comes back


@record
class TextDelta:
    """A piece of the answer."""

    text: str


@record
class ReasoningDelta:
    """A piece of what the model thought before it answered."""

    text: str


@record
class Usage:
    """Tokens as the provider counts them: `cached` and `written` to its cache are of `input`, `thought` is of `output`.

    `money` is in millionths of a dollar; None when nobody knows.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    thought: int = 0
    money: int | None = None

    @property
    def spent(self) -> Amounts:
        """What it takes from a budget."""
        return Amounts(tokens=self.input + self.output, money=self.money or 0)


FinishReason = Literal["stop", "calls", "length", "filter"]


@record
class Finished:
    """The answer is complete, or (`length`) as long as it may be. `said` is the provider's word for it.

    `model` is what the provider calls the model, `by` what we call it: in a group nobody knows before who answers.
    """

    reason: FinishReason = "stop"
    said: str = ""
    model: str = ""
    response_id: str = ""
    by: str = ""


FaultKind = Literal[
    "auth",  # no key, a wrong key, a key that may not
    "credit",  # nothing left to pay with
    "address",  # nothing that speaks this language is there
    "model",  # no such model
    "request",  # the request is not understood
    "too_long",  # the conversation does not fit
    "filter",  # the provider will not answer this
    "tls",  # whoever answers cannot be trusted
    "rate",  # too many requests
    "overloaded",
    "server",  # its own mistake
    "network",  # not reached, or lost
    "timeout",
    "malformed",  # an answer that cannot be read
    "cut_off",  # an answer without its end
    "too_large",  # more than was asked for
    "truncated",  # it has not read the whole request
]
Verdict = Literal["retry", "stop", "ask"]

VERDICTS: Final[Mapping[FaultKind, Verdict]] = {
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
"""Whether asking again may help, is of no use, or waits for something that only a person can do."""


FREE: Final = frozenset(
    {"auth", "credit", "address", "model", "request", "too_long", "tls", "rate", "overloaded", "server"}
)
"""What no provider charges for."""


@record
class Failed:
    """There is no answer. `why` is one sentence for people; `said` are the provider's own words.

    `again` says that whoever asked may ask again, with money for it: this time may have cost something.
    """

    kind: FaultKind
    why: str
    said: str = ""
    status: int | None = None
    retry_after: float | None = None
    again: bool = False

    @property
    def free(self) -> bool:
        """Whether it has cost nothing: there was no answer, not even the beginning of one."""
        return self.kind in FREE

    @property
    def verdict(self) -> Verdict:
        """What to do now."""
        return VERDICTS[self.kind]


@record
class Retried:
    """It is asked again after `wait` seconds: what came before is void."""

    attempt: int
    wait: float
    failed: Failed


ModelEvent = TextDelta | ReasoningDelta | ToolCall | Opaque | Usage | Finished | Failed | Retried


# ---------------------------------------------------------------------------------------------- who answers


@record
class ModelCard:
    """What is known of a model: its window and longest answer in tokens, and what its endpoint takes."""

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


class Model(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    @property
    def card(self) -> ModelCard:
        """What is known of it."""
        ...

    def price(self, read: int, written: int) -> int | None:
        """What so many tokens read and written cost at most, in millionths of a dollar; None when nobody knows."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        ...


class Listening:
    """A stream that is ended when nobody listens any more: what is left of an answer is not waited for."""

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

    def named(self, name: str) -> Model:
        """The model of this name, role or group; the normal one for no name. `WorldFault` says what is missing."""
        ...
