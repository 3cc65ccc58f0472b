"""Reads the result of a check from its output, its JUnit report if there is one, and its exit.

Compared with the baseline, only new failures count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final
from xml.etree.ElementTree import Element, ParseError, XMLParser

from greenroom.core.ports.checks import (
    MAX_NAME_CHARS,
    MAX_NAMES_PER_LIST,
    WHOLE_CHECK,
    Check,
    CheckComparison,
    CheckReport,
    CheckResult,
    CheckRun,
    TestStatus,
)
from greenroom.core.ports.commands import CommandEnded

MAX_LINE_CHARS: Final = 2_000
"""Maximum characters of a line that can name a test."""

STATUS_WORDS: Final[dict[str, TestStatus]] = {
    **dict.fromkeys(("PASSED", "XPASS", "ok", "PASS", "Passed", "✔", "✓", "√", "passed"), "passed"),
    **dict.fromkeys(("FAILED", "ERROR", "FAIL", "not ok", "Failed", "✖", "✕", "×", "failed", "Timeout"), "failed"),
    **dict.fromkeys(("SKIPPED", "XFAIL", "skipped", "SKIP", "ignored", "Not Run", "Skipped", "expected"), "skipped"),
}

PYTEST: Final = re.compile(r"(?P<word>PASSED|FAILED|ERROR|XPASS) (?P<name>[^\s:]+\.\w+(?:::.+| - .+)?)")
UNITTEST: Final = re.compile(r"(?P<name>\w+ \([\w.<>]+\)).*? \.\.\. (?P<word>ok|FAIL|ERROR|skipped|expected)\b.*")
UNITTEST_DESCRIPTION: Final = re.compile(r"^(\w+ \([\w.<>]+\))\n(?=.* \.\.\. )", re.MULTILINE)
"""A unittest test with a docstring, which is on the next line."""

GO: Final = re.compile(r"\s*--- (?P<word>PASS|FAIL|SKIP): (?P<name>\S+)(?: \([\d.]+s\))?")
GO_PACKAGE: Final = re.compile(
    r"(?P<word>FAIL|ok)\s+(?P<name>[\w./@-]+)\s+(?:\[[a-z]+ failed\]|[\d.]+s|\(cached\))(?:\s+coverage: .*)?"
)
JEST_FILE: Final = re.compile(r"(?P<word>FAIL|PASS) (?P<name>[^\s:]+\.\w+)(?: \([\d.]+ m?s\))?")
CARGO: Final = re.compile(r"test (?P<name>\S+(?: - .+?)?)(?: - should panic)? \.\.\. (?P<word>ok|FAILED|ignored).*")
TAP: Final = re.compile(
    r"\s*(?P<word>not ok|ok) \d+ - (?P<name>.+?)(?P<skip>\s+# (?:SKIP|TODO)\b.*)?(?:\s+# time=\S+)?"
)
SPEC: Final = re.compile(
    r"\s*(?P<word>[✔✓√✖✕×]) (?!failing tests:|\d+ problems?\b|.*\(\d+ tests?\b)(?P<name>.+?)"
    r"(?: \(?[\d.]+ ?m?s\)?)?(?P<skip> # SKIP)?"
)
"""Excludes vitest's line about a file (`✓ src/a.test.ts (7 tests) 3ms`), node's heading above failures, and eslint's
sum."""

CTEST: Final = re.compile(
    r"\s*\d+/\d+ Test\s+#\d+: (?P<name>.+?) \.+\s*(?:\*\*\*)?(?P<word>Passed|Failed|Not Run|Timeout|Skipped)\b.*"
)
RSPEC: Final = re.compile(r"(?P<failed>rspec) (?P<name>(?:\./\S+?:\d+|'[^']+') # .+)")
ONLY_FAILED: Final = (
    re.compile(r"(?P<failed>FAIL|ERROR): (?P<name>\w+ \([\w.<>]+\))"),  # unittest
    re.compile(r"\s*(?P<failed>●) (?!Console\b)(?:.* › )?(?P<name>.+)"),  # jest
    re.compile(r" {4,}(?P<failed>\d+)\) (?P<name>\S.*)"),  # mocha
    re.compile(r"(?P<failed>\d+)\) (?P<name>[\w\\]+::\w+.*)"),  # PHPUnit
    re.compile(r"\[ERROR\]\s+(?!Tests run)(?P<name>\S+)\s.*(?P<failed><<<) (?:FAILURE|ERROR)!.*"),  # Maven
    re.compile(r"(?P<name>\S+ > .+) (?P<failed>FAILED)"),  # Gradle
    re.compile(r"\s+(?P<failed>Failed) (?P<name>.+) \[[^\]]+\]"),  # dotnet
)
"""Runners that name only the failures and count the rest."""

LINE_NUMBER: Final = re.compile(r":\d+(?= # )| \(line \d+\)|\b(?:on|from|at) line \d+")
"""The line number in a name. Without it, a shifted test or finding keeps its name."""

TEST_LINE_PATTERNS: Final = (PYTEST, UNITTEST, GO, GO_PACKAGE, JEST_FILE, CARGO, TAP, SPEC, CTEST, RSPEC, *ONLY_FAILED)
TEST_LINE_HINTS: Final = re.compile(
    r"PASS|FAILED|ERROR|XPASS|\.\.\.|---|FAIL|ok |[✔✓√✖✕×●]|Test +#|rspec |\d\) |Failed "
)

COUNT_PATTERNS: Final = (
    re.compile(r"(?P<n>\d+) (?P<word>passed|failed|errors?|skipped|xfailed|pending|todo)\b"),
    re.compile(r"[#ℹ] (?P<word>pass|fail|skipped|todo) (?P<n>\d+)"),
    re.compile(r"(?P<n>\d+) (?P<word>passing|failing|pending)\b"),
    re.compile(r"(?P<word>Passed|Failed|Skipped|succeeded|failed|skipped): +(?P<n>\d+)"),
)
SUMMARY_LINE: Final = re.compile(
    r"(=+ .* in [\d.]+m?s.*=+)|(\s*Tests:? .*)|(test result: .*)|([#ℹ] (?:pass|fail|skipped|todo) \d+)|"
    r"(\s*\d+ (?:passing|failing|pending).*)|(\d+ passed.* in [\d.]+s.*)|((?:ok|FAILED) \| \d+ passed.*)|"
    r"((?:Passed|Failed|Skipped)! +- Failed: .*)|(\s*Test summary: total: .*)"
)
PASSED_WORDS: Final = frozenset({"passed", "pass", "passing", "succeeded"})
FAILED_WORDS: Final = frozenset({"failed", "fail", "failing", "error", "errors", "failures", "failure"})

TOTALS_LINE: Final = re.compile(
    r"(?:\[\w+\]\s+)?Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: \d+\s*"  # Maven
    r"|Tests: (\d+), Assertions: \d+.*|OK \((\d+) tests?, \d+ assertions?\)"  # PHPUnit
    r"|(\d+) examples?, \d+ failures?.*"  # rspec
    r"|(\d+) runs, \d+ assertions, .*"  # minitest
    r"|(?:\d+ (?:doctests?|properties|property), )*(\d+) tests?, \d+ failures?.*"  # ExUnit
    r"|Ran (\d+) tests? in [\d.]+s|(?:OK|FAILED) \((?:[a-z ]+=\d+(?:, )?)+\)"  # unittest, in two lines
)
"""Lines that say how many tests ran, and how many did not pass."""

NOT_PASSED_COUNT: Final = re.compile(
    r"(?P<word>expected failures|unexpected successes|failures|errors|skipped|incomplete|risky)[:=] ?(?P<n>\d+)"
    r"|(?P<n2>\d+) (?P<word2>failures?|errors?|failed|skipped|skips|pending|excluded)\b",
    re.IGNORECASE,
)


def find_test_names(text: str) -> dict[str, TestStatus]:
    """Return the tests that the lines name. Of a test that is named twice, the worse result counts."""
    found: dict[str, TestStatus] = {}
    explained, equal = False, Counter[str]()
    for line in UNITTEST_DESCRIPTION.sub(r"\1 ", text).splitlines():
        if len(line) > MAX_LINE_CHARS or not TEST_LINE_HINTS.search(line):
            continue
        package = GO_PACKAGE.fullmatch(line.rstrip())
        if package is None:
            explained = explained or line.lstrip().startswith("--- FAIL:")
        elif package["word"] == "FAIL" and not explained and not line.rstrip().endswith("]"):
            found[f"{package['name']} (names no test)"] = "failed"  # a failure outside its tests
            continue
        else:
            explained = False
        for name, word in _match_test_line(line.rstrip(), equal):
            if found.get(name) != "failed":
                found[name] = word
    return found


def _match_test_line(line: str, equal: Counter[str]) -> Iterator[tuple[str, TestStatus]]:
    for pattern in TEST_LINE_PATTERNS:
        match = pattern.fullmatch(line)
        if match is None:
            continue
        parts = match.groupdict()
        word: TestStatus = "failed" if "failed" in parts else STATUS_WORDS[parts["word"]]
        name = strip_pytest_reason(parts["name"]) if pattern is PYTEST else LINE_NUMBER.sub("", parts["name"])
        if pattern is not PYTEST and name != parts["name"]:  # several may differ only in the number
            equal[name] += 1
            name = f"{name} ({equal[name]})" if equal[name] > 1 else name
        yield name, "skipped" if parts.get("skip") else word
        return


def strip_pytest_reason(name: str) -> str:
    """Return a test's id without pytest's text after it. A parameter may contain the separator."""
    begin, bracket, rest = name.partition("[")
    if not bracket or " - " in begin:
        return name.partition(" - ")[0]
    inside, closed, _ = rest.partition("] - ")
    return f"{begin}[{inside}]" if closed else name


def count_tests(text: str) -> Counter[TestStatus]:
    """Return the counts in the runners' summaries, added up over several runs."""
    total: Counter[TestStatus] = Counter()
    for line in text.splitlines():
        if len(line) > MAX_LINE_CHARS:
            continue
        whole = TOTALS_LINE.fullmatch(line)
        if whole is not None:
            # What passed is the rest of the total. If the total is on another line, it is negative here.
            total["passed"] += int(next((item for item in whole.groups() if item), "0")[:9])
            for item in NOT_PASSED_COUNT.finditer(line):
                number = int((item["n"] or item["n2"])[:9])
                total[_classify_word(item["word"] or item["word2"])] += number
                total["passed"] -= number
        elif SUMMARY_LINE.fullmatch(line):
            matches_by_form = (list(pattern.finditer(line)) for pattern in COUNT_PATTERNS)
            for item in next(filter(None, matches_by_form), []):  # the first pattern that matches
                total[_classify_word(item["word"])] += int(item["n"][:9])
    total["passed"] = max(0, total["passed"])
    return total


