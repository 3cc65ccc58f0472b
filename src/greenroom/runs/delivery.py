"""A run's changes become commits: one per step, and a last one that the checks judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.skills.conversation.transcript import has_unread_message
from greenroom.abilities.tools.tool import CardedTool, WrappedTool
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import REPORT_KEY, CheckReport, CheckResult, report_to_data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.ports.workspace import CommitInfo, PathChange, StepCommit, Worktree
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import SIDE_EFFECTS, Step, Work
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import Checkout, OpenCheckout, find_foreign_imports
from greenroom.runs.discovery import COMPILED_SUFFIXES, is_check_setup, is_test
from greenroom.runs.verdict import (
    COMMIT_KEY,
    DELIVER,
    RUN_CHECKS,
    TREE_KEY,
    VERDICT_KEY,
    ChangeFacts,
    Finding,
    Verdict,
    build_unverified,
    collect_known_entries,
    decide_verdict,
    encode_verdict,
    find_verdict,
)
from greenroom.runs.workspace import History, RunWorkspace, StopBackground, read_run_flags

CHANGING_GROUPS: Final = frozenset({"edit", "command"})
MAX_SUMMARY_CHARS: Final = 72
REQUEST_KEY: Final = "request"
"""The key of what an agent is told that has to mend a change it has not made."""


def wrap_recording(
    tool: ToolExecutor, worktree: Worktree, lock: asyncio.Lock, *, self_committing: Collection[str] = ()
) -> ToolExecutor:
    """Wrap a tool so that its file changes are committed. All tools of a worktree share the `lock`. Tools in
    `self_committing` take the lock too, but make their own commit."""
    if tool.name in self_committing:
        return RecordingTool(tool, worktree, lock, commits=False)
    changes = tool.card.group in CHANGING_GROUPS or tool.card.effect in SIDE_EFFECTS
    return RecordingTool(tool, worktree, lock) if changes else tool


class RecordingTool(WrappedTool):
    """A tool whose changes are committed, even if it fails: the files changed until then are there.

    Only one agent at a time changes files in a worktree. Otherwise a commit would contain another agent's changes.
    """

    def __init__(self, tool: ToolExecutor, worktree: Worktree, lock: asyncio.Lock, *, commits: bool = True) -> None:
        super().__init__(tool)
        self._worktree = worktree
        self._lock = lock
        self._commits = commits

    async def run(self, context: StepContext) -> Outcome:
        """Run the tool and commit its changes. After a crash the commit is found again by its key."""
        if self.card.group not in CHANGING_GROUPS:  # it may take long, and acts outside the worktree
            outcome = await super().run(context)
            async with self._lock:
                return await self._commit_changes(context, outcome)
        async with self._lock:
            if self.name != RUN_CHECKS:
                return await self._commit_changes(context, await super().run(context))
            step_commit = await self._worktree.commit(build_mark(context))  # checks run on the newest commit
            outcome = await super().run(context)
            return evolve(outcome, result={**(outcome.result or {}), **build_facts(step_commit)})

    async def _commit_changes(self, context: StepContext, outcome: Outcome) -> Outcome:
        if not self._commits:
            return outcome
        step_commit = await self._worktree.commit(build_mark(context))
        return evolve(outcome, result={**(outcome.result or {}), **build_facts(step_commit)})


def build_facts(step_commit: StepCommit) -> Data:
    """Return the tree and the commit after a step, for its result."""
    return {TREE_KEY: step_commit.tree, **({COMMIT_KEY: step_commit.commit} if step_commit.commit else {})}


def build_mark(context: StepContext) -> CommitInfo:
    """Return the commit's run, task, agent and step."""
    step, team = context.step, context.state.team
    arguments = step.work.instruction_content or {}
    what = next((str(arguments[name]) for name in ("path", "file", "script") if arguments.get(name)), "")
    words = " ".join(f"{step.work.executor} {what}".split())
    return CommitInfo(
        run=team.team_id,
        key=context.key,
        task=step.task_id,
        agent=step.agent_id,
        step=step.step_id,
        summary=words if len(words) <= MAX_SUMMARY_CHARS else f"{words[: MAX_SUMMARY_CHARS - 1]}…",
    )


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
MAX_TRIES: Final = 3
"""Maximum verdicts before the work ends in its current state."""

