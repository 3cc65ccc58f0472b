"""What a run changes becomes commits: one for each step, and a last one that is judged by the checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.skills.talk.transcript import told_meanwhile
from greenroom.abilities.tools.tool import CardedTool, WrappedTool
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import REPORT, Checked, Report, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.ports.workspace import Change, Mark, Recorded, Worktree
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import SIDE_EFFECTS, Step, Work
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import Checkout, Opened, imports_elsewhere
from greenroom.runs.discover import is_check_setup, is_compiled, is_test
from greenroom.runs.verdict import (
    COMMIT,
    DELIVER,
    RUN_CHECKS,
    TREE,
    VERDICT,
    Facts,
    Finding,
    Verdict,
    as_kept,
    judge,
    known_entries,
    unverified,
    verdict_in,
)
from greenroom.runs.workspace import History, Place, Quiet, wanted_in

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


SPEC: Final = ToolSpec(
    name=DELIVER,
    description="Commit what an agent has done, and judge it by the project's checks.",
    parameters={
        "type": "object",
        "properties": {
            "said": {"type": "string"},
            "files": {"type": "array", "items": {"type": "string"}},
            "tests": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["said"],
    },
)
TRIES: Final = 3
"""How often work is judged before it ends as it is."""

RESTORED: Final = "restored"
"""Where the result has what the old tests said of the new code."""


ANSWERED: Final = "No file was changed: it is an answer."
PUT_BACK: Final = "Put the tests back as they were, unless the request asks to change them; then say which and why."

Describe: TypeAlias = Callable[[Finding], str]
"""How a finding becomes a sentence."""


class Deliver(CardedTool):
    """Keyed: it runs checks again that were cut off, and its commit is found again.

    `quiet` ends what agents have begun in the background; `describe` says a finding in a sentence; `prepares` says
    that a setup rebuilds what is built.
    """

    def __init__(
        self,
        place: Place,
        checker: ProjectChecks,
        opened: Opened,
        history: History,
        *,
        quiet: Quiet,
        describe: Describe,
        prepares: bool = False,
    ) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._place = place
        self._checker = checker
        self._opened = opened
        self._history = history
        self._quiet = quiet
        self._describe = describe
        self._prepares = prepares

    def targets(self, _: Data) -> tuple[Target, ...]:
        """The command lines of the checks: they run what an agent has written."""
        return tuple(Target(kind="command", value=check.line) for check in self._checker.runnable)

    async def run(self, bench: Bench) -> Outcome:
        """Commit, judge, and end the work or say what is missing. What a person has said meanwhile is read first."""
        steps = await self._history(bench.world.team.team_id)
        stopped = await self._quiet()
        made = await self._place.worktree.commit(mark(bench))
        changes = (await self._place.diff()).changes
        report, old = Report(tree=made.tree, fresh=True), None
        if changes:
            verdict, report, old = await self._judged(made, changes, steps, stopped, bench)
        elif wanted_in(steps).question:
            verdict = Verdict(state="verified")
        else:
            verdict = evolve(unverified("nothing_changed"), notes=tuple(_not_delivered(made)))
        result: dict[str, object] = {
            "output": self._spoken(verdict, bool(changes)),
            VERDICT: as_kept(verdict),
            **facts(made),
        }
        result |= {REPORT: as_data(report)} if report.checks else {}
        result |= {RESTORED: as_data(old)} if old is not None else {}
        blobs = (*report.blobs, *(old.blobs if old is not None else ()))
        after = self._after(bench.step, verdict, steps)
        return Outcome(result=result, intents=() if told_meanwhile(bench.world, bench.step) else (after,), blobs=blobs)

    async def _judged(
        self, made: Recorded, changes: Sequence[Change], steps: Sequence[Step], stopped: Sequence[str], bench: Bench
    ) -> tuple[Verdict, Report, Report | None]:
        """The verdict, what the checks said of this tree, and what the old tests said. What has run on this very tree
        is not run again."""
        checker, tree = self._checker, made.tree
        # All paths of a change; of a renamed file both.
        paths = list(dict.fromkeys(name for change in changes for name in (change.path, change.before) if name))
        known = known_entries(steps, tree)
        wanted = [check.name for check in checker.checks if check.name not in known]
        tests = [check.name for check in checker.checks if check.kind == "test"]
        elsewhere: list[Finding] = []

        async def look(checkout: Checkout) -> None:
            elsewhere.extend(await imports_elsewhere(checker.checks, paths, checkout, self._place, bench))

        fresh = await checker.run(wanted, bench, first=look) if wanted else Report(tree=tree, fresh=True)
        entries: dict[str, Checked] = {**known, **{entry.check: entry for entry in fresh.checks}}
        report = Report(tree=tree, checks=tuple(entries.values()), left=fresh.left, fresh=True)
        found = judge(checker.checks, checker.base, report, Facts())
        # What was there before and is different now. What was only added is left in place, but for settings of checks
        # where tests of before are gone: those may have deselected them.
        existing = [change.before or change.path for change in changes if change.kind != "added"]
        altered = tuple(path for path in existing if is_test(path) or is_check_setup(path))
        if any(entry.compared is not None and entry.compared.gone for entry in report.checks):
            altered += tuple(
                change.path for change in changes if change.kind == "added" and is_check_setup(change.path)
            )
        old: Report | None = None
        if found.state != "failed" and tests:
            old = await checker.run(tests, bench, paths=altered) if altered else None
            if not wanted:
                async with self._opened((), bench) as checkout:
                    await look(checkout)
        notes = [*self._notes(paths, stopped), *_claimed(bench.step, paths), *_not_delivered(made)]
        notes += await self._not_committed(paths)
        may = wanted_in(steps).tests_may_change
        imported = tuple(elsewhere) if found.state != "failed" else ()
        given = Facts(altered=altered, old=old, elsewhere=imported, tests_may_change=may, notes=tuple(notes))
        return judge(checker.checks, checker.base, report, given), report, old

    def _notes(self, paths: Sequence[str], stopped: Sequence[str]) -> list[Finding]:
        compiled = tuple(path for path in paths if is_compiled(path))
        builds = any(word in check.line for check in self._checker.checks for word in ("cargo", "make", "ctest", "go "))
        found = [Finding(code="stopped", paths=tuple(stopped))] if stopped else []
        if compiled and not builds and not self._prepares:
            found.append(Finding(code="not_rebuilt", paths=compiled))
        return found

    async def _not_committed(self, paths: Sequence[str]) -> list[Finding]:
        """What the checks saw and the commit will not have: what the person had not committed when the run began."""
        workspace, snapshot = self._place.workspace, self._place.snapshot
        if not snapshot.head or await workspace.tree(snapshot.head) == snapshot.tree:
            return []
        own = [change.path for change in (await workspace.diff(snapshot.head, snapshot.commit, limit=0)).changes]
        seen = tuple(path for path in own if path not in paths)
        return [Finding(code="not_committed", paths=seen)] if seen else []

    def _spoken(self, verdict: Verdict, changed: bool) -> str:
        """A verdict as an agent reads it."""
        if verdict.verified:
            return "Verified: every check passed on this change." if changed else ANSWERED
        lines = [f"- {self._describe(reason)}" for reason in verdict.reasons]
        if verdict.state == "failed":
            lines.append("Find the cause and mend it. Do not weaken a test.")
        if verdict.has("tests_altered"):
            lines.append(PUT_BACK)
        return "\n".join((f"{verdict.state.capitalize()}:", *lines))

    def _after(self, step: Step, verdict: Verdict, steps: Sequence[Step]) -> Consequence:
        """The end, or another turn for an agent that can mend what fails. That an old test fails it hears once."""
        said = str((step.work.instruction_content or {}).get("said", ""))
        before = [each for each in steps if each.work.executor == DELIVER and each.thread_id == step.thread_id]
        again = verdict.state == "failed" and len(before) + 1 < TRIES
        heard = any(verdict_in([each]).has("tests_altered") for each in before)
        again = again or (verdict.has("tests_altered") and not heard)
        if again:
            work = Work(type="skill", executor="converse", intention="Mend what fails.")
            return QueueSteps(agent_id=step.agent_id, works=(work,), place="next")
        evidence = tuple(f"{receipt.check}: {receipt.outcome}" for receipt in verdict.receipts)
        return ended(step, said, evidence, failed=verdict.state == "failed")


def _not_delivered(made: Recorded) -> list[Finding]:
    return [Finding(code="not_delivered", paths=(each.path,), why=each.why) for each in made.left_out]


def _claimed(step: Step, paths: Sequence[str]) -> list[Finding]:
    """Files that the agent says it changed and that are not in the change."""
    held = (step.work.instruction_content or {}).get("files")
    named = [str(name).removeprefix("./") for name in held] if isinstance(held, list) else []
    missing = tuple(name for name in named if not any(path == name or path.endswith(f"/{name}") for path in paths))
    return [Finding(code="not_in_change", paths=missing)] if missing else []
