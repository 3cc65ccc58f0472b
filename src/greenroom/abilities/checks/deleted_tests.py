"""Parts of tests that are not there any more, read from the files: for runners that neither name nor count what ran.

Who counts is believed. Where nobody does, old tests that are put back and pass prove the code, and nobody would see
that what is delivered has fewer of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.judge_names import is_test

TOLD: Final = 80
"""Characters of a line."""

HEAD: Final = re.compile(
    r"^[ \t]*(?:(?:async )?def test|class Test|func Test|@(?:Test|ParameterizedTest|RepeatedTest)\b|#\[(?:\w+::)*test\b"
    r"|\[(?:Fact|Theory|Test|TestCase|TestMethod)\b|(?:test|it|specify|scenario|describe|context)\b[ (.]"
    r"|public function test|fun `?test|TEST(?:_F|_P|_CASE)?\(|@test |Scenario(?: Outline)?:|(?:static )?void test).*$",
    re.MULTILINE,
)
"""The line with which a test begins, in the usual ways of many languages."""


def deleted_tests(changes: Sequence[Changed], tests: Collection[str] = ()) -> tuple[str, ...]:
    """What these changes have taken away, each in a sentence; what was moved to another file is there."""
    every = [one for one in changes if is_test(one.path) or one.path in tests]
    left = Counter(line for one in every for line in _heads(one.after))
    moved = {one.after for one in every if one.before is None}
    return tuple(said for one in every for said in _deleted(one, left, moved))


def _deleted(change: Changed, left: Counter[str], moved: Collection[bytes | None]) -> Iterator[str]:
    for line in _heads(change.before):
        left[line] -= 1
        if left[line] < 0:
            yield f"{change.path}: there is no {line[:TOLD]!r} any more, and no check counts its tests."
    gone = change.before is not None and change.after is None and change.before not in moved
    if gone and not any(_heads(change.before)):
        yield f"{change.path} was deleted, and no check counts its tests."


def _heads(content: bytes | None) -> Iterator[str]:
    text = (content or b"").decode("utf-8", "replace")
    return (" ".join(found[0].split()) for found in HEAD.finditer(text))
