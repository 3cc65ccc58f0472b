"""What is said and written where work is taken over, by the commands in this process; whole jobs are in tests/e2e."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import pytest

from greenroom.app.lookup import Found
from greenroom.app.runs.workspaces import Outcome
from greenroom.app.task_status import Standing
from greenroom.cli.commands import change
from greenroom.cli.context import Invocation
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import TeamId
from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain
from tests.cli.conftest import Type

CUT: Final = "(Cut: these are 4,000 of 12,345 characters. All of it: greenroom show r1 --output-format json)"
R1: Final = TeamId("r1")


def of_a_job(asked: str = "Paint it.", *, owner: str = "", over: bool = False) -> Invocation:
    """A command about a job, held by some process or by none."""

    async def world(_: TeamId) -> SimpleNamespace:
        return SimpleNamespace(tasks={} if over else {"t1": None}, approvals={})

    async def ended_tasks(_: TeamId) -> list[SimpleNamespace]:
        return [SimpleNamespace(intention=asked)]

    async def stands(*_: object) -> Standing:
        return Standing(word="limit", why="the money is spent")

    async def holder(_: TeamId) -> SimpleNamespace | None:
        return SimpleNamespace(owner=owner) if owner else None

    log = SimpleNamespace(holder=holder)
    runtime = SimpleNamespace(world=world, log=log, ended_tasks=ended_tasks, stands=stands)
    return cast("Invocation", SimpleNamespace(runtime=runtime, setup=SimpleNamespace(home=None)))


async def test_of_a_run_that_is_not_over_it_is_said_how_it_goes_on() -> None:
    assert await change._unended(of_a_job(owner="process 7"), R1) == "it works, in process 7."
    paused = "it is paused (the money is spent). Go on with: greenroom resume r1."
    assert await change._unended(of_a_job(), R1) == paused
    assert await change._unended(of_a_job(over=True), R1) == ""
    came = SimpleNamespace(tip="t", snapshot=SimpleNamespace(commit="t"))
    with pytest.raises(Refused, match=r"r1 has changed nothing yet: it is paused \(the money is spent\)"):
        await change._refuse_nothing(of_a_job(), Found(team=R1), cast("Outcome", came))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("Paint it.", "Paint it."),
        ("Paint it.\nAll of it.", "Paint it. All of it.\n\nPaint it.\nAll of it."),
        ("x" * 71, f"{'x' * 69}…\n\n{'x' * 71}"),
        ("x" * 4_000, f"{'x' * 69}…\n\n{'x' * 4_000}"),
        ("x" * 12_345, f"{'x' * 69}…\n\n{'x' * 4_000}…\n\n{CUT}"),
    ],
    ids=["short", "of two lines", "long", "as long as may be", "cut"],
)
async def test_a_commit_says_what_was_asked_for_and_where_the_rest_of_it_is(asked: str, message: str) -> None:
    assert await change._message(of_a_job(asked), R1) == message


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
