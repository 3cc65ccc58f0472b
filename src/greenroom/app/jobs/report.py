"""What came of a job, for whoever has to decide about it: what changed, what proves it, and what nobody has proven."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from greenroom.abilities.checks.judge_names import is_test
from greenroom.app.checks.receipts import ASKING, DELIVER, STANDS, VERDICT
from greenroom.app.jobs.outcome import Outcome
from greenroom.app.jobs.recording import TREE, passed_over_in
from greenroom.core.base.records import Data, record
from greenroom.core.ports.workspace import Change, Diff, LeftOut
from greenroom.core.state.step import Step

SHOWN: Final = 20
"""Files of a diffstat that a person reads; of more, how many there are."""

DOCS: Final = (".md", ".rst", ".txt", ".adoc")
FOR_PROGRAMS: Final = ("cmakelists.", "requirements.", "requirements-", "constraints.", "robots.")
"""How names of texts begin that no person is meant to read."""

ONLY_TESTS: Final = "Note: only tests are different. Nothing that they test was changed."
FEW: Final = 5
"""Files in a sentence."""

WHY: Final = {
    "too_large": "too large",
    "unreadable": "not readable",
    "repository": "another repository",
    "submodule": "submodule, another repository",
    "other": "no file",
    "secret": "not in git, and by its name a secret",
}
CHANGED_TESTS: Final = (
    "No check can prove that a test is right: look at the diff, and take it over if it is. If a request is to change "
    'tests, say so: `greenroom run --tests-may-change "…"`.'
)
UNJUDGED: Final = "nothing was held against what ran"
LATER: Final = "files were changed after the last check"


@record
class JobReport:
    """`base` and `tip` are the commits between which the work lies. `verdict` is the last one in the log. Files that
    were `conflicted` when it began were in the middle of a merge. What was `passed_over` lies where the checks make
    files. `root` is the person's folder."""

    base: str
    tip: str
    diff: Diff
    verdict: Data
    conflicted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    passed_over: tuple[str, ...] = ()
    root: str = ""

    @property
    def verified(self) -> bool:
        """Whether every check ran on this very tree, and nothing newly fails."""
        return self.verdict.get("state") == "verified"

    @property
    def stands(self) -> bool:
        """Whether what was said may stand, though nobody has proven it."""
        return self.verdict.get(STANDS) is True

    @property
    def unproven(self) -> tuple[str, ...]:
        """What nobody has proven, or is not so."""
        return tuple(one for name in ("missing", "changed", "claims") for one in _texts(self.verdict, name))

    @property
    def lines(self) -> tuple[str, ...]:
        """As a person reads it."""
        return (
            *_stat(self.diff.changes),
            *_only_tests(self.diff.changes),
            *_receipts(self.verdict),
            *_unread(self.diff.changes, self.verdict),
            *_noted("in a merge when it began, and taken as they lay there", self.conflicted),
            *_noted("a link that leads out of the repository", _leading_out(self.diff.changes, self.root)),
            *_noted("not delivered, made where the checks make files", self.passed_over),
            *_noted("not in the copy", [f"{one_line(one.path)} ({WHY[one.why]})" for one in self.left_out]),
            *_open(self.verdict),
            *(((CHANGED_TESTS if self.diff.changes else ASKING),) if self.stands else ()),
        )


async def report_of(came: Outcome, steps: Iterable[Step]) -> JobReport:
    """What came of a job, by what its log says."""
    diff, every = await came.diff(), tuple(steps)
    there = {one.path for one in diff.changes}
    return JobReport(
        base=came.snapshot.commit,
        tip=came.tip,
        diff=diff,
        verdict=verdict_in(every),
        conflicted=came.snapshot.conflicted,
        left_out=came.snapshot.left_out,
        passed_over=tuple(one for one in passed_over_in(every) if one not in there),
        root=came.workspace.root,
    )


def verdict_in(steps: Iterable[Step]) -> Data:
    """The last verdict. It holds for the files that it was about: whatever was changed later, nobody has proven."""
    found: Data = {"state": "unproven", "missing": [UNJUDGED]}
    tree: object = None
    for step in steps:
        result = step.result or {}
        held = result.get(VERDICT)
        if step.work.executor == DELIVER and isinstance(held, Mapping):  # nobody else has a say in it
            found, tree = dict(held), result.get(TREE)
        elif tree is not None and result.get(TREE, tree) != tree:
            found, tree = {"state": "unproven", "missing": [LATER]}, None
    return found


