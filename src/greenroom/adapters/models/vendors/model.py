"""A model of a vendor with its own API, through pydantic-ai."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, cast

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

from greenroom.adapters.models.openai.faults import FaultMaker, extract_page_message, shorten
from greenroom.adapters.models.openai.model import CHARS_PER_TOKEN, CONNECT_TIMEOUT_S, MAX_RESPONSE_S, price_unknown
from greenroom.adapters.models.openai.request import RequestEncoder
from greenroom.adapters.models.openai.response import MAX_CALLS, ResponseTooLarge, ToolCallCollector
from greenroom.adapters.models.openai.usage import find_believable_usage
from greenroom.adapters.models.vendors.request import VendorRequestBuilder, make_opaque
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.base.errors import translate
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import (
    Failed,
    FaultKind,
    Finished,
    FinishReason,
    ModelCard,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Usage,
)

VendorPiece = ModelResponseStreamEvent | ModelResponse

FINISH_REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "calls",
    "content_filter": "filter",
}

THOUGHT_COUNT_NAMES: Final = ("thoughts_tokens", "thinking_tokens", "reasoning_tokens")
"""Names under which providers count reasoning tokens."""


async def stream_response(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    *,
    streaming: bool,
) -> AsyncGenerator[VendorPiece, None]:
    """Send the request. Yield the events as they arrive, then the whole response. Closing the generator closes the
    connection."""
    if streaming:
        async with model.request_stream(messages, settings, parameters) as streamed:
            async for event in streamed:
                yield event
            response = streamed.get()
    else:
        response = await model.request(messages, settings, parameters)
        for index, part in enumerate(response.parts):
            yield PartStartEvent(index=index, part=part)
    yield response


class VendorResponseReader:
    """Reads one response of at most `max_chars` characters."""

    def __init__(self, provider: str, max_chars: int) -> None:
        self._provider = provider
        self._max_chars = max_chars
        self.received_chars = 0
        self._calls = 0
        self._response = ModelResponse(parts=[])

    async def events(self, pieces: AsyncGenerator[VendorPiece, None]) -> AsyncGenerator[ModelEvent, None]:
        """Yield model events as the pieces arrive."""
        async with aclosing(pieces):
            async for piece in pieces:
                event = self.take(piece)
                if event is not None:
                    yield event

    def take(self, piece: VendorPiece) -> ModelEvent | None:
        """Return the event for a piece; None if it has none yet."""
        match piece:
            case ModelResponse():
                self._response = piece
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._count_chars(text)
                return ModelTextDelta(text=text) if text else None
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text)))
            ):
                self._count_chars(text)
                return ModelReasoningDelta(text=text) if text else None
            case PartStartEvent(part=ToolCallPart()):
                self._calls += 1
                if self._calls > MAX_CALLS:
                    raise ResponseTooLarge(f"more than {MAX_CALLS} tool calls in one response")
            case _:
                pass
        return None

    def _count_chars(self, text: str) -> None:
        self.received_chars += len(text)
        if self.received_chars > self._max_chars:
            raise ResponseTooLarge("more text than allowed")

    @property
    def finish_reason(self) -> str:
        """The provider's finish reason; empty if the response has no end."""
        details = self._response.provider_details or {}
        reason = details.get("finish_reason") or details.get("block_reason") or self._response.finish_reason
        return str(reason or "")

    @property
    def is_broken(self) -> bool:
        """Whether the provider reports that the response is unusable."""
        return self._response.finish_reason == "error"

    @property
    def usage(self) -> Usage | None:
        """The token usage. pydantic-ai counts cache reads and cache writes as input."""
        counted = self._response.usage
        if not (counted.input_tokens or counted.output_tokens):
            return None
        reasoning = counted.output_reasoning_tokens or next(
            (counted.details[name] for name in THOUGHT_COUNT_NAMES if name in counted.details), 0
        )
        return Usage(
            input=counted.input_tokens,
            output=counted.output_tokens,
            cached=counted.cache_read_tokens,
            written=counted.cache_write_tokens,
            thought=min(reasoning, counted.output_tokens),
        )

    def emit_rest(self) -> Iterator[ModelEvent]:
        """Yield what is complete only at the end: tool calls and opaque data for the provider."""
        calls = ToolCallCollector(self._provider)
        for index, part in enumerate(self._response.parts):
            if isinstance(part, ToolCallPart):
                function = {"name": part.tool_name, "arguments": part.args}
                calls.take({"index": index, "id": part.tool_call_id, "function": function})
        yield from calls.build_calls()
        opaque = make_opaque(self._provider, self._response)
        if opaque is not None:
            yield opaque

    def make_finished(self, by: str) -> Finished:
        """Return the final event with the finish reason."""
        response = self._response
        reason = FINISH_REASONS.get(response.finish_reason or "", "stop")
        if reason == "stop" and any(isinstance(part, ToolCallPart) for part in response.parts):
            reason = "calls"
        return Finished(
            reason=reason,
            said=self.finish_reason,
            model=response.model_name or "",
            response_id=response.provider_response_id or "",
            by=by,
        )


