"""How a vendor's model is to answer: tools, shape, thinking, caching, in the settings of pydantic-ai.

What a model takes is asked of its profile: a setting that it would refuse, or warn about, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from greenroom.core.base.records import Data
from greenroom.core.ports.model import ModelCard, ModelRequest

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
