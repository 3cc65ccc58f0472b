"""The model of an agent, its request options, and the cost of a call."""

from __future__ import annotations

from typing import Final, Literal, TypedDict

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import Model, Models, Purpose
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms

DEFAULT_MAX_OUTPUT_TOKENS: Final = 8192
"""Maximum tokens of a reply by default: enough to write a fairly long file in one call."""

REQUEST_OVERHEAD_BYTES: Final = 2000
"""Bytes for roles, names and separators of a request."""

GENEROUS_BYTES_PER_TOKEN: Final = 5
"""Upper estimate of bytes per token: a text that is too long by this count is certainly too long."""


class RequestOptions(TypedDict, total=False):
    """Optional settings of a request."""

    temperature: float
    effort: Literal["low", "medium", "high"]
    streaming: bool


def pick_model(models: Models, spec: AgentSpec) -> Model:
    return models.get_model(str((spec.llm_config or {}).get("model", "")))


def find_max_output(model: Model, spec: AgentSpec) -> int:
    """Return the maximum length of a reply in tokens."""
    wanted = (spec.llm_config or {}).get("max_output")
    return min(wanted if isinstance(wanted, int) and wanted > 0 else DEFAULT_MAX_OUTPUT_TOKENS, model.card.output)


def explain_overflow(model: Model, size: int) -> str:
    """Explain why a request of `size` bytes cannot fit. Return "" if it may fit."""
    least = size // GENEROUS_BYTES_PER_TOKEN
    if least <= model.card.window:
        return ""
    return (
        f"That is more than {least:,} tokens, and {model.name} reads {model.card.window:,} at once. "
        "Say it in less, or in parts; or take a model with a larger window."
    )


def build_request_options(spec: AgentSpec) -> RequestOptions:
    """Return the agent's request options. Invalid values are ignored."""
    told, found = spec.llm_config or {}, RequestOptions()
    temperature, effort, streaming = told.get("temperature"), told.get("effort"), told.get("streaming")
    if isinstance(temperature, int | float) and not isinstance(temperature, bool):
        found["temperature"] = float(temperature)
    if effort in ("low", "medium", "high"):
        found["effort"] = effort
    if isinstance(streaming, bool):
        found["streaming"] = streaming
    return found


def build_terms(model: Model, spec: AgentSpec, input_bytes: int, *, prompt: str = "") -> StepTerms:
    """Return the terms of a model call. It is retried if interrupted. The reservation assumes one byte per token."""
    size, max_output = input_bytes + REQUEST_OVERHEAD_BYTES, find_max_output(model, spec)
    price = model.price(size, max_output)
    needs = Amounts(tokens=size + max_output, money=price or 0, estimated=1)
    return StepTerms(
        effect="model", needs=needs, priced=price is not None, model=model.name, spec=spec.version, prompt=prompt
    )


def estimate_partial_cost(model: Model, input_tokens: int, spec: AgentSpec, output_bytes: int) -> Amounts:
    """Estimate the cost of an interrupted reply: its input tokens, and at most one token per output byte. A model with
    hidden reasoning may have used its whole output limit."""
    written = output_bytes if output_bytes or not model.card.effort else find_max_output(model, spec)
    return Amounts(tokens=input_tokens + written, money=model.price(input_tokens, written) or 0, estimated=1)


def build_purpose(step: Step, team: str, turn: int) -> Purpose:
    """Return the purpose of a request. Recordings and scripts identify it by that."""
    return Purpose(
        agent=AgentId(step.agent_id),
        skill=step.work.executor,
        step=step.step_id,
        thread=step.thread_id,
        turn=turn,
        team=team,
        answering=step.answers is not None,
        attempt=step.attempt,
    )
