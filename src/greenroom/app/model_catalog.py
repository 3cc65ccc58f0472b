"""Lists models and prices, and tests a model with three tiny calls that leave nothing in a log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Literal

import aiohttp

from greenroom.adapters.models.catalog.catalog import (
    ModelServer,
    find_family,
    find_keys,
    find_local_servers,
    get_provider,
    load_providers,
)
from greenroom.app.messages import translate
from greenroom.app.model_registry import ModelRegistry
from greenroom.app.settings.keys import find_key, saved_keys
from greenroom.app.settings.schema import Settings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import (
    ChatMessage,
    ClosingStream,
    Failed,
    Finished,
    Model,
    ModelRequest,
    ModelTextDelta,
    Purpose,
    ToolCall,
    ToolSpec,
    Usage,
)

LISTING_TIMEOUT_S: Final = 10.0
PRICE_SAMPLE_TOKENS: Final = 1000
"""Tokens of a short request, for price comparison."""


@record
class ModelSource:
    """A usable provider of models. `key` is the source of its key, empty if it needs none."""

    provider: str
    key: str = ""
    proposed: tuple[str, ...] = ()


@record
class ModelOffer:
    """A model. Prices are in millionths of a dollar per million tokens; None means unknown."""

    name: str
    window: int
    tools: bool
    input: int | None
    output: int | None
    key: str
    known: bool


@record
class ProviderModels:
    """The models of one provider. If it did not list them, `trouble` says why and these are the catalog's proposals."""

    source: ModelSource
    offers: tuple[ModelOffer, ...]
    trouble: str = ""


async def find_sources(
    settings: Settings, environ: Mapping[str, str], only_provider: str = ""
) -> Sequence[ModelSource]:
    """Find usable providers: those with a key, those in the settings, and local servers."""
    if only_provider:
        name = only_provider if only_provider in settings.providers else get_provider(only_provider).name
        return (make_source(name, environ, settings),)
    servers = {server.provider.name: server for server in await find_local_servers(environ=environ)}
    with_key = [key.provider.name for key in find_keys(environ)] + [
        name for name in saved_keys() if name in load_providers()
    ]
    names = dict.fromkeys((*with_key, *settings.providers, *servers))
    return tuple(make_source(name, environ, settings, servers.get(name)) for name in names)


def make_source(
    name: str, environ: Mapping[str, str], settings: Settings, server: ModelServer | None = None
) -> ModelSource:
    """Make a source, with the models to propose if the provider does not list its own."""
    entry = load_providers().get(name)
    proposed_models = (entry.strong, entry.fast) if entry is not None else ()
    models = server.models if server is not None else tuple(dict.fromkeys(model for model in proposed_models if model))
    key = find_key(name, environ, settings.providers.get(name))
    return ModelSource(provider=name, key=key[1] if key is not None else "", proposed=models)


async def list_models(registry: ModelRegistry, source: ModelSource) -> ProviderModels:
    """Return a provider's models: its own list if it answers, else the catalog's proposals."""
    names, trouble = await fetch_model_names(registry, source)
    offers = [describe_model(registry, source, name) for name in names or source.proposed]
    return ProviderModels(source=source, offers=tuple(offers), trouble=trouble)


async def fetch_model_names(registry: ModelRegistry, source: ModelSource) -> tuple[Sequence[str], str]:
    """Return the endpoint's list of models, or why there is none."""
    entry = load_providers().get(source.provider)
    if entry is not None and entry.wire != "openai":
        return (), translate("model_catalog.own_sdk")
    try:
        async with asyncio.timeout(LISTING_TIMEOUT_S):
            names = await registry.endpoint(source.provider).list_models()
    except TimeoutError:
        return (), translate("model_catalog.timed_out", seconds=LISTING_TIMEOUT_S)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return (), translate("model_catalog.failed", error=error)
    except WorldFault as fault:
        return (), translate("model_catalog.unusable", fault=fault)
    return (sorted(names), "") if names else ((), translate("model_catalog.empty"))


