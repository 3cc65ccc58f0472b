"""What came of a check: its output, a JUnit report if it made one, and how it ended, read together.

Beside the result on the base only what newly fails counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final
from xml.etree.ElementTree import Element, ParseError, XMLParser

from greenroom.core.ports.checks import (
    AS_A_WHOLE,
    LONGEST_NAME,
    NAMED,
    Check,
    Checked,
    Compared,
    Ran,
    Report,
    Word,
)
from greenroom.core.ports.commands import Ended

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
"""Not what vitest says of a file (`✓ src/a.test.ts (7 tests) 3ms`), what node puts above those that fail, or the sum
that eslint prints."""

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
"""Runners that name what fails, and only count the rest."""

DIED: Final = "names no test"
LINE_NUMBER: Final = re.compile(r":\d+(?= # )| \(line \d+\)|\b(?:on|from|at) line \d+")
"""Where a test or a finding stands; another line above it would make it another one."""

PATTERNS: Final = (PYTEST, UNITTEST, GO, GO_PACKAGE, JEST_FILE, CARGO, TAP, SPEC, CTEST, RSPEC, *ONLY_FAILED)
HINTS: Final = re.compile(r"PASS|FAILED|ERROR|XPASS|\.\.\.|---|FAIL|ok |[✔✓√✖✕×●]|Test +#|rspec |\d\) |Failed ")

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


def named(text: str) -> dict[str, Word]:
    """The tests that lines name. Of one that is told of twice the worse counts."""
    found: dict[str, Word] = {}
    explained, equal = False, Counter[str]()
    for line in DESCRIBED.sub(r"\1 ", text).splitlines():
        if len(line) > LONGEST or not HINTS.search(line):
            continue
        package = GO_PACKAGE.fullmatch(line.rstrip())
        if package is None:
            explained = explained or line.lstrip().startswith("--- FAIL:")
        elif package["word"] == "FAIL" and not explained and not line.rstrip().endswith("]"):
            found[f"{package['name']} ({DIED})"] = "failed"  # another failure than one of its tests
            continue
        else:
            explained = False
        for name, word in _named(line.rstrip(), equal):
            if found.get(name) != "failed":
                found[name] = word
    return found


def _named(line: str, equal: Counter[str]) -> Iterator[tuple[str, Word]]:
    for pattern in PATTERNS:
        match = pattern.fullmatch(line)
        if match is None:
            continue
        parts = match.groupdict()
        word: Word = "failed" if "failed" in parts else WORDS[parts["word"]]
        name = plain(parts["name"]) if pattern is PYTEST else LINE_NUMBER.sub("", parts["name"])
        if pattern is not PYTEST and name != parts["name"]:  # several may differ in the number only
            equal[name] += 1
            name = f"{name} ({equal[name]})" if equal[name] > 1 else name
        yield name, "skipped" if parts.get("skip") else word
        return


def plain(name: str) -> str:
    """A test's id without what pytest says after it. A parameter may hold what comes between."""
    begin, bracket, rest = name.partition("[")
    if not bracket or " - " in begin:
        return name.partition(" - ")[0]
    inside, closed, _ = rest.partition("] - ")
    return f"{begin}[{inside}]" if closed else name


def counted(text: str) -> Counter[Word]:
    """What the runners' last words say; of several runs all together."""
    total: Counter[Word] = Counter()
    for line in text.splitlines():
        if len(line) > LONGEST:
            continue
        whole = TOTALS.fullmatch(line)
        if whole is not None:
            # What passed is what is left of all. Where that stands in another line, it is less than nothing here.
            total["passed"] += int(next((one for one in whole.groups() if one), "0")[:9])
            for one in NOT_PASSED.finditer(line):
                number = int((one["n"] or one["n2"])[:9])
                total[_kind(one["word"] or one["word2"])] += number
                total["passed"] -= number
        elif SUMMARY.fullmatch(line):
            every = (list(pattern.finditer(line)) for pattern in COUNTS)
            for one in next(filter(None, every), []):  # the first form that is there
                total[_kind(one["word"])] += int(one["n"][:9])
    total["passed"] = max(0, total["passed"])
    return total


