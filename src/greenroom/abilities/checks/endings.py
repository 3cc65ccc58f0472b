"""How tests ended that are spoken of, and which of them are new: read from what their checks have kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from greenroom.abilities.checks.comparing import NO_TESTS
from greenroom.abilities.checks.ids_of_tests import is_named, own_name
from greenroom.abilities.checks.passing_claims import Told
from greenroom.core.ports.checks import Compared, Ran, Word

Ended: TypeAlias = tuple[int, str, Word]
"""A check by its number, a test of it by its id, and how that ended."""


def endings(ran: Ran, known: Compared | None) -> dict[str, Word]:
    """The tests of a check by their ids. What failed and then passed is not held against anybody."""
    if ran.kind != "test" or ran.outcome == "could_not_run":
        return {}
    flaky = frozenset(known.flaky if known is not None else ())
    every = ((name, word) for name, word in ran.tests.items() if name not in NO_TESTS and is_named(name))
    return {name: "passed" if name in flaky else word for name, word in every}


def by_name(every: Iterable[Mapping[str, Word]]) -> dict[str, list[Ended]]:
    """The tests of these checks by all names that people call them by."""
    found: dict[str, list[Ended]] = {}
    for check, tests in enumerate(every):
        for test, word in tests.items():
            own = own_name(test)
            for name in {own, own.partition(" (")[0], test}:
                found.setdefault(name, []).append((check, test, word))
    return found


def how_it_ended(told: Told, named: Mapping[str, Sequence[Ended]]) -> Word | None:
    """How the test ended that is spoken of; None if nobody knows. Of several that are called so one that passes is
    enough; one with many parameters passes only with all of them."""
    found: dict[tuple[int, str], set[Word]] = {}
    for check, test, word in named.get(told.name, ()):
        if _is_meant(test, told):
            found.setdefault((check, test.partition("[")[0]), set()).add(word)
    words = {_together(one) for one in found.values()}
    return next((one for one in ("passed", "failed", "skipped") if one in words), None)


def _together(words: set[Word]) -> Word:
    return next(one for one in ("failed", "passed", "skipped") if one in words)


def _is_meant(test: str, told: Told) -> bool:
    where = (one for one in told.within.split("::") if one)
    return test.endswith(told.parameters) and all(
        re.search(rf"(?<!\w){re.escape(one)}(?!\w)", test) is not None for one in where
    )


def new_tests(now: Mapping[str, Word], base: Ran | None) -> dict[str, Word]:
    """Those that the base had not, where it is known which it had. One that was only moved is not new, and neither is
    one with other parameters."""
    if base is None or not _names_all(base):
        return {}
    before = {one.partition("[")[0] for one in base.tests}
    moved = {own_name(one) for one in base.tests} - {own_name(one) for one in now if _is_among(one, before)}
    return {one: word for one, word in now.items() if not _is_among(one, before) and own_name(one) not in moved}


def _is_among(test: str, names: Iterable[str]) -> bool:
    return test.partition("[")[0] in names


def _names_all(ran: Ran) -> bool:
    words = list(ran.tests.values())
    counted = words.count("passed") >= ran.passed and words.count("skipped") >= ran.skipped
    return ran.outcome != "could_not_run" and (ran.exact or (counted and bool(words)))
