"""Recording: what a call has changed becomes a commit of its step, so that it is known who wrote a line, and why."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

from greenroom.abilities.tools.checks.run_checks import NAME as RUN_CHECKS
from greenroom.abilities.tools.wrapped import WrappedTool
from greenroom.app.checks.receipts import BASELINE
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import Mark, Recorded, Worktree
from greenroom.core.state.step import SIDE_EFFECTS, Step

TREE: Final = "tree"
"""The name of the files as a call has left them, in its result."""

COMMIT: Final = "commit"
"""The commit with what it has changed, if it has."""

PASSED_OVER: Final = "passed_over"
"""Files that it has made where the checks make theirs: they are in no commit."""

MOVED: Final = "moved"
"""Files of the base that it has put among those: each with its new name. Whatever becomes of that, they are gone."""

TAKEN: Final = "taken_away"
"""Files of that sort that it names and that are gone after it: they were to go. What only clears the folder says
nothing of somebody's file in it."""

GROUPS: Final = frozenset({"edit", "command"})
SUMMARY: Final = 72
FEW: Final = 5
"""Files in a sentence."""

KEPT: Final = 200
"""Files that are named in a result: somebody's may be among them."""


def recorded(
    tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock, *, within: str = "", by_itself: Collection[str] = ()
) -> ToolExecutor:
    """The tool, recorded if it can change files. All tools of one worktree share the `turn`. Those that record
    `by_itself` what there is are named: after them nothing is recorded that they have not seen. They work `within` a
    folder of the worktree."""
    if tool.name == RUN_CHECKS:
        return Checking(tool, worktree, turn)
    changes = tool.card.group in GROUPS or tool.card.effect in SIDE_EFFECTS
    return Recording(tool, worktree, turn, within=within, keeps=tool.name not in by_itself) if changes else tool


class Checking(WrappedTool):
    """A tool that runs checks: what they change is put back and what they make is taken away, so that to run them is
    never work. What lay there before is."""

    def __init__(self, tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock) -> None:
        super().__init__(tool)
        self._worktree = worktree
        self._turn = turn

    async def run(self, bench: Bench) -> Outcome:
        """Call it between two looks at the files."""
        async with _alone(self._turn, self._worktree):
            made = await self._worktree.commit(mark(bench))
            await self._worktree.pause()
            try:
                outcome = await super().run(bench)
            finally:
                names = await self._worktree.restore()
            return with_words(evolve(outcome, result={**(outcome.result or {}), **facts(made)}), _restored(names))


@asynccontextmanager
async def _alone(turn: asyncio.Lock, worktree: Worktree) -> AsyncIterator[None]:
    """In turn. What checks have left, and nobody could put back, is put back first: else it would become work, or work
    would go with it."""
    async with turn:
        await worktree.restore()
        yield


class Recording(WrappedTool):
    """A tool whose changes are recorded, also when it fails: what it did by then is there.

    Of several agents in one worktree one at a time changes files: else a commit would have somebody else's changes in
    it, and a check would run on a tree that nobody has named.
    """

    def __init__(
        self, tool: ToolExecutor, worktree: Worktree, turn: asyncio.Lock, *, within: str = "", keeps: bool = True
    ) -> None:
        super().__init__(tool)
        self._worktree = worktree
        self._turn = turn
        self._within = within
        self._keeps = keeps
        self._writes = tool.card.group in GROUPS
        self._tells = keeps and tool.card.group == "command" and tool.name != BASELINE  # which says what checks make

    async def run(self, bench: Bench) -> Outcome:
        """Call it, and make what it changed a commit. That is found again by its key, if we are killed in between."""
        if not self._writes:  # it may take long, and what it does is done elsewhere
            outcome = await super().run(bench)
            async with _alone(self._turn, self._worktree):
                return await self._kept(bench, outcome)
        async with _alone(self._turn, self._worktree):
            before = await self._worktree.littered() if self._tells else ()
            outcome = await super().run(bench)
            if self.card.group == "edit" and outcome.state == "finished":
                await self._worktree.claim(self._written(bench))
            kept = await self._kept(bench, outcome)
            return await self._told(bench, kept, before) if self._tells else kept

    async def _kept(self, bench: Bench, outcome: Outcome) -> Outcome:
        if not self._keeps:
            return outcome
        made = await self._worktree.commit(mark(bench))
        return evolve(outcome, result={**(outcome.result or {}), **facts(made)})

    def _written(self, bench: Bench) -> list[str]:
        """The files that a tool has written that does nothing else: they are work, wherever they lie."""
        touched = self.targets(bench.step.work.instruction_content or {})
        return [posixpath.join(self._within, one.value) for one in touched if one.kind == "path" and one.writes]

    async def _told(self, bench: Bench, outcome: Outcome, before: Collection[str]) -> Outcome:
        """With what it has made where all is passed over: nobody can tell that from what checks make there."""
        after = dict.fromkeys(await self._worktree.littered())
        known, said = frozenset(before), " ".join(map(str, (bench.step.work.instruction_content or {}).values()))
        new = [one for one in after if one not in known]
        moved = await self._worktree.moved(new) if new else {}
        told = {
            PASSED_OVER: new[:KEPT],
            MOVED: dict(islice(moved.items(), KEPT)),
            TAKEN: [one for one in before if one not in after and posixpath.basename(one) in said][:KEPT],
        }
        result = {**(outcome.result or {}), **{name: some for name, some in told.items() if some}}
        return with_words(evolve(outcome, result=result), _passed_over(new) if new else "")


def passed_over_in(steps: Iterable[Step]) -> tuple[str, ...]:
    """What was made where the checks make their files, and is not delivered."""
    found = dict[str, None]()
    for result in (one.result or {} for one in steps):
        for name in _names(result, TAKEN):
            found.pop(name, None)
        found |= dict.fromkeys(_names(result, PASSED_OVER))
    return tuple(found)


def moved_in(steps: Iterable[Step]) -> dict[str, str]:
    """Files of the base that were put there, and not taken away on purpose: each with the name that it got."""
    found = dict[str, str]()
    for result in (one.result or {} for one in steps):
        taken, held = frozenset(_names(result, TAKEN)), result.get(MOVED)
        found = {old: new for old, new in found.items() if new not in taken}
        found |= {str(old): str(new) for old, new in held.items()} if isinstance(held, Mapping) else {}
    return found


def _names(result: Data, key: str) -> Sequence[str]:
    held = result.get(key)
    return [str(one) for one in held] if isinstance(held, list) else []


def with_words(outcome: Outcome, said: str) -> Outcome:
    """An outcome that says one thing more to the agent."""
    if not said or outcome.result is None:
        return outcome
    return evolve(outcome, result={**outcome.result, "output": f"{outcome.result.get('output', '')}\n{said}".lstrip()})


def _restored(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"What the checks have changed or made is no part of the work, and is put back or taken away: {_few(names)}. "
        "What should be part of it, make with execute_script, or write it."
    )


def _passed_over(names: Sequence[str]) -> str:
    return (
        f"Not delivered, because it lies where the checks make files: {_few(names)}. What is part of the work there, "
        "write it with rewrite."
    )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:FEW]) + (f" and {len(names) - FEW:,} more" if len(names) > FEW else "")


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
