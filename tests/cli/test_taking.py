"""What is said and written where work is taken over, by the commands in this process; whole jobs are in tests/e2e."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import pytest

from greenroom.app.context import AppContext
from greenroom.app.runs.apply_change import build_message, describe_pending, refuse_no_change
from greenroom.app.runs.workspaces import RunChange
from greenroom.app.task_status import TaskStatus
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import TeamId
from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain
from tests.cli.conftest import Type

CUT: Final = "(Cut to 4,000 of 12,345 characters. All of it: greenroom show r1 --output-format json)"
R1: Final = TeamId("r1")


def of_a_job(asked: str = "Paint it.", *, owner: str = "", over: bool = False) -> AppContext:
    """The context of a command about a job, held by some process or by none."""

    async def state(_: TeamId) -> SimpleNamespace:
        return SimpleNamespace(tasks={} if over else {"t1": None}, approvals={})

    async def ended_tasks(_: TeamId) -> list[SimpleNamespace]:
        return [SimpleNamespace(intention=asked)]

    async def status(*_: object) -> TaskStatus:
        return TaskStatus(state="limit", reason="the money is spent")

    async def holder(_: TeamId) -> SimpleNamespace | None:
        return SimpleNamespace(owner=owner) if owner else None

    log = SimpleNamespace(holder=holder)
    runtime = SimpleNamespace(state=state, log=log, ended_tasks=ended_tasks, status=status)
    return cast("AppContext", SimpleNamespace(runtime=runtime))


def name_command(*words: str) -> str:
    return " ".join(("greenroom", *words))


async def test_of_a_run_that_is_not_over_it_is_said_how_it_goes_on() -> None:
    assert await describe_pending(of_a_job(owner="process 7"), R1, name_command) == "it runs in process 7."
    paused = "it is paused (the money is spent). Continue with: greenroom resume r1."
    assert await describe_pending(of_a_job(), R1, name_command) == paused
    assert await describe_pending(of_a_job(over=True), R1, name_command) == ""
    came = SimpleNamespace(run="r1", tip="t", snapshot=SimpleNamespace(commit="t"))
    with pytest.raises(RefusedError, match=r"r1 has changed nothing yet: it is paused \(the money is spent\)"):
        await refuse_no_change(of_a_job(), cast("RunChange", came), name_command)


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
    assert await build_message(of_a_job(asked), R1) == message


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
    assert "Change to its repository." in outside.err
    assert "Line 1 of 'a.txt' is not committed yet, and no run wrote it." in own.err
    head = person.commit_all("mine")
    assert greenroom("blame", "a.txt:1").out == f"mine\ncommit {head[:10]}\nNo step of a run wrote it.\n"
