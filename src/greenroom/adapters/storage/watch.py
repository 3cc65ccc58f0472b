"""Listeners by stream. No data is passed: a woken listener reads the stream itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

INBOX_PREFIX = "inbox of "


def make_inbox_key(stream: str) -> str:
    """Return the key for listeners that wait for intents. Appends do not wake them."""
    return f"{INBOX_PREFIX}{stream}"


class StreamWatch:
    """The listeners of one event loop, by stream."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = {}

    @property
    def has_listeners(self) -> bool:
        """Whether there are listeners."""
        return bool(self._listeners)

    @contextmanager
    def listen(self, stream: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the stream may have changed."""
        event = asyncio.Event()
        self._listeners.setdefault(stream, set()).add(event)
        try:
            yield event
        finally:
            self._listeners[stream].discard(event)
            if not self._listeners[stream]:
                del self._listeners[stream]

    def wake(self, stream: str) -> None:
        for event in self._listeners.get(stream, ()):
            event.set()

    def wake_all(self, *, inboxes: bool = True) -> None:
        """Wake the listeners of all streams, with or without those of inboxes."""
        for stream, listeners in self._listeners.items():
            for event in listeners if inboxes or not stream.startswith(INBOX_PREFIX) else ():
                event.set()
