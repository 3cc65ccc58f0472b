"""Merges of a team run: what fails goes back to its author, and a run that is stopped anywhere goes on the same way."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.app.teams import start
from greenroom.app.teams.replan import build_replan, read_plan
from greenroom.core.base.ids import SubtaskId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.tool import Target
from greenroom.core.rules.intents import FinishSubtask, PauseTask, ResumeTask
from greenroom.core.state.stage import Subtask
from greenroom.runs.verdict import MERGE_QUEUE, find_verdict, read_report
from greenroom.teamwork.merge_queue import MergeTool
from greenroom.testing.scripted import Cue
from tests.app.teams.play import (
    DISCOUNT,
    STAGE,
    TASK,
    TAX,
    Gate,
    TeamPlay,
    call,
    done,
    git,
    make_plan,
    part,
    plays,
    reads,
    report_files,
    writes,
)

RIGHT = "def total(items):\n    return sum(sorted(items))\n"
CART = report_files("shop/cart.py")
BOTH = make_plan(part("code-1"), part("code-2"))
BOTH_CUES = (
    *writes("code-writer-1", "shop/tax.py", TAX),
    *writes("code-writer-2", "shop/discount.py", DISCOUNT),
)


def run_unasked(_: MergeTool, __: Data) -> tuple[Target, ...]:
    """Return no command lines: there is nothing to ask about."""
    return ()


@pytest.fixture(autouse=True)
def unasked(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Checks run without a question, as in a sandbox."""
    monkeypatch.setattr(MergeTool, "targets", run_unasked)
    return shop


def writer_that_mends(agent: str) -> tuple[Cue, ...]:
    return plays(
        agent,
        call("patch", file="shop/cart.py", edits=[{"search": "sum(items)", "replace": "max(items)"}]),
        done("faster", handoff=CART),
        call("patch", file="shop/cart.py", edits=[{"search": "max(items)", "replace": "sum(sorted(items))"}]),
        done("right", handoff=CART),
    )


async def test_work_that_breaks_a_test_goes_back_with_the_failure_and_is_merged_when_it_is_mended() -> None:
    cues = (*writer_that_mends("code-writer-1"), *writes("code-writer-2", "shop/discount.py", DISCOUNT))
    async with TeamPlay.open(*cues) as play:
        status = await play.play(BOTH)
        assert status.state == "finished", status
        back, *_ = [result for result in await play.results("merge") if "guilty" in result]
        assert (back["guilty"], back["sent_back"]) == ("code-1", 1)
        asked = reads(play.asked("code-writer-1")[2])
        assert "test_total" in asked
        assert "AssertionError" in asked, "it reads why"
        assert play.files() == {"shop/cart.py": RIGHT, "shop/discount.py": DISCOUNT}
        assert git(play.root, "log", "--first-parent", "--merges", "--format=%s", play.ref()).count("\n") == 1
        (deliver,) = await play.steps("deliver")
        assert find_verdict((deliver,)).is_verified
        assert (await play.subtasks())["code-1"].summary == "right"
        (last,) = (await play.results("hand_in", "code-writer-1"))[1:]
        changes = cast("Data", last["changes"])
        assert changes["files"] == ["shop/cart.py"], "the work of others is not its change"


async def test_a_specialist_without_commits_has_changed_nothing_although_others_are_merged() -> None:
    review = done("good", handoff={"overall_score": 90, "requires_changes": False})
    cues = (*writes("code-writer-1", "shop/tax.py", TAX), *plays("review-1", review))
    async with TeamPlay.open(*cues) as play:
        assert (await play.play(make_plan(part("code-1"), part("review", "review", "code-1")))).state == "finished"
        (handed_in,) = await play.results("hand_in", "review-1")
        assert cast("Data", handed_in["changes"])["file_count"] == 0


async def test_checks_that_ran_on_the_merged_tree_are_not_repeated() -> None:
    async with TeamPlay.open(*writes("code-writer-1", "shop/tax.py", TAX)) as play:
        assert (await play.play(make_plan(part("code-1")))).state == "finished"
        (merge,) = await play.steps("merge")
        (deliver,) = await play.steps("deliver")
        assert (merge.result or {})["checks_run"] == 1
        reports = [read_report(step) for step in (merge, deliver)]
        assert len({report.tree for report in reports if report is not None}) == 1
        assert None not in reports


