"""The verdict on a change: what each check said on the base and says now, as codes with data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from greenroom.core.base.records import Data, encode, record
from greenroom.core.ports.checks import AS_A_WHOLE, REPORT, Check, Checked, Compared, Ran, Report, from_data
from greenroom.core.state.step import Step
from greenroom.runs.output import has_names

BASELINE: Final = "baseline"
CONFIRM: Final = "go_on_unverified"
DELIVER: Final = "deliver"
RUN_CHECKS: Final = "run_checks"
"""Steps of ours. In the first and the last two checks run, each time in a throw-away worktree of a commit."""

VERDICT: Final = "verdict"
IMPORTS_YOURS: Final = "The tests import your files: "
"""How the reason begins why a check could not run on the base, where it would judge the person's files."""

COMMIT: Final = "commit"
"""Where a result has the commit with what the call has changed."""

TREE: Final = "tree"
State = Literal["verified", "failed", "unverified"]
Code = Literal[
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
    """One reason, or one thing worth knowing: about a `check`, `tests` or `paths`; `why` is a program's own words."""

    code: Code
    check: str = ""
    tests: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    why: str = ""
    count: int = 0


@record
class Receipt:
    """One check that ran on the delivered tree."""

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
    """`reasons` say why it is not verified; `notes` are worth knowing and change nothing."""

    state: State
    reasons: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def verified(self) -> bool:
        return self.state == "verified"

    def has(self, code: Code) -> bool:
        """Whether this is one of its reasons."""
        return any(reason.code == code for reason in self.reasons)


def unverified(code: Code, **data: object) -> Verdict:
    """A verdict of one reason, where no check has anything to say."""
    reason = msgspec.convert({"code": code, **data}, Finding)
    return Verdict(state="unverified", reasons=(reason,))


@record
class Facts:
    """What is known of a change beside its checks. `altered` are test files and settings of checks that were there
    before and are different now; `old` is what the tests said with those put back. `elsewhere` says which checks
    import other code than the worktree's."""

    altered: tuple[str, ...] = ()
    old: Report | None = None
    elsewhere: tuple[Finding, ...] = ()
    tests_may_change: bool = False
    notes: tuple[Finding, ...] = ()


def judge(checks: Sequence[Check], base: Mapping[str, Ran], report: Report, facts: Facts) -> Verdict:
    """The verdict by what each check said on the base and says now."""
    entries = {entry.check: entry for entry in report.checks}
    failures: list[Finding] = []
    notes: list[Finding] = []
    receipts: list[Receipt] = []
    judged: set[str] = set()
    for check in checks:
        was, entry = base.get(check.name), entries.get(check.name)
        if why := why_no_judge(was):
            notes.append(Finding(code="does_not_judge", check=check.name, why=why))
            if entry is not None:
                receipts.append(_receipt(entry, "does_not_judge"))
                notes += [Finding(code="passes_now", check=check.name)] if entry.outcome == "passed" else []
            continue
        failed = _failure(check, entry)
        failures += [failed] if failed is not None else []
        if entry is not None:
            outcome: Literal["failed", "passed"] = "failed" if failed is not None else "passed"
            receipts.append(_receipt(entry, "could_not_run" if entry.outcome == "could_not_run" else outcome))
            notes += _notes(entry)
        judged |= {check.kind} if failed is None and _ran_something(was, entry) else set()
    reasons = failures or _doubts(checks, judged, facts, base)
    if facts.altered:
        failing = failing_old_tests(facts.old, base)
        notes.append(Finding(code="tests_changed", paths=facts.altered, tests=failing))
    return Verdict(
        state="failed" if failures else "unverified" if reasons else "verified",
        reasons=tuple(reasons),
        notes=(*notes, *facts.notes),
        receipts=tuple(receipts),
    )


def _ran_something(was: Ran | None, entry: Checked | None) -> bool:
    """Whether a check has said yes to anything: where every test fails as before, none of them has judged."""
    passed_before = was is not None and was.outcome == "passed"
    return passed_before or (entry is not None and (entry.outcome == "passed" or entry.passed > 0))


def why_no_judge(was: Ran | None) -> str:
    """Why a check that said this on the base does not judge; empty if it does."""
    if was is None:
        return "it did not run before the change"
    if was.outcome == "could_not_run":
        return was.reason.rstrip(".") or "it could not run before the change"
    if was.outcome == "failed" and not has_names(was):
        return "it failed before the change, and does not name what fails"
    return ""


def can_judge(checks: Iterable[Check], base: Mapping[str, Ran]) -> bool:
    """Whether at least one check of the kind *test* can judge a change."""
    return any(check.kind == "test" and not why_no_judge(base.get(check.name)) for check in checks)


def _failure(check: Check, entry: Checked | None) -> Finding | None:
    if entry is None or entry.outcome == "could_not_run":
        return Finding(code="cannot_run_now", check=check.name, why=entry.reason if entry is not None else "")
    unknown = Compared(new=(AS_A_WHOLE,) if entry.outcome == "failed" else ())
    known = entry.compared if entry.compared is not None else unknown
    if not known.new:
        return None
    return Finding(code="new_failures", check=check.name, tests=known.new, count=known.count("new"))


def _notes(entry: Checked) -> list[Finding]:
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


def _doubts(checks: Sequence[Check], judged: set[str], facts: Facts, base: Mapping[str, Ran]) -> list[Finding]:
    """Why nothing fails and it is not verified either."""
    found: list[Finding] = []
    if not checks:
        found.append(Finding(code="no_checks"))
    elif "test" not in judged and not facts.elsewhere:
        yours = [ran for ran in base.values() if ran.reason.startswith(IMPORTS_YOURS)]
        found += [
            Finding(code="imports_elsewhere", check=ran.check, why=ran.reason.removeprefix(IMPORTS_YOURS))
            for ran in yours
        ] or [Finding(code="no_test_judged")]
    found += facts.elsewhere
    failing = failing_old_tests(facts.old, base)
    if failing and not facts.tests_may_change:
        found.append(Finding(code="tests_altered", tests=failing, paths=facts.altered, count=len(failing)))
    return found


def failing_old_tests(old: Report | None, base: Mapping[str, Ran]) -> tuple[str, ...]:
    """The old tests that fail on the new code, by name; of a runner that never names any, the check itself."""
    found: list[str] = []
    for entry in old.checks if old is not None else ():
        was = base.get(entry.check)
        if was is None or why_no_judge(was) or entry.compared is None:
            continue
        # A file of old tests that cannot be loaded fails by a name of its own, and its tests are gone.
        lost = bool(entry.compared.gone)
        named = [name for name in entry.compared.new if name != AS_A_WHOLE and (lost or _may_be_old(name, was))]
        nameless = not was.tests and bool(entry.compared.new)
        found += named or ([entry.check] if nameless else [])
    return tuple(found)


def _may_be_old(name: str, was: Ran) -> bool:
    """Whether a test may have been there before the change: not where the runner named all that passed, without it."""
    passing = sum(word == "passed" for word in was.tests.values())
    return passing < was.passed or any(test == name or test.startswith(f"{name}::") for test in was.tests)


def _receipt(entry: Checked, outcome: Literal["passed", "failed", "does_not_judge", "could_not_run"]) -> Receipt:
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


def as_kept(verdict: Verdict) -> Data:
    """A verdict as the log and programs have it."""
    kept: Data = msgspec.json.decode(encode(verdict))
    return {"reasons": [], "notes": [], "receipts": [], **kept, "code": verdict.state}


def verdict_in(steps: Iterable[Step]) -> Verdict:
    """The last verdict in the log. It holds for the files that it was about."""
    found, tree = unverified("not_judged"), None
    for step in steps:
        result = step.result or {}
        held = result.get(VERDICT)
        if step.work.executor in (DELIVER, CONFIRM) and isinstance(held, Mapping):
            found, tree = from_kept(held), result.get(TREE)
        elif tree is not None and result.get(TREE, tree) != tree:
            found, tree = unverified("changed_later"), None
    return found


def from_kept(held: Mapping[str, object]) -> Verdict:
    """A verdict as it is in the log; one of an older version said `unproven`, in sentences."""
    if held.get("state") == "unproven" or "missing" in held:
        said = [str(text) for name in ("missing", "changed", "claims") for text in _texts(held.get(name))]
        state: State = "verified" if held.get("state") == "verified" else "unverified"
        rows = [row for row in _texts(held.get("receipts")) if isinstance(row, Mapping)]
        receipts = tuple(_stored_receipt(row) for row in rows)
        return Verdict(state=state, reasons=tuple(Finding(code="stored", why=text) for text in said), receipts=receipts)
    return msgspec.convert({key: value for key, value in held.items() if key != "code"}, Verdict)


def _stored_receipt(row: Mapping[str, object]) -> Receipt:
    well = row.get("outcome", "clean") == "clean"
    outcome: Literal["passed", "failed"] = "passed" if well else "failed"
    return Receipt(check=str(row.get("check", "")), kind="", outcome=outcome, tree=str(row.get("tree", "")))


def _texts(held: object) -> Sequence[object]:
    return held if isinstance(held, Sequence) and not isinstance(held, str) else ()


def report_in(step: Step) -> Report | None:
    """The report that a step has in its result; None if it has none that can be read."""
    return from_data((step.result or {}).get(REPORT))


def base_report(steps: Iterable[Step]) -> Report | None:
    """The report of the base: the first one."""
    for step in steps:
        report = report_in(step) if step.work.executor == BASELINE and step.state == "finished" else None
        if report is not None and report.base:
            return report
    return None


def known_entries(steps: Iterable[Step], tree: str) -> dict[str, Checked]:
    """What each check said of this very tree, run by us in a throw-away worktree; the newest."""
    found: dict[str, Checked] = {}
    for step in steps:
        if step.work.executor not in (RUN_CHECKS, DELIVER) or step.state != "finished":
            continue
        report = report_in(step)
        if report is not None and report.fresh and report.tree == tree:
            found |= {entry.check: entry for entry in report.checks}
    return found
