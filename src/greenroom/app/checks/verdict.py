"""The verdict: whether the work is verified, and if not, what is missing, in sentences that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from greenroom.abilities.checks.claims import Facts, unproven
from greenroom.abilities.checks.meddling import Meddled
from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.app.checks.receipts import Receipt, base_report, receipts
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import AS_A_WHOLE, Check, Checked, Compared, Report
from greenroom.core.state.step import Step

TOLD: int = 5
"""Names of tests in a sentence."""


@record
class Delivered:
    """What is to be handed over: its `tree`, what the work `meddled` with, which files are `broken`, and what the agent
    `says` of it, held against the `facts`.

    `left_out` says what lies there and is not handed over, `unfollowed` what of its judges nobody has looked at,
    `elsewhere` which checks look at other code than it. `restored` is a run of the same checks on it with everything
    that judges it put back as it was on the base; where no judge was changed, with all test files put back.
    """

    tree: str
    left_out: tuple[str, ...] = ()
    meddled: tuple[Meddled, ...] = ()
    unfollowed: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    broken: tuple[SyntaxFault, ...] = ()
    says: str = ""
    facts: Facts | None = None
    restored: Report | None = None


@record
class Verdict:
    """*verified* means that every check ran last, on this very tree, with no new failure, no test lost, and nothing
    `changed` that judges it, unless the old judges find nothing wrong either. `missing` says what is not proven,
    `claims` what was said and is not, `remarks` what else there is to know. `receipts` are those that count, one for
    each check that ran. What is `lost` of the tests no old judge can clear.
    """

    state: Literal["verified", "unproven"]
    receipts: tuple[Receipt, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    lost: bool = False

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
    missing = [*_missing(needed, every, counting, delivered.tree), *_from_nothing(counting, base), *left]
    missing += [*delivered.left_out, *delivered.elsewhere, *(str(fault) for fault in delivered.broken)]
    changed = [*_redefined(counting, base), *(one.said for one in delivered.meddled if one.apart)]
    lost = [*_lost(counting), *(one.said for one in delivered.meddled if not one.apart)]
    missing += _vouched(delivered.restored) if not changed and not lost else ()
    cleared = bool(changed) and not lost and _as_before(counting, delivered.restored)
    facts = delivered.facts
    claims: tuple[str, ...] = ()
    if facts is not None:
        known = evolve(facts, passed=_passed(needed, counting), added=_added(counting, base)) if not missing else facts
        claims = unproven(delivered.says, known)
    good = not missing and not claims and not lost and (not changed or cleared)
    remarks = [*_remarks(counting, base), *(_lifted(one) for one in changed if cleared)]
    return Verdict(
        state="verified" if good else "unproven",
        receipts=counting,
        missing=tuple(missing),
        changed=() if cleared else tuple(dict.fromkeys((*lost, *changed))),
        claims=claims,
        remarks=tuple(dict.fromkeys(remarks)),
        lost=bool(lost),
    )


def _last(every: Sequence[Receipt], check: str, tree: str) -> tuple[Receipt, ...]:
    """The newest receipt of a check that is about this tree."""
    return tuple(one for one in every if one.check == check and one.tree == tree and one.late)[-1:]


# ------------------------------------------------------------------------------------------------------ what is missing


def _missing(
    needed: Sequence[Check], every: Sequence[Receipt], counting: Sequence[Receipt], tree: str
) -> Iterator[str]:
    if not needed:
        yield "No check was run: none is set up for this project, or none could be run."
    known = {one.check: one for one in counting}
    for check in needed:
        one = known.get(check.name)
        if one is None:
            yield _never(check.name, [each for each in every if each.check == check.name], tree)
        elif one.outcome != "clean":
            yield _not_clean(one.checked)


def _never(name: str, some: Sequence[Receipt], tree: str) -> str:
    if not some:
        return f"{name!r} was never run on the work."
    if any(one.tree == tree for one in some):
        return f"{name!r} ran before the last change of a file, not after it."
    return f"{name!r} ran last in step {some[-1].step}, on another tree than the one that is delivered."


def _not_clean(one: Checked) -> str:
    if one.outcome == "could_not_run":
        return f"{one.check!r} could not run: {one.reason}"
    if not one.steady:
        return f"{one.check!r} changed files itself, so it did not check what is delivered."
    new = one.compared.new if one.compared is not None else ()
    return f"{one.check!r} fails: {_names(new)}." if new else f"{one.check!r} fails (exit code {one.exit})."


def _from_nothing(counting: Sequence[Receipt], base: Report | None) -> Iterator[str]:
    """Checks that could not run on the base and end well now. The work may have mended them, or have made them end
    well: where they name tests that pass it is seen what ran, and else there is nothing to see."""
    before = _unable_before(base)
    for one in counting:
        if one.outcome == "clean" and one.check in before and not one.checked.passed:
            yield (
                f"{one.check!r} could not run on the base ({before[one.check]}), and now it ends well and names no "
                "test that passes: by itself that proves nothing."
            )
    yield from _blind(counting)


def _blind(counting: Sequence[Receipt]) -> Iterator[str]:
    """Checks that fail as a whole, before the work and after it. Whatever it breaks, they would say the same."""
    for one in counting:
        now = one.checked
        old = now.compared.old if now.compared is not None else ()
        named = now.kind != "test" and AS_A_WHOLE not in old
        if one.outcome == "clean" and old and not now.passed and not named:
            yield (
                f"{one.check!r} fails on the base as a whole, so it proves nothing: mend it first, or name another "
                "check."
            )


def _vouched(restored: Report | None) -> Iterator[str]:
    """Tests that pass only beside what the work has put among them. That old ones alone do not cover what is new (all
    of them pass, and the check fails as a whole) is no failure."""
    for one in restored.checks if restored is not None else ():
        new = one.compared.new if one.compared is not None and one.kind == "test" else ()
        if new and not (one.passed and one.outcome == "failed" and new == (AS_A_WHOLE,)):
            yield (
                f"{one.check!r} passes only beside the test files of the work; with those put back as they were, it "
                f"fails: {_names(new)}."
            )


def _unable_before(base: Report | None) -> dict[str, str]:
    every = base.checks if base is not None else ()
    return {one.check: one.reason.rstrip(".") for one in every if one.outcome == "could_not_run"}


# ----------------------------------------------------------------------------------------------------- what was changed


def _redefined(counting: Sequence[Receipt], base: Report | None) -> Iterator[str]:
    """Commands that mean something else than on the base."""
    before = {one.check: one for one in base.checks} if base is not None else {}
    for one in counting:
        old = before.get(one.check)
        if old is not None and old.digest != one.checked.digest:
            yield f"What {one.check!r} runs is not what it ran on the base."


def _lost(counting: Sequence[Receipt]) -> Iterator[str]:
    """Tests that are not run any more. That the code passes them where they are put back makes no difference: what is
    delivered has them no more."""
    for one in counting:
        if one.checked.compared is not None:
            yield from _losses(one.check, one.checked.compared)


def _losses(check: str, one: Compared) -> Iterator[str]:
    if one.relieved:
        yield f"{check!r}: used to fail and is not run any more: {_names(one.relieved)}."
    skipped = tuple(name for name in one.skipped if name not in one.relieved)
    if skipped:
        yield f"{check!r}: newly skipped: {_names(skipped)}."
    gone = tuple(name for name in one.gone if name not in one.relieved)
    if gone:
        yield f"{check!r}: not there any more: {_names(gone)}."
    if one.fewer:
        yield f"{check!r}: {one.fewer} fewer {'test runs' if one.fewer == 1 else 'tests run'} than on the base."


def _as_before(counting: Sequence[Receipt], restored: Report | None) -> bool:
    """Whether the checks, with everything put back that judges the work, find nothing wrong with it either."""
    if restored is None:
        return False
    found = {one.check: one for one in restored.checks}
    return bool(counting) and all(_holds(one.checked, found.get(one.check)) for one in counting)


def _holds(now: Checked, before: Checked | None) -> bool:
    if before is None or before.compared is None or not before.clean or before.compared.gone or before.compared.fewer:
        return False
    known = now.compared or Compared()
    # What failed on the base and still does with the old tests was not mended, only the test that found it was.
    return not set(before.compared.old) & set(known.mended)


def _lifted(said: str) -> str:
    return f"{said} (Changed by the work itself; with everything put back as it was, the checks pass too.)"


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
            yield f"{one.check!r}: already fails on the base: {_names(known.old)}."
        if known.flaky:
            yield f"{one.check!r}: flaky, failed and then passed: {_names(known.flaky)}."


def _passed(needed: Sequence[Check], counting: Sequence[Receipt]) -> int:
    tests = {check.name for check in needed if check.kind == "test"}
    return sum(one.checked.passed for one in counting if one.check in tests)


def _added(counting: Sequence[Receipt], base: Report | None) -> int | None:
    """How many tests there are that the base had not; None where nobody counts them."""
    before = {one.check: one for one in base.checks} if base is not None else {}
    every = [(one.checked, before[one.check]) for one in counting if one.check in before]
    if not any(_count(now) for now, _ in every):
        return None
    return sum(max(0, _count(now) - _count(old)) for now, old in every)


def _count(one: Checked) -> int:
    return one.passed + one.failing + one.skipped if one.kind == "test" else 0


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
    return ", ".join(names[:TOLD]) + more
