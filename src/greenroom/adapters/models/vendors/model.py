"""A model of a vendor with a language of its own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Literal, cast

import httpx2
from multidict import CIMultiDict
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from greenroom.adapters.models.openai.faults import Faults, shortened, words_of_page
from greenroom.adapters.models.openai.model import CHARS_PER_TOKEN, CONNECT, LONGEST, unpriced
from greenroom.adapters.models.openai.response import MOST_CALLS, Calls, TooMuch
from greenroom.adapters.models.vendors.request import Asking, keepsake
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import (
    Failed,
    FaultKind,
    Finished,
    FinishReason,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    Usage,
)

Piece = ModelResponseStreamEvent | ModelResponse

REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "calls",
    "content_filter": "filter",
}

THOUGHT: Final = ("thoughts_tokens", "thinking_tokens", "reasoning_tokens")
"""The names under which tokens of thoughts are counted."""


async def heard(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    *,
    streaming: bool,
) -> AsyncGenerator[Piece, None]:
    """Ask; what comes, and last of all the whole answer. Who stops listening closes the connection."""
    if streaming:
        async with model.request_stream(messages, settings, parameters) as streamed:
            async for event in streamed:
                yield event
            whole = streamed.get()
    else:
        whole = await model.request(messages, settings, parameters)
        for index, part in enumerate(whole.parts):
            yield PartStartEvent(index=index, part=part)
    yield whole


class Reading:
    """One answer. `most` is how many characters it may have."""

    def __init__(self, provider: str, most: int) -> None:
        self._provider = provider
        self._left = most
        self._calls = 0
        self._whole = ModelResponse(parts=[])

    async def events(self, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[ModelEvent, None]:
        """What the pieces tell, as they come."""
        async with aclosing(pieces):
            async for piece in pieces:
                event = self.take(piece)
                if event is not None:
                    yield event

    def take(self, piece: Piece) -> ModelEvent | None:
        """What a piece tells, if it tells something now."""
        match piece:
            case ModelResponse():
                self._whole = piece
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._weigh(text)
                return TextDelta(text=text) if text else None
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text)))
            ):
                self._weigh(text)
                return ReasoningDelta(text=text) if text else None
            case PartStartEvent(part=ToolCallPart()):
                self._calls += 1
                if self._calls > MOST_CALLS:
                    raise TooMuch(f"more than {MOST_CALLS} tool calls in one answer")
            case _:
                pass
        return None

    def _weigh(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise TooMuch("more text than the answer may have")

    @property
    def said(self) -> str:
        """The provider's word for why it ended; empty when there was no end."""
        details = self._whole.provider_details or {}
        told = details.get("finish_reason") or details.get("block_reason") or self._whole.finish_reason
        return str(told or "")

    @property
    def broken(self) -> bool:
        """Whether the provider says that the model's answer is of no use."""
        return self._whole.finish_reason == "error"

    @property
    def usage(self) -> Usage | None:
        """What it took: pydantic-ai counts what came from the cache, and what went into it, as read."""
        told = self._whole.usage
        if not (told.input_tokens or told.output_tokens):
            return None
        thought = told.output_reasoning_tokens or next(
            (told.details[name] for name in THOUGHT if name in told.details), 0
        )
        return Usage(
            input=told.input_tokens,
            output=told.output_tokens,
            cached=told.cache_read_tokens,
            written=told.cache_write_tokens,
            thought=min(thought, told.output_tokens),
        )

    def rest(self) -> Iterator[ModelEvent]:
        """What can only be told at the end: whole calls, and what goes back unchanged."""
        calls = Calls(self._provider)
        for index, part in enumerate(self._whole.parts):
            if isinstance(part, ToolCallPart):
                function = {"name": part.tool_name, "arguments": part.args}
                calls.take({"index": index, "id": part.tool_call_id, "function": function})
        yield from calls.whole()
        kept = keepsake(self._provider, self._whole)
        if kept is not None:
            yield kept

    def finished(self, by: str) -> Finished:
        """How it ended."""
        whole = self._whole
        reason = REASONS.get(whole.finish_reason or "", "stop")
        if reason == "stop" and any(isinstance(part, ToolCallPart) for part in whole.parts):
            reason = "calls"
        return Finished(
            reason=reason,
            said=self.said,
            model=whole.model_name or "",
            response_id=whole.provider_response_id or "",
            by=by,
        )


