"""Which models there are, what they cost, and whether one works: three tiny calls that leave nothing in a log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Literal

import aiohttp

from greenroom.adapters.models.catalog.catalog import (
    Server,
    card_of,
    family_of,
    found,
    local_servers,
    provider,
    providers,
)
from greenroom.app.model_registry import Supply
from greenroom.app.settings.keys import find_key, saved_keys
from greenroom.app.settings.schema import Settings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Listening,
    Model,
    ModelRequest,
    Purpose,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)

PATIENCE: Final = 10.0
"""Seconds for an endpoint to list its models."""

SAMPLE: Final = 1000
"""Tokens that a price is worked out with: as a short request costs."""


@record
class Source:
    """Somebody who serves models and can be asked here. `key` says where the key comes from; empty: it needs none."""

    provider: str
    key: str = ""
    proposed: tuple[str, ...] = ()


@record
class Offer:
    """A model. Prices are in millionths of a dollar per million tokens; None is unknown."""

    name: str
    window: int
    tools: bool
    input: int | None
    output: int | None
    key: str
    known: bool


@record
class Shelf:
    """What one provider has. `trouble` says why its own list is not there: then these are the catalog's proposals."""

    source: Source
    offers: tuple[Offer, ...]
    trouble: str = ""


async def at_hand(settings: Settings, environ: Mapping[str, str], only: str = "") -> Sequence[Source]:
    """Who can be asked here: those with a key, those in the settings, and servers of this machine."""
    if only:
        name = only if only in settings.providers else provider(only).name
        return (source(name, environ, settings),)
    servers = {server.provider.name: server for server in await local_servers(environ=environ)}
    keyed = [one.provider.name for one in found(environ)] + [name for name in saved_keys() if name in providers()]
    names = dict.fromkeys((*keyed, *settings.providers, *servers))
    return tuple(source(name, environ, settings, servers.get(name)) for name in names)


def source(name: str, environ: Mapping[str, str], settings: Settings, server: Server | None = None) -> Source:
    """One of them, with what is proposed if it does not list its models itself."""
    known = providers().get(name)
    proposed = (known.strong, known.fast) if known is not None else ()
    models = server.models if server is not None else tuple(dict.fromkeys(one for one in proposed if one))
    key = find_key(name, environ, settings.providers.get(name))
    return Source(provider=name, key=key[1] if key is not None else "", proposed=models)


async def shelf(supply: Supply, one: Source) -> Shelf:
    """What a provider has: its own list where it answers, else what the catalog proposes."""
    names, trouble = await listed(supply, one)
    made = [offer(supply, one, name) for name in names or one.proposed]
    return Shelf(source=one, offers=tuple(made), trouble=trouble)


async def listed(supply: Supply, one: Source) -> tuple[Sequence[str], str]:
    """The endpoint's own list, or why there is none."""
    known = providers().get(one.provider)
    if known is not None and known.wire != "openai":
        return (), "is asked through its own SDK, which lists nothing here"
    try:
        async with asyncio.timeout(PATIENCE):
            names = await supply.endpoint(one.provider).models()
    except TimeoutError:
        return (), f"did not list its models within {PATIENCE:.0f} s"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return (), f"did not list its models: {error}"
    except WorldFault as fault:
        return (), f"cannot be asked. {fault}"
    return (sorted(names), "") if names else ((), "did not list its models (is the key right?)")


def offer(supply: Supply, one: Source, model: str) -> Offer:
    """What is known of a model."""
    card, name = card_of(model), f"{one.provider}:{model}"
    price = supply.price(name)
    read, written = price.of(Usage(input=SAMPLE)), price.of(Usage(output=SAMPLE))
    return Offer(
        name=name,
        window=card.window,
        tools=card.tools,
        input=None if read is None else read * SAMPLE,
        output=None if written is None else written * SAMPLE,
        key=one.key,
        known=family_of(model) is not None,
    )


Way = Literal["streamed", "whole", "tool"]
WAYS: Final[tuple[Way, ...]] = ("streamed", "whole", "tool")
LONGEST: Final = 256
"""Tokens of an answer: enough for a model that thinks before it says two words."""

ROOM: Final = 600
"""More tokens than the question has, with the tool."""

ADD: Final = ToolSpec(
    name="add",
    description="Add two numbers. Use it whenever you are asked for a sum.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


@record
class Trial:
    """How one call went. `fault` is empty when it worked; `first` and `whole` are seconds to first and last word."""

    way: Way
    fault: str = ""
    hopeless: bool = False
    first: float = 0.0
    whole: float = 0.0
    usage: Usage | None = None


def bound(model: Model) -> int | None:
    """What all three calls cost at most, in millionths of a dollar; None when nobody knows."""
    one = model.price(ROOM, LONGEST)
    return None if one is None else one * len(WAYS)


async def trials(model: Model, *, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[Trial]:
    """One call after the other; after a fault that only a person can mend the others are not tried."""
    for way in WAYS:
        one = await tried(model, way, clock)
        yield one
        if one.hopeless:
            return


async def tried(model: Model, way: Way, clock: Callable[[], float]) -> Trial:
    begun, first, called = clock(), 0.0, False
    usage: Usage | None = None
    end: Failed | None = Failed(kind="cut_off", why=f"{model.name} stopped without an end.")
    async with Listening(model.stream(request(model, way))) as events:
        async for event in events:
            first = first or (clock() - begun if isinstance(event, TextDelta | ToolCall) else 0.0)
            called = called or (isinstance(event, ToolCall) and event.name == ADD.name and not event.unread)
            match event:
                case Usage():
                    usage = event
                case Failed():
                    end = event
                case Finished():
                    end = None
                case _:
                    pass
    found = Trial(way=way, first=first, whole=clock() - begun, usage=usage)
    if end is not None:
        return evolve(found, fault=end.why, hopeless=end.verdict == "ask")
    return found if called or way != "tool" else evolve(found, fault="It answered without calling the tool.")


def request(model: Model, way: Way) -> ModelRequest:
    asks = "Use the tool: what is 2 + 3?" if way == "tool" else "Answer with one word: what colour is grass?"
    purpose = Purpose(
        agent=AgentId("check"), skill="check", step=StepId("check#1"), thread=ThreadId("check"), turn=1, answering=True
    )
    return ModelRequest(
        purpose=purpose,
        messages=(ChatMessage(role="user", content=asks),),
        tools=(ADD,) if way == "tool" else (),
        max_output=min(LONGEST, model.card.output),
        effort="low" if model.card.effort else None,
        streaming=way != "whole",
    )
