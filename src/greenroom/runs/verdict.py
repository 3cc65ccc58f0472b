"""The verdict on a change: what each check reported on the base and reports now, as codes with data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, encode, record
from greenroom.core.ports.checks import (
    REPORT_KEY,
    WHOLE_CHECK,
    Check,
    CheckComparison,
    CheckReport,
    CheckResult,
    CheckRun,
    report_from_data,
)
from greenroom.core.state.step import Step
from greenroom.runs.output import has_names

BASELINE: Final = "baseline"
CONFIRM_UNVERIFIED: Final = "go_on_unverified"
DELIVER: Final = "deliver"
RUN_CHECKS: Final = "run_checks"
"""Names of Greenroom's own steps. All but the second run checks in a throw-away worktree of a commit."""

VERDICT_KEY: Final = "verdict"
IMPORTS_YOURS_PREFIX: Final = "The tests import your files: "
"""The beginning of the reason why a check could not run on the base: it would judge the person's files."""

COMMIT_KEY: Final = "commit"
"""The key of the commit with a call's changes in its result."""

TREE_KEY: Final = "tree"
BASE_KEY: Final = "base"
"""The key of the commit that a worktree starts from, in the result of the step that opened it."""

THREAD_KEY: Final = "thread"
"""The key of a subtask's worktree in the result of the step that opened it."""

HAND_IN: Final = "hand_in"
MERGE: Final = "merge"
FINISH_MERGE: Final = "finish_merge"
MERGE_QUEUE: Final = AgentId("merge-queue")
"""Merges the work of specialists, one at a time."""

SENT_BACK_KEY: Final = "sent_back"
"""The key of the round in the result of a merge that went back to its author: 1 for the first one."""

PUT_OFF_KEY: Final = "put_off"
"""The key of the failures that a merge has left to a later subtask, in its result: pairs of a check and a test."""

FAILURES_KEY: Final = "failures"
FAULTS_KEY: Final = "faults"
"""The keys of what is wrong with work that is not merged, in the result: as `PUT_OFF_KEY`, and as sentences."""

SETTLE_CONFLICT: Final = "settle_conflict"
SETTLE_MERGE: Final = "settle_merge"
CHANGES_KEY: Final = "changes"
"""The key of what a specialist changed, in the result of its hand-in: the first files, their number, and lines."""

INTEGRATED_KEY: Final = "integrated"
"""The key of the commit on the integration branch in the result of the step that integrated a subtask."""

VerdictState = Literal["verified", "failed", "unverified"]
FindingCode = Literal[
    # why it failed
    "new_failures",
    "cannot_run_now",
    # why it is unverified
    "no_checks",
    "no_test_judged",
    "tests_altered",
    "imports_elsewhere",
    "nothing_changed",
    "in_place",
    "not_judged",
    "changed_later",
    "stored",
    # worth knowing
    "does_not_judge",
    "fails_as_before",
    "passes_now",
    "flaky",
    "tests_changed",
    "tests_gone",
    "uncovered",
    "not_rebuilt",
    "not_delivered",
    "not_in_change",
    "not_committed",
    "stopped",
]


@record
class Finding:
    """A reason or a note about a `check`, `tests` or `paths`. `why` is a program's own text."""

    code: FindingCode
    check: str = ""
    tests: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    why: str = ""
    count: int = 0


@record
class Receipt:
    """The result of one check on the delivered tree."""

    check: str
    kind: str
    outcome: Literal["passed", "failed", "does_not_judge", "could_not_run"]
    exit: int | None = None
    passed: int = 0
    failing: int = 0
    seconds: float = 0.0
    tree: str = ""


@record
class Verdict:
    """A verdict. `reasons` say why the change is not verified; `notes` do not affect the state."""

    state: VerdictState
    reasons: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def is_verified(self) -> bool:
        return self.state == "verified"

    def has_reason(self, code: FindingCode) -> bool:
        return any(reason.code == code for reason in self.reasons)


def build_unverified(code: FindingCode, **data: object) -> Verdict:
    """Build an unverified verdict with one reason, without any check."""
    reason = msgspec.convert({"code": code, **data}, Finding)
    return Verdict(state="unverified", reasons=(reason,))


@record
class ChangeFacts:
    """What is known about a change beyond its checks. `altered` are test files and check settings that existed before
    and changed; `old` is the tests' report with those restored. `elsewhere` lists checks that import code from
    outside the worktree."""

    altered: tuple[str, ...] = ()
    old: CheckReport | None = None
    elsewhere: tuple[Finding, ...] = ()
    tests_may_change: bool = False
    notes: tuple[Finding, ...] = ()