def _kind(word: str) -> Word:
    small = word.lower()
    return "passed" if small in PASSED else "failed" if small in FAILED else "skipped"


AT: Final = re.compile(r"(?P<file>[\w./\\@+-]+\.\w+)(?::\d+(?::\d+)?(?:-\d+)?|\(\d+,\d+\)):?\s+(?:-\s+)?(?P<said>\S.*)")
"""mypy, ruff (concise), flake8, pyright, tsc, gcc, go vet, rubocop."""

ARROW: Final = re.compile(r"\s*--> (?P<file>[\w./\\@+-]+\.\w+):\d+:\d+")
"""ruff (full), clippy: what is said stands in the line before."""

UNDER: Final = re.compile(r"\s+\d+:\d+\s+(?P<said>(?:error|warning)\s+\S.*)")
"""eslint: the file stands in a line of its own above."""

FILE: Final = re.compile(r"(?:/|\./)?[\w./\\@+ -]+\.\w{1,5}")
QUIET: Final = ("note:", "warning:", "warning ")


def findings(text: str) -> dict[str, Word]:
    """All findings; of equal ones in one file each has its number."""
    every: Counter[str] = Counter()
    file = before = ""
    for line in text.splitlines():
        if len(line) > LONGEST:
            continue
        said = _finding(line, file, before)
        if said:
            every[said] += 1
        elif FILE.fullmatch(line.strip()):
            file = line.strip()
        before = line.strip() or before
    return {f"{name} ({n})" if n > 1 else name: "failed" for name in every for n in range(1, every[name] + 1)}


def _finding(line: str, file: str, before: str) -> str:
    at = AT.fullmatch(line)
    if at is not None:
        return (
            "" if at["said"].startswith(QUIET) else f"{at['file']}: {LINE_NUMBER.sub('', ' '.join(at['said'].split()))}"
        )
    arrow = ARROW.fullmatch(line)
    if arrow is not None:
        return f"{arrow['file']}: {before}"
    under = UNDER.fullmatch(line)
    if under is not None and file and under["said"].startswith("error"):
        return f"{file}: {' '.join(under['said'].split())}"
    return ""


FORBIDDEN: Final = ("<!DOCTYPE", "<!ENTITY")
"""What no report has, and what would make a parser do much work."""


def junit(text: str) -> dict[str, Word]:
    """Every test by its id; empty when it is no such report. Of a test that is told of twice the worse counts."""
    found: dict[str, Word] = {}
    if any(word in text for word in FORBIDDEN):
        return found
    parser = XMLParser()
    try:
        parser.feed(text)
        cases = list(parser.close().iter("testcase"))
    except (ParseError, ValueError, RecursionError):
        return found
    files = filter(None, (one.get("file", "") for one in cases))
    modules = {file.removesuffix(".py").replace("\\", "/").replace("/", "."): file for file in files}
    for case in cases:
        name, tags = _id(case, modules), {child.tag for child in case}
        if tags & {"failure", "error"}:
            found[name] = "failed"
        elif found.get(name) != "failed":
            found[name] = "skipped" if "skipped" in tags else "passed"
    return found


def _id(case: Element, modules: dict[str, str]) -> str:
    """As pytest is told to run it. An inherited test stands in another file than its class: then the longest known
    module is its file, and where none is known the id is only a name."""
    classes, name = case.get("classname", ""), case.get("name", "")
    if not classes:  # a file that could not be collected
        return modules.get(name, name)
    parts = classes.split(".")
    for count in range(len(parts), 0, -1):
        file = modules.get(".".join(parts[:count]))
        if file is not None:
            return "::".join((file, *parts[count:], name))
    return f"{classes}::{name}"


NO_PROGRAM: Final = re.compile(
    r"(?P<said>.*(?:: not found|: command not found|No module named [\w.'\"]+|Missing script:? .+"
    r"|No rule to make target .+|No such file or directory|executable file not found.*))"
)
NO_TESTS: Final = re.compile(
    r"no tests (?:ran|found|were found|to run|executed)|collected 0 items|Ran 0 tests|No test files(?: found|\])"
    r"|running 0 tests|^. tests 0$|Tests run: 0,|\b0 examples\b",
    re.IGNORECASE | re.MULTILINE,
)
LOW_COVERAGE: Final = re.compile(
    r"^(?:FAIL Required test coverage of [\d.]+% not reached|ERROR: Coverage failure: total of)", re.MULTILINE
)
"""What pytest-cov prints when all tests pass and too little is covered."""

