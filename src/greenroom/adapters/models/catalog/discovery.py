"""What is at hand: keys in the environment, model servers on this machine. The value of a key is never taken."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
import msgspec

from greenroom.adapters.models.catalog.addresses import address
from greenroom.adapters.models.catalog.catalog import Provider, providers
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

LONGEST: Final = 1_000_000
"""A list of models is small; whatever answers with more is something else."""


@record
class Found:
    """There is a key for this provider in this variable."""

    provider: Provider
    variable: str


@record
class Server:
    """A model server that answers, and the models that it has."""

    provider: Provider
    base_url: str
    models: tuple[str, ...]


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] | None
    """Ollama without a model says null."""


def found(environ: Mapping[str, str]) -> Sequence[Found]:
    """The providers that have a key. One that shares its variable with an earlier one needs a variable of its own."""
    here: dict[str, Found] = {}
    for one in providers().values():
        variable = next((name for name in one.keys if environ.get(name, "").strip()), None)
        if variable is not None and variable not in here:
            here[variable] = Found(provider=one, variable=variable)
    return tuple(here.values())


async def local_servers(timeout: float = 0.3, *, environ: Mapping[str, str] = os.environ) -> Sequence[Server]:
    """The local providers that answer in time, with what they have."""
    local = [one for one in providers().values() if one.local]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session:
        asked = await asyncio.gather(*(ask(session, one, environ) for one in local))
    return tuple(server for server in asked if server is not None)


async def ask(session: aiohttp.ClientSession, provider: Provider, environ: Mapping[str, str]) -> Server | None:
    """Who answers there, if somebody does and lists models."""
    try:
        base_url = address(provider, environ)
        async with session.get(f"{base_url}/models", allow_redirects=False) as response:
            text = await body(response)
        listed = msgspec.json.decode(text, type=_Models).data or []
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, msgspec.MsgspecError, WorldFault):
        # Nothing there, something else there, or an address that is none: all the same, no model server.
        return None
    return Server(provider=provider, base_url=base_url, models=tuple(sorted(one.id for one in listed)))


async def body(response: aiohttp.ClientResponse) -> bytes:
    """All that it says, or nothing if that is too much."""
    said = bytearray()
    async for piece in response.content.iter_any():
        said += piece
        if len(said) > LONGEST:
            return b""
    return bytes(said)
