"""What runners of tests print in lines, one pattern each: good enough to name what failed and to count the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.core.base.records import record
from greenroom.core.ports.checks import Word

LONGEST: Final = 2_000
"""Characters of a line that can be a test's name."""

WORDS: Final[dict[str, Word]] = {
    **dict.fromkeys(("PASSED", "XPASS", "ok", "PASS", "Passed", "✔", "✓", "√", "passed"), "passed"),
    **dict.fromkeys(("FAILED", "ERROR", "FAIL", "not ok", "Failed", "✖", "✕", "×", "failed", "Timeout"), "failed"),
    **dict.fromkeys(("SKIPPED", "XFAIL", "skipped", "SKIP", "ignored", "Not Run", "Skipped", "expected"), "skipped"),
}

PYTEST: Final = re.compile(r"(?P<word>PASSED|FAILED|ERROR|XPASS) (?P<name>[^\s:]+\.\w+(?:::.+| - .+)?)")
UNITTEST: Final = re.compile(r"(?P<name>\w+ \([\w.<>]+\)).*? \.\.\. (?P<word>ok|FAIL|ERROR|skipped|expected)\b.*")
GO: Final = re.compile(r"\s*--- (?P<word>PASS|FAIL|SKIP): (?P<name>\S+)(?: \([\d.]+s\))?")
GO_PACKAGE: Final = re.compile(r"(?P<word>FAIL)\s+(?P<name>[\w./-]+) \[[a-z ]+\]")
CARGO: Final = re.compile(r"test (?P<name>\S+(?: - .+?)?)(?: - should panic)? \.\.\. (?P<word>ok|FAILED|ignored).*")
TAP: Final = re.compile(r"\s*(?P<word>not ok|ok) \d+ - (?P<name>.+?)(?P<skip>\s+# (?:SKIP|TODO)\b.*)?")
SPEC: Final = re.compile(r"\s*(?P<word>[✔✓√✖✕×]) (?P<name>.+?)(?: \(?[\d.]+ ?m?s\)?)?(?P<skip> # SKIP)?")
CTEST: Final = re.compile(
    r"\s*\d+/\d+ Test\s+#\d+: (?P<name>.+?) \.+\s*(?:\*\*\*)?(?P<word>Passed|Failed|Not Run|Timeout|Skipped)\b.*"
)
RSPEC: Final = re.compile(r"(?P<failed>rspec) (?P<name>\./\S+?:\d+|'[^']+') # .+")
PATTERNS: Final = (PYTEST, UNITTEST, GO, GO_PACKAGE, CARGO, TAP, SPEC, CTEST, RSPEC)
HINTS: Final = re.compile(r"PASSED|FAILED|ERROR|XPASS|\.\.\.|---|FAIL|ok |[✔✓√✖✕×]|Test +#|rspec ")

COUNTS: Final = (
    re.compile(r"(?P<n>\d+) (?P<word>passed|failed|errors?|skipped|xfailed|pending|todo)\b"),
    re.compile(r"[#ℹ] (?P<word>pass|fail|skipped|todo) (?P<n>\d+)"),
    re.compile(r"(?P<n>\d+) (?P<word>passing|failing|pending)\b"),
)
SUMMARY: Final = re.compile(
    r"(=+ .* in [\d.]+m?s.*=+)|(Tests:? .*)|(test result: .*)|([#ℹ] (?:pass|fail|skipped|todo) \d+)|"
    r"(\s*\d+ (?:passing|failing|pending).*)|(\d+ passed.* in [\d.]+s.*)"
)
PASSED: Final = frozenset({"passed", "pass", "passing"})
FAILED: Final = frozenset({"failed", "fail", "failing", "error", "errors"})


@record
class Counts:
    """What a runner has counted itself."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            passed=self.passed + other.passed, failed=self.failed + other.failed, skipped=self.skipped + other.skipped
        )


def named(text: str) -> dict[str, Word]:
    """The tests that lines name. Of one that is told of twice the worse counts."""
    found: dict[str, Word] = {}
    for line in text.splitlines():
        if len(line) > LONGEST or not HINTS.search(line):
            continue
        for name, word in _named(line.rstrip()):
            if found.get(name) != "failed":
                found[name] = word
    return found


def _named(line: str) -> Iterator[tuple[str, Word]]:
    for pattern in PATTERNS:
        match = pattern.fullmatch(line)
        if match is None:
            continue
        parts = match.groupdict()
        word: Word = "failed" if "failed" in parts else WORDS[parts["word"]]
        yield plain(parts["name"]) if pattern is PYTEST else parts["name"], "skipped" if parts.get("skip") else word
        return


def plain(name: str) -> str:
    """A test's id without what pytest says after it. A parameter may hold what comes between."""
    begin, bracket, rest = name.partition("[")
    if not bracket or " - " in begin:
        return name.partition(" - ")[0]
    inside, closed, _ = rest.partition("] - ")
    return f"{begin}[{inside}]" if closed else name


def counted(text: str) -> Counts:
    """What the runners' last words say; of several runs all together."""
    total = Counts()
    for line in text.splitlines():
        if len(line) > LONGEST or not SUMMARY.fullmatch(line):
            continue
        for pattern in COUNTS:
            matches = list(pattern.finditer(line))
            for match in matches:
                total = total.plus(_count(match["word"], int(match["n"][:9])))
            if matches:
                break
    return total


def _count(word: str, number: int) -> Counts:
    if word in PASSED:
        return Counts(passed=number)
    return Counts(failed=number) if word in FAILED else Counts(skipped=number)
