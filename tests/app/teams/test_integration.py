"""How the conflicts of a team run were resolved, read from its steps."""

from __future__ import annotations

import pytest

from greenroom.app.teams.integration import find_resolutions
from greenroom.cli.render.integration import _describe_conflict
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.state.step import Step, Work

FILE = {"type": "file-modification", "path": "a.py", "involved_agents": ["w-1", "w-2"]}
NAME = {"type": "naming-conflict", "path": "b.py", "description": "Both define tax.", "involved_agents": ["w-2"]}


def merge(subtask: str, **result: object) -> Step:
    return Step(
        step_id=StepId("merge-queue#1"),
        agent_id=AgentId("merge-queue"),
        thread_id=ThreadId("merge-queue"),
        task_id=TaskId("t1"),
        stage_id=None,
        subtask_id=SubtaskId(subtask),
        work=Work(type="tool", executor="merge"),
        queued_at=1,
        result=result,
    )


def test_the_newest_record_of_each_conflict_counts_and_what_went_back_is_mended_when_it_is_merged() -> None:
    back: Data = {**NAME, "state": "sent back"}
    steps = [
        merge("tax", conflicts=[{**FILE, "state": "open"}, back]),
        merge("disc", conflicts=[back]),
        merge("tax", conflicts=[{**FILE, "state": "resolved", "rung": "structure", "why": "both add a function"}]),
        merge("tax", integrated="c1"),
        merge("docs", integrated="c2", conflicts="none"),
    ]
    found = find_resolutions(steps)
    assert [row["state"] for row in found] == ["resolved", "mended", "sent back"]
    assert [_describe_conflict(row) for row in found] == [
        "file-modification in a.py (w-1, w-2): resolved, structure. both add a function",
        "naming-conflict in b.py (w-2): mended. Both define tax.",
        "naming-conflict in b.py (w-2): sent back. Both define tax.",
    ]


@pytest.mark.parametrize("result", [{}, {"conflicts": [1, {}]}, {"conflicts": None}])
def test_other_results_hold_no_conflict(result: Data) -> None:
    assert find_resolutions([merge("tax", **result)]) == ()
