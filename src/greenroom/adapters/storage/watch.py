"""Who listens to which stream. It carries no data: a woken listener looks for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

INBOX = "inbox of "


def inbox_of(stream: str) -> str:
    """What those listen to who wait for intents: appends of their own are not news to them."""
    return f"{INBOX}{stream}"


class Watch:
    """The listeners of one event loop, by stream."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = {}

    @property
    def busy(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    @contextmanager
    def listen(self, stream: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something may have changed in the stream."""
        event = asyncio.Event()
        self._listeners.setdefault(stream, set()).add(event)
        try:
            yield event
        finally:
            self._listeners[stream].discard(event)
            if not self._listeners[stream]:
                del self._listeners[stream]

    def wake(self, stream: str) -> None:
        """Something changed in this stream."""
        for event in self._listeners.get(stream, ()):
            event.set()

    def wake_all(self, *, inboxes: bool = True) -> None:
        """Something changed, nobody knows where; in the inboxes or not."""
        for stream, listeners in self._listeners.items():
            for event in listeners if inboxes or not stream.startswith(INBOX) else ():
                event.set()