BUDGETS: Final = {"low": 2048, "medium": 8192, "high": 24_576}
"""Tokens to think with, where a model is told a number. Never more than half of the answer."""

LEAST_BUDGET: Final = 1024
"""Anthropic takes no smaller number."""

CACHED: Final[Data] = {
    "anthropic_cache_instructions": True,
    "anthropic_cache_tool_definitions": True,
    "anthropic_cache_messages": True,
}
"""Breakpoints after the tools, after the system prompt and at the end. Not the automatic one: gateways refuse it."""


class Manner:
    """How one model is asked: by its provider, by what we know of it (`card`) and by its profile."""

    def __init__(self, provider: str, card: ModelCard, model: Model) -> None:
        self._provider = provider
        self._card = card
        self._profile = cast("Mapping[str, object]", model.profile)
        self._refused = model.unsupported_settings

    def _has(self, name: str, *, otherwise: bool = False) -> bool:
        return bool(self._profile.get(name, otherwise))

    def settings(self, request: ModelRequest, *, idle: float) -> ModelSettings:
        """The settings of a request. Asking again is not the SDK's business."""
        card = self._card
        most = min(request.max_output, card.output)
        thinking = self._thinking(request, most)
        found: dict[str, object] = {"max_tokens": most, "timeout": idle, "max_retries": 0, **thinking}
        if request.stop:
            found["stop_sequences"] = list(request.stop)
        if request.tools and card.tools:
            found |= self._choice(request, thinks=bool(thinking))
        if request.temperature is not None and self._takes_temperature(thinks=bool(thinking)):
            found["temperature"] = request.temperature
        if card.cache == "breakpoints":
            found |= CACHED if self._provider == "anthropic" else {"cache": True}
        return cast("ModelSettings", {name: told for name, told in found.items() if name not in self._refused})

    def _thinking(self, request: ModelRequest, most: int) -> dict[str, object]:
        effort = request.effort
        if effort is None or not (self._has("supports_thinking") or self._has("thinking_always_enabled")):
            return {}
        budget = min(BUDGETS[effort], most // 2)
        if self._provider == "anthropic" and not self._has("anthropic_supports_adaptive_thinking"):
            # Who thinks by the token cannot be made to call a tool: the call is what was asked for.
            if budget < LEAST_BUDGET or request.tool_choice == "required":
                return {}
            return {"anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}
        if self._provider == "google" and not self._has("google_supports_thinking_level", otherwise=True):
            return {"google_thinking_config": {"include_thoughts": True, "thinking_budget": budget}}
        return {"thinking": effort}

    def _choice(self, request: ModelRequest, *, thinks: bool) -> dict[str, object]:
        found: dict[str, object] = {} if self._card.parallel_calls else {"parallel_tool_calls": False}
        if request.tool_choice == "none" or (request.tool_choice == "required" and self._forced(thinks=thinks)):
            found["tool_choice"] = request.tool_choice
        return found

    def _forced(self, *, thinks: bool) -> bool:
        """Whether a model that thinks, or does not, can be made to call a tool."""
        if not self._has("supports_forced_tool_choice", otherwise=True):
            return False
        thinks = thinks or self._has("thinking_enabled_by_default")
        return not thinks or self._has("supports_forced_tool_choice_with_thinking", otherwise=True)

    def _takes_temperature(self, *, thinks: bool) -> bool:
        claude = self._provider in ("anthropic", "bedrock")
        return self._card.temperature and not (
            (claude and thinks) or self._has("anthropic_disallows_sampling_settings")
        )

    def parameters(self, request: ModelRequest, tools: Sequence[ToolDefinition]) -> ModelRequestParameters:
        """The tools that it is told of, and the shape that its answer is to have."""
        schema = request.schema
        if schema is None:
            return ModelRequestParameters(function_tools=list(tools))
        return ModelRequestParameters(
            function_tools=list(tools),
            output_mode=self._mode(schema, tools),
            output_object=OutputObjectDefinition(json_schema=dict(schema), name="answer"),
        )

    def _mode(self, schema: Data, tools: Sequence[ToolDefinition]) -> Literal["native", "prompted"]:
        """Whether the provider holds the answer to the shape, or the model is only told of it."""
        both = not tools or self._provider != "google" or self._has("google_supports_tool_combination")
        native = both and self._has("supports_json_schema_output") and not is_open(schema)
        return "native" if native else "prompted"


def is_open(schema: object) -> bool:
    """Whether an object in it may have fields that it does not name: strict schemas would leave them empty."""
    if isinstance(schema, list | tuple):
        return any(is_open(one) for one in schema)
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "object" and not schema.get("properties"):
        return True
    more = schema.get("additionalProperties", False)
    return more is not False or any(is_open(one) for one in schema.values())


TRIPPED: Final = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What an SDK trips over when an answer is not what it expects."""

RAISED: Final = (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, OSError, *TRIPPED)
"""Everything that asking a vendor raises."""

KINDS: Final[Mapping[type[ModelAPIError], FaultKind]] = {
    ModelContextWindowExceededError: "too_long",
    ModelQuotaExceededError: "credit",
    ModelRateLimitError: "rate",
    ModelOverloadedError: "overloaded",
    ModelUnavailableError: "overloaded",
    ModelAuthenticationError: "auth",
}
"""Kinds that pydantic-ai tells by the vendor's own codes. The others are found by status and words."""


class VendorFaults:
    """Makes faults for one model. `secret` never appears in one."""

    def __init__(self, name: str, vendor: Vendor, secret: str, *, longest: float) -> None:
        self._name = name
        self._vendor = vendor
        self._faults = Faults(name, vendor.address, lambda: (secret,), idle=vendor.idle, longest=longest)

    def fault(self, kind: FaultKind, said: str = "") -> Failed:
        """A fault of this kind, in one sentence."""
        return self._faults.fault(kind, said)

    def unmade(self, error: UserError) -> Failed:
        """The SDK has not what it needs to ask at all."""
        return self.fault("auth", "there is no key" if "API_KEY" in error.message else shortened(error.message))

    def raised(self, error: Exception) -> Failed:
        """Whatever asking raised."""
        match error:
            case ModelHTTPError():
                return self._answered(error)
            case ModelTimeoutError() | ModelRequestTimeout() | TimeoutError() | httpx2.TimeoutException():
                return self._timed_out(error)
            case ModelConnectionError() | httpx2.HTTPError() | httpx2.StreamError() | OSError():
                return self._lost(error)
            case ModelAPIError():
                return self._complained(error)
            case ContentFilterError():
                return self._faults.fault("filter", shortened(error.message))
            case UserError():
                return self._faults.fault("request", shortened(error.message))
            case _:
                return self._faults.fault("malformed", shortened(str(error)) or type(error).__name__)

    def _timed_out(self, error: Exception) -> Failed:
        if isinstance(error, TimeoutError):
            return self._faults.raised(error, local=self._vendor.local)
        if getattr(error, "phase", "") == "connect":
            return self._unreached(f"no connection was made within {CONNECT:g} s")
        return self._faults.fault("timeout", f"nothing came for {self._vendor.idle:g} s")

    def _answered(self, error: ModelHTTPError) -> Failed:
        """A response that is no answer, or an error in the middle of one."""
        body, status = error.body, error.status_code
        if isinstance(body, str) and "<" in body[:200]:
            body = words_of_page(body)
        told = self._faults.complained(body, status=status, headers=CIMultiDict(error.headers or {}))
        kind = next((kind for cls, kind in KINDS.items() if isinstance(error, cls)), told.kind)
        if isinstance(error, ModelNotFoundError):
            kind = "model" if "model" in told.said.lower() else "address"
        shown = None if error.in_stream else status
        if kind == "address":
            return self._nowhere(told.said, shown)
        return self._faults.fault(kind, told.said, status=shown, retry_after=told.retry_after)

    def _complained(self, error: ModelAPIError) -> Failed:
        """An error without a status of its own."""
        if 300 <= int(getattr(error.__cause__, "status_code", 0)) < 400:
            return self._nowhere("it sends us on to somewhere else")
        if error.body is None:
            return self._faults.fault("malformed", shortened(error.message))
        told = self._faults.complained(error.body)
        kind = next((kind for cls, kind in KINDS.items() if isinstance(error, cls)), told.kind)
        return self._faults.fault(kind, told.said, retry_after=told.retry_after)

    def _lost(self, error: Exception) -> Failed:
        """What the network did."""
        causes = list(chain(error))
        said = next((words for one in reversed(causes) if (words := shortened(str(one)))), type(error).__name__)
        if any(isinstance(one, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(one) for one in causes):
            return self._faults.fault("tls", said)
        if any(isinstance(one, httpx2.ConnectError) or getattr(one, "phase", "") == "connect" for one in causes):
            return self._unreached(said)
        return self._faults.fault("network", said)

    def _unreached(self, said: str) -> Failed:
        if self._vendor.local:
            return self._nowhere(f"nothing listens there ({said}): start the server")
        return self._faults.fault("network", f"{self._vendor.address} cannot be reached ({said})")

    def _nowhere(self, said: str, status: int | None = None) -> Failed:
        """Nothing that speaks the vendor's language is there."""
        failed = self._faults.fault("address", said, status=status)
        code = f" (HTTP {status})" if status is not None else ""
        words = f": {failed.said.rstrip('.')}" if failed.said else ""
        now = "Check base_url in the settings (`greenroom config show`)."
        return evolve(failed, why=f"{self._name} does not answer at {self._vendor.address}{code}{words}. {now}")


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it, the innermost last."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


class VendorModel:
    """Asks through pydantic-ai. `cost` puts a price on a usage; `price` bounds what a request may cost."""

    def __init__(
        self,
        vendor: Vendor,
        model: str,
        *,
        card: ModelCard | None = None,
        price: Callable[[int, int], int | None] = unpriced,
        cost: Callable[[Usage], int | None] = lambda usage: usage.money,
        longest: float = LONGEST,
    ) -> None:
        self.name = f"{vendor.provider}:{model}"
        self.card = card or ModelCard()
        self.price = price
        self._cost = cost
        self._vendor = vendor
        self._model = model
        self._asking = Asking(vendor.provider, self.card)
        self._longest = longest

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        vendor = self._vendor
        faults = VendorFaults(self.name, vendor, vendor.key(), longest=self._longest)
        reading = Reading(vendor.provider, request.max_output * CHARS_PER_TOKEN + 4096)
        try:
            pieces = self._asked(vendor.model(self._model), request)
        except UserError as error:
            yield faults.unmade(error)
            return
        try:
            async with asyncio.timeout(self._longest), aclosing(reading.events(pieces)) as events:
                async for event in events:
                    yield event
        except TooMuch as error:
            yield faults.fault("too_large", str(error))
        except RAISED as error:
            yield faults.raised(error)
        else:
            for event in self._ended(reading, faults):
                yield event

    def _asked(self, model: Model, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        manner = Manner(self._vendor.provider, self.card, model)
        return heard(
            model,
            self._asking.messages(request.messages),
            manner.settings(request, idle=self._vendor.idle),
            manner.parameters(request, self._asking.tools(request.tools)),
            streaming=request.streaming,
        )

    def _ended(self, reading: Reading, faults: VendorFaults) -> Iterator[ModelEvent]:
        usage, failed = reading.usage, None
        if not reading.said:
            failed = faults.fault("cut_off", "its end never came")
        elif reading.broken:
            failed = faults.fault("malformed", reading.said)
        if failed is None:
            yield from reading.rest()
        if usage is not None:
            yield evolve(usage, money=self._cost(usage))
        yield failed or reading.finished(self.name)

    async def close(self) -> None:
        """Let the connections go, also those of the vendor's other models."""
        await self._vendor.close()
