"""Recording: what a call has changed becomes a commit of its step, so that blame names the step."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from greenroom.abilities.tools.tool import WrappedTool
from greenroom.app.jobs.verdict import RUN_CHECKS, TREE
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import Mark, Recorded, Worktree
from greenroom.core.state.step import SIDE_EFFECTS, Step

COMMIT: Final = "commit"
"""Where a result has the commit with what the call has changed."""

GROUPS: Final = frozenset({"edit", "command"})
SUMMARY: Final = 72


def recorded(
    tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock, *, by_itself: Collection[str] = ()
) -> ToolExecutor:
    """The tool, recorded if it can change files. All tools of one worktree share the `turn`. Those `by_itself` run
    in turn and make their own commit."""
    if tool.name in by_itself:
        return Recording(tool, worktree, turn, keeps=False)
    changes = tool.card.group in GROUPS or tool.card.effect in SIDE_EFFECTS
    return Recording(tool, worktree, turn) if changes else tool


class Recording(WrappedTool):
    """A tool whose changes are recorded, also when it fails: what it did by then is there.

    Of several agents in one worktree one at a time changes files: else a commit would have somebody else's changes.
    """

    def __init__(self, tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock, *, keeps: bool = True) -> None:
        super().__init__(tool)
        self._worktree = worktree
        self._turn = turn
        self._keeps = keeps

    async def run(self, bench: Bench) -> Outcome:
        """Call it, and make what it changed a commit. That is found again by its key, if we are killed in between."""
        if self.card.group not in GROUPS:  # it may take long, and what it does is done elsewhere
            outcome = await super().run(bench)
            async with self._turn:
                return await self._kept(bench, outcome)
        async with self._turn:
            if self.name != RUN_CHECKS:
                return await self._kept(bench, await super().run(bench))
            made = await self._worktree.commit(mark(bench))  # checks run on the newest commit
            outcome = await super().run(bench)
            return evolve(outcome, result={**(outcome.result or {}), **facts(made)})

    async def _kept(self, bench: Bench, outcome: Outcome) -> Outcome:
        if not self._keeps:
            return outcome
        made = await self._worktree.commit(mark(bench))
        return evolve(outcome, result={**(outcome.result or {}), **facts(made)})


def facts(made: Recorded) -> Data:
    """What a step's result says of the files that lay there after it."""
    return {TREE: made.tree, **({COMMIT: made.commit} if made.commit else {})}


def mark(bench: Bench) -> Mark:
    """Whose changes these are."""
    step, team = bench.step, bench.world.team
    return Mark(
        run=team.team_id,
        key=bench.key,
        task=step.task_id,
        agent=step.agent_id,
        step=step.step_id,
        summary=_summary(step),
    )


def _summary(step: Step) -> str:
    given = step.work.instruction_content or {}
    what = next((str(given[name]) for name in ("path", "file", "script") if given.get(name)), "")
    words = " ".join(f"{step.work.executor} {what}".split())
    return words if len(words) <= SUMMARY else f"{words[: SUMMARY - 1]}…"