def decide_verdict(
    checks: Sequence[Check], base: Mapping[str, CheckRun], report: CheckReport, facts: ChangeFacts
) -> Verdict:
    """Decide the verdict from what each check reported on the base and reports now."""
    entries = {entry.check: entry for entry in report.checks}
    failures: list[Finding] = []
    notes: list[Finding] = []
    receipts: list[Receipt] = []
    judged: set[str] = set()
    for check in checks:
        base_run, entry = base.get(check.name), entries.get(check.name)
        if why := explain_no_judgement(base_run):
            notes.append(Finding(code="does_not_judge", check=check.name, why=why))
            if entry is not None:
                receipts.append(_build_receipt(entry, "does_not_judge"))
                notes += [Finding(code="passes_now", check=check.name)] if entry.outcome == "passed" else []
            continue
        failed = _find_failure(check, entry)
        failures += [failed] if failed is not None else []
        if entry is not None:
            outcome: Literal["failed", "passed"] = "failed" if failed is not None else "passed"
            receipts.append(_build_receipt(entry, "could_not_run" if entry.outcome == "could_not_run" else outcome))
            notes += _build_notes(entry)
        judged |= {check.kind} if failed is None and _has_judged(base_run, entry) else set()
    reasons = failures or _find_doubts(checks, judged, facts, base)
    if facts.altered:
        failed_tests = find_failing_old_tests(facts.old, base)
        notes.append(Finding(code="tests_changed", paths=facts.altered, tests=failed_tests))
    return Verdict(
        state="failed" if failures else "unverified" if reasons else "verified",
        reasons=tuple(reasons),
        notes=(*notes, *facts.notes),
        receipts=tuple(receipts),
    )


def _has_judged(base_run: CheckRun | None, entry: CheckResult | None) -> bool:
    """Return whether a check passed anything. If every test fails as before, none has judged."""
    passed_before = base_run is not None and base_run.outcome == "passed"
    return passed_before or (entry is not None and (entry.outcome == "passed" or entry.passed > 0))


def explain_no_judgement(base_run: CheckRun | None) -> str:
    """Return why a check with this baseline result cannot judge; empty if it can."""
    if base_run is None:
        return "it did not run before the change"
    if base_run.outcome == "could_not_run":
        return base_run.reason.rstrip(".") or "it could not run before the change"
    if base_run.outcome == "failed" and not has_names(base_run):
        return "it failed before the change, and does not name what fails"
    return ""


def can_judge(checks: Iterable[Check], base: Mapping[str, CheckRun]) -> bool:
    """Return whether at least one check of kind *test* can judge a change."""
    return any(check.kind == "test" and not explain_no_judgement(base.get(check.name)) for check in checks)


def _find_failure(check: Check, entry: CheckResult | None) -> Finding | None:
    if entry is None or entry.outcome == "could_not_run":
        return Finding(code="cannot_run_now", check=check.name, why=entry.reason if entry is not None else "")
    unknown = CheckComparison(new=(WHOLE_CHECK,) if entry.outcome == "failed" else ())
    known = entry.compared if entry.compared is not None else unknown
    if not known.new:
        return None
    return Finding(code="new_failures", check=check.name, tests=known.new, count=known.count("new"))


def _build_notes(entry: CheckResult) -> list[Finding]:
    found: list[Finding] = []
    known = entry.compared
    if known is not None and known.old:
        found.append(Finding(code="fails_as_before", check=entry.check, tests=known.old, count=known.count("old")))
    if known is not None and known.flaky:
        found.append(Finding(code="flaky", check=entry.check, tests=known.flaky))
    if known is not None and known.gone:
        found.append(Finding(code="tests_gone", check=entry.check, tests=known.gone, count=known.count("gone")))
    if entry.outcome == "passed" and entry.reason:
        found.append(Finding(code="uncovered", check=entry.check))
    return found


def _find_doubts(
    checks: Sequence[Check], judged: set[str], facts: ChangeFacts, base: Mapping[str, CheckRun]
) -> list[Finding]:
    """Return why a change without failures is not verified."""
    found: list[Finding] = []
    if not checks:
        found.append(Finding(code="no_checks"))
    elif "test" not in judged and not facts.elsewhere:
        yours = [ran for ran in base.values() if ran.reason.startswith(IMPORTS_YOURS_PREFIX)]
        found += [
            Finding(code="imports_elsewhere", check=ran.check, why=ran.reason.removeprefix(IMPORTS_YOURS_PREFIX))
            for ran in yours
        ] or [Finding(code="no_test_judged")]
    found += facts.elsewhere
    failed_tests = find_failing_old_tests(facts.old, base)
    if failed_tests and not facts.tests_may_change:
        found.append(Finding(code="tests_altered", tests=failed_tests, paths=facts.altered, count=len(failed_tests)))
    return found


