"""Steps as a log contains them: edits and check runs."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT_KEY, CheckReport, CheckResult, report_to_data
from greenroom.core.state.step import Step, StepEnd, Work
from greenroom.runs.verdict import BASELINE, DELIVER


class Story:
    """A sequence of steps."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def step(
        self,
        executor: str,
        result: Data | None = None,
        state: StepEnd = "finished",
        given: Data | None = None,
    ) -> Story:
        """Add a step with this result. `given` are its arguments."""
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

    def checked(self, *checks: CheckResult, by: str = DELIVER, tree: str = "new", state: StepEnd = "finished") -> Story:
        """Add a step that ran checks in a throw-away worktree of this tree."""
        report = CheckReport(tree=tree, checks=checks, base=by == BASELINE, fresh=True)
        return self.step(by, {REPORT_KEY: report_to_data(report)}, state)