async def test_a_test_that_fails_by_chance_sends_nothing_back(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    flaky = (
        "import pathlib\nimport unittest\n\n\nclass Flaky(unittest.TestCase):\n    def test_chance(self):\n"
        f"        mark = pathlib.Path({str(mark)!r})\n        ran = mark.exists()\n        mark.touch()\n"
        "        self.assertTrue(ran)\n"
    )
    cues = writes("test-writer-1", "tests/test_flaky.py", flaky, handoff={"test_files": [], "tests_added": 1})
    async with TeamPlay.open(*cues) as play:
        assert (await play.play(make_plan(part("test", "test-writer")))).state == "finished"
        (merge,), (end,) = await play.results("merge"), await play.results("finish_merge")
        assert ("guilty" in merge, "integrated" in end) == (False, True)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Holds the first merge back."""
    real, gate = GitWorkspace.advance, Gate()

    async def hold(self: GitWorkspace, run: str, thread: str, commit: str) -> None:
        gate.is_reached.set()
        await gate.is_open.wait()
        await real(self, run, thread, commit)

    monkeypatch.setattr(GitWorkspace, "advance", hold)
    return gate


async def find_waiting(play: TeamPlay) -> Subtask:
    """Wait until one entry is being merged and one waits behind it. Return the subtask that waits."""
    async for state in play.states():
        if len(steps := list(state.steps_of(MERGE_QUEUE))) == 2:
            found = state.stages[STAGE].find_subtask(steps[1].subtask_id or SubtaskId(""))
            assert found is not None
            return found
    raise AssertionError("the team ended")


async def test_work_that_waits_is_left_out_if_its_subtask_is_cancelled(gate: Gate) -> None:
    async with TeamPlay.open(*BOTH_CUES) as play:
        await play.start(BOTH)
        waiting = await find_waiting(play)
        assert waiting.state == "running"
        end = FinishSubtask(subtask_id=waiting.subtask_id, stage_id=STAGE, state="cancelled")
        await play.runtime.ask(play.team, end)
        gate.is_open.set()
        await play.end()
        assert (await play.ends())[waiting.name] == "cancelled"
        assert len(play.files()) == 1


async def test_a_run_that_is_paused_or_cancelled_while_work_waits_merges_nothing_more(gate: Gate) -> None:
    async with TeamPlay.open(*BOTH_CUES) as play:
        await play.start(BOTH)
        waiting = await find_waiting(play)
        await play.runtime.ask(play.team, PauseTask(task_id=TASK))
        gate.is_open.set()
        assert (await play.end()).state == "paused"
        assert (await play.ends())[waiting.name] == "running"
    async with TeamPlay.open(*BOTH_CUES) as again:
        await again.runtime.ask(again.team, ResumeTask(task_id=TASK))
        await again.runtime.start(again.team)
        status = await again.end()
        assert status.state == "finished", status
        assert again.files() == {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT}


async def test_a_plan_that_changes_while_work_waits_keeps_it(gate: Gate) -> None:
    cues = (*BOTH_CUES, *writes("documentation-1", "docs/tax.md", "# Tax\n", handoff={"documents": []}))
    async with TeamPlay.open(*cues) as play:
        await play.start(BOTH)
        await find_waiting(play)
        state = await play.runtime.state(play.team)
        now = read_plan(state, state.stages[STAGE])
        more = evolve(now, subtasks=(*now.subtasks, part("doc", "documentation", "code-1", "code-2")))
        await play.runtime.ask(play.team, build_replan(state, state.stages[STAGE], more))
        gate.is_open.set()
        status = await play.end()
        assert status.state == "finished", status
        assert play.files().keys() == {"shop/tax.py", "shop/discount.py", "docs/tax.md"}


async def test_a_run_without_a_merge_queue_merges_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "SYSTEM_AGENTS", start.SYSTEM_AGENTS[:2])
    async with TeamPlay.open(*BOTH_CUES) as play:
        status = await play.play(BOTH)
        assert status.state == "finished", status
        assert play.files() == {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT}
        assert (await play.steps("merge"), len(await play.results("hand_in"))) == ([], 2)
