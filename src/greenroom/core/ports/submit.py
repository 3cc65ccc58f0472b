"""How a change is asked for. Only actors, workers and app hold one: everybody else returns intents."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from greenroom.core.base.errors import Rejected
from greenroom.core.rules.intents import Intent


class Submit(Protocol):
    """The way in to the one writer."""

    def submit(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejected | None]]:
        """Ask for these, in this order, in one commit: None for each that happened, a refusal for each that did not.

        It is asked for at once; the answer comes after the commit is durable. Not waiting for it changes nothing.
        """
        ...