def _classify_word(word: str) -> TestStatus:
    small = word.lower()
    return "passed" if small in PASSED_WORDS else "failed" if small in FAILED_WORDS else "skipped"


FINDING_AT: Final = re.compile(
    r"(?P<file>[\w./\\@+-]+\.\w+)(?::\d+(?::\d+)?(?:-\d+)?|\(\d+,\d+\)):?\s+(?:-\s+)?(?P<said>\S.*)"
)
"""mypy, ruff (concise), flake8, pyright, tsc, gcc, go vet, rubocop."""

FINDING_ARROW: Final = re.compile(r"\s*--> (?P<file>[\w./\\@+-]+\.\w+):\d+:\d+")
"""ruff (full), clippy: the message is on the line before."""

FINDING_UNDER_FILE: Final = re.compile(r"\s+\d+:\d+\s+(?P<said>(?:error|warning)\s+\S.*)")
"""eslint: the file is on its own line above."""

FILE_LINE: Final = re.compile(r"(?:/|\./)?[\w./\\@+ -]+\.\w{1,5}")
IGNORED_PREFIXES: Final = ("note:", "warning:", "warning ")


def parse_findings(text: str) -> dict[str, TestStatus]:
    """Return all findings of a linter. Equal ones in a file are numbered."""
    counts: Counter[str] = Counter()
    file = before = ""
    for line in text.splitlines():
        if len(line) > MAX_LINE_CHARS:
            continue
        finding = _parse_finding(line, file, before)
        if finding:
            counts[finding] += 1
        elif FILE_LINE.fullmatch(line.strip()):
            file = line.strip()
        before = line.strip() or before
    return {f"{name} ({n})" if n > 1 else name: "failed" for name in counts for n in range(1, counts[name] + 1)}