UNCOVERED: Final = "The tests pass; a coverage threshold is not reached, which is not a test."

PYTEST_EMPTY: Final = 5
MISSING: Final = (126, 127)
TAIL: Final = 4_000
"""Characters at the end of an output in which the reason stands."""


def outcome(check: Check, ended: Ended, text: str, report: str = "") -> Ran:
    """How a check ended. `text` is what it printed, `report` one in JUnit's form if it made one.

    A runner that ends well has passed. What the check said on which tree is for the caller to add.
    """
    ran = partial(Ran, check=check.name, digest=check.digest, kind=check.kind, exit=ended.code)
    ran = partial(ran, seconds=round(ended.seconds, 2))
    if ended.how != "exited" or ended.code is None:
        reasons = {
            "timed_out": f"It did not come to an end within {check.seconds} s.",
            "signalled": f"It was killed by signal {ended.signal}.",
            "cancelled": "It was stopped before its end.",
        }
        lost = "Nobody knows how it ended: what looked after it was killed."
        return ran(outcome="could_not_run", reason=reasons.get(ended.how, lost))
    exact = junit(report) if check.kind == "test" else {}
    tests, passed, skipped = _tests(check, text, exact)
    ran = partial(ran, skipped=skipped, exact=bool(exact))
    failing = any(word == "failed" for word in tests.values())
    reason = "" if failing or passed else "It skipped all tests." if skipped else _reason(check, ended.code, text)
    if reason:
        return ran(outcome="could_not_run", reason=reason, tests=tests)
    if ended.code == 0 and not (failing and report):
        # A line that looks like a failure is none where the runner ends well; one in a report is, whatever hides it.
        tests = {name: word for name, word in tests.items() if word != "failed"}
        return ran(outcome="passed", tests=tests, passed=passed)
    if not failing and exact and passed and LOW_COVERAGE.search(text):
        return ran(outcome="passed", reason=UNCOVERED, tests=tests, passed=passed)
    return ran(outcome="failed", tests=tests if failing else {**tests, AS_A_WHOLE: "failed"}, passed=passed)


def _tests(check: Check, text: str, exact: dict[str, Word]) -> tuple[dict[str, Word], int, int]:
    """The tests by id, and how many passed and were skipped, also where they were not named."""
    if check.kind != "test":
        return (findings(text) if check.kind in ("lint", "types") else {}), 0, 0
    known = exact or named(text)
    passed = sum(word == "passed" for word in known.values())
    skipped = sum(word == "skipped" for word in known.values())
    if exact:
        return known, passed, skipped
    counts = counted(text)
    failed = sum(word == "failed" for word in known.values())
    if counts["failed"] > failed:
        known[AS_A_WHOLE] = "failed"  # more failed than have a name
    return known, max(passed, counts["passed"]), max(skipped, counts["skipped"])


def _reason(check: Check, code: int, text: str) -> str:
    """Why a check that names nothing could not really be run; empty when it just failed, or passed."""
    tail = text[-TAIL:]
    if check.kind == "test" and (code == PYTEST_EMPTY or NO_TESTS.search(tail)):
        return "It found no tests."
    if code == 0:
        return ""
    match = next((found for line in reversed(tail.splitlines()) if (found := NO_PROGRAM.search(line[:500]))), None)
    if code in MISSING:
        return f"A program is missing: {_last(match['said'] if match else tail)}"
    if match is not None and ("No module named" in match["said"] or "Missing script" in match["said"]):
        return f"Something that it needs is missing: {_last(match['said'])}"
    if match is not None and "No rule to make target" in match["said"]:
        return f"There is no such target any more: {_last(match['said'])}"
    return ""


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return (lines[-1] if lines else "it does not say which")[:300]


TITLE: Final = " › "
"""ava puts the file's name before a test's title once there is a second file: `test › counts`."""


