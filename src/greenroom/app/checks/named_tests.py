"""Tests that are spoken of by name, and files with tests that were written, held against what ran."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import Final, TypeAlias

import msgspec

from greenroom.abilities.checks.claims import is_open, sentences
from greenroom.abilities.checks.ids_of_tests import own_name
from greenroom.abilities.checks.named_claims import clean_tools, named_tests, passing_tests
from greenroom.app.checks.delivered_names import Tree, delivered_names
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

OPAQUE: Final = re.compile(
    r"(?<![\w-])(?:make|gmake|just|task|sh|bash|zsh|tox|nox|npm|npx|pnpm|yarn|bun|rake|composer|deno|mix|inv|invoke|doit|"
    r"hatch|poe|docker|podman|nix)(?![\w-])|\./|\.(?:sh|py|js|ts)\b"
)
"""Lines that may run anything."""

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]
Commit: TypeAlias = tuple[Tree, str]
"""Whoever can show it, and its name."""


async def not_so(
    said: str,
    checks: Sequence[Check],
    receipts: Sequence[Receipt],
    fetch: Fetch,
    tree: Commit,
    *,
    unrun: bool,
) -> tuple[str, ...]:
    """What is said of tests, and of programs by their names, and that nothing proves. `tree` is what is delivered; that
    something is `unrun` says that no check has run all tests that were written."""
    never = await never_ran(said, receipts, fetch, tree)
    return (*never, *never_checked(said, checks), *(says_they_pass(said) if unrun else ()))


async def never_ran(said: str, receipts: Sequence[Receipt], fetch: Fetch, tree: Commit) -> tuple[str, ...]:
    """What is said of tests that are in none of these reports. One that stands in a file of the `tree` may be spoken
    of; that it passes is known only of those that ran. Where a runner has made no report of what it ran, nobody knows
    all names, and a test may be one of them that stands in a file."""
    named = named_tests(said)
    if not named or not receipts:
        return ()
    ran = await _ran(receipts, fetch)
    known = {part for one in ran for test in one.tests for part in (own_name(test), *test.split("::")[1:-1])}
    doubtful = [one for one in named if one not in known]
    there = await delivered_names(doubtful, *tree) if doubtful else frozenset[str]()
    passing = passing_tests(said) if all(one.exact for one in ran) else ()
    return tuple(
        f"It speaks of the test {one!r}, and no such test ran."
        for one in doubtful
        if one not in there or one in passing
    )


def never_checked(said: str, checks: Sequence[Check]) -> tuple[str, ...]:
    """Programs that are said to find nothing wrong, and that no check runs. What a script runs nobody knows."""
    lines = [f"{one.name} {one.line} {one.means}" for one in checks]
    if any(map(OPAQUE.search, lines)):
        return ()
    return tuple(
        f"It says that {one} finds nothing wrong, and no check of this run is {one}."
        for one in clean_tools(said)
        if not any(re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", line) for line in lines)
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
