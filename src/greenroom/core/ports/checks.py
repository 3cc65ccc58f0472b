"""Checks: commands of a project that say whether work holds, what they said, and what of it is new. Nothing runs here.

Whoever runs checks is a `Checker`; whoever lets an agent call one knows only this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

from greenroom.core.base.records import Data, encode, record
from greenroom.core.ports.executor import Live
from greenroom.core.state.step import Prepared

CheckKind = Literal["test", "types", "lint", "build"]
Word = Literal["passed", "failed", "skipped"]
Ending = Literal["passed", "failed", "could_not_run"]

AS_A_WHOLE: Final = "the check as a whole"
"""What fails when a check fails and names nothing that does."""

REPORT: Final = "report"
"""Where a step's result has the report of the checks that it ran."""

NAMED: Final = 20
"""Names of tests that one entry of a report holds of each sort; `Compared.count` knows how many there are. More would
not fit into a step's result: hundreds fail already where a linter was never obeyed."""

LONGEST_NAME: Final = 200


@record
class Check:
    """`line` is a command line for a shell, run in `folder` as seen from the workspace's root; `why` is a sentence that
    says which file wants it. `means` is what the line stands for there: a script, a recipe. `own` ones are a person's.
    """

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
        """The name of what would be run: it changes when any of that does."""
        return hashlib.sha256(encode([self.line, self.folder, self.means])).hexdigest()


@record
class Ran:
    """One check that was run, whole. `tests` are by their ids, or findings of a linter by their text.

    `passed` and `skipped` count also what was not named. `steady` says that the check itself left the tree alone,
    `exact` that the tests are by a report which the runner made of them, and not read from what it printed.
    """

    check: str
    digest: str
    outcome: Ending
    kind: CheckKind = "test"
    reason: str = ""
    exit: int | None = None
    seconds: float = 0.0
    tree: str = ""
    steady: bool = True
    exact: bool = False
    tests: Mapping[str, Word] = msgspec.field(default_factory=dict)
    passed: int = 0
    skipped: int = 0
    output: str = ""

    @property
    def failing(self) -> frozenset[str]:
        """What failed, by id."""
        return frozenset(name for name, word in self.tests.items() if word == "failed")


@record
class Compared:
    """A run beside the one on the base. `new` fails now and did not before; `old` failed already; `mended` does so no
    more; `flaky` failed and then passed, with nothing changed. `gone` is not there any more, `skipped` is not run any
    more; `relieved` are those of both that used to fail. `fewer` tests are counted than before. `counts` has the
    length of each list that was cut.
    """

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
        """How many tests of this sort (the name of a list here) there are."""
        names: tuple[str, ...] = getattr(self, sort)
        return self.counts.get(sort, len(names))


@record
class Checked:
    """One check in a report: small enough for the log. `tests` and `output` name blobs; `failing` counts.

    Without a base (`compared` is None) whatever fails is new. `excerpt` is the part of the output that tells why.
    """

    check: str
    kind: CheckKind
    digest: str
    outcome: Ending
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
    compared: Compared | None = None

    @property
    def clean(self) -> bool:
        """Whether it ran, nothing fails that did not before, and it changed nothing itself."""
        if self.outcome == "could_not_run" or not self.steady:
            return False
        return not self.compared.new if self.compared is not None else self.outcome == "passed"


@record
class Report:
    """One run of some checks on one tree. `base` says that it is what later ones are compared with, `fresh` that it
    was on a copy in which nobody has worked; `left` says in sentences which checks were not run, and why."""

    tree: str
    checks: tuple[Checked, ...] = ()
    left: tuple[str, ...] = ()
    base: bool = False
    fresh: bool = False

    @property
    def blobs(self) -> tuple[str, ...]:
        """All blobs that it names."""
        every = (name for one in self.checks for name in (one.tests, one.output) if name)
        return tuple(dict.fromkeys(every))


def as_data(report: Report) -> Data:
    """A report as a step's result holds it, under `REPORT`."""
    return msgspec.json.decode(encode(report), type=dict[str, object])


def from_data(held: object) -> Report | None:
    """The report that a step's result holds; None where there is none that can be read."""
    if not isinstance(held, Mapping):
        return None
    try:
        return msgspec.convert(dict(held), Report)
    except msgspec.ValidationError:
        return None


class Witness(Protocol):
    """Who keeps what a check leaves; a step's bench is one."""

    async def prepare(self, *prepared: Prepared) -> None:
        """Make a process known before it goes."""
        ...

    async def keep(self, data: bytes) -> str:
        """Keep something large; returns its digest."""
        ...

    def show(self, event: Live) -> None:
        """Let those see it who watch."""
        ...


class Checker(Protocol):
    """Something that runs the checks of one workspace."""

    @property
    def checks(self) -> Sequence[Check]:
        """Those that it runs, the most useful first."""
        ...

    async def run(self, only: Sequence[str], witness: Witness) -> Report:
        """Run those with these names, or all, and say what is new since the base. A check that fails is no fault."""
        ...