def compare(base: Ran, now: Ran, flaky: Collection[str] = ()) -> Compared:
    """What newly fails, still fails, and passes again. `flaky` are names that failed and then passed, unchanged."""
    failing = now.failing - frozenset(flaky)
    old = {name for name in failing if failed_before(name, base)}
    new = failing - old
    if now.outcome == "could_not_run" and base.outcome != "could_not_run":
        new |= {AS_A_WHOLE}
    ran = now.outcome != "could_not_run"
    passes_again = {name for name in base.failing if ran and not any(same(name, other) for other in now.failing)}
    gone: set[str] = set()
    if ran and _names_all(base) and _names_all(now):
        passed = [name for name, word in base.tests.items() if word == "passed"]
        gone = {name for name in passed if now.tests.get(name, "skipped") == "skipped"}
    sorts = {"new": new, "old": old, "mended": passes_again, "gone": gone}
    counts = {sort: len(names) for sort, names in sorts.items() if len(names) > NAMED}
    return Compared(
        new=cut(new),
        old=cut(old),
        mended=cut(passes_again),
        flaky=cut(flaky),
        gone=cut(gone),
        counts=counts,
    )


def _names_all(ran: Ran) -> bool:
    """Whether every test that passed has a name."""
    return ran.exact or ran.passed == sum(word == "passed" for word in ran.tests.values())


def failed_before(name: str, base: Ran) -> bool:
    """Whether this test, or the whole file that it is in, failed on the base too."""
    if any(same(name, other) for other in base.failing):
        return True
    return name.partition("::")[0] in base.failing


def same(name: str, other: str) -> bool:
    """Whether two runs mean one test: its name may have got the file's before it."""
    return name == other or name.endswith(f"{TITLE}{other}") or other.endswith(f"{TITLE}{name}")


def has_names(ran: Ran) -> bool:
    """Whether every failure of a run has a name: an exit code, or a number of failures, has none."""
    return AS_A_WHOLE not in ran.failing


def cut(names: Iterable[str]) -> tuple[str, ...]:
    """As many names as a report keeps."""
    return tuple(shorten(name) for name in sorted(names)[:NAMED])


def shorten(name: str) -> str:
    """A test's name as a report has it: some runners print whole arguments in it."""
    return name[:LONGEST_NAME]


def describe(report: Report) -> str:
    """A report in one line: `pytest: 212 pass, 1 already fails`."""
    return "; ".join(f"{entry.check}: {_counts(entry)}" for entry in report.checks) or "no check was run"


def _counts(entry: Checked) -> str:
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


LINES: Final = 30
"""Lines of an excerpt."""

WIDE: Final = 240
RULE: Final = re.compile(r"([=_!*─-])\1{5,}")
"""Lines that runners draw."""

TELLING: Final = re.compile(
    r"^E\s|\bError\b|\bFAIL|\bfailed\b|AssertionError|panicked at|✖|✕|not ok|error[:\[]|^>\s|expected|Traceback",
    re.IGNORECASE,
)


def excerpt(text: str, failing: Sequence[str] = ()) -> str:
    """At most so many lines: those about the failing tests first, in the order in which they stand there."""
    lines = [RULE.sub(r"\1\1\1", line)[:WIDE] for line in text.splitlines() if line.strip()]
    if len(lines) <= LINES:
        return "\n".join(lines)
    wanted = _around(lines, failing)
    if not wanted:
        return "\n".join(("…", *lines[-LINES:]))
    chosen = sorted(wanted[:LINES])
    told: list[str] = []
    for before, at in zip((-1, *chosen), chosen, strict=False):
        told += ["…"] if at > before + 1 and told else []
        told.append(lines[at])
    return "\n".join(told[: LINES + 10])


def _around(lines: Sequence[str], failing: Sequence[str]) -> list[int]:
    """The places of lines that tell something, the most telling first."""
    short = {one.rpartition("::")[2] or one for one in failing}
    naming = [at for at, line in enumerate(lines) if any(one in line for one in list(short)[:20])]
    telling = [at for at, line in enumerate(lines) if TELLING.search(line)]
    near = [at for place in naming[:3] for at in range(place, min(place + 12, len(lines)))]
    return list(dict.fromkeys((*near, *telling, *naming)))
