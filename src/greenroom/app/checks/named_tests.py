"""Tests that are spoken of by name, held against those that ran."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from greenroom.abilities.checks.claims import named_tests
from greenroom.app.checks.receipts import Receipt
from greenroom.core.ports.checks import Ran


async def never_ran(
    said: str, receipts: Sequence[Receipt], fetch: Callable[[str], Awaitable[bytes]]
) -> tuple[str, ...]:
    """What is said of tests that are in none of these reports. Where a runner has made no report of what it ran, nobody
    knows all names, and nothing is said; where none of the checks runs tests, none ran."""
    named = named_tests(said)
    if not named or not receipts:
        return ()
    kept = [one.checked.tests for one in receipts if one.checked.kind == "test"]
    ran = [msgspec.json.decode(await fetch(one), type=Ran) for one in kept]
    if not all(one.exact for one in ran):
        return ()
    known = [name for one in ran for name in one.tests]
    return tuple(
        f"It speaks of the test {one!r}, and no such test ran."
        for one in named
        if not any(one in name for name in known)
    )
