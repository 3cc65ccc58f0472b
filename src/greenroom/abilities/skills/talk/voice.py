"""Which model an agent speaks with, and how it wants to be answered."""

from __future__ import annotations

from typing import Final, Literal, TypedDict

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import Model, Models, Purpose
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Terms

MAX_OUTPUT: Final = 8192
"""Tokens that an answer may have if nobody says: a file of some length can be written in one call."""

OVERHEAD: Final = 2000
"""Bytes for what surrounds the texts of a request: roles, names, separators."""

GENEROUS: Final = 5
"""Bytes that a token has, if it has many: what is too long by this count is too long by every other."""


class Wishes(TypedDict, total=False):
    """What a request says only if somebody wants it."""

    temperature: float
    effort: Literal["low", "medium", "high"]
    streaming: bool


def voice(models: Models, spec: AgentSpec) -> Model:
    """The model of an agent."""
    return models.named(str((spec.llm_config or {}).get("model", "")))


def longest(model: Model, spec: AgentSpec) -> int:
    """The longest answer that is paid for, in tokens."""
    wanted = (spec.llm_config or {}).get("max_output")
    return min(wanted if isinstance(wanted, int) and wanted > 0 else MAX_OUTPUT, model.card.output)


def too_much(model: Model, size: int) -> str:
    """Why a request of so many bytes is not made; empty when it may fit."""
    least = size // GENEROUS
    if least <= model.card.window:
        return ""
    return (
        f"That is more than {least:,} tokens, and {model.name} reads {model.card.window:,} at once. "
        "Say it in less, or in parts; or take a model with a larger window."
    )


def wishes(spec: AgentSpec) -> Wishes:
    """How this agent wants to be answered; what cannot be one is none."""
    told, found = spec.llm_config or {}, Wishes()
    temperature, effort, streaming = told.get("temperature"), told.get("effort"), told.get("streaming")
    if isinstance(temperature, int | float) and not isinstance(temperature, bool):
        found["temperature"] = float(temperature)
    if effort in ("low", "medium", "high"):
        found["effort"] = effort
    if isinstance(streaming, bool):
        found["streaming"] = streaming
    return found


def terms(model: Model, spec: AgentSpec, read: int, *, prompt: str = "") -> Terms:
    """A model call: made again when it is cut off, and all it may cost reserved before: a token has a byte."""
    size, most = read + OVERHEAD, longest(model, spec)
    price = model.price(size, most)
    needs = Amounts(tokens=size + most, money=price or 0)
    return Terms(
        effect="model", needs=needs, priced=price is not None, model=model.name, spec=spec.version, prompt=prompt
    )


def heard(model: Model, asked: int, spec: AgentSpec, said: int) -> Amounts:
    """What a reply costs that somebody stopped: what it was `asked` with in tokens, and at most a token for each byte
    that it `said`. A model that thinks where nobody hears it may have written all it was allowed to."""
    written = said if said or not model.card.effort else longest(model, spec)
    return Amounts(tokens=asked + written, money=model.price(asked, written) or 0)


def purpose(step: Step, team: str, turn: int) -> Purpose:
    """What a request is for: recordings and scripts know it by that."""
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
