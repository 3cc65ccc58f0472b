"""A gate: the filtering proxy for a program of this machine that has a token, while a block lasts."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.heads import USER
from greenroom.adapters.web.proxy import Proxy, Visit
from greenroom.core.ports.browser import Gate

MOST: Final = 50
"""Hosts that are remembered as refused."""


@asynccontextmanager
async def gate(guard: Guard, hosts: Sequence[str]) -> AsyncIterator[Gate]:
    """A way out to these hosts."""
    refused: dict[str, str] = {}

    def told(visit: Visit) -> None:
        if visit.verdict == "allowed":
            refused.pop(visit.host, None)
        elif visit.host and len(refused) < MOST:
            refused[visit.host] = visit.why

    token = secrets.token_urlsafe(16)
    proxy = Proxy(guard, hosts, told=told, token=token)
    port = await proxy.listen_here()
    try:
        yield Gate(port=port, user=USER, token=token, refused=refused)
    finally:
        await proxy.close()
