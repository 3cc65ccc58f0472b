"""Make the attempts of some classes as the current user: `python -m tests.sandbox.anybody CLASS…`.

Prints unexpected results, one per line, and the number of attempts. A word with a colon is one attempt, at the default
tier only.
"""

from __future__ import annotations

import asyncio
import sys

from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.judging import DEFAULT, TIERS, judged, told


async def _main(wanted: list[str]) -> None:
    results = [one for attempt in ATTEMPTS if attempt.kind in wanted for one in await judged(attempt, TIERS)]
    results += [one for attempt in ATTEMPTS if str(attempt) in wanted for one in await judged(attempt, (DEFAULT,))]
    possible = [one for one in results if one.verdict != "not possible here"]
    wrong = [one for one in possible if not one.known]
    print(told(wrong), f"\n{len(possible)} attempts")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
