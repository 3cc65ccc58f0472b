"""What runners of tests print in lines, one pattern each: good enough to name what failed and to count the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.core.base.records import evolve, record
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
DESCRIBED: Final = re.compile(r"^(\w+ \([\w.<>]+\))\n(?=.* \.\.\. )", re.MULTILINE)
"""A test of unittest that has words of its own, which stand in the next line."""

GO: Final = re.compile(r"\s*--- (?P<word>PASS|FAIL|SKIP): (?P<name>\S+)(?: \([\d.]+s\))?")
GO_PACKAGE: Final = re.compile(r"(?P<word>FAIL)\s+(?P<name>[\w./-]+) \[[a-z ]+\]")
CARGO: Final = re.compile(r"test (?P<name>\S+(?: - .+?)?)(?: - should panic)? \.\.\. (?P<word>ok|FAILED|ignored).*")
TAP: Final = re.compile(r"\s*(?P<word>not ok|ok) \d+ - (?P<name>.+?)(?P<skip>\s+# (?:SKIP|TODO)\b.*)?")
SPEC: Final = re.compile(
    r"\s*(?P<word>[✔✓√✖✕×]) (?!failing tests:|.*\(\d+ tests?\b)(?P<name>.+?)(?: \(?[\d.]+ ?m?s\)?)?(?P<skip> # SKIP)?"
)
"""Not what vitest says of a file (`✓ src/a.test.ts (7 tests) 3ms`), nor what node puts above those that fail."""

CTEST: Final = re.compile(
    r"\s*\d+/\d+ Test\s+#\d+: (?P<name>.+?) \.+\s*(?:\*\*\*)?(?P<word>Passed|Failed|Not Run|Timeout|Skipped)\b.*"
)
RSPEC: Final = re.compile(r"(?P<failed>rspec) (?P<name>\./\S+?:\d+|'[^']+') # .+")
ONLY_FAILED: Final = (
    re.compile(r"(?P<failed>FAIL|ERROR): (?P<name>\w+ \([\w.<>]+\))"),  # unittest
    re.compile(r"\s*(?P<failed>●) (?!Console\b)(?:.* › )?(?P<name>.+)"),  # jest
    re.compile(r" {4,}(?P<failed>\d+)\) (?P<name>\S.*)"),  # mocha
    re.compile(r"(?P<failed>\d+)\) (?P<name>[\w\\]+::\w+.*)"),  # PHPUnit
    re.compile(r"\[ERROR\]\s+(?!Tests run)(?P<name>\S+)\s.*(?P<failed><<<) (?:FAILURE|ERROR)!.*"),  # Maven
    re.compile(r"(?P<name>\S+ > .+) (?P<failed>FAILED)"),  # Gradle
    re.compile(r"\s+(?P<failed>Failed) (?P<name>.+) \[[^\]]+\]"),  # dotnet
)
"""Runners that name what fails, and only count the rest."""

PATTERNS: Final = (PYTEST, UNITTEST, GO, GO_PACKAGE, CARGO, TAP, SPEC, CTEST, RSPEC, *ONLY_FAILED)
HINTS: Final = re.compile(r"PASSED|FAILED|ERROR|XPASS|\.\.\.|---|FAIL|ok |[✔✓√✖✕×●]|Test +#|rspec |\d\) |Failed ")

COUNTS: Final = (
    re.compile(r"(?P<n>\d+) (?P<word>passed|failed|errors?|skipped|xfailed|pending|todo)\b"),
    re.compile(r"[#ℹ] (?P<word>pass|fail|skipped|todo) (?P<n>\d+)"),
    re.compile(r"(?P<n>\d+) (?P<word>passing|failing|pending)\b"),
    re.compile(r"(?P<word>Passed|Failed|Skipped|succeeded|failed|skipped): +(?P<n>\d+)"),
)
SUMMARY: Final = re.compile(
    r"(=+ .* in [\d.]+m?s.*=+)|(\s*Tests:? .*)|(test result: .*)|([#ℹ] (?:pass|fail|skipped|todo) \d+)|"
    r"(\s*\d+ (?:passing|failing|pending).*)|(\d+ passed.* in [\d.]+s.*)|((?:ok|FAILED) \| \d+ passed.*)|"
    r"((?:Passed|Failed|Skipped)! +- Failed: .*)|(\s*Test summary: total: .*)"
)
PASSED: Final = frozenset({"passed", "pass", "passing", "succeeded"})
FAILED: Final = frozenset({"failed", "fail", "failing", "error", "errors", "failures", "failure"})

TOTALS: Final = re.compile(
    r"(?:\[\w+\]\s+)?Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: \d+\s*"  # Maven
    r"|Tests: (\d+), Assertions: \d+.*|OK \((\d+) tests?, \d+ assertions?\)"  # PHPUnit
    r"|(\d+) examples?, \d+ failures?.*"  # rspec
    r"|(\d+) runs, \d+ assertions, .*"  # minitest
    r"|(?:\d+ (?:doctests?|properties|property), )*(\d+) tests?, \d+ failures?.*"  # ExUnit
    r"|Ran (\d+) tests? in [\d.]+s|(?:OK|FAILED) \((?:[a-z ]+=\d+(?:, )?)+\)"  # unittest, in two lines
)
"""Lines that say how many tests there were, and how many of them did not pass."""

NOT_PASSED: Final = re.compile(
    r"(?P<word>expected failures|unexpected successes|failures|errors|skipped|incomplete|risky)[:=] ?(?P<n>\d+)"
    r"|(?P<n2>\d+) (?P<word2>failures?|errors?|failed|skipped|skips|pending|excluded)\b",
    re.IGNORECASE,
)


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
    for line in DESCRIBED.sub(r"\1 ", text).splitlines():
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
        if len(line) > LONGEST:
            continue
        whole = TOTALS.fullmatch(line)
        if whole is not None:
            total = total.plus(_less(next((one for one in whole.groups() if one), "0"), line))
        elif SUMMARY.fullmatch(line):
            total = total.plus(_said(line))
    return evolve(total, passed=max(0, total.passed))


def _said(line: str) -> Counts:
    """What passed, failed and was skipped, each with its number; the first form that is there."""
    every = ([_count(one["word"], int(one["n"][:9])) for one in pattern.finditer(line)] for pattern in COUNTS)
    found = Counts()
    for one in next(filter(None, every), []):
        found = found.plus(one)
    return found


def _less(whole: str, line: str) -> Counts:
    """What passed is what is left of all. Where that stands in another line, it is less than nothing here."""
    found = Counts(passed=int(whole[:9]))
    for one in NOT_PASSED.finditer(line):
        less = _count(one["word"] or one["word2"], int((one["n"] or one["n2"])[:9]))
        found = found.plus(evolve(less, passed=-less.failed - less.skipped))
    return found


def _count(word: str, number: int) -> Counts:
    small = word.lower()
    if small in PASSED:
        return Counts(passed=number)
    return Counts(failed=number) if small in FAILED else Counts(skipped=number)
