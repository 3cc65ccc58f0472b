"""Model servers on this machine: who answers, and what they have."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
import msgspec

from greenroom.adapters.models.catalog.catalog import Provider, Server, address, providers
from greenroom.core.base.errors import WorldFault

LONGEST: Final = 1_000_000
"""A list of models is small; whatever answers with more is something else."""


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] | None
    """Ollama without a model says null."""


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
