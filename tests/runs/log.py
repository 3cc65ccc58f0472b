"""Steps as a log would have them: edits, runs of checks."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT, Checked, Report, as_data
from greenroom.core.state.step import Step, StepEnd, Work
from greenroom.runs.verdict import BASELINE, DELIVER


class Story:
    """Steps, one after the other."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def step(
        self,
        executor: str,
        result: Data | None = None,
        state: StepEnd = "finished",
        given: Data | None = None,
    ) -> Story:
        """Add a step with this result; `given` is what it was called with."""
        at = len(self.steps) + 1
        self.steps.append(
            Step(
                step_id=StepId(f"ann#{at}"),
                agent_id=AgentId("ann"),
                thread_id=ThreadId("ann@t1"),
                task_id=TaskId("t1"),
                stage_id=None,
                subtask_id=None,
                work=Work(type="tool", executor=executor, instruction_content=given),
                queued_at=at,
                ended_at=at * 10,
                state=state,
                result=result,
            )
        )
        return self

    def checked(self, *checks: Checked, by: str = DELIVER, tree: str = "new", state: StepEnd = "finished") -> Story:
        """Add a step that ran checks in a throw-away worktree of this tree."""
        report = Report(tree=tree, checks=checks, base=by == BASELINE, fresh=True)
        return self.step(by, {REPORT: as_data(report)}, state)