def _parse_finding(line: str, file: str, before: str) -> str:
    at = FINDING_AT.fullmatch(line)
    if at is not None:
        if at["said"].startswith(IGNORED_PREFIXES):
            return ""
        return f"{at['file']}: {LINE_NUMBER.sub('', ' '.join(at['said'].split()))}"
    arrow = FINDING_ARROW.fullmatch(line)
    if arrow is not None:
        return f"{arrow['file']}: {before}"
    under = FINDING_UNDER_FILE.fullmatch(line)
    if under is not None and file and under["said"].startswith("error"):
        return f"{file}: {' '.join(under['said'].split())}"
    return ""


FORBIDDEN_XML: Final = ("<!DOCTYPE", "<!ENTITY")
"""XML that no report contains and that would cost a parser much work."""


def parse_junit(text: str) -> dict[str, TestStatus]:
    """Return every test by id; empty if the text is not a JUnit report. The worse of two results counts."""
    found: dict[str, TestStatus] = {}
    if any(word in text for word in FORBIDDEN_XML):
        return found
    parser = XMLParser()
    try:
        parser.feed(text)
        cases = list(parser.close().iter("testcase"))
    except (ParseError, ValueError, RecursionError):
        return found
    files = filter(None, (testcase.get("file", "") for testcase in cases))
    modules = {file.removesuffix(".py").replace("\\", "/").replace("/", "."): file for file in files}
    for case in cases:
        name, tags = _build_test_id(case, modules), {child.tag for child in case}
        if tags & {"failure", "error"}:
            found[name] = "failed"
        elif found.get(name) != "failed":
            found[name] = "skipped" if "skipped" in tags else "passed"
    return found


