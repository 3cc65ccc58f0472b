"""The real clock, and ids for new teams."""

from __future__ import annotations

import hashlib
import secrets
import time

from greenroom.core.base.clock import Millis
from greenroom.core.base.ids import TeamId

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""No signs that look alike: people type these."""

SIGNS = 8
"""How many of them an id has."""


class SystemClock:
    """Milliseconds since 1970, from the machine."""

    def now(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)


def new_team_id() -> TeamId:
    """Eight random signs, of which a person types three or four."""
    return _in_signs(secrets.randbelow(len(ALPHABET) ** SIGNS))


def team_id_for(*parts: str) -> TeamId:
    """Eight signs that are the same for the same parts, in whichever process."""
    return _in_signs(int.from_bytes(hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()))


def _in_signs(number: int) -> TeamId:
    signs = list[str]()
    for _ in range(SIGNS):
        number, rest = divmod(number, len(ALPHABET))
        signs.append(ALPHABET[rest])
    return TeamId("".join(signs))
