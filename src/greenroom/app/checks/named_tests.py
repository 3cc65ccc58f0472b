"""Tests that are spoken of by name, and files with tests that were written, held against what ran."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import Final, TypeAlias

import msgspec

from greenroom.abilities.checks.ids_of_tests import own_name
from greenroom.abilities.checks.named_claims import clean_tools, named_tests, passing_tests, run_tools
from greenroom.abilities.checks.prose import is_open, sentences
from greenroom.app.checks.delivered_names import Tree, delivered_names
from greenroom.app.checks.ended_tests import ended_otherwise, how_tests_ended, new_and_skipped
from greenroom.app.checks.idle import IN_THE_COPY
from greenroom.app.checks.known_tests import known_tests
from greenroom.app.checks.receipts import Receipt, base_report
from greenroom.app.checks.verdict import Verdict
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import Check, Ran
from greenroom.core.state.step import Step

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


@record
class Here:
    """What words are held against: the `checks` of this run, its `steps`, what reports have kept (`fetch`), and the
    `tree` that is delivered. `within` is the workspace's path in what is seen."""

    checks: Sequence[Check]
    steps: Sequence[Step]
    fetch: Fetch
    tree: Commit
    within: str = "."


async def beside_names(found: Verdict, said: str, changes: Sequence[str], here: Here) -> Verdict:
    """The verdict with what is said of tests, and of programs by their names, and is not so; and with what there is to
    know of tests that were written and that nobody has seen passing."""
    ran, fetch = found.receipts, here.fetch
    tests = await how_tests_ended(ran, base_report(here.steps), fetch)
    alone = await left_alone(await _still_there(changes, here.tree), here.checks, ran, fetch, here.within)
    claims = (
        *await never_ran(said, ran, fetch, here.tree),
        *ended_otherwise(said, tests, clean=not found.missing),
        *never_checked(said, here.checks),
        *never_run(said, here.checks, here.steps),
        *(says_they_pass(said) if alone else ()),
    )
    found = evolve(found, remarks=(*found.remarks, *alone, *new_and_skipped(tests)))
    return evolve(found, state="unproven", claims=(*found.claims, *claims)) if claims else found


async def _still_there(paths: Sequence[str], tree: Commit) -> list[str]:
    """Those with tests by their names that are delivered: a file that was moved away has none to run."""
    held = [one for one in paths if HOLDS_TESTS.fullmatch(PurePosixPath(one).name)]
    there = frozenset(await tree[0].paths(tree[1])) if held else ()
    return [one for one in held if one in there]


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
    lines = _lines(checks)
    return tuple(
        f"It says that {one} finds nothing wrong, and no check of this run is {one}."
        for one in clean_tools(said)
        if not _may_run(one, lines)
    )


def never_run(said: str, checks: Sequence[Check], steps: Sequence[Step]) -> tuple[str, ...]:
    """Programs that are said to have been run, and that neither a check nor a command of this run is."""
    named = run_tools(said)
    tools = [one.work for one in steps if named and one.work.type == "tool"]
    if any(one.executor not in IN_THE_COPY for one in tools):
        return ()  # whatever else an agent has may run anything
    lines = (*_lines(checks), *(str((one.instruction_content or {}).get("script", "")) for one in tools))
    return tuple(
        f"It says that it ran {one}, and nothing in this run did." for one in named if not _may_run(one, lines)
    )


def _lines(checks: Sequence[Check]) -> list[str]:
    return [f"{one.name} {one.line} {one.means}" for one in checks]


def _may_run(tool: str, lines: Sequence[str]) -> bool:
    word = re.compile(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", re.IGNORECASE)
    return any(OPAQUE.search(one) or word.search(one) for one in lines)


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
