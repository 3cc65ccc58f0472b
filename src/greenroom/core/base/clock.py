"""The time as a value that comes in: whole milliseconds since 1970."""

from __future__ import annotations

from typing import NewType, Protocol

Millis = NewType("Millis", int)


class Clock(Protocol):
    """Where `now` comes from. Rules never ask it: they are told."""

    def now(self) -> Millis:
        """Milliseconds since 1970."""
        ...
