"""A fake provider for tests, over real HTTP, in another thread."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.terminal import PATIENCE
from tests.fake_openai import FakeOpenAI
from tests.fake_openai.scripts import Script

KEY = "sk-test-0123456789abcdef"


class Beside(FakeOpenAI):
    """A fake server whose loop runs in another thread."""

    def __init__(self, script: Script, *, api_key: str) -> None:
        super().__init__(script, api_key=api_key)
        self.loop = asyncio.new_event_loop()

    def wait_for(self, in_flight: int) -> None:
        """Wait until this many requests are being served."""
        asyncio.run_coroutine_threadsafe(self.until(in_flight), self.loop).result(PATIENCE)


@contextmanager
def provider(script: Script, *, api_key: str = KEY) -> Iterator[Beside]:
    """Serve this script to clients with the key."""
    server, ready, over = Beside(script, api_key=api_key), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=server.loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield server
    finally:
        server.loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE)
        server.loop.close()


def reached(server: FakeOpenAI, key: str = KEY) -> dict[str, str]:
    """Return the environment of a client."""
    return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": server.base_url}


def settings(home: Path, text: str) -> Path:
    """Write the settings of the person with this home."""
    path = home / "config" / "greenroom" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


QUICK = "[retry]\ndelay = 0.01\n"
"""Short retry delays."""

PRICED = '[prices."openai:gpt-5.5"]\ninput = 1.0\noutput = 10.0\n'
"""Prices, because a local fake would be free."""
