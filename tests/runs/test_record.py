"""Recording: one agent at a time changes a copy, so that a commit has the changes of its own step only."""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias, cast

from greenroom.abilities.tools.run_checks import NAME as RUN_CHECKS
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import CommitInfo, StepCommit, Worktree
from greenroom.core.state.spec import ToolGroup
from greenroom.core.state.step import Effect, Step
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.runs.delivery import wrap_recording
from greenroom.runs.verdict import COMMIT_KEY, TREE_KEY
from tests.runs.log import Story

Ended: TypeAlias = Literal["finished", "failed"]


class Copy:
    """A worktree whose files are a set of names; a commit has all that was written since the last one."""

    def __init__(self) -> None:
        self.written: set[str] = set()
        self.commits: list[tuple[str, set[str]]] = []

    async def commit(self, mark: CommitInfo) -> StepCommit:
        await asyncio.sleep(0)
        if not self.written:
            return StepCommit(commit="", tree=self._tree())
        self.commits.append((mark.summary, self.written))
        self.written = set()
        return StepCommit(commit=f"c{len(self.commits)}", tree=self._tree())

    def _tree(self) -> str:  # who has asked for a commit knows it, and does not look again
        return f"t{len(self.commits)}"


class Writes(CardedTool):
    """Writes in two goes, and lets others in between if they may."""

    def __init__(
        self, name: str, copy: Copy, group: ToolGroup = "edit", effect: Effect = "keyed", state: Ended = "finished"
    ) -> None:
        spec = ToolSpec(name=name, description="", parameters={})
        self.card = ToolCard(spec=spec, group=group, effect=effect)
        self._copy, self._state = copy, state

    def targets(self, _: Data) -> tuple[Target, ...]:
        """What it writes, what it reads, and what it runs."""
        written = Target(kind="path", value=f"{self.name}1", writes=True)
        return (written, Target(kind="path", value="read"), Target(kind="command", value="make", writes=True))

    async def run(self, _: StepContext) -> Outcome:
        for part in ("1", "2"):
            self._copy.written.add(f"{self.name}{part}")
            await asyncio.sleep(0)
        return Outcome(state=self._state, result={"output": "written"})


class AtWork:
    """As much of a bench as a recording looks at."""

    def __init__(self, step: Step) -> None:
        self.step, self.key = step, step.step_id
        self.state = TeamState(team=Team(team_id=TeamId("t"), name="t"))


def bench(name: str) -> StepContext:
    (step,) = Story().step(name).steps
    return cast("StepContext", AtWork(step))


async def test_of_two_that_write_at_once_each_has_its_own_commit() -> None:
    copy, turn = Copy(), asyncio.Lock()
    tools = [wrap_recording(Writes(name, copy), cast("Worktree", copy), turn) for name in ("ann", "bob")]
    done = await asyncio.gather(*(tool.run(bench(tool.name)) for tool in tools))
    assert copy.commits == [("ann", {"ann1", "ann2"}), ("bob", {"bob1", "bob2"})]
    assert [(one.result or {})[COMMIT_KEY] for one in done] == ["c1", "c2"]
    assert [(one.result or {})[TREE_KEY] for one in done] == ["t1", "t2"]


async def test_what_acts_elsewhere_keeps_nobody_waiting() -> None:
    copy, turn = Copy(), asyncio.Lock()
    far = wrap_recording(Writes("far", Copy(), group="mcp", effect="effectful"), cast("Worktree", copy), turn)
    await turn.acquire()
    running = asyncio.create_task(far.run(bench("far")))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not running.done(), "only what became of it is written down in turn"
    turn.release()
    assert COMMIT_KEY not in ((await running).result or {})


def test_what_changes_nothing_is_not_recorded() -> None:
    tool = Writes("look", Copy(), group="read", effect="pure")
    assert wrap_recording(tool, cast("Worktree", Copy()), asyncio.Lock()) is tool


async def test_who_records_by_itself_is_waited_for_and_nothing_is_recorded_after_it() -> None:
    copy, turn = Copy(), asyncio.Lock()
    tool = wrap_recording(Writes("deliver", copy), cast("Worktree", copy), turn, self_committing=("deliver",))
    done = await tool.run(bench("deliver"))
    assert (done.result, copy.commits, copy.written) == ({"output": "written"}, [], {"deliver1", "deliver2"})


async def test_checks_run_on_a_commit_of_what_was_there_and_nobody_works_meanwhile() -> None:
    copy, turn = Copy(), asyncio.Lock()
    copy.written.add("before")
    tools = [Writes(RUN_CHECKS, Copy(), group="command"), Writes("ann", copy)]
    checked, _ = await asyncio.gather(
        *(wrap_recording(tool, cast("Worktree", copy), turn).run(bench(tool.name)) for tool in tools)
    )
    assert copy.commits == [(RUN_CHECKS, {"before"}), ("ann", {"ann1", "ann2"})]
    assert (checked.result or {})[TREE_KEY] == "t1"


async def test_what_a_failed_call_did_is_recorded_too() -> None:
    copy = Copy()
    tool = wrap_recording(Writes("ann", copy, state="failed"), cast("Worktree", copy), asyncio.Lock())
    done = await tool.run(bench("ann"))
    assert (done.state, copy.commits) == ("failed", [("ann", {"ann1", "ann2"})])
