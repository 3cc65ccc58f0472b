"""Modules that are made for tests and lie among the sources: what they assert, or set up, decides what tests find.

Only what says so itself counts, by its name or by the library of tests that it uses. A plain `assert` says nothing:
sources have them too, and whoever mends such a source would be told to have changed a judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

WORDS: Final = frozenset(
    {
        *("test", "tests", "testing", "testutil", "testutils", "testhelper", "testhelpers", "testlib", "testcase"),
        *("assert", "asserts", "assertion", "assertions", "expect", "expectation", "expectations", "golden"),
    }
)
"""Words of a name that say it: `testing_utils.py`, `customAssertions.ts`. A part of a word (`latest.py`) does not."""

BETWEEN: Final = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")
JAVASCRIPT: Final = re.compile(
    rb"(?:from|require\(|import)\s*['\"](?:vitest|@jest/globals|chai|node:test|expect|ava|tap|@playwright/test)['\"]"
)
JAVA: Final = re.compile(rb"^\s*import\s+(?:static\s+)?org\.(?:junit|assertj|hamcrest|testng)\b", re.MULTILINE)
USES: Final[Mapping[str, re.Pattern[bytes]]] = {
    ".py": re.compile(
        rb"^\s*(?:from|import)\s+(?:pytest|unittest|nose|numpy\.testing|pandas\.testing)\b"
        rb"|^\s*(?:async\s+)?def\s+assert_(?!never\b)\w+\s*\(",
        re.MULTILINE,
    ),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx"), JAVASCRIPT),
    **dict.fromkeys((".java", ".kt", ".groovy", ".scala"), JAVA),
    ".go": re.compile(rb"^\s*(?:import\s+)?\"(?:testing|github\.com/stretchr/testify/\w+)\"\s*$", re.MULTILINE),
    ".rb": re.compile(rb"^\s*require\s+['\"](?:rspec|minitest)[^'\"]*['\"]", re.MULTILINE),
}
"""How a file of each language names what only tests need."""


def made_for_tests(path: str, content: bytes) -> bool:
    """Whether a file of sources is there for the tests."""
    place = PurePosixPath(path)
    uses = USES.get(place.suffix.lower())
    if uses is None:
        return False
    words = {one.lower() for one in BETWEEN.split(place.stem)}
    return not words.isdisjoint(WORDS) or place.parent.name.lower() in WORDS or uses.search(content) is not None