def _build_test_id(case: Element, modules: dict[str, str]) -> str:
    """Return a test's id as pytest accepts it. An inherited test is in another file than its class: the longest known
    module is its file. Without one, the id is only a name."""
    classes, name = case.get("classname", ""), case.get("name", "")
    if not classes:  # a file that could not be collected
        return modules.get(name, name)
    parts = classes.split(".")
    for count in range(len(parts), 0, -1):
        file = modules.get(".".join(parts[:count]))
        if file is not None:
            return "::".join((file, *parts[count:], name))
    return f"{classes}::{name}"


MISSING_PROGRAM: Final = re.compile(
    r"(?P<said>.*(?:: not found|: command not found|No module named [\w.'\"]+|Missing script:? .+"
    r"|No rule to make target .+|No such file or directory|executable file not found.*))"
)
NOT_FOUND: Final = re.compile(r"^.*?([^:\s]+): (?:command )?not found$")
NO_TESTS: Final = re.compile(
    r"no tests (?:ran|found|were found|to run|executed)|collected 0 items|Ran 0 tests|No test files(?: found|\])"
    r"|running 0 tests|^. tests 0$|Tests run: 0,|\b0 examples\b",
    re.IGNORECASE | re.MULTILINE,
)
LOW_COVERAGE: Final = re.compile(
    r"^(?:FAIL Required test coverage of [\d.]+% not reached|ERROR: Coverage failure: total of)", re.MULTILINE
)
"""What pytest-cov prints if all tests pass but the coverage is too low."""

LOW_COVERAGE_REASON: Final = "The tests pass; a coverage threshold is not reached, but that is not a test."

PYTEST_NO_TESTS_EXIT: Final = 5
MISSING_PROGRAM_EXITS: Final = (126, 127)
REASON_TAIL_CHARS: Final = 4_000
"""Characters at the end of an output that are searched for the reason."""