RESTORED_KEY: Final = "restored"
"""The result's key for the report of the old tests on the new code."""


ANSWER_MESSAGE: Final = "No file was changed: it is an answer."
PUT_BACK_MESSAGE: Final = (
    "Put the tests back as they were, unless the request asks to change them; then say which and why."
)

DescribeFinding: TypeAlias = Callable[[Finding], str]
"""Renders a finding as a sentence."""


class DeliverTool(CardedTool):
    """Commits the work and decides the verdict. Keyed: interrupted checks run again, and the commit is found again.

    `stop_background` ends what agents started in the background; `describe` renders a finding; `has_setup` means that a
    setup rebuilds compiled files.
    """

    def __init__(
        self,
        run_workspace: RunWorkspace,
        checker: ProjectChecks,
        open_checkout: OpenCheckout,
        history: History,
        *,
        stop_background: StopBackground,
        describe: DescribeFinding,
        has_setup: bool = False,
    ) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._run_workspace = run_workspace
        self._checker = checker
        self._open_checkout = open_checkout
        self._history = history
        self._stop_background = stop_background
        self._describe = describe
        self._has_setup = has_setup

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return the command lines of the checks: they run what an agent has written."""
        return tuple(Target(kind="command", value=check.line) for check in self._checker.runnable)

    async def run(self, context: StepContext) -> Outcome:
        """Commit, decide the verdict, and end the work or report what is missing. A new message is read first."""
        steps = await self._history(context.state.team.team_id)
        stopped = await self._stop_background()
        step_commit = await self._run_workspace.worktree.commit(build_mark(context))
        changes = (await self._run_workspace.diff()).changes
        report, old = CheckReport(tree=step_commit.tree, fresh=True), None
        if changes:
            verdict, report, old = await self._decide_verdict(step_commit, changes, steps, stopped, context)
        elif read_run_flags(steps).question:
            verdict = Verdict(state="verified")
        else:
            verdict = evolve(build_unverified("nothing_changed"), notes=tuple(_find_undelivered(step_commit)))
        result: dict[str, object] = {
            "output": self._render_verdict(verdict, bool(changes)),
            VERDICT_KEY: encode_verdict(verdict),
            **build_facts(step_commit),
        }
        result |= {REPORT_KEY: report_to_data(report)} if report.checks else {}
        result |= {RESTORED_KEY: report_to_data(old)} if old is not None else {}
        blobs = (*report.blobs, *(old.blobs if old is not None else ()))
        after = self._decide_next(context.step, verdict, steps)
        return Outcome(
            result=result, intents=() if has_unread_message(context.state, context.step) else (after,), blobs=blobs
        )

    async def _decide_verdict(
        self,
        commit: StepCommit,
        changes: Sequence[PathChange],
        steps: Sequence[Step],
        stopped: Sequence[str],
        context: StepContext,
    ) -> tuple[Verdict, CheckReport, CheckReport | None]:
        """Return the verdict, the checks' report on this tree, and the old tests' report. Checks that ran on this tree
        are not repeated."""
        checker, tree = self._checker, commit.tree
        # All paths of a change, both of a renamed file.
        paths = list(dict.fromkeys(name for change in changes for name in (change.path, change.before) if name))
        known = collect_known_entries(steps, tree)
        to_run = [check.name for check in checker.checks if check.name not in known]
        tests = [check.name for check in checker.checks if check.kind == "test"]
        elsewhere: list[Finding] = []

        async def look(checkout: Checkout) -> None:
            elsewhere.extend(await find_foreign_imports(checker.checks, paths, checkout, self._run_workspace, context))

        fresh = await checker.run(to_run, context, first=look) if to_run else CheckReport(tree=tree, fresh=True)
        entries: dict[str, CheckResult] = {**known, **{entry.check: entry for entry in fresh.checks}}
        report = CheckReport(tree=tree, checks=tuple(entries.values()), left=fresh.left, fresh=True)
        found = decide_verdict(checker.checks, checker.base, report, ChangeFacts())
        # Files that existed before and changed. Added files stay in place, except check settings
        # if old tests are gone: the settings may have deselected them.
        existing = [change.before or change.path for change in changes if change.kind != "added"]
        altered = tuple(path for path in existing if is_test(path) or is_check_setup(path))
        if any(entry.compared is not None and entry.compared.gone for entry in report.checks):
            altered += tuple(
                change.path for change in changes if change.kind == "added" and is_check_setup(change.path)
            )
        old: CheckReport | None = None
        if found.state != "failed" and tests:
            old = await checker.run(tests, context, paths=altered) if altered else None
            if not to_run:
                async with self._open_checkout((), context) as checkout:
                    await look(checkout)
        notes = [
            *self._build_notes(paths, stopped),
            *_find_false_claims(context.step, paths),
            *_find_undelivered(commit),
        ]
        notes += await self._find_uncommitted(paths)
        may = read_run_flags(steps).tests_may_change
        imported = tuple(elsewhere) if found.state != "failed" else ()
        facts = ChangeFacts(altered=altered, old=old, elsewhere=imported, tests_may_change=may, notes=tuple(notes))
        return decide_verdict(checker.checks, checker.base, report, facts), report, old

    def _build_notes(self, paths: Sequence[str], stopped: Sequence[str]) -> list[Finding]:
        compiled = tuple(path for path in paths if path.lower().endswith(COMPILED_SUFFIXES))
        builds = any(word in check.line for check in self._checker.checks for word in ("cargo", "make", "ctest", "go "))
        found = [Finding(code="stopped", paths=tuple(stopped))] if stopped else []
        if compiled and not builds and not self._has_setup:
            found.append(Finding(code="not_rebuilt", paths=compiled))
        return found

    async def _find_uncommitted(self, paths: Sequence[str]) -> list[Finding]:
        """Return the person's uncommitted files from before the run: checks saw them, but the commit lacks them."""
        workspace, snapshot = self._run_workspace.workspace, self._run_workspace.snapshot
        if not snapshot.head or await workspace.tree(snapshot.head) == snapshot.tree:
            return []
        uncommitted = [
            change.path for change in (await workspace.diff(snapshot.head, snapshot.commit, limit=0)).changes
        ]
        missing_paths = tuple(path for path in uncommitted if path not in paths)
        return [Finding(code="not_committed", paths=missing_paths)] if missing_paths else []

    def _render_verdict(self, verdict: Verdict, changed: bool) -> str:
        """Render a verdict for the agent."""
        if verdict.is_verified:
            return "Verified: every check passed on this change." if changed else ANSWER_MESSAGE
        lines = [f"- {self._describe(reason)}" for reason in verdict.reasons]
        if verdict.state == "failed":
            lines.append("Find the cause and mend it. Do not weaken a test.")
        if verdict.has_reason("tests_altered"):
            lines.append(PUT_BACK_MESSAGE)
        return "\n".join((f"{verdict.state.capitalize()}:", *lines))

    def _decide_next(self, step: Step, verdict: Verdict, steps: Sequence[Step]) -> Consequence:
        """Return the end, or another turn for the agent to fix failures. It reads only once that an old test fails."""
        answer = str((step.work.instruction_content or {}).get("said", ""))
        before = [each for each in steps if each.work.executor == DELIVER and each.thread_id == step.thread_id]
        again = verdict.state == "failed" and len(before) + 1 < MAX_TRIES
        was_told = any(find_verdict([each]).has_reason("tests_altered") for each in before)
        again = again or (verdict.has_reason("tests_altered") and not was_told)
        if again:
            request = str((step.work.instruction_content or {}).get(REQUEST_KEY, ""))
            work = Work(type="skill", executor="converse", intention="Mend what fails.", text_content=request)
            return QueueSteps(agent_id=step.agent_id, works=(work,), place="next")
        evidence = tuple(f"{receipt.check}: {receipt.outcome}" for receipt in verdict.receipts)
        return build_finish(step, answer, evidence, failed=verdict.state == "failed")


def _find_undelivered(step_commit: StepCommit) -> list[Finding]:
    return [Finding(code="not_delivered", paths=(each.path,), why=each.why) for each in step_commit.left_out]


def _find_false_claims(step: Step, paths: Sequence[str]) -> list[Finding]:
    """Return the files that the agent claims to have changed but that are not in the change."""
    files = (step.work.instruction_content or {}).get("files")
    named = [str(name).removeprefix("./") for name in files] if isinstance(files, list) else []
    missing = tuple(name for name in named if not any(path == name or path.endswith(f"/{name}") for path in paths))
    return [Finding(code="not_in_change", paths=missing)] if missing else []
