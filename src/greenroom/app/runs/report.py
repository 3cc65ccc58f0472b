"""What came of a run, for the person who decides about it: what changed, what the checks said, the agent's summary."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Final

from greenroom.app.messages.findings import WHY_LEFT, one_line, sentence
from greenroom.app.runs.workspaces import Outcome
from greenroom.core.base.records import Data, record
from greenroom.core.ports.workspace import Change, Diff, LeftOut
from greenroom.core.state.step import Step
from greenroom.runs.discover import is_test
from greenroom.runs.verdict import Receipt, Verdict, as_kept, verdict_in

SHOWN: Final = 20
"""Files of a diffstat that a person reads; of more, how many there are."""

DOCS: Final = (".md", ".rst", ".txt", ".adoc")
FEW: Final = 5
"""Names in a sentence."""

SIGNS: Final = {"passed": "✓", "failed": "✗", "could_not_run": "✗", "does_not_judge": "·"}


@record
class JobReport:
    """`base` and `tip` are the commits between which the change lies. `verdict` is the last one in the log. Files that
    were `conflicted` when it began were in the middle of a merge. `root` is the person's folder."""

    base: str
    tip: str
    diff: Diff
    verdict: Verdict
    conflicted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    root: str = ""
    language: str = "en"

    @property
    def verified(self) -> bool:
        """Whether every check that judges passed on this very tree."""
        return self.verdict.verified

    @property
    def kept(self) -> Data:
        """The verdict as programs have it."""
        return as_kept(self.verdict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not verified, a sentence each."""
        return tuple(sentence(reason, self.language) for reason in self.verdict.reasons)

    @property
    def lines(self) -> tuple[str, ...]:
        """As a person reads it: changed tests first, then the change, what the checks said, and what is worth
        knowing."""
        changed = [note for note in self.verdict.notes if note.code == "tests_changed"]
        other = [note for note in self.verdict.notes if note.code != "tests_changed"]
        left = [f"{one_line(each.path)} ({WHY_LEFT[each.why]})" for each in self.left_out]
        return (
            *(f"! {sentence(note, self.language)}" for note in changed),
            *_stat(self.diff.changes),
            *map(_receipt, self.verdict.receipts),
            *(f"{self.verdict.state}: {reason}" for reason in self.reasons),
            *(f"Note: {sentence(note, self.language)}" for note in other),
            *_noted("only tests and docs are different", _only_tests(self.diff.changes)),
            *_noted("in a merge when the run began, taken as they were", self.conflicted),
            *_noted("a link that leads out of the repository", _leading_out(self.diff.changes, self.root)),
            *_noted("not in the worktree", left),
        )


async def report_of(came: Outcome, steps: Iterable[Step], language: str = "en") -> JobReport:
    """What came of a run, by what its log says."""
    return JobReport(
        base=came.snapshot.commit,
        tip=came.tip,
        diff=await came.diff(),
        verdict=verdict_in(steps),
        conflicted=came.snapshot.conflicted,
        left_out=came.snapshot.left_out,
        root=came.workspace.root,
        language=language,
    )


def _stat(changes: Sequence[Change]) -> Sequence[str]:
    if not changes:
        return ("No file was changed.",)
    names = [one_line(change.path) for change in changes[:SHOWN]]
    wide = max(map(len, names))
    lines = [f"  {name:{wide}}  {_counted(change)}" for name, change in zip(names, changes, strict=False)]
    more = [f"  and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    return (f"{files} changed, +{added} −{removed}", *lines, *more)


def _counted(change: Change) -> str:
    was = f" (was {one_line(change.before)})" if change.kind == "renamed" else ""
    what = was or (f" {change.kind}" if change.kind != "changed" else "")
    return f"binary{what}" if change.binary else f"+{change.added} −{change.removed}{what}"


def _receipt(receipt: Receipt) -> str:
    said = f"{receipt.passed} passed" if receipt.passed else receipt.outcome.replace("_", " ")
    failing = f", {receipt.failing} failing" if receipt.failing else ""
    return f"{SIGNS[receipt.outcome]} {receipt.check}: {said}{failing}, {receipt.seconds:.1f} s"


def _only_tests(changes: Sequence[Change]) -> Sequence[str]:
    code = [change.path for change in changes if not change.path.lower().endswith(DOCS)]
    return code if code and all(map(is_test, code)) else ()


def _noted(what: str, names: Sequence[str]) -> Sequence[str]:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return (f"Note: {what}: {', '.join(map(one_line, names[:FEW]))}{more}",) if names else ()


def _leading_out(changes: Sequence[Change], root: str) -> Sequence[str]:
    """Links through which a reader or writer in the repository is elsewhere; they look like any other file."""
    found: list[str] = []
    for change in (change for change in changes if change.target):
        where = posixpath.normpath(posixpath.join(root, posixpath.dirname(change.path), change.target))
        if where != root and not where.startswith(f"{root}/"):
            found.append(f"{one_line(change.path)} → {one_line(change.target)}")
    return found
