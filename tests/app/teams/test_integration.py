"""How the conflicts of a team run were resolved, read from its steps."""

from __future__ import annotations

import pytest

from greenroom.app.teams.integration_report import _describe_conflict
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.state.step import Step, Work
from greenroom.teamwork.conflicts import collect_conflicts

BOTH = {"description": "Both changed it.", "severity": "medium"}
FILE = {"type": "file-modification", "path": "a.py", "involved_agents": ["w-1", "w-2"], **BOTH}
NAME = {
    "type": "naming-conflict",
    "path": "b.py",
    "description": "Both define tax.",
    "severity": "high",
    "involved_agents": ["w-2"],
}


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


def test_the_newest_record_of_each_conflict_counts_and_what_is_merged_was_mended() -> None:
    back: Data = {**NAME, "state": "sent back", "rung": "author"}
    gone: Data = {**FILE, "state": "resolved", "rung": "person", "why": "a person chose: left"}
    dropped = [f"line {number} {'x' * 100}" for number in range(40)]
    steps = [
        merge("tax", conflicts=[{**FILE, "state": "open"}, {**FILE, "path": "c.py", "state": "proposed"}, back]),
        merge("disc", conflicts=[back]),
        merge("tax", conflicts=[{**FILE, "state": "resolved", "rung": "structure", "why": "both add a function"}]),
        merge("tax", integrated="c1"),
        merge("docs", conflicts=[{**FILE, "path": "d.py", "state": "open"}]),
        merge("docs", integrated="c2", conflicts=[{**gone, "path": "d.py", "dropped_lines": dropped}]),
    ]
    found = collect_conflicts(steps)
    assert [row.state for row in found] == ["resolved", "mended", "mended", "sent back", "resolved"]
    *others, last = map(_describe_conflict, found)
    assert others == [
        "file-modification in a.py (w-1, w-2): merged, structure. both add a function",
        "file-modification in c.py (w-1, w-2): mended, git. Both changed it.",
        "naming-conflict in b.py (w-2): mended, author. Both define tax.",
        "naming-conflict in b.py (w-2): sent back, author. Both define tax.",
    ]
    begin = "file-modification in d.py (w-1, w-2): merged, person. a person chose: left The result lacks: line 0 xxx"
    assert (last.startswith(begin), len(last) < 2000, "more" in last) == (True, True, True)


@pytest.mark.parametrize("result", [{}, {"conflicts": []}, {"conflicts": None}])
def test_other_results_hold_no_conflict(result: Data) -> None:
    assert collect_conflicts([merge("tax", **result)]) == []