def read_outcome(check: Check, ended: CommandEnded, text: str, report: str = "") -> CheckRun:
    """Return the result of a check. `text` is its output, `report` its JUnit report, if any.

    A runner that exits with 0 has passed. The caller adds the tree and the stored output.
    """
    ran = partial(CheckRun, check=check.name, digest=check.digest, kind=check.kind, exit=ended.code)
    ran = partial(ran, seconds=round(ended.seconds, 2))
    if ended.how != "exited" or ended.code is None:
        reasons = {
            "timed_out": f"It did not finish within {check.seconds} s.",
            "signalled": f"It was killed by signal {ended.signal}.",
            "cancelled": "It was stopped before it finished.",
        }
        lost = "Its end is unknown: its supervisor was killed."
        return ran(outcome="could_not_run", reason=reasons.get(ended.how, lost))
    exact = parse_junit(report) if check.kind == "test" else {}
    tests, passed, skipped = _read_tests(check, text, exact)
    ran = partial(ran, skipped=skipped, exact=bool(exact))
    failed = any(word == "failed" for word in tests.values())
    reason = "" if failed or passed else "It skipped all tests." if skipped else _find_reason(check, ended.code, text)
    if reason:
        return ran(outcome="could_not_run", reason=reason, tests=tests)
    if ended.code == 0 and not (failed and report):
        # If the runner exits with 0, a line that looks like a failure is ignored; a failure in its report counts.
        tests = {name: word for name, word in tests.items() if word != "failed"}
        return ran(outcome="passed", tests=tests, passed=passed)
    if not failed and exact and passed and LOW_COVERAGE.search(text):
        return ran(outcome="passed", reason=LOW_COVERAGE_REASON, tests=tests, passed=passed)
    return ran(outcome="failed", tests=tests if failed else {**tests, WHOLE_CHECK: "failed"}, passed=passed)


def _read_tests(check: Check, text: str, exact: dict[str, TestStatus]) -> tuple[dict[str, TestStatus], int, int]:
    """Return the tests by id, and how many passed and were skipped, including unnamed ones."""
    if check.kind != "test":
        return (parse_findings(text) if check.kind in ("lint", "types") else {}), 0, 0
    known = exact or find_test_names(text)
    passed = sum(word == "passed" for word in known.values())
    skipped = sum(word == "skipped" for word in known.values())
    if exact:
        return known, passed, skipped
    counts = count_tests(text)
    failed = sum(word == "failed" for word in known.values())
    if counts["failed"] > failed:
        known[WHOLE_CHECK] = "failed"  # more tests failed than are named
    return known, max(passed, counts["passed"]), max(skipped, counts["skipped"])


def _find_reason(check: Check, code: int, text: str) -> str:
    """Return why a check that names no test could not really run; empty if it just failed or passed."""
    tail = text[-REASON_TAIL_CHARS:]
    if check.kind == "test" and (code == PYTEST_NO_TESTS_EXIT or NO_TESTS.search(tail)):
        return "It found no tests."
    if code == 0:
        return ""
    match = next((found for line in reversed(tail.splitlines()) if (found := MISSING_PROGRAM.search(line[:500]))), None)
    if code in MISSING_PROGRAM_EXITS:
        return "A program is missing: " + NOT_FOUND.sub(r"\1", _read_last_line(match["said"] if match else tail))
    if match is not None and ("No module named" in match["said"] or "Missing script" in match["said"]):
        return f"Something that it needs is missing: {_read_last_line(match['said'])}"
    if match is not None and "No rule to make target" in match["said"]:
        return f"There is no such target any more: {_read_last_line(match['said'])}"
    return ""


def _read_last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "it does not say which")[:300]


AVA_SEPARATOR: Final = " › "
"""ava prefixes a test's title with the file's name once there is a second file: `test › counts`."""


def compare(base: CheckRun, now: CheckRun, flaky: Collection[str] = ()) -> CheckComparison:
    """Compare a run with the baseline. `flaky` are names that failed and then passed without a change."""
    failed_tests = now.failed_tests - frozenset(flaky)
    old = {name for name in failed_tests if has_failed_before(name, base)}
    new = failed_tests - old
    if now.outcome == "could_not_run" and base.outcome != "could_not_run":
        new |= {WHOLE_CHECK}
    ran = now.outcome != "could_not_run"
    passes_again = {
        name for name in base.failed_tests if ran and not any(is_same_test(name, other) for other in now.failed_tests)
    }
    gone: set[str] = set()
    if ran and _has_all_names(base) and _has_all_names(now):
        passed = [name for name, word in base.tests.items() if word == "passed"]
        gone = {name for name in passed if now.tests.get(name, "skipped") == "skipped"}
    sorts = {"new": new, "old": old, "mended": passes_again, "gone": gone}
    counts = {sort: len(names) for sort, names in sorts.items() if len(names) > MAX_NAMES_PER_LIST}
    return CheckComparison(
        new=limit_names(new),
        old=limit_names(old),
        mended=limit_names(passes_again),
        flaky=limit_names(flaky),
        gone=limit_names(gone),
        counts=counts,
    )


