"""How to request changes. Only actors, workers and app submit intents; all others return them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from greenroom.core.base.errors import Rejection
from greenroom.core.rules.intents import Intent


class IntentSubmitter(Protocol):
    """Submits intents to the only writer."""

    def submit(self, *intents: Intent, by: str) -> Awaitable[Sequence[Rejection | None]]:
        """Submit intents in this order, in one commit. Return None for each accepted intent, else its rejection.

        They are queued immediately; the answer comes when the commit is durable. Not awaiting it changes nothing.
        """
        ...
