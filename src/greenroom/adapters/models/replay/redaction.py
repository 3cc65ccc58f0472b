"""Taking secrets out of what is written to a file that people share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

MASK: Final = "[redacted]"
SHORTEST: Final = 6
"""A shorter secret is no secret, and taking it out would make holes in ordinary words."""

ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

OUR_WORDS: Final = (
    "cassette request events finish error model messages settings schema tools content answers reasoning opaque "
    "provider arguments unread extra call_id parameters description name sha256 retried attempt response_id "
    "retry_after status reason filter length calls address overloaded server network timeout malformed cut_off "
    "too_long too_large truncated assistant system tool_choice max_output temperature effort required "
    "cached written thought"
)
"""What a file is made of. A secret that is one of these is none, and without them nobody could read the file."""

KEYS: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"(?<=Bearer )\s*[A-Za-z0-9._~+/=-]{8,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|gsk_|xox[abprs]-)[A-Za-z0-9_-]{16,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
)


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables whose name says that they are secret."""
    return tuple(value for name, value in environment.items() if name.upper().endswith(ENDINGS))


class Redaction:
    """Finds these secrets, and whatever looks like a key."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one secret may begin like another.
        known = sorted(
            {one for one in secrets if len(one) >= SHORTEST and one not in OUR_WORDS}, key=lambda one: (-len(one), one)
        )
        self._found = re.compile("|".join((*map(re.escape, known), *KEYS)))

    def text(self, text: str) -> str:
        """The text without them."""
        return self._found.sub(MASK, text)

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """The same for a text in pieces, which keeps its cuts: a key may come in several of them."""
        masked, starts = list(pieces), _starts(pieces)
        for found in reversed(list(self._found.finditer("".join(pieces)))):
            first = True
            for number in range(len(pieces)):
                low, high = (min(max(at - starts[number], 0), len(pieces[number])) for at in found.span())
                if low < high:
                    masked[number] = masked[number][:low] + MASK * first + masked[number][high:]
                    first = False
        return masked


def _starts(pieces: Iterable[str]) -> list[int]:
    starts, at = [], 0
    for piece in pieces:
        starts.append(at)
        at += len(piece)
    return starts
