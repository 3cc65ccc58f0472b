"""Tests that are spoken of by name, and files with tests that were written, held against what ran."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import Final, TypeAlias

import msgspec

from greenroom.abilities.checks.claims import is_open, named_tests, sentences
from greenroom.app.checks.known_tests import known_tests
from greenroom.app.checks.receipts import Receipt
from greenroom.core.ports.checks import Check, Ran

HOLDS_TESTS: Final = re.compile(r"test_\w+\.py|\w+_test\.py")
"""Names of files in which pytest looks for tests, if it is told to look at them at all."""

PASSING: Final = re.compile(
    r"\b(?:it|they|these|those|both|all|tests?)(?: all| both| now| also){0,2} (?:pass(?:es|ed)?|(?:is|are) green)"
    r"(?=\s*(?:[.,;!:)]|and\b|$))"
    r"|测试.{0,10}通过",
    re.IGNORECASE,
)
"""What passes something on is no test: nothing may follow."""

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]


async def never_ran(said: str, receipts: Sequence[Receipt], fetch: Fetch) -> tuple[str, ...]:
    """What is said of tests that are in none of these reports. Where a runner has made no report of what it ran, nobody
    knows all names, and nothing is said; where none of the checks runs tests, none ran."""
    named = named_tests(said)
    if not named or not receipts:
        return ()
    ran = await _ran(receipts, fetch)
    if not all(one.exact for one in ran):
        return ()
    known = [name for one in ran for name in one.tests]
    return tuple(
        f"It speaks of the test {one!r}, and no such test ran."
        for one in named
        if not any(one in name for name in known)
    )


async def left_alone(
    paths: Sequence[str], checks: Sequence[Check], receipts: Sequence[Receipt], fetch: Fetch, within: str = "."
) -> tuple[str, ...]:
    """Those of these files that hold tests by their names, and of which no check has run one."""
    held = [one for one in paths if HOLDS_TESTS.fullmatch(PurePosixPath(one).name)]
    if not held or not receipts or not all(one.exact for one in await _ran(receipts, fetch)):
        return ()
    known = await known_tests(checks, [one.checked for one in receipts], fetch, within)
    named = ", ".join(one for one in held if one not in known.files | known.documented)
    return (f"No check has run {named}: whether those tests pass nobody knows.",) if named else ()


def says_they_pass(said: str) -> tuple[str, ...]:
    """What is said of tests, some of which nobody has run."""
    every = ((one, match) for one in sentences(said) for match in PASSING.finditer(one))
    told = any(not is_open(one, match.start(), match.end()) for one, match in every)
    return ("It says that its tests pass, and no check has run them all.",) if told else ()


async def _ran(receipts: Sequence[Receipt], fetch: Fetch) -> list[Ran]:
    kept = [one.checked.tests for one in receipts if one.checked.kind == "test"]
    return [msgspec.json.decode(await fetch(one), type=Ran) for one in kept]
