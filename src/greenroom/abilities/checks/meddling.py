"""What the work changed of what judges it: existing tests, the set-up of checks, the commands themselves.

Tests that are only added are work like any other. What is changed may be right all the same: a person says so, or the
checks as they were before pass on the new code too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

from greenroom.abilities.checks.build_files import has_parts, same_for_checks
from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.closure import Closure
from greenroom.abilities.checks.for_tests import made_for_tests
from greenroom.abilities.checks.inside_sources import RUST, changed_doctests, changed_in_rust
from greenroom.abilities.checks.judge_names import ignores, in_part, is_set_up, is_test, is_vendored
from greenroom.abilities.checks.python_tests import rewritten
from greenroom.abilities.checks.shadowing import shadowed
from greenroom.core.base.records import evolve, record

FEW: Final = 3
"""Files that may be judges or the work itself, of which each way to put some of them back can be tried."""


@record
class Meddled:
    """One thing that was changed, in a sentence. Where `path` is put back as it was, it can be checked without it.

    A `doubtful` one may be the work itself: a program that a check runs. What is not `apart` stands in one file with
    the work, and cannot be put back without it.
    """

    kind: Literal["test", "set-up", "command"]
    path: str
    said: str
    doubtful: bool = False
    apart: bool = True


def may_be_work(every: Iterable[Meddled]) -> frozenset[str]:
    """The files that may be the work itself: nothing says for sure that they judge it."""
    apart = [one for one in every if one.apart]
    return frozenset(one.path for one in apart) - {one.path for one in apart if not one.doubtful}


def meddled(changes: Iterable[Changed], tests: Collection[str] = ()) -> tuple[Meddled, ...]:
    """What these changes do to tests and to the set-up of checks. `tests` are files that are known to hold some."""
    return tuple(found for change in changes for found in _found(change, tests))


def run_by_checks(changes: Iterable[Changed], judging: Closure, tests: Collection[str] = ()) -> tuple[Meddled, ...]:
    """Files that the checks run or use, near or far, and that the work has changed, or put beside them."""
    return tuple(
        Meddled(
            kind="command",
            path=one.path,
            said=f"{one.path}, which {check!r} runs or uses, was {_how(one)}.",
            doubtful=judging.is_doubtful(one.path),
        )
        for one in changes
        if (check := judging.check_of(one.path))
        and not _is_known_test(one, tests)
        and not (judging.is_only_read_unasked(one.path) and _same_part(one))
    )


def changed_inside(changes: Iterable[Changed], documented: Collection[str] = ()) -> tuple[Meddled, ...]:
    """Tests inside of sources that were changed. In those that are `documented` examples are run."""
    return tuple(found for change in changes for found in _inside(change, documented))


def _inside(change: Changed, documented: Collection[str]) -> Iterator[Meddled]:
    path, before, after = change.path, change.before or b"", change.after or b""
    names: tuple[str, ...] = ()
    if path.endswith(RUST) and not is_test(path):
        names = changed_in_rust(before, after)
    elif path in documented:
        names = changed_doctests(before, after)
    if names:
        said = f"Tests inside of {path} were changed: {_few(names)}. They cannot be put back without the work."
        yield Meddled(kind="test", path=path, said=said, apart=False)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _is_known_test(change: Changed, tests: Collection[str]) -> bool:
    """Whether `meddled` can tell by its text what was done to it: tests that are only added are work."""
    known = is_test(change.path) or change.path in tests
    return known and (change.before is None or change.path.endswith(".py"))


def _same_part(change: Changed) -> bool:
    """Whether this is a file of which only a part is for checks, and that part is as it was."""
    name = PurePosixPath(change.path).name
    return has_parts(name) and same_for_checks(name, change.before, change.after)


def _how(change: Changed) -> str:
    return "added" if change.before is None else "deleted" if change.after is None else "changed"


def _found(change: Changed, tests: Collection[str]) -> Iterator[Meddled]:
    if change.before == change.after:
        return
    path, how = change.path, _how(change)
    if change.before is None and shadowed(path) and not is_test(path):
        said = f"{path}, which takes the place of {shadowed(path)!r} when checks run, was {how}."
        yield Meddled(kind="set-up", path=path, said=said)
    elif is_set_up(path):
        yield Meddled(kind="set-up", path=path, said=f"{path}, which sets up checks, was {how}.")
    elif ignores(path):
        yield Meddled(kind="set-up", path=path, said=f"{path}, which says what is no part of the work, was {how}.")
    elif in_part(path):
        if not _same_part(change):
            yield Meddled(kind="set-up", path=path, said=f"The settings of checks in {path} were changed.")
    elif change.before is not None and (is_test(path) or path in tests):
        yield from _test(change, change.before)
    elif change.before is not None and made_for_tests(path, change.before):
        yield from (evolve(one, doubtful=True) for one in _test(change, change.before, f"{path}, made for tests"))
    elif change.before is not None and is_vendored(path):
        said = f"{path}, code of others with which checks may be made, was {how}."
        yield Meddled(kind="set-up", path=path, said=said, doubtful=True)


def _test(change: Changed, before: bytes, what: str = "") -> Iterator[Meddled]:
    """What was done to parts that were there. `what` it is, where it is no file of tests."""
    if change.after is None:
        yield Meddled(kind="test", path=change.path, said=f"{f'{what},' if what else change.path} was deleted.")
        return
    if change.path.endswith(".py"):
        names = rewritten(before, change.after)
        if names:
            said = f"{f'Parts of {what},' if what else f'Existing tests in {change.path}'} were changed: {_few(names)}."
            yield Meddled(kind="test", path=change.path, said=said)
    elif not _only_added(before, change.after):
        said = f"Existing lines of {f'{what},' if what else change.path} were changed."
        yield Meddled(kind="test", path=change.path, said=said)


def _only_added(before: bytes, after: bytes) -> bool:
    """Whether all old lines are still there, in their order."""
    lines = iter(line.rstrip() for line in after.splitlines())
    return all(any(line.rstrip() == one for one in lines) for line in before.splitlines())