def find_failing_old_tests(old: CheckReport | None, base: Mapping[str, CheckRun]) -> tuple[str, ...]:
    """Return the old tests that fail on the new code, by name; the check itself if its runner never names tests."""
    found: list[str] = []
    for entry in old.checks if old is not None else ():
        base_run = base.get(entry.check)
        if base_run is None or explain_no_judgement(base_run) or entry.compared is None:
            continue
        # A file of old tests that cannot be loaded fails under its own name, and its tests are gone.
        lost = bool(entry.compared.gone)
        named = [name for name in entry.compared.new if name != WHOLE_CHECK and (lost or _may_be_old(name, base_run))]
        nameless = not base_run.tests and bool(entry.compared.new)
        found += named or ([entry.check] if nameless else [])
    return tuple(found)


def _may_be_old(name: str, base_run: CheckRun) -> bool:
    """Return whether a test may be older than the change: not if the runner named all passed tests without it."""
    passing = sum(word == "passed" for word in base_run.tests.values())
    return passing < base_run.passed or any(test == name or test.startswith(f"{name}::") for test in base_run.tests)


def _build_receipt(
    entry: CheckResult, outcome: Literal["passed", "failed", "does_not_judge", "could_not_run"]
) -> Receipt:
    return Receipt(
        check=entry.check,
        kind=entry.kind,
        outcome=outcome,
        exit=entry.exit,
        passed=entry.passed,
        failing=entry.failing,
        seconds=entry.seconds,
        tree=entry.tree,
    )


def encode_verdict(verdict: Verdict) -> Data:
    """Encode a verdict for the log and for programs."""
    fields: Data = msgspec.json.decode(encode(verdict))
    return {"reasons": [], "notes": [], "receipts": [], **fields, "code": verdict.state}


def find_verdict(steps: Iterable[Step], current: str = "") -> Verdict:
    """Return the last verdict in the log. It is valid for the files that it was about: `current` is the tree now."""
    found, tree = build_unverified("not_judged"), None
    for step in steps:
        result = step.result or {}
        stored = result.get(VERDICT_KEY)
        if step.work.executor in (DELIVER, CONFIRM_UNVERIFIED) and isinstance(stored, Mapping):
            found, tree = decode_verdict(stored), result.get(TREE_KEY)
        elif tree is not None and result.get(TREE_KEY, tree) != tree:
            found, tree = build_unverified("changed_later"), None
    return build_unverified("changed_later") if tree is not None and current not in ("", tree) else found


def decode_verdict(data: Mapping[str, object]) -> Verdict:
    """Decode a verdict from the log. An older version wrote `unproven`, with sentences."""
    if data.get("state") == "unproven" or "missing" in data:
        texts = [str(text) for name in ("missing", "changed", "claims") for text in _read_sequence(data.get(name))]
        state: VerdictState = "verified" if data.get("state") == "verified" else "unverified"
        rows = [row for row in _read_sequence(data.get("receipts")) if isinstance(row, Mapping)]
        receipts = tuple(_decode_old_receipt(row) for row in rows)
        return Verdict(
            state=state, reasons=tuple(Finding(code="stored", why=text) for text in texts), receipts=receipts
        )
    return msgspec.convert({key: value for key, value in data.items() if key != "code"}, Verdict)


def _decode_old_receipt(row: Mapping[str, object]) -> Receipt:
    well = row.get("outcome", "clean") == "clean"
    outcome: Literal["passed", "failed"] = "passed" if well else "failed"
    return Receipt(check=str(row.get("check", "")), kind="", outcome=outcome, tree=str(row.get("tree", "")))


def _read_sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def read_report(step: Step) -> CheckReport | None:
    """Return the report in a step's result; None if there is none or it cannot be read."""
    return report_from_data((step.result or {}).get(REPORT_KEY))


def find_base_report(steps: Iterable[Step]) -> CheckReport | None:
    for step in steps:
        report = read_report(step) if step.work.executor == BASELINE and step.state == "finished" else None
        if report is not None and report.base:
            return report
    return None


def collect_known_entries(steps: Iterable[Step], tree: str) -> dict[str, CheckResult]:
    """Return the newest result of each check that ran on this tree in a throw-away worktree."""
    found: dict[str, CheckResult] = {}
    for step in steps:
        if step.work.executor not in (RUN_CHECKS, DELIVER, MERGE) or step.state != "finished":
            continue
        report = read_report(step)
        if report is not None and report.fresh and report.tree == tree:
            found |= {entry.check: entry for entry in report.checks}
    return found
