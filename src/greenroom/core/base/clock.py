"""The clock port. Time is whole milliseconds since 1970."""

from __future__ import annotations

from typing import NewType, Protocol

Millis = NewType("Millis", int)


class Clock(Protocol):
    """The source of the current time. Rules never read it: they get the time as an argument."""

    def now(self) -> Millis:
        """Return the current time in milliseconds since 1970."""
        ...
