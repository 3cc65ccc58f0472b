"""The real clock, and ids for new teams."""

from __future__ import annotations

import secrets
import time

from greenroom.core.base.clock import Millis
from greenroom.core.base.ids import TeamId

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""No signs that look alike: people type these."""


class SystemClock:
    """Milliseconds since 1970, from the machine."""

    def now(self) -> Millis:
        """The time."""
        return Millis(time.time_ns() // 1_000_000)


def new_team_id() -> TeamId:
    """Eight random signs, of which a person types three or four."""
    return TeamId("".join(secrets.choice(ALPHABET) for _ in range(8)))