def one_line(name: str) -> str:
    """A file's name on one line: one that has a line end in it, or another sign that nobody sees, is written with it.
    Else it would be a line of its own, and could say whatever a check says."""
    return name if name.isprintable() else repr(name)


def _stat(changes: Sequence[Change]) -> Sequence[str]:
    if not changes:
        return ("No file was changed.",)
    names = [one_line(one.path) for one in changes[:SHOWN]]
    wide = max(map(len, names))
    lines = [f"  {name:{wide}}  {_counted(one)}" for name, one in zip(names, changes, strict=False)]
    more = [f"  and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
    added, removed = sum(one.added for one in changes), sum(one.removed for one in changes)
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    return (f"{files} changed, +{added} −{removed}", *lines, *more)


def _only_tests(changes: Sequence[Change]) -> Sequence[str]:
    """Who asked for more than tests wants to know that there is nothing else: new tests pass on what there was."""
    others = [one for one in changes if not _is_for_people(one.path)]
    return (ONLY_TESTS,) if others and all(is_test(one.path) for one in others) else ()


def _noted(what: str, every: Sequence[str]) -> Sequence[str]:
    """What of the person's files the copy never had, or had in an odd state."""
    more = f" and {len(every) - FEW} more" if len(every) > FEW else ""
    return (f"Note: {what}: {', '.join(map(one_line, every[:FEW]))}{more}",) if every else ()


def _leading_out(changes: Sequence[Change], root: str) -> Sequence[str]:
    """Links through which whoever reads or writes in the repository is elsewhere; they look like any other file."""
    return [f"{one_line(one.path)} → {one_line(one.target)}" for one in changes if one.target and _leaves(one, root)]


def _leaves(one: Change, root: str) -> bool:
    where = posixpath.normpath(posixpath.join(root, posixpath.dirname(one.path), one.target))
    return where != root and not where.startswith(f"{root}/")


def _counted(one: Change) -> str:
    what = (
        f" (was {one_line(one.before)})" if one.kind == "renamed" else f" {one.kind}" if one.kind != "changed" else ""
    )
    return f"binary{what}" if one.binary else f"+{one.added} −{one.removed}{what}"


def _receipts(verdict: Data) -> Sequence[str]:
    held = verdict.get("receipts")
    some = [one for one in held if isinstance(one, Mapping)] if isinstance(held, Sequence) else []
    return [_receipt(one) for one in some]


def _receipt(one: Data) -> str:
    if one.get("outcome") != "clean":
        return f"✗ {one['check']}: {one['outcome']}, step {one['step']}"
    how = "no new failure" if one.get("exit") else "clean"
    return f"✓ {one['check']}: {how}, on tree {str(one['tree'])[:10]}, step {one['step']}"


def _unread(changes: Sequence[Change], verdict: Data) -> Sequence[str]:
    """What was written for people: no check says whether it is true. A file that a check uses is none of those."""
    told = [text for name in ("missing", "changed", "remarks") for text in _texts(verdict, name)]
    written = [one_line(one.path) for one in changes if one.kind != "deleted" and _is_for_people(one.path)]
    docs = [one for one in written if not any(text.startswith(f"{one}, which ") for text in told)]
    more = f" and {len(docs) - FEW} more" if len(docs) > FEW else ""
    return (f"NOT verified: docs, which no check reads: {', '.join(docs[:FEW])}{more}",) if docs else ()


def _is_for_people(path: str) -> bool:
    name = path.lower().rpartition("/")[2]
    return name.endswith(DOCS) and not name.startswith(FOR_PROGRAMS)


def _open(verdict: Data) -> Sequence[str]:
    told = {"missing": "NOT verified", "changed": "Changed by the work itself", "claims": "Said, and not so"}
    lines = [f"{word}: {one}" for name, word in told.items() for one in _texts(verdict, name)]
    return [*lines, *(f"Note: {one}" for one in _texts(verdict, "remarks"))]


def _texts(verdict: Data, name: str) -> Sequence[str]:
    held = verdict.get(name)
    return [_plain(str(one)) for one in held] if isinstance(held, Sequence) and not isinstance(held, str) else []


def _plain(text: str) -> str:
    """A sentence with names in it, on one line."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