def _has_all_names(ran: CheckRun) -> bool:
    """Return whether every test that passed has a name."""
    return ran.exact or ran.passed == sum(word == "passed" for word in ran.tests.values())


def has_failed_before(name: str, base: CheckRun) -> bool:
    """Return whether this test, or its whole file, failed on the base too."""
    if any(is_same_test(name, other) for other in base.failed_tests):
        return True
    return name.partition("::")[0] in base.failed_tests


def is_same_test(name: str, other: str) -> bool:
    """Return whether two names mean the same test: one may have the file's name before it."""
    return name == other or name.endswith(f"{AVA_SEPARATOR}{other}") or other.endswith(f"{AVA_SEPARATOR}{name}")


def has_names(ran: CheckRun) -> bool:
    """Return whether every failure of a run has a name. An exit code or a count of failures gives none."""
    return WHOLE_CHECK not in ran.failed_tests


def limit_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return as many names as a report keeps."""
    return tuple(shorten_name(name) for name in sorted(names)[:MAX_NAMES_PER_LIST])


def shorten_name(name: str) -> str:
    """Shorten a test's name for a report: some runners include whole arguments."""
    return name[:MAX_NAME_CHARS]


def describe_report(report: CheckReport) -> str:
    """Describe a report in one line: `pytest: 212 pass, 1 already fails`."""
    return "; ".join(f"{entry.check}: {_describe_counts(entry)}" for entry in report.checks) or "no check was run"


def _describe_counts(entry: CheckResult) -> str:
    if entry.outcome == "could_not_run":
        return f"could not run ({entry.reason.rstrip('.')})"
    known = entry.compared
    new = known.count("new") if known is not None else 0
    old = known.count("old") if known is not None else entry.failing
    parts = [f"{entry.passed} pass" if entry.passed else "passes" if not entry.failing else ""]
    parts += [f"{new} newly fail{'s' if new == 1 else ''}"] if new else []
    parts += [f"{old} already fail{'s' if old == 1 else ''}"] if old else []
    parts += [f"{entry.skipped} skipped"] if entry.skipped else []
    return ", ".join(filter(None, parts))


MAX_EXCERPT_LINES: Final = 30
"""Maximum lines of an excerpt."""

MAX_EXCERPT_LINE_CHARS: Final = 240
DRAWN_LINE: Final = re.compile(r"([=_!*─-])\1{5,}")
"""Lines that runners draw."""

TELLING_LINE: Final = re.compile(
    r"^E\s|\bError\b|\bFAIL|\bfailed\b|AssertionError|panicked at|✖|✕|not ok|error[:\[]|^>\s|expected|Traceback",
    re.IGNORECASE,
)


def build_excerpt(text: str, failed_tests: Sequence[str] = ()) -> str:
    """Return the most relevant lines in their order, preferring those about failing tests."""
    lines = [DRAWN_LINE.sub(r"\1\1\1", line)[:MAX_EXCERPT_LINE_CHARS] for line in text.splitlines() if line.strip()]
    if len(lines) <= MAX_EXCERPT_LINES:
        return "\n".join(lines)
    ranked = _rank_lines(lines, failed_tests)
    if not ranked:
        return "\n".join(("…", *lines[-MAX_EXCERPT_LINES:]))
    chosen = sorted(ranked[:MAX_EXCERPT_LINES])
    excerpt: list[str] = []
    for before, at in zip((-1, *chosen), chosen, strict=False):
        excerpt += ["…"] if at > before + 1 and excerpt else []
        excerpt.append(lines[at])
    return "\n".join(excerpt[: MAX_EXCERPT_LINES + 10])


def _rank_lines(lines: Sequence[str], failed_tests: Sequence[str]) -> list[int]:
    """Return the indexes of relevant lines, the most relevant first."""
    short = {name.rpartition("::")[2] or name for name in failed_tests}
    naming = [at for at, line in enumerate(lines) if any(name in line for name in list(short)[:20])]
    relevant = [at for at, line in enumerate(lines) if TELLING_LINE.search(line)]
    near = [at for place in naming[:3] for at in range(place, min(place + 12, len(lines)))]
    return list(dict.fromkeys((*near, *relevant, *naming)))
