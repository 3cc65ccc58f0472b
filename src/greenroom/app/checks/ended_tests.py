"""What is said of how tests ended, held against how they did; and new ones that were skipped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from greenroom.abilities.checks.endings import by_name, endings, how_it_ended, new_tests
from greenroom.abilities.checks.ids_of_tests import listed, own_name
from greenroom.abilities.checks.passing_claims import (
    admits_failures,
    admits_skipped,
    all_pass,
    ends_well,
    new_ones_pass,
    said_to_pass,
    still_failing,
)
from greenroom.app.checks.checker import base_of
from greenroom.app.checks.receipts import Receipt
from greenroom.core.base.records import record
from greenroom.core.ports.checks import Report, Word

NOT_RUN: Final = "skipped or expected to fail"
"""A report calls both the same."""


@record
class Endings:
    """How they ended in the run that counts (`now`), by check and id; those that the base had not are `new`, and `old`
    ones failed already."""

    now: Mapping[str, Mapping[str, Word]]
    new: Mapping[str, Mapping[str, Word]]
    old: frozenset[str] = frozenset()


async def how_tests_ended(
    receipts: Sequence[Receipt], base: Report | None, fetch: Callable[[str], Awaitable[bytes]]
) -> Endings:
    """What the checks have kept of it."""
    ran = {one.check: one.checked for one in receipts if one.checked.kind == "test"}
    kept = await base_of(Report(tree="", checks=tuple(ran.values())), fetch)
    known = tuple(one for one in base.checks if one.check in ran) if base is not None else ()
    before = await base_of(Report(tree="", checks=known), fetch)
    now = {name: endings(one, ran[name].compared) for name, one in kept.items()}
    compared = (one.compared for one in ran.values() if one.compared is not None)
    return Endings(
        now=now,
        new={name: new_tests(tests, before.get(name)) for name, tests in now.items()},
        old=frozenset(test for one in compared for test in one.old),
    )


def new_and_skipped(tests: Endings) -> tuple[str, ...]:
    """What there is to know of tests that the work has written and nobody has seen passing."""
    every = ((check, _that(new, "skipped")) for check, new in tests.new.items())
    return tuple(f"{check!r}: new tests that were {NOT_RUN}: {listed(skipped)}." for check, skipped in every if skipped)


def ended_otherwise(said: str, tests: Endings, *, clean: bool) -> Iterator[str]:
    """What is said of how they ended and is not so. That all pass is looked at where all is `clean`: elsewhere nothing
    proves it anyway."""
    yield from _by_name(said, tests)
    failing = [test for now in tests.now.values() for test in _that(now, "failed")]
    if clean and failing:
        yield from _none_fails(said, failing, tests.old)
    new = {test: word for one in tests.new.values() for test, word in one.items()}
    skipped = _that(new, "skipped")
    if skipped and len(skipped) == len(new) and new_ones_pass(said) and not admits_skipped(said):
        yield f"It says that its tests pass, and those that are new were {NOT_RUN}: {listed(skipped)}."


def _by_name(said: str, tests: Endings) -> Iterator[str]:
    named, old = by_name(tests.now.values()), frozenset(map(own_name, tests.old))
    admitted, skips = still_failing(said), admits_skipped(said)
    for told in said_to_pass(said):
        word = how_it_ended(told, named)
        if word == "failed" and told.name not in admitted:
            before = " (as it did before)" if told.name in old else ""
            yield f"It says that {told.name!r} passes, and it fails{before}."
        elif word == "skipped" and not skips:
            yield f"It says that {told.name!r} passes, and it was {NOT_RUN}."


def _none_fails(said: str, failing: Sequence[str], old: frozenset[str]) -> Iterator[str]:
    names, one = frozenset(map(own_name, failing)), len(failing) == 1
    every = all_pass(said, names)
    if admits_failures(said, names) or not (every or ends_well(said, names)):
        return
    before = f" (as {'it' if one else 'they'} did before)" if old.issuperset(failing) else ""
    what = "all tests pass" if every else "pytest ends well"
    yield f"It says that {what}, and {listed(failing)} {'fails' if one else 'fail'}{before}."


def _that(tests: Mapping[str, Word], word: Word) -> list[str]:
    return [one for one, ended in tests.items() if ended == word]
