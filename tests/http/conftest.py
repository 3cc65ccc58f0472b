"""A server of a home in memory, asked in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from greenroom.adapters.storage.memory import MemoryLog, MemoryStore
from greenroom.app.context import AppContext
from greenroom.app.runtime import Runtime
from greenroom.http.access import AccessFile
from greenroom.http.server import create_app, make_context

PORT = 8760
ORIGIN = f"http://127.0.0.1:{PORT}"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(kw_only=True)
class Site:
    """A server without a socket: its app, its access file, its runtime, and a client without any login."""

    app: FastAPI
    access: AccessFile
    runtime: Runtime
    clock: Clock
    client: httpx2.AsyncClient

    @property
    def token(self) -> dict[str, str]:
        """The header of a program."""
        return {"Authorization": f"Bearer {self.access.token}"}

    async def log_in(self) -> None:
        """Log the client in as a browser does."""
        answer = await self.client.get("/login", params={"code": self.access.make_code()})
        assert answer.status_code == 303


@asynccontextmanager
async def open_site(home: Path, runtime: Runtime | None = None, page: Path | None = None) -> AsyncIterator[Site]:
    """Open a server of this home."""
    clock, context = Clock(), AppContext(home)
    access = AccessFile(home, clock)
    access.open()
    context.runtime = runtime or Runtime(MemoryLog(MemoryStore()))
    parts = make_context(context, context.runtime)
    app = create_app(parts, access, PORT, page=page or home / "page")
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        try:
            yield Site(app=app, access=access, runtime=context.runtime, clock=clock, client=client)
        finally:
            await parts.hub.close()
            await parts.host.close()
            if runtime is None:
                await context.runtime.close()
            await context.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened
