"""Steps as a log would have them: edits, runs of checks."""

from __future__ import annotations

from greenroom.app.checks.receipts import BASELINE, DELIVER
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import REPORT, Check, Checked, Compared, Report, as_data
from greenroom.core.state.step import Step, StepEnd, Work

PYTEST = Check(name="pytest", line="pytest", kind="test", why="w.")
RUFF = Check(name="ruff", line="ruff check .", kind="lint", why="w.")
CLEAN = Checked(
    check="pytest", kind="test", digest="d", outcome="passed", exit=0, tree="new", passed=12, compared=Compared()
)
LINTED = evolve(CLEAN, check="ruff", kind="lint", passed=0)


class Story:
    """Steps, one after the other."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def step(self, executor: str, result: dict[str, object] | None = None, state: StepEnd = "finished") -> Story:
        """One more."""
        at = len(self.steps) + 1
        self.steps.append(
            Step(
                step_id=StepId(f"ann#{at}"),
                agent_id=AgentId("ann"),
                thread_id=ThreadId("ann@t1"),
                task_id=TaskId("t1"),
                stage_id=None,
                subtask_id=None,
                work=Work(type="tool", executor=executor),
                queued_at=at,
                ended_at=at * 10,
                state=state,
                result=result,
            )
        )
        return self

    def edit(self, state: StepEnd = "finished") -> Story:
        """A file is changed."""
        return self.step("patch", {"files": [{"path": "app.py"}]}, state)

    def checked(self, *checks: Checked, base: bool = False, state: StepEnd = "finished") -> Story:
        """Checks are run by the house: on the base, or on a fresh copy."""
        tree = checks[0].tree if checks else "new"
        report = Report(tree=tree, checks=checks, base=base, fresh=not base)
        return self.step(BASELINE if base else DELIVER, {REPORT: dict(as_data(report))}, state)
