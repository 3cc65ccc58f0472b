"""How long is waited for something on the web, and how much of it is taken."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import record

MILLION: Final = 1_000_000


@record
class Limits:
    """Seconds until a connection stands, of silence, and for all of it; bytes of a body, packed or not.

    Who sends fewer than `floor` bytes a second has `grace` seconds. `reading` is how long a parser may take, and
    `parsers` how many are at work at once.
    """

    connect: float = 10.0
    idle: float = 10.0
    total: float = 30.0
    size: int = 10 * MILLION
    floor: int = 500
    grace: float = 8.0
    redirects: int = 5
    reading: float = 20.0
    parsers: int = 4


LIMITS: Final = Limits()
