"""What is said and written where work is taken over, by the commands in this process; whole jobs are in tests/e2e."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Final, TypeAlias, cast

import pytest

from greenroom.app.conversation.names import JOB
from greenroom.app.runs.report import JobReport
from greenroom.cli.commands import change
from greenroom.cli.context import Invocation
from greenroom.cli.exit_codes import Exit
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.workspace import Applied, Branched, Diff
from greenroom.runs.verdict import Verdict
from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain
from tests.cli.conftest import Type

CUT: Final = "(Cut: these are 4,000 of 12,345 characters. All of it: greenroom show r1 --output-format json)"
LATER: Final = "What it does later is not in this."
NOTHING: Final = Diff(changes=(), text="")


class Job:
    """A job with work, held by somebody or by nobody, and what is said and done in order."""

    def __init__(self, asked: str = "Paint it.", *, owner: str = "", over: bool = False, hooks: bool = False) -> None:
        self.asked = asked
        self.owner = owner
        self.over = over
        self.sets_up_hooks = hooks
        self.said: list[str] = []
        self.message = ""

    @property
    def cli(self) -> Invocation:
        runtime = SimpleNamespace(world=self._world, log=self, ended_tasks=self._tasks, stands=self._stands)
        means, setup = SimpleNamespace(steps=self._steps), SimpleNamespace(home=None)
        return cast("Invocation", SimpleNamespace(runtime=runtime, means=means, setup=setup, progress=self, out=self))

    @property
    def came(self) -> SimpleNamespace:
        return SimpleNamespace(workspace=self, snapshot=SimpleNamespace(commit="b", head="h"), tip="t", run="r1")

    def note(self, text: str, style: str = "") -> None:
        self.said.append(text)

    def show(self, text: str) -> None:
        self.said.append(text)

    def result(self, status: str, code: Exit, **_: object) -> Exit:
        return code

    async def holder(self, _: TeamId) -> SimpleNamespace | None:
        return SimpleNamespace(owner=self.owner) if self.owner else None

    async def _world(self, _: TeamId) -> SimpleNamespace:
        tasks = {} if self.over else {"t1": None}
        return SimpleNamespace(team=SimpleNamespace(kit=JOB), tasks=tasks, approvals={})

    async def _tasks(self, _: TeamId) -> list[SimpleNamespace]:
        return [SimpleNamespace(intention=self.asked)]

    async def _steps(self, _: TeamId) -> list[object]:
        return []

    async def _stands(self, *_: object) -> SimpleNamespace:
        return SimpleNamespace(why="the money is spent")

    async def applied(self, _: TeamId) -> list[Applied]:
        return []

    def recovered(self) -> tuple[Applied, ...]:
        return ()

    async def expect(self) -> None:
        """A commit can be made."""

    async def hooks(self, *_: object) -> tuple[str, ...]:
        return ("scripts/lint.sh",) if self.sets_up_hooks else ()

    async def diff(self, *_: object, limit: int) -> Diff:
        return NOTHING

    async def apply(self, *_: object) -> Applied:
        self.said.append("-- done")
        return Applied(id="", run="r1", base="b", tip="t", paths=())

    async def branch(self, name: str, base: str, tip: str, message: str) -> Branched:
        self.said.append("-- done")
        self.message = message
        return Branched(name=name, commit="c" * 40)


Take: TypeAlias = Callable[[Job, str], Awaitable[list[str]]]


@pytest.fixture(name="taken")
def _taken(monkeypatch: pytest.MonkeyPatch) -> Take:
    """Take a job over; what is said before that is done."""

    async def taken(job: Job, by: str) -> list[str]:
        async def found(*_: object) -> SimpleNamespace:
            return SimpleNamespace(team="r1")

        async def came(*_: object) -> SimpleNamespace:
            return job.came

        async def reported(*_: object) -> JobReport:
            return JobReport(base="b", tip="t", diff=NOTHING, verdict=Verdict(state="verified"))

        for name, stand_in in (("find", found), ("outcome", came), ("report_of", reported)):
            monkeypatch.setattr(change, name, stand_in)
        if by == "apply":
            code = await change.apply(job.cli, "r1")
        else:
            code = await change.branch(job.cli, "r1", "new")
        assert code is Exit.DONE
        return job.said[: job.said.index("-- done")]

    return taken


@pytest.mark.parametrize("by", ["apply", "branch"])
async def test_of_a_run_that_is_not_over_that_is_said_before_its_work_is_taken_over(taken: Take, by: str) -> None:
    works, waits, over = Job(owner="process 7"), Job(), Job(over=True)
    assert await taken(works, by) == [f"r1 is not over: it works, in process 7. {LATER}"]
    paused = "it is paused (the money is spent). Go on with: greenroom resume r1."
    assert await taken(waits, by) == [f"r1 is not over: {paused} {LATER}"]
    assert await taken(over, by) == []


async def test_a_change_that_sets_up_hooks_is_committed_without_any_and_that_is_said(taken: Take) -> None:
    told = "The change sets up hooks (scripts/lint.sh), so it is committed without running any. --hooks runs them."
    assert await taken(Job(over=True, hooks=True), "apply") == [told]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("Paint it.", "Paint it."),
        ("Paint it.\nAll of it.", "Paint it. All of it.\n\nPaint it.\nAll of it."),
        ("x" * 71, f"{'x' * 69}…\n\n{'x' * 71}"),
        ("x" * 4_000, f"{'x' * 69}…\n\n{'x' * 4_000}"),
        (
            "x" * 12_345,
            f"{'x' * 69}…\n\n{'x' * 4_000}…\n\n{CUT}",
        ),
    ],
    ids=["short", "of two lines", "long", "as long as may be", "cut"],
)
async def test_a_commit_says_what_was_asked_for_and_where_the_rest_of_it_is(
    taken: Take, asked: str, message: str
) -> None:
    job = Job(asked)
    await taken(job, "branch")
    assert job.message == message


def test_a_line_elsewhere_and_one_in_no_commit_are_said_to_be_that(
    tmp_path: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(tmp_path / "tree", tmp_path / "pat")
    plain(person)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(person.root)
    person.write("a.txt", "mine\n")
    outside, own = greenroom("blame", "../a.txt:1"), greenroom("blame", "a.txt:1")
    assert (outside.code, own.code) == (2, 2)
    assert f"'../a.txt' is not in '{person.root}'." in outside.err
    assert "Go to its repository." in outside.err
    assert "Line 1 of 'a.txt' is in no commit yet, and no job wrote it: somebody has changed it here." in own.err
    head = person.commit_all("mine")
    assert greenroom("blame", "a.txt:1").out == f"mine\ncommit {head[:10]}\nNo step of a job wrote it.\n"
