"""The system clock, and ids for new teams."""

from __future__ import annotations

import hashlib
import secrets
import time

from greenroom.core.base.clock import Millis
from greenroom.core.base.ids import TeamId

ID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Characters of ids. Similar-looking characters are left out because people type ids."""

ID_LENGTH = 8


class SystemClock:
    """The machine's clock, in milliseconds since 1970."""

    def now(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)


def new_team_id() -> TeamId:
    """Return eight random characters. Three or four of them are usually enough to identify a team."""
    return _encode_id(secrets.randbelow(len(ID_ALPHABET) ** ID_LENGTH))


def derive_team_id(*parts: str) -> TeamId:
    """Return eight characters that depend only on the given parts."""
    return _encode_id(int.from_bytes(hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()))


def _encode_id(number: int) -> TeamId:
    characters = list[str]()
    for _ in range(ID_LENGTH):
        number, index = divmod(number, len(ID_ALPHABET))
        characters.append(ID_ALPHABET[index])
    return TeamId("".join(characters))
