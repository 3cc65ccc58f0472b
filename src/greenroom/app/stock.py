"""Which models there are to choose from here: whose keys are at hand, what their endpoints list, what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp

from greenroom.adapters.models.catalog.catalog import Server, card_of, family_of, found, provider, providers
from greenroom.adapters.models.catalog.servers import local_servers
from greenroom.app.settings.keys import saved_keys
from greenroom.app.settings.schema import ProviderSettings, Settings
from greenroom.app.supply import Supply
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.model import Usage

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


def key_source(name: str, environ: Mapping[str, str], settings: Settings) -> str | None:
    """Where the key of a provider comes from: a variable, the settings, the key file; None when there is none."""
    told, known = settings.providers.get(name, ProviderSettings()), providers().get(name)
    variables = (*((told.key_env,) if told.key_env else ()), *(known.keys if known else ()))
    variable = next((one for one in variables if environ.get(one, "").strip()), None)
    if variable is not None:
        return f"${variable}"
    if told.key is not None:
        return "config.toml"
    return "keys.toml" if name in saved_keys() else None


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
    return Source(provider=name, key=key_source(name, environ, settings) or "", proposed=models)


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
