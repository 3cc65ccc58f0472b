"""The verdict: whether the work is verified, and if not, what is missing, in sentences that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from greenroom.abilities.checks.claims import Facts, unproven
from greenroom.abilities.checks.finding.python import is_pytest
from greenroom.abilities.checks.ids_of_tests import is_named, listed
from greenroom.abilities.checks.meddling import FEW, Meddled, may_be_work
from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.app.checks.planning import to_change
from greenroom.app.checks.receipts import Receipt, base_report, receipts
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import AS_A_WHOLE, UNCOVERED, Check, Checked, Compared, Report
from greenroom.core.state.step import Step


@record
class Delivered:
    """What is to be handed over: its `tree`, what the work `meddled` with, which files are `broken`, and what the agent
    `says` of it, held against the `facts`.

    `deleted` says which tests it has no more, by their text: where nobody counts them, that is all that is known.
    `left_out` says what lies there and is not handed over, `unfollowed` what of its judges nobody has looked at,
    `elsewhere` which checks look at other code than it. `restored` is a run of the same checks on it with everything
    that judges it put back as it was on the base; where no judge was changed, with all test files put back. Where a
    person has said that `tests_may_change`, what became of old ones is to be known, and no more, as long as nothing
    else was changed that judges the work.

    Where the project had no checks, those that the work has set up are its judges once a person has said so (`own`):
    `set_up` says what it did for that. `unconfirmed` says that nobody has.
    """

    tree: str
    left_out: tuple[str, ...] = ()
    meddled: tuple[Meddled, ...] = ()
    deleted: tuple[str, ...] = ()
    unfollowed: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    broken: tuple[SyntaxFault, ...] = ()
    says: str = ""
    facts: Facts | None = None
    restored: Report | None = None
    tests_may_change: bool = False
    own: bool = False
    set_up: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()


@record
class Verdict:
    """*verified* means that every check ran last, on this very tree, with no new failure, no test lost, and nothing
    `changed` that judges it, unless the old judges find nothing wrong either. `missing` says what is not proven,
    `claims` what was said and is not, `remarks` what else there is to know. `receipts` are those that count, one for
    each check that ran. What is `lost` of the tests no old judge can clear; `only_tests` says that nothing else that
    judges the work was changed.
    """

    state: Literal["verified", "unproven"]
    receipts: tuple[Receipt, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    lost: bool = False
    only_tests: bool = False

    @property
    def verified(self) -> bool:
        """Whether it is."""
        return self.state == "verified"


def verdict(
    needed: Sequence[Check],
    steps: Sequence[Step],
    delivered: Delivered,
    *,
    left: Sequence[str] = (),
) -> Verdict:
    """What the steps of the log prove about what is delivered. `left` are checks that were not run, and why."""
    every = receipts(steps)
    counting = tuple(one for check in needed for one in _last(every, check.name, delivered.tree))
    base = base_report(steps)
    missing = [*_missing(needed, every, counting, delivered.tree), *_from_nothing(needed, counting, base), *left]
    missing += [*(_unjudged(delivered) if not needed else ()), *(_untested(needed, counting) if delivered.own else ())]
    missing += [*delivered.left_out, *delivered.elsewhere, *(str(fault) for fault in delivered.broken)]
    judges, may = _judges(counting, base, delivered), delivered.tests_may_change
    changed, lost = judges.changed, judges.lost
    vouched = tuple(_vouched(counting, delivered.restored)) if not changed and not lost else ()
    missing += vouched if not may else ()
    cleared = bool(changed) and not lost and _as_before(counting, delivered.restored)
    facts = delivered.facts
    claims = unproven(delivered.says, facts if missing else _known(facts, counting, base)) if facts is not None else ()
    good = not missing and not claims and not lost and (not changed or cleared)
    remarks = [*_remarks(counting, base), *(_lifted(one) for one in changed if cleared)]
    remarks += [*map(_agreed, (*judges.agreed, *(vouched if may else ()))), *_own(delivered)]
    return Verdict(
        state="verified" if good else "unproven",
        receipts=counting,
        missing=tuple(missing),
        changed=() if cleared else tuple(dict.fromkeys((*lost, *changed, *_unsplit(changed, delivered)))),
        claims=claims,
        remarks=tuple(dict.fromkeys(remarks)),
        lost=bool(lost),
        only_tests=judges.only_tests,
    )


def _last(every: Sequence[Receipt], check: str, tree: str) -> tuple[Receipt, ...]:
    """The newest receipt of a check that is about this tree."""
    return tuple(one for one in every if one.check == check and one.tree == tree and one.late)[-1:]


# ------------------------------------------------------------------------------------------------------ what is missing


def _missing(
    needed: Sequence[Check], every: Sequence[Receipt], counting: Sequence[Receipt], tree: str
) -> Iterator[str]:
    known = {one.check: one for one in counting}
    for check in needed:
        one = known.get(check.name)
        if one is None:
            yield _never(check.name, [each for each in every if each.check == check.name], tree)
        elif one.outcome != "clean":
            yield _not_clean(one.checked, to_change(check))


def _unjudged(delivered: Delivered) -> tuple[str, ...]:
    """Why no check was run."""
    return delivered.unconfirmed or ("No check was run: none is set up for this project, or none could be run.",)


def _untested(needed: Sequence[Check], counting: Sequence[Receipt]) -> Iterator[str]:
    """Checks that the work has set up itself and that report no test: that they end well says nothing of what it does,
    and neither does what they print."""
    reporting = {one.name for one in needed if is_pytest(one)}
    passed = any(one.checked.passed for one in counting if one.check in reporting)
    if counting and all(one.outcome == "clean" for one in counting) and not passed:
        yield "What the work has set up as its checks reports no test that passes: by itself that proves nothing."


def _never(name: str, some: Sequence[Receipt], tree: str) -> str:
    if not some:
        return f"{name!r} was never run on the work."
    if any(one.tree == tree for one in some):
        return f"{name!r} ran before the last change of a file, not after it."
    return f"{name!r} ran last in step {some[-1].step}, on another tree than the one that is delivered."


def _not_clean(one: Checked, mended: str) -> str:
    if one.outcome == "could_not_run":
        return f"{one.check!r} could not run: {one.reason.rstrip('.') + '.' if mended else one.reason}{mended}"
    if not one.steady:
        return f"{one.check!r} changed files itself, so it did not check what is delivered."
    new = one.compared.new if one.compared is not None else ()
    return f"{one.check!r} fails: {listed(new)}." if new else f"{one.check!r} fails (exit code {one.exit})."


def _from_nothing(needed: Sequence[Check], counting: Sequence[Receipt], base: Report | None) -> Iterator[str]:
    """Checks that could not run on the base and end well now. The work may have mended them, or have made them end
    well: where they name tests that pass it is seen what ran, and else there is nothing to see."""
    before, mended = _unable_before(base), {one.name: to_change(one) for one in needed}
    for one in counting:
        if one.outcome == "clean" and one.check in before and not one.checked.passed:
            yield (
                f"{one.check!r} could not run on the base ({before[one.check]}), and now it ends well and names no "
                f"test that passes: by itself that proves nothing.{mended[one.check]}"
            )
    yield from _blind(counting, mended)


def _blind(counting: Sequence[Receipt], mended: Mapping[str, str]) -> Iterator[str]:
    """Checks that fail as a whole, before the work and after it. Whatever it breaks, they would say the same."""
    for one in counting:
        now = one.checked
        old = now.compared.old if now.compared is not None else ()
        named = now.kind != "test" and AS_A_WHOLE not in old
        if one.outcome != "clean" or not old:
            continue
        if not now.passed and not named:
            yield (
                f"{one.check!r} fails on the base as a whole, so it proves nothing: mend it first, or name another "
                f"check.{mended[one.check]}"
            )
        elif not all(map(is_named, old)):
            yield (
                f"{one.check!r} fails on the base and now, and does not name all tests that fail: nobody knows whether "
                f"they are the same. Mend them first, or name a check that says more.{mended[one.check]}"
            )


def _vouched(counting: Sequence[Receipt], restored: Report | None) -> Iterator[str]:
    """Tests that pass only beside what the work has put among them."""
    now = {one.check: one.checked for one in counting}
    for alone in restored.checks if restored is not None else ():
        if alone.kind != "test" or alone.check not in now:
            continue
        told = _against(alone.compared or Compared())
        if told:
            yield (
                f"{alone.check!r} passes only beside the test files of the work; with those put back as they were, it "
                f"fails: {listed(told)}."
            )
        kept = _only_the_test(now[alone.check], alone)
        if kept and not told:
            yield (
                f"{alone.check!r}: failed on the base, and still does with the test files put back as they were: "
                f"{listed(kept)}. Tests were changed there, and not what they test."
            )


def _unable_before(base: Report | None) -> dict[str, str]:
    every = base.checks if base is not None else ()
    return {one.check: one.reason.rstrip(".") for one in every if one.outcome == "could_not_run"}


# ----------------------------------------------------------------------------------------------------- what was changed


@record
class _Judges:
    """What was `changed` and can be put back, what is `lost` of the tests, and what of both a person has `agreed`
    to."""

    changed: tuple[str, ...]
    lost: tuple[str, ...]
    agreed: tuple[str, ...] = ()
    only_tests: bool = False


def _judges(counting: Sequence[Receipt], base: Report | None, delivered: Delivered) -> _Judges:
    redefined, apart = tuple(_redefined(counting, base)), [one for one in delivered.meddled if one.apart]
    tested = {one.path for one in apart if one.kind == "test"}
    tests = tuple(one.said for one in apart if one.path in tested and one.kind != "set-up")
    lost = (*_lost(counting), *(one.said for one in delivered.meddled if not one.apart))
    lost += delivered.deleted if not _counts(counting) else ()
    only = not redefined and len(tests) == len(apart)  # else a setting may be why a test is gone
    if delivered.tests_may_change and only:
        return _Judges(changed=(), lost=(), agreed=(*lost, *tests))
    changed = (*redefined, *(one.said for one in apart))
    return _Judges(changed=changed, lost=lost, only_tests=only and bool(lost or tests))


def _redefined(counting: Sequence[Receipt], base: Report | None) -> Iterator[str]:
    """Commands that mean something else than on the base."""
    before = {one.check: one for one in base.checks} if base is not None else {}
    for one in counting:
        old = before.get(one.check)
        if old is not None and old.digest != one.checked.digest:
            yield f"What {one.check!r} runs is not what it ran on the base."


def _unsplit(changed: Sequence[str], delivered: Delivered) -> Iterator[str]:
    """Why nobody has asked the old judges: it cannot be tried which files are the work and which judge it."""
    doubtful = sorted(may_be_work(delivered.meddled))
    if changed and delivered.restored is None and len(doubtful) > FEW:
        yield (
            f"{len(doubtful)} files that checks run may be judges or the work itself ({listed(doubtful)}); each way to "
            f"put some of them back is tried for {FEW} at most. Change fewer of them in one run, or look at the diff."
        )


def _lost(counting: Sequence[Receipt]) -> Iterator[str]:
    """Tests that are not run any more. That the code passes them where they are put back makes no difference: what is
    delivered has them no more."""
    for one in counting:
        if one.checked.compared is not None:
            yield from _losses(one.check, one.checked.compared)


def _losses(check: str, one: Compared) -> Iterator[str]:
    if one.relieved:
        yield f"{check!r}: used to fail and is not run any more: {listed(one.relieved)}."
    skipped = tuple(name for name in one.skipped if name not in one.relieved)
    if skipped:
        yield f"{check!r}: newly skipped: {listed(skipped)}."
    gone = tuple(name for name in one.gone if name not in one.relieved)
    if gone:
        yield f"{check!r}: not there any more: {listed(gone)}."
    if one.fewer:
        yield f"{check!r}: {one.fewer} fewer {'test runs' if one.fewer == 1 else 'tests run'} than on the base."


def _as_before(counting: Sequence[Receipt], restored: Report | None) -> bool:
    """Whether the checks, with everything put back that judges the work, find nothing wrong with it either."""
    if restored is None:
        return False
    found = {one.check: one for one in restored.checks}
    return bool(counting) and all(_holds(one.checked, found.get(one.check)) for one in counting)


def _holds(now: Checked, alone: Checked | None) -> bool:
    if alone is None or alone.compared is None or not alone.steady or alone.outcome == "could_not_run":
        return False
    return not _against(alone.compared) and not _only_the_test(now, alone)


def _against(known: Compared) -> tuple[str, ...]:
    """What the old judges say against the work."""
    new = () if _uncovered(known) else known.new
    return new or known.gone or ((AS_A_WHOLE,) if known.fewer else ())


def _only_the_test(now: Checked, alone: Checked) -> tuple[str, ...]:
    """What failed on the base, passes now, and does not with the old tests: no source was mended there."""
    known = alone.compared or Compared()
    mended = (*known.mended, *((UNCOVERED,) if _uncovered(known) else ()))
    return tuple(name for name in (now.compared or Compared()).mended if name not in mended)


def _uncovered(known: Compared) -> bool:
    """Whether all old tests pass, and only do not cover what is there."""
    return {*known.new, *known.old} == {UNCOVERED}


def _lifted(said: str) -> str:
    return f"{said} (Changed by the work itself; with everything put back as it was, the checks pass too.)"


def _agreed(said: str) -> str:
    return f"{said} (Tests may change: you have said so.)"


# ---------------------------------------------------------------------------------------------------------------- words


def _remarks(counting: Sequence[Receipt], base: Report | None) -> Iterator[str]:
    before = _unable_before(base)
    for one in counting:
        known = one.checked.compared
        if one.outcome == "clean" and one.check in before:
            yield f"{one.check!r} could not run on the base ({before[one.check]}): nothing is compared."
        if known is None:
            yield f"{one.check!r} was not run on the base: what fails may be old."
            continue
        if known.old:
            yield f"{one.check!r}: already fails on the base: {listed(known.old)}."
        if known.flaky:
            yield f"{one.check!r}: flaky, failed and then passed: {listed(known.flaky)}."


def _own(delivered: Delivered) -> Iterator[str]:
    if delivered.own:
        yield "The checks are those that the work has set up itself: you have said that they count."
    yield from (f"{one} (Set up with its checks.)" for one in delivered.set_up)


def _known(facts: Facts, counting: Sequence[Receipt], base: Report | None) -> Facts:
    """What the checks add to it, which have run and are clean."""
    tests = [one.checked for one in counting if one.checked.kind == "test"]
    passed = sum(one.passed for one in tests)
    return evolve(facts, passed=passed, counted=_counts(counting), added=_added(counting, base), tested=bool(tests))


def _counts(counting: Sequence[Receipt]) -> bool:
    """Whether it is known of each check with tests how many pass: some runners say nothing but that all is well."""
    return all(one.checked.passed for one in counting if one.checked.kind == "test")


def _added(counting: Sequence[Receipt], base: Report | None) -> int | None:
    """How many tests there are that the base had not; None where nobody counts them."""
    before = {one.check: one for one in base.checks} if base is not None else {}
    every = [(one.checked, before[one.check]) for one in counting if one.check in before]
    if not any(_count(now) for now, _ in every):
        return None
    return sum(max(0, _count(now) - _count(old)) for now, old in every)


def _count(one: Checked) -> int:
    return one.passed + one.failing + one.skipped if one.kind == "test" else 0
