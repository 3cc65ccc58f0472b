"""A run of a check beside the one on the base: only what is new counts, and what is not there any more is said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from greenroom.abilities.checks.ids_of_tests import PYTHON, is_named, own_name
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import AS_A_WHOLE, NAMED, UNCOVERED, Checked, CheckKind, Compared, Ran, Report, Word

IN_A_FILE: Final = "::"
NO_TESTS: Final = frozenset({AS_A_WHOLE, UNCOVERED})
"""What fails and is no test."""

ANY_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")
"""What may be another one each time in a name that was read from an output: a port, a date, an address."""


def compared(base: Ran, now: Ran, flaky: Collection[str] = ()) -> Compared:
    """What has changed since the base. `flaky` are those that failed and then passed, on one and the same tree. What is
    compared with another run, by its names, is whole."""
    before, failing = base.failing, now.failing - frozenset(flaky)
    new = failing - before
    if now.outcome == "could_not_run" and base.outcome != "could_not_run":
        new |= {AS_A_WHOLE}
    elif not new and not flaky and now.exit and base.exit and now.exit != base.exit:
        new = frozenset({AS_A_WHOLE})  # it ends in another bad way, and names nothing that would explain it
    names, there = _tests(now), _tests(base)
    whole = _names_all(now) and (now.exact or any(word != "failed" for word in (*names.values(), *there.values())))
    broken, stopped = _unread(new), _stopped(new, names)
    missed = {name for name in there if not _is_there(name, names) and not name.startswith(broken)}
    gone = _nowhere(missed, names.keys() - there.keys()) if whole and not stopped else set()
    ran = bool(names) or _ran(now) > 0 or now.outcome == "passed"
    told = ran and not stopped and (base.exact or base.passed > 0)
    skipped = {name for name in there if names.get(name) == "skipped" and there[name] != "skipped"}
    return Compared(
        new=_cut(new),
        old=_cut(failing & before),
        mended=tuple(sorted(before - now.failing - gone - skipped if now.outcome != "could_not_run" else ())),
        flaky=tuple(sorted(flaky)),
        gone=_cut(gone),
        skipped=_cut(skipped),
        relieved=_cut((gone | skipped) & before),
        fewer=max(0, _ran(base) - _ran(now) - sum(name.startswith(broken) for name in there)) if told else 0,
    )


def _unread(failing: Iterable[str]) -> tuple[str, ...]:
    """How the tests of files begin that cannot be read any more: those are not gone."""
    return tuple(f"{name}{IN_A_FILE}" for name in failing if IN_A_FILE not in name)


def _stopped(new: Iterable[str], names: Collection[str]) -> bool:
    """Whether nothing ran because a file cannot be read any more: pytest then runs nothing of the others either."""
    return any(name.endswith(PYTHON) for name in new) and not any(IN_A_FILE in name for name in names)


def _is_there(name: str, names: Collection[str]) -> bool:
    """Whether it is named, or is a file that could not be read and whose tests are."""
    return name in names or (name.endswith(PYTHON) and any(one.startswith(f"{name}{IN_A_FILE}") for one in names))


def _tests(one: Ran) -> Mapping[str, Word]:
    """Those that are tests, by name: that a finding of a linter is gone is no loss."""
    named = {name: word for name, word in one.tests.items() if name not in NO_TESTS and is_named(name)}
    return named if one.kind == "test" else {}


def _nowhere(missed: Collection[str], added: Iterable[str]) -> set[str]:
    """Those for which no test was added that has the same name in another place, or with other parameters."""
    moved = Counter(map(_own_name, added))
    found: set[str] = set()
    for name in sorted(missed):
        own = _own_name(name)
        moved[own] -= 1
        if moved[own] < 0:
            found.add(name)
    return found


def _own_name(test: str) -> str:
    """Of pytest exactly; other runners put a line (`add (line 7)`), a class or whatever they count into names."""
    return own_name(test) if ".py::" in test else ANY_NUMBER.sub("#", own_name(test).partition(" (")[0])


def _names_all(one: Ran) -> bool:
    """Whether it names as many tests as ran. Many runners name only those that fail, and count the others or not."""
    words = list(_tests(one).values())
    return one.outcome != "could_not_run" and bool(words) and words.count("passed") >= one.passed


def _ran(one: Ran) -> int:
    """Tests that really ran, named or only counted."""
    return one.passed + (len(one.failing - NO_TESTS) if one.kind == "test" else 0)


def _cut(names: Iterable[str]) -> tuple[str, ...]:
    """As many as are kept. Those that have no name go first: that there is one makes all others doubtful."""
    return tuple(sorted(names, key=lambda one: (is_named(one), one))[:NAMED])


def entry(now: Ran, kind: CheckKind, against: Compared | None, *, tests: str, excerpt: str) -> Checked:
    """The run as a report has it. `tests` is the blob with all of it."""
    return Checked(
        check=now.check,
        kind=kind,
        digest=now.digest,
        outcome=now.outcome,
        reason=now.reason,
        exit=now.exit,
        seconds=now.seconds,
        tree=now.tree,
        steady=now.steady,
        passed=now.passed,
        failing=len(now.failing),
        skipped=now.skipped,
        tests=tests,
        output=now.output,
        excerpt=excerpt,
        compared=against,
    )


def in_two_copies(first: Report, second: Report) -> Report:
    """The first report, in which nothing is called flaky that failed in the other copy too before it passed: such a
    test passes beside what its own failure has left there, and nowhere else."""
    beside = {one.check: one for one in second.checks}
    return evolve(first, checks=tuple(_failing(one, beside.get(one.check)) for one in first.checks))


def _failing(one: Checked, beside: Checked | None) -> Checked:
    known = one.compared
    if known is None:
        return one
    again = {name for name in known.flaky if _failed(name, beside)}
    flaky = tuple(name for name in known.flaky if name not in again)
    return evolve(one, compared=evolve(known, new=_cut({*known.new, *again}), flaky=flaky))


def _failed(name: str, beside: Checked | None) -> bool:
    """Whether it failed there too, or may have: nothing else ran, it could not, or what failed is not all named."""
    if beside is None or beside.outcome == "could_not_run":
        return True
    known = beside.compared
    if known is None:
        return beside.outcome != "passed"
    return name in {*known.new, *known.flaky} or len(known.new) >= NAMED


def in_a_sentence(report: Report) -> str:
    """A report in a line, for who only wants to know how it stands: `pytest: 212 pass, 1 already fails`."""
    return "; ".join(f"{one.check}: {_how(one)}" for one in report.checks) or "No check was run."


def _how(one: Checked) -> str:
    if one.outcome == "could_not_run":
        return f"could not run ({one.reason.rstrip('.')})"
    known = one.compared
    new = len(known.new) if known is not None else 0
    old = len(known.old) if known is not None else one.failing
    parts = [f"{one.passed} pass" if one.passed else "passes" if not one.failing else ""]
    parts += [f"{new} newly fail{'s' if new == 1 else ''}"] if new else []
    parts += [f"{old} already fail{'s' if old == 1 else ''}"] if old else []
    parts += [f"{one.skipped} skipped"] if one.skipped else []
    return ", ".join(filter(None, parts))
