"""Recording: what a call has changed becomes a commit of its step, so that it is known who wrote a line, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from greenroom.abilities.tools.wrapped import WrappedTool
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import Mark, Worktree
from greenroom.core.state.step import SIDE_EFFECTS, Step

TREE: Final = "tree"
"""The name of the files as a call has left them, in its result."""

COMMIT: Final = "commit"
"""The commit with what it has changed, if it has."""

GROUPS: Final = frozenset({"edit", "command"})
SUMMARY: Final = 72


def recorded(
    tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock, *, by_itself: Collection[str] = ()
) -> ToolExecutor:
    """The tool, recorded if it can change files. All tools of one worktree share the `turn`. Those that record
    `by_itself` what there is are named: after them nothing is recorded that they have not seen."""
    changes = tool.card.group in GROUPS or tool.card.effect in SIDE_EFFECTS
    return Recording(tool, worktree, turn, keeps=tool.name not in by_itself) if changes else tool


class Recording(WrappedTool):
    """A tool whose changes are recorded, also when it fails: what it did by then is there.

    Of several agents in one worktree one at a time changes files: else a commit would have somebody else's changes in
    it, and a check would run on a tree that nobody has named.
    """

    def __init__(self, tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock, *, keeps: bool = True) -> None:
        super().__init__(tool)
        self._worktree = worktree
        self._turn = turn
        self._keeps = keeps
        self._writes = tool.card.group in GROUPS

    async def run(self, bench: Bench) -> Outcome:
        """Call it, and make what it changed a commit. That is found again by its key, if we are killed in between."""
        if not self._writes:  # it may take long, and what it does is done elsewhere
            outcome = await super().run(bench)
            async with self._turn:
                return await self._kept(bench, outcome)
        async with self._turn:
            return await self._kept(bench, await super().run(bench))

    async def _kept(self, bench: Bench, outcome: Outcome) -> Outcome:
        if not self._keeps:
            return outcome
        made = await self._worktree.commit(mark(bench))
        facts = {TREE: made.tree, **({COMMIT: made.commit} if made.commit else {})}
        return evolve(outcome, result={**(outcome.result or {}), **facts})


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
