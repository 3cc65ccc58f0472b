"""Checks: commands of a project that verify work, their results, and the comparison with a baseline. Nothing runs here.

A `Checker` runs checks. The tools that let an agent run them depend only on this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

from greenroom.core.base.records import Data, encode, record
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.state.step import PreparedEffect

CheckKind = Literal["test", "types", "lint", "build"]
TestStatus = Literal["passed", "failed", "skipped"]
CheckEnd = Literal["passed", "failed", "could_not_run"]

WHOLE_CHECK: Final = "the check as a whole"
"""The name of the failure when a check fails without naming a test."""

REPORT_KEY: Final = "report"
"""The key of the check report in a step's result."""

MAX_NAMES_PER_LIST: Final = 20
"""Maximum test names per list of a report entry; `CheckComparison.count` returns the full number. More would not fit
into a step's result: a linter that was never obeyed reports hundreds."""

MAX_NAME_CHARS: Final = 200


@record
class Check:
    """A check. `line` is a shell command line, run in `folder` relative to the workspace root. `why` is a sentence that
    names the file which defines it. `means` is what the line stands for there: a script, a recipe. `own` marks a
    check that a person configured."""

    name: str
    line: str
    kind: CheckKind
    why: str
    folder: str = "."
    means: str = ""
    seconds: int = 900
    own: bool = False

    @property
    def digest(self) -> str:
        """A hash of what would run. It changes when any part changes."""
        return hashlib.sha256(encode([self.line, self.folder, self.means])).hexdigest()


@record
class CheckRun:
    """A complete run of one check. `tests` are keyed by test id, or by text for a linter's findings.

    `passed` and `skipped` also count tests that are not named. `steady` means that the check did not change the tree.
    `exact` means that the tests come from the runner's report, not from its printed output.
    """

    check: str
    digest: str
    outcome: CheckEnd
    kind: CheckKind = "test"
    reason: str = ""
    exit: int | None = None
    seconds: float = 0.0
    tree: str = ""
    steady: bool = True
    exact: bool = False
    tests: Mapping[str, TestStatus] = msgspec.field(default_factory=dict)
    passed: int = 0
    skipped: int = 0
    output: str = ""

    @property
    def failed_tests(self) -> frozenset[str]:
        """The ids of the failed tests."""
        return frozenset(name for name, word in self.tests.items() if word == "failed")


@record
class CheckComparison:
    """A check run compared with the baseline. `new` fails now and did not before; `old` failed before too; `mended` no
    longer fails. `flaky` failed and then passed without a change. `gone` no longer exists, `skipped` no longer runs;
    `relieved` are those of both that used to fail. `fewer` is by how much the number of tests decreased. `counts`
    holds the full length of each truncated list."""

    new: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    relieved: tuple[str, ...] = ()
    fewer: int = 0
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)

    def count(self, sort: str) -> int:
        """Return the full number of tests in a list of this record, by the list's name."""
        names: tuple[str, ...] = getattr(self, sort)
        return self.counts.get(sort, len(names))


@record
class CheckResult:
    """One check in a report, small enough for the log. `tests` and `output` are blob digests; `failing` is a count.

    Without a baseline (`compared` is None) every failure is new. `excerpt` is the part of the output that explains it.
    """

    check: str
    kind: CheckKind
    digest: str
    outcome: CheckEnd
    reason: str = ""
    exit: int | None = None
    seconds: float = 0.0
    tree: str = ""
    steady: bool = True
    passed: int = 0
    failing: int = 0
    skipped: int = 0
    tests: str = ""
    output: str = ""
    excerpt: str = ""
    compared: CheckComparison | None = None

    @property
    def is_clean(self) -> bool:
        """Whether the check ran, has no new failures, and did not change the tree."""
        if self.outcome == "could_not_run" or not self.steady:
            return False
        return not self.compared.new if self.compared is not None else self.outcome == "passed"


@record
class CheckReport:
    """A run of checks on one tree. `base` marks a baseline, `fresh` a run in a fresh worktree. `left` says in sentences
    which checks were not run, and why."""

    tree: str
    checks: tuple[CheckResult, ...] = ()
    left: tuple[str, ...] = ()
    base: bool = False
    fresh: bool = False

    @property
    def blobs(self) -> tuple[str, ...]:
        """The digests of all blobs that the report names."""
        digests = (name for check in self.checks for name in (check.tests, check.output) if name)
        return tuple(dict.fromkeys(digests))


def report_to_data(report: CheckReport) -> Data:
    """Convert a report for a step's result, under `REPORT_KEY`."""
    return msgspec.json.decode(encode(report), type=dict[str, object])


def report_from_data(value: object) -> CheckReport | None:
    """Return the report in a step's result, or None if there is none or it cannot be read."""
    if not isinstance(value, Mapping):
        return None
    try:
        return msgspec.convert(dict(value), CheckReport)
    except msgspec.ValidationError:
        return None


class CheckObserver(Protocol):
    """Records what a check run produces. A step context is one."""

    async def prepare(self, *prepared: PreparedEffect) -> None:
        """Record a process before it starts."""
        ...

    async def keep(self, data: bytes) -> str:
        """Store a blob and return its digest."""
        ...

    def show(self, event: LiveEvent) -> None:
        """Send an event to live listeners."""
        ...


class Checker(Protocol):
    """Runs the checks of one workspace."""

    @property
    def checks(self) -> Sequence[Check]:
        """The checks it runs, the most useful first."""
        ...

    async def run(self, only: Sequence[str], observer: CheckObserver) -> CheckReport:
        """Run the named checks, or all, and compare with the baseline. A failing check is a result, not an error."""
        ...
