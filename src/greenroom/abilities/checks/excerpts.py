"""The part of an output that tells why a check failed: what stands around the failing tests, else the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

LINES: Final = 30
"""Lines of an excerpt."""

WIDE: Final = 240
RULE: Final = re.compile(r"([=_!*─-])\1{5,}")
"""Lines that runners draw."""

TELLING: Final = re.compile(
    r"^E\s|\bError\b|\bFAIL|\bfailed\b|AssertionError|panicked at|✖|✕|not ok|error[:\[]|^>\s|expected|Traceback",
    re.IGNORECASE,
)


def excerpt(text: str, failing: Sequence[str] = ()) -> str:
    """At most so many lines: those about the failing tests first, in the order in which they stand there."""
    lines = [RULE.sub(r"\1\1\1", line)[:WIDE] for line in text.splitlines() if line.strip()]
    if len(lines) <= LINES:
        return "\n".join(lines)
    wanted = _around(lines, failing)
    if not wanted:
        return "\n".join(("…", *lines[-LINES:]))
    chosen = sorted(wanted[:LINES])
    told: list[str] = []
    for before, at in zip((-1, *chosen), chosen, strict=False):
        told += ["…"] if at > before + 1 and told else []
        told.append(lines[at])
    return "\n".join(told[: LINES + 10])


def _around(lines: Sequence[str], failing: Sequence[str]) -> list[int]:
    """The places of lines that tell something, the most telling first."""
    short = {one.rpartition("::")[2] or one for one in failing}
    naming = [at for at, line in enumerate(lines) if any(one in line for one in list(short)[:20])]
    telling = [at for at, line in enumerate(lines) if TELLING.search(line)]
    near = [at for place in naming[:3] for at in range(place, min(place + 12, len(lines)))]
    return list(dict.fromkeys((*near, *telling, *naming)))