THINKING_BUDGETS: Final = {"low": 2048, "medium": 8192, "high": 24_576}
"""Thinking budgets in tokens, for models that take a number. At most half of the output is used."""

MIN_THINKING_BUDGET: Final = 1024
"""The smallest thinking budget that Anthropic accepts, in tokens."""

CACHE_SETTINGS: Final[Data] = {
    "anthropic_cache_instructions": True,
    "anthropic_cache_tool_definitions": True,
    "anthropic_cache_messages": True,
}
"""Cache breakpoints after the tools, after the system prompt and at the end. Gateways refuse the automatic one."""


class VendorSettings:
    """The request settings of one model, from its provider, its card and its profile."""

    def __init__(self, provider: str, card: ModelCard, model: Model) -> None:
        self._provider = provider
        self._card = card
        self._profile = cast("Mapping[str, object]", model.profile)
        self._unsupported = model.unsupported_settings

    def _has_feature(self, name: str, *, otherwise: bool = False) -> bool:
        return bool(self._profile.get(name, otherwise))

    def build_settings(self, request: ModelRequest, *, idle: float) -> ModelSettings:
        """Return the settings of a request. SDK retries are off: Greenroom retries itself."""
        card = self._card
        max_tokens = min(request.max_output, card.output)
        thinking = self._build_thinking(request, max_tokens)
        values: dict[str, object] = {"max_tokens": max_tokens, "timeout": idle, "max_retries": 0, **thinking}
        if request.stop:
            values["stop_sequences"] = list(request.stop)
        if request.tools and card.tools:
            values |= self._build_tool_choice(request, thinks=bool(thinking))
        if request.temperature is not None and self._accepts_temperature(thinks=bool(thinking)):
            values["temperature"] = request.temperature
        if card.cache == "breakpoints":
            values |= CACHE_SETTINGS if self._provider == "anthropic" else {"cache": True}
        return cast("ModelSettings", {name: value for name, value in values.items() if name not in self._unsupported})

    def _build_thinking(self, request: ModelRequest, max_tokens: int) -> dict[str, object]:
        effort = request.effort
        if effort is None or not (
            self._has_feature("supports_thinking") or self._has_feature("thinking_always_enabled")
        ):
            return {}
        budget = min(THINKING_BUDGETS[effort], max_tokens // 2)
        if self._provider == "anthropic" and not self._has_feature("anthropic_supports_adaptive_thinking"):
            # A thinking budget excludes a forced tool call. The forced call has priority.
            if budget < MIN_THINKING_BUDGET or request.tool_choice == "required":
                return {}
            return {"anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}
        if self._provider == "google" and not self._has_feature("google_supports_thinking_level", otherwise=True):
            return {"google_thinking_config": {"include_thoughts": True, "thinking_budget": budget}}
        return {"thinking": effort}

    def _build_tool_choice(self, request: ModelRequest, *, thinks: bool) -> dict[str, object]:
        values: dict[str, object] = {} if self._card.parallel_calls else {"parallel_tool_calls": False}
        if request.tool_choice == "none" or (request.tool_choice == "required" and self._can_force_tool(thinks=thinks)):
            values["tool_choice"] = request.tool_choice
        return values

    def _can_force_tool(self, *, thinks: bool) -> bool:
        """Return whether the model can be forced to call a tool, with or without thinking."""
        if not self._has_feature("supports_forced_tool_choice", otherwise=True):
            return False
        thinks = thinks or self._has_feature("thinking_enabled_by_default")
        return not thinks or self._has_feature("supports_forced_tool_choice_with_thinking", otherwise=True)

    def _accepts_temperature(self, *, thinks: bool) -> bool:
        claude = self._provider in ("anthropic", "bedrock")
        return self._card.temperature and not (
            (claude and thinks) or self._has_feature("anthropic_disallows_sampling_settings")
        )

    def build_parameters(self, request: ModelRequest, tools: Sequence[ToolDefinition]) -> ModelRequestParameters:
        """Return the tools and the output schema of a request."""
        schema = request.schema
        if schema is None:
            return ModelRequestParameters(function_tools=list(tools))
        can_combine = not tools or self._provider != "google" or self._has_feature("google_supports_tool_combination")
        is_native = can_combine and self._has_feature("supports_json_schema_output") and not is_open_schema(schema)
        return ModelRequestParameters(
            function_tools=list(tools),
            output_mode="native" if is_native else "prompted",
            output_object=OutputObjectDefinition(json_schema=dict(schema), name="answer"),
        )


def is_open_schema(schema: object) -> bool:
    """Return whether an object in the schema allows unnamed fields. A strict schema would leave them empty."""
    if isinstance(schema, list | tuple):
        return any(is_open_schema(item) for item in schema)
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "object" and not schema.get("properties"):
        return True
    additional = schema.get("additionalProperties", False)
    return additional is not False or any(is_open_schema(item) for item in schema.values())


SDK_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""Exceptions that SDKs raise for unexpected responses."""

VENDOR_ERRORS: Final = (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, OSError, *SDK_ERRORS)
"""All exceptions that a request to a vendor can raise."""

KIND_BY_ERROR: Final[Mapping[type[ModelAPIError], FaultKind]] = {
    ModelContextWindowExceededError: "too_long",
    ModelQuotaExceededError: "credit",
    ModelRateLimitError: "rate",
    ModelOverloadedError: "overloaded",
    ModelUnavailableError: "overloaded",
    ModelAuthenticationError: "auth",
}
"""Fault kinds that pydantic-ai derives from the vendor's codes. Status and message decide the others."""


class VendorFaultMaker:
    """Makes the faults of one model. They never contain `secret`."""

    def __init__(self, name: str, vendor: Vendor, secret: str, *, max_seconds: float) -> None:
        self._name = name
        self._vendor = vendor
        self._faults = FaultMaker(name, vendor.address, lambda: (secret,), idle=vendor.idle, max_seconds=max_seconds)

    def make_fault(self, kind: FaultKind, detail: str = "") -> Failed:
        return self._faults.make_fault(kind, detail)

    def from_missing_setup(self, error: UserError) -> Failed:
        """Return the fault for an SDK that lacks its key or another setting."""
        return self.make_fault(
            "auth", translate("provider_faults.no_key") if "API_KEY" in error.message else shorten(error.message)
        )

    def from_exception(self, error: Exception) -> Failed:
        match error:
            case ModelHTTPError():
                return self._from_http_error(error)
            case ModelTimeoutError() | ModelRequestTimeout() | TimeoutError() | httpx2.TimeoutException():
                return self._from_timeout(error)
            case ModelConnectionError() | httpx2.HTTPError() | httpx2.StreamError() | OSError():
                return self._from_network_error(error)
            case ModelAPIError():
                return self._from_api_error(error)
            case ContentFilterError():
                return self._faults.make_fault("filter", shorten(error.message))
            case UserError():
                return self._faults.make_fault("request", shorten(error.message))
            case _:
                return self._faults.make_fault("malformed", shorten(str(error)) or type(error).__name__)

    def _from_timeout(self, error: Exception) -> Failed:
        if isinstance(error, TimeoutError):
            return self._faults.from_exception(error, local=self._vendor.local)
        if getattr(error, "phase", "") == "connect":
            return self._make_unreachable(translate("provider_faults.no_connection", seconds=CONNECT_TIMEOUT_S))
        return self._faults.make_fault("timeout", translate("provider_faults.no_data", seconds=self._vendor.idle))

    def _from_http_error(self, error: ModelHTTPError) -> Failed:
        """Return the fault for an HTTP error, or an error inside a stream."""
        body, status = error.body, error.status_code
        if isinstance(body, str) and "<" in body[:200]:
            body = extract_page_message(body)
        failure = self._faults.from_error_body(body, status=status, headers=CIMultiDict(error.headers or {}))
        kind = next((kind for cls, kind in KIND_BY_ERROR.items() if isinstance(error, cls)), failure.kind)
        if isinstance(error, ModelNotFoundError):
            kind = "model" if "model" in failure.said.lower() else "address"
        shown_status = None if error.in_stream else status
        if kind == "address":
            return self._make_address_fault(failure.said, shown_status)
        return self._faults.make_fault(kind, failure.said, status=shown_status, retry_after=failure.retry_after)

    def _from_api_error(self, error: ModelAPIError) -> Failed:
        """Return the fault for an error without a status."""
        if 300 <= int(getattr(error.__cause__, "status_code", 0)) < 400:
            return self._make_address_fault(translate("provider_faults.redirects_away"))
        if error.body is None:
            return self._faults.make_fault("malformed", shorten(error.message))
        failure = self._faults.from_error_body(error.body)
        kind = next((kind for cls, kind in KIND_BY_ERROR.items() if isinstance(error, cls)), failure.kind)
        return self._faults.make_fault(kind, failure.said, retry_after=failure.retry_after)

    def _from_network_error(self, error: Exception) -> Failed:
        causes = list(list_causes(error))
        detail = next((words for cause in reversed(causes) if (words := shorten(str(cause)))), type(error).__name__)
        if any(isinstance(cause, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(cause) for cause in causes):
            return self._faults.make_fault("tls", detail)
        unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
        if any(isinstance(cause, unsent) or getattr(cause, "phase", "") == "connect" for cause in causes):
            return self._make_unreachable(detail)
        return self._faults.make_fault("network", detail)

    def _make_unreachable(self, detail: str) -> Failed:
        if self._vendor.local:
            failure = self._make_address_fault(translate("provider_faults.no_server", cause=detail))
        else:
            failure = self._faults.make_fault(
                "network", translate("provider_faults.vendor_unreachable", address=self._vendor.address, detail=detail)
            )
        return evolve(failure, unsent=True)

    def _make_address_fault(self, detail: str, status: int | None = None) -> Failed:
        """Return the fault for an address without the vendor's API."""
        failure = self._faults.make_fault("address", detail, status=status)
        code = f" (HTTP {status})" if status is not None else ""
        detail = f"{code}: {failure.said.rstrip('.')}" if failure.said else code
        address = self._vendor.address
        return evolve(failure, why=translate("provider_faults.vendor", who=self._name, url=address, detail=detail))


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, innermost last."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


class VendorModel:
    """A model behind pydantic-ai. `cost` prices a usage; `price` is an upper bound for a request."""

    def __init__(
        self,
        vendor: Vendor,
        model: str,
        *,
        card: ModelCard | None = None,
        price: Callable[[int, int], int | None] = price_unknown,
        cost: Callable[[Usage], int | None] = lambda usage: usage.money,
        max_seconds: float = MAX_RESPONSE_S,
    ) -> None:
        self.name = f"{vendor.provider}:{model}"
        self.card = card or ModelCard()
        self.price = price
        self._cost = cost
        self._vendor = vendor
        self._model = model
        self._encoder = RequestEncoder(vendor.provider, model, self.card)
        self._request_builder = VendorRequestBuilder(vendor.provider, self.card)
        self._max_seconds = max_seconds

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send a request and yield the response as it arrives."""
        vendor = self._vendor
        faults = VendorFaultMaker(self.name, vendor, vendor.key(), max_seconds=self._max_seconds)
        reader = VendorResponseReader(vendor.provider, request.max_output * CHARS_PER_TOKEN + 4096)
        try:
            pieces = self._stream_response(vendor.get_model(self._model), request)
        except UserError as error:
            yield faults.from_missing_setup(error)
            return
        try:
            async with asyncio.timeout(self._max_seconds), aclosing(reader.events(pieces)) as events:
                async for event in events:
                    yield event
        except ResponseTooLarge as error:
            yield faults.make_fault("too_large", str(error))
        except VENDOR_ERRORS as error:
            yield faults.from_exception(error)
        else:
            for event in self._finish(request, reader, faults):
                yield event

    def _stream_response(self, model: Model, request: ModelRequest) -> AsyncGenerator[VendorPiece, None]:
        settings_builder = VendorSettings(self._vendor.provider, self.card, model)
        return stream_response(
            model,
            self._request_builder.build_messages(request.messages),
            settings_builder.build_settings(request, idle=self._vendor.idle),
            settings_builder.build_parameters(request, self._request_builder.build_tools(request.tools)),
            streaming=request.streaming,
        )

    def _finish(
        self, request: ModelRequest, reader: VendorResponseReader, faults: VendorFaultMaker
    ) -> Iterator[ModelEvent]:
        sent, failure = len(self._encoder.encode_request(request)), None
        usage = find_believable_usage(reader.usage, request, self, sent=sent, received=reader.received_chars)
        if not reader.finish_reason:
            failure = faults.make_fault("cut_off", translate("provider_faults.end_missing"))
        elif reader.is_broken:
            failure = faults.make_fault("malformed", reader.finish_reason)
        if failure is None:
            yield from reader.emit_rest()
        if usage is not None:
            yield evolve(usage, money=self._cost(usage))
        yield failure or reader.make_finished(self.name)

    async def close(self) -> None:
        """Close the connections of the vendor, which all its models share."""
        await self._vendor.close()
