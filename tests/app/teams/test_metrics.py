"""What specialists took in past runs: measured from logs, read once."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.teams.metrics import METRICS_FILE, ProfileMetrics, _read_runs, read_metrics
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import StepId, TeamId, ThreadId
from greenroom.core.ports.log import StoredEvent
from greenroom.core.state.step import StepEnded, StepInterrupted
from greenroom.core.state.team import ForkOrigin, TeamForked
from greenroom.teamwork.estimate import Basis, PastMerges, estimate_plan
from greenroom.teamwork.plan import Plan, PlannedSubtask
from tests.app.teams.past_runs import created, worked, write_run

ONE = Amounts(money=10_000, tokens=100, steps=1, millis=2000)


class CountingLog(MemoryLog):
    """A log that counts the streams whose events are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        self.reads.append(stream)
        return super().read(stream, after, upto)


@pytest.mark.req("RC-33", "RC-65")
async def test_metrics_are_running_averages_over_all_team_runs(tmp_path: Path) -> None:
    log = MemoryLog()
    assert await read_metrics(log, tmp_path) == {}
    await write_run(log, "a", [created(), *worked("debug-1", steps=3), *worked("debug-2", "failed")])
    await write_run(log, "b", [created(), *worked("debug-1"), *worked("review-1")])
    found = await read_metrics(log, tmp_path)
    assert set(found) == {"debug", "review"}
    debug = found["debug"]
    assert (debug.completed, debug.failed, debug.success_rate) == (2, 1, 0.6667)
    assert debug.basis == Basis(seconds=3.333, tokens=166.7, cost=0.016667, runs=3)
    await write_run(log, "c", [created(), *worked("debug-1")])
    assert (await read_metrics(log, tmp_path))["debug"].success_rate == 0.75


async def test_only_ended_subtasks_of_agents_with_a_model_count(tmp_path: Path) -> None:
    log = MemoryLog()
    await write_run(log, "a", [created(kit="job"), *worked("coder-1")])
    await write_run(
        log,
        "b",
        [
            created(),
            *worked("checks-1", kind="system"),
            *worked("debug-1", "cancelled"),
            *worked("review-1", "skipped"),
            *worked("refactor-1", None),
        ],
    )
    assert await read_metrics(log, tmp_path) == {}
    interrupted = StepInterrupted(at=9, step_id=StepId("debug-3#9"), attempt=1, why="x", spent=ONE)
    await write_run(log, "b", [*worked("debug-3"), interrupted])
    assert await read_metrics(log, tmp_path) == {
        "debug": ProfileMetrics(completed=1, spent=Amounts(money=20_000, tokens=200, steps=2, millis=4000))
    }


async def test_a_fork_counts_only_what_is_its_own(tmp_path: Path) -> None:
    log = MemoryLog()
    forked = TeamForked(at=10, team_id=TeamId("b"), origin=ForkOrigin(team_id=TeamId("a"), version=5))
    await write_run(log, "a", [created(), *worked("debug-1")])
    await write_run(log, "b", [created(), *worked("debug-1"), forked, *worked("debug-2", "failed")])
    found = (await read_metrics(log, tmp_path))["debug"]
    assert (found.completed, found.failed, found.spent) == (1, 1, ONE.plus(ONE))


async def test_a_run_is_read_once_and_again_only_when_it_went_on(tmp_path: Path) -> None:
    log = CountingLog()
    for number in range(5):
        await write_run(log, f"run{number}", [created(), *worked("debug-1")])
    await write_run(log, "other", [created(kit="job")])
    first = await read_metrics(log, tmp_path)
    assert log.reads == [f"run{number}" for number in range(5)]
    assert await read_metrics(log, tmp_path) == first
    await write_run(log, "run3", worked("debug-2"))
    await write_run(log, "other", worked("debug-2"))
    assert (await read_metrics(log, tmp_path))["debug"].completed == 6
    assert log.reads[5:] == ["run3"]
    await log.forget("run3")
    assert (await read_metrics(log, tmp_path))["debug"].completed == 4
    assert log.reads[6:] == []


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]", b'{"format": 1, "runs": {"x": {"version": 1}}}'])
async def test_a_file_that_cannot_be_used_is_written_again(tmp_path: Path, content: bytes) -> None:
    log = MemoryLog()
    await write_run(log, "a", [created(), *worked("debug-1")])
    (tmp_path / METRICS_FILE).write_bytes(content)
    first = await read_metrics(log, tmp_path)
    assert first["debug"].runs == 1
    assert (tmp_path / METRICS_FILE).read_bytes() != content


async def test_metrics_need_no_file(tmp_path: Path) -> None:
    log = MemoryLog()
    await write_run(log, "a", [created(), *worked("debug-1")])
    assert (await read_metrics(log, tmp_path / "missing"))["debug"].runs == 1


async def test_a_damaged_log_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    await write_run(log, "a", [created(), *worked("debug-1")])
    await write_run(log, "b", [created(), *worked("debug-1")])
    pick = log.pick

    async def pick_or_fail(stream: str, versions: list[int]) -> object:
        if stream == "a":
            raise StoreFault("damaged")
        return await pick(stream, versions)

    monkeypatch.setattr(log, "pick", pick_or_fail)
    assert (await read_metrics(log, tmp_path))["debug"].runs == 1


def test_without_runs_nothing_is_known() -> None:
    assert (ProfileMetrics().runs, ProfileMetrics().success_rate) == (0, None)
    assert ProfileMetrics(completed=1).basis == Basis(seconds=0, tokens=0, cost=None, runs=1)


@pytest.mark.req("RC-135")
async def test_merges_and_write_sets_of_past_runs_are_summed_and_shape_the_next_estimate(tmp_path: Path) -> None:
    log = MemoryLog()
    for stream in ("a", "b"):
        steps = [
            ended("code-writer-1", changes={"files": ["a.py"], "outside": [], "planned": ["a.py"], "file_count": 1}),
            ended("code-writer-2", changes={"files": [], "outside": [], "planned": ["b.py"], "file_count": 0}),
            ended("code-writer-2", changes={"outside": ["LOG.md"], "planned": ["b.py"], "file_count": 2}),
            ended("merge-queue", integrated="c1", seconds=20, conflicts=[{"type": "file-modification"}]),
            ended("merge-queue", integrated="c2", seconds=10),
        ]
        await write_run(log, stream, [created(stream), *steps])
    total = PastMerges()
    for run in (await _read_runs(log, tmp_path)).values():
        assert run.merges is not None
        total = total.plus(run.merges)
    assert (total.merges, total.seconds, total.conflicts) == (4, 60, 2)
    assert (total.planned, total.held, total.often) == (4, 2, ("LOG.md",))
    plan = Plan(request="x", subtasks=(PlannedSubtask(id="a", agent="code-writer", seconds=60, writes=("a.py",)),))
    assert (estimate_plan(plan).merge_seconds, estimate_plan(plan, past=total).merge_seconds) == (5, 15)


def ended(agent: str, **result: object) -> StepEnded:
    return StepEnded(
        at=3, step_id=StepId(f"{agent}#1"), thread_id=ThreadId(agent), attempt=1, state="finished", result=result
    )
