"""A picture at the bottom of a terminal that moves until it is taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live

FRAMES: Final = 8
"""Pictures in a second."""


class Moving:
    """Draws in the thread that prints the lines: two threads would draw over each other."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._ticker: asyncio.Task[None] | None = None

    @property
    def on(self) -> bool:
        """Whether it is there."""
        return self._live is not None

    def begin(self, picture: Callable[[], RenderableType]) -> None:
        """Show it from now on."""
        # What a tool prints meanwhile stands above it, like every other line.
        self._live = Live(console=self._console, get_renderable=picture, auto_refresh=False, transient=True)
        self._live.start()
        self._ticker = asyncio.get_running_loop().create_task(self._tick(self._live))

    def end(self) -> None:
        """Take it away."""
        if self._live is not None and self._ticker is not None:
            self._ticker.cancel()
            self._live.stop()
            self._live = None

    @staticmethod
    async def _tick(live: Live) -> None:
        while True:
            live.refresh()
            await asyncio.sleep(1 / FRAMES)
