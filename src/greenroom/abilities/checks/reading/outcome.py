"""What came of a check: its output and how it ended, read together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from greenroom.abilities.checks.reading.findings import findings
from greenroom.abilities.checks.reading.junit import junit
from greenroom.abilities.checks.reading.lines import counted, named
from greenroom.core.base.records import record
from greenroom.core.ports.checks import AS_A_WHOLE, Check, Ending, Word
from greenroom.core.ports.commands import Ended

NO_PROGRAM: Final = re.compile(
    r"(?P<said>.*(?:: not found|: command not found|No module named [\w.'\"]+|Missing script:? .+"
    r"|No rule to make target .+|No such file or directory|executable file not found.*))"
)
NO_TESTS: Final = re.compile(
    r"no tests (?:ran|found|were found)|collected 0 items|Ran 0 tests|No test files found", re.IGNORECASE
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


@record
class Read:
    """What a run says. `exact` ones have it from a report that the runner made."""

    outcome: Ending
    reason: str = ""
    tests: Mapping[str, Word] = {}
    passed: int = 0
    skipped: int = 0
    exact: bool = False


def outcome(check: Check, ended: Ended, text: str, report: str = "") -> Read:
    """`text` is what it printed, `report` one in JUnit's form if it made one. Whoever ends well has passed."""
    if ended.how != "exited" or ended.code is None:
        return Read(outcome="could_not_run", reason=_cut_off(ended, check.seconds))
    exact = junit(report) if check.kind == "test" else {}
    tests, passed, skipped = _tests(check, text, exact)
    failing = any(word == "failed" for word in tests.values())
    reason = "" if failing or passed else _reason(check, ended.code, text)
    if reason:
        return Read(outcome="could_not_run", reason=reason, tests=tests, skipped=skipped, exact=bool(exact))
    if ended.code == 0 and not (failing and report):
        # A line that looks like a failure is none where the runner ends well; one in a report is, whatever hides it.
        tests = {name: word for name, word in tests.items() if word != "failed"}
        return Read(outcome="passed", tests=tests, passed=passed, skipped=skipped, exact=bool(exact))
    if not failing and exact and passed and LOW_COVERAGE.search(text):
        return Read(outcome="passed", reason=UNCOVERED, tests=tests, passed=passed, skipped=skipped, exact=True)
    if not failing:
        tests = {**tests, AS_A_WHOLE: "failed"}
    return Read(outcome="failed", tests=tests, passed=passed, skipped=skipped, exact=bool(exact))


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
    if counts.failed > failed:
        known[AS_A_WHOLE] = "failed"  # more failed than have a name
    return known, max(passed, counts.passed), max(skipped, counts.skipped)


def _cut_off(ended: Ended, seconds: int) -> str:
    match ended.how:
        case "timed_out":
            return f"It did not come to an end within {seconds} s."
        case "signalled":
            return f"It was killed by signal {ended.signal}."
        case "cancelled":
            return "It was stopped before its end."
        case _:
            return "Nobody knows how it ended: what looked after it was killed."


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