def describe_model(registry: ModelRegistry, source: ModelSource, model: str) -> ModelOffer:
    """Return what is known about a model."""
    name = f"{source.provider}:{model}"
    card, price = registry.card(name), registry.price(name)
    read = price.compute_cost(Usage(input=PRICE_SAMPLE_TOKENS))
    written = price.compute_cost(Usage(output=PRICE_SAMPLE_TOKENS))
    return ModelOffer(
        name=name,
        window=card.window,
        tools=card.tools,
        input=None if read is None else read * PRICE_SAMPLE_TOKENS,
        output=None if written is None else written * PRICE_SAMPLE_TOKENS,
        key=source.key,
        known=find_family(model) is not None,
    )


TrialMode = Literal["streamed", "whole", "tool"]
TRIAL_MODES: Final[tuple[TrialMode, ...]] = ("streamed", "whole", "tool")
MAX_ANSWER_TOKENS: Final = 256
"""Tokens of an answer. Enough for a model that reasons before a short answer."""

MAX_QUESTION_TOKENS: Final = 600
"""An upper bound of the question's tokens, with the tool."""

ADD_TOOL: Final = ToolSpec(
    name="add",
    description="Add two numbers. Use it whenever you are asked for a sum.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


@record
class ModelTrial:
    """The result of one call. `fault` is empty if it worked; `first` and `whole` are seconds to the first and last
    token."""

    way: TrialMode
    fault: str = ""
    hopeless: bool = False
    first: float = 0.0
    whole: float = 0.0
    usage: Usage | None = None


def estimate_max_cost(model: Model) -> int | None:
    """Estimate the highest cost of all three calls, in millionths of a dollar; None if unknown."""
    call_price = model.price(MAX_QUESTION_TOKENS, MAX_ANSWER_TOKENS)
    return None if call_price is None else call_price * len(TRIAL_MODES)


async def run_trials(model: Model, *, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[ModelTrial]:
    """Run the calls one after the other. Stop after an error that only a person can fix."""
    for mode in TRIAL_MODES:
        trial = await run_trial(model, mode, clock)
        yield trial
        if trial.hopeless:
            return


async def run_trial(model: Model, mode: TrialMode, clock: Callable[[], float]) -> ModelTrial:
    started_at, first, has_called = clock(), 0.0, False
    usage: Usage | None = None
    failure: Failed | None = Failed(kind="cut_off", why=translate("model_catalog.stream_ended", name=model.name))
    async with ClosingStream(model.stream(make_request(model, mode))) as events:
        async for event in events:
            first = first or (clock() - started_at if isinstance(event, ModelTextDelta | ToolCall) else 0.0)
            has_called = has_called or (
                isinstance(event, ToolCall) and event.name == ADD_TOOL.name and not event.unread
            )
            match event:
                case Usage():
                    usage = event
                case Failed():
                    failure = event
                case Finished():
                    failure = None
                case _:
                    pass
    trial = ModelTrial(way=mode, first=first, whole=clock() - started_at, usage=usage)
    if failure is not None:
        return evolve(trial, fault=failure.why, hopeless=failure.action == "ask")
    return trial if has_called or mode != "tool" else evolve(trial, fault=translate("model_catalog.no_tool_call"))


def make_request(model: Model, mode: TrialMode) -> ModelRequest:
    question = "Use the tool: what is 2 + 3?" if mode == "tool" else "Answer with one word: what colour is grass?"
    purpose = Purpose(
        agent=AgentId("check"), skill="check", step=StepId("check#1"), thread=ThreadId("check"), turn=1, answering=True
    )
    return ModelRequest(
        purpose=purpose,
        messages=(ChatMessage(role="user", content=question),),
        tools=(ADD_TOOL,) if mode == "tool" else (),
        max_output=min(MAX_ANSWER_TOKENS, model.card.output),
        effort="low" if model.card.effort else None,
        streaming=mode != "whole",
    )
