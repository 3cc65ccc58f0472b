"""The report of a run: what changed, what the checks found, and the agent's summary."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Final

from greenroom.abilities.skills.conversation.transcript import PLAN_CALL_PREFIX, PLAN_SKILL
from greenroom.abilities.skills.plan_task import name_copy
from greenroom.app.messages import count_things, shorten_names, to_one_line, translate
from greenroom.app.messages.findings import explain_reason, render_finding
from greenroom.app.runs.workspaces import RunChange
from greenroom.core.base.records import Data, record
from greenroom.core.ports.workspace import Diff, PathChange, SkippedPath
from greenroom.core.rules.steps import CALL_TOOL
from greenroom.core.state.step import Step, StepState
from greenroom.runs.discovery import is_test
from greenroom.runs.verdict import Receipt, Verdict, encode_verdict, find_verdict
from greenroom.teamwork.plan import Plan, PlannedSubtask

MAX_FILES_SHOWN: Final = 20
DOC_SUFFIXES: Final = (".md", ".rst", ".txt", ".adoc")
OUTCOME_SIGNS: Final = {"passed": "✓", "failed": "✗", "could_not_run": "✗", "does_not_judge": "·"}


@record
class AgentPlan:
    """The plan of an agent that split its task. `states` are those of its subtasks, `init` before they have ended."""

    agent: str
    plan: Plan
    states: tuple[StepState, ...]


def find_agent_plans(steps: Sequence[Step]) -> list[AgentPlan]:
    """Return the plans of agents in a run, oldest first."""
    calls = {(step.thread_id, step.work.call_id): step.state for step in steps if step.work.executor == CALL_TOOL}
    found = []
    for step in steps:
        result = step.result or {}
        parts = result.get("plan") if step.work.executor == PLAN_SKILL else None
        if isinstance(parts, list | tuple) and parts:
            copy, ids = name_copy(step.agent_id, int(str(result.get("depth", 0)))), range(1, len(parts) + 1)
            subtasks = tuple(
                PlannedSubtask(id=f"{PLAN_CALL_PREFIX}{number}", agent=copy, name=str(part), tries=1)
                for number, part in zip(ids, parts, strict=True)
            )
            plan = Plan(request=step.work.text_content, subtasks=subtasks, source="model", on_failure="continue")
            states = tuple(calls.get((step.thread_id, subtask.id), "init") for subtask in subtasks)
            found.append(AgentPlan(agent=step.agent_id, plan=plan, states=states))
    return found


@record
class RunReport:
    """The report of a run. `base` and `tip` are the commits before and after the change, `verdict` the last verdict in
    the log. `conflicted` files were in a merge when the run started. `root` is the person's folder."""

    base: str
    tip: str
    diff: Diff
    verdict: Verdict
    conflicted: tuple[str, ...] = ()
    left_out: tuple[SkippedPath, ...] = ()
    root: str = ""

    @property
    def is_verified(self) -> bool:
        """Whether every check that counts passed on exactly this tree."""
        return self.verdict.is_verified

    @property
    def verdict_data(self) -> Data:
        """The verdict as data for programs."""
        return encode_verdict(self.verdict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the change is not verified, one sentence each."""
        return tuple(render_finding(reason) for reason in self.verdict.reasons)

    @property
    def lines(self) -> tuple[str, ...]:
        """Render the report: changed tests first, then the change, the check results and the notes."""
        state = translate(f"states.{self.verdict.state}")
        test_notes = [note for note in self.verdict.notes if note.code == "tests_changed"]
        other_notes = [note for note in self.verdict.notes if note.code != "tests_changed"]
        left_out = [f"{to_one_line(entry.path)} ({explain_reason(entry.why)})" for entry in self.left_out]
        return (
            *(f"! {render_finding(note)}" for note in test_notes),
            *_render_stat(self.diff.changes),
            *map(render_receipt, self.verdict.receipts),
            *(translate("stat.reason", state=state, reason=reason) for reason in self.reasons),
            *(translate("stat.note", note=render_finding(note)) for note in other_notes),
            *_render_note("stat.only_tests", _find_only_tests(self.diff.changes)),
            *_render_note("stat.in_merge", self.conflicted),
            *_render_note("stat.outside_links", _find_outside_links(self.diff.changes, self.root)),
            *_render_note("stat.not_in_worktree", left_out),
        )


async def build_report(change: RunChange, steps: Iterable[Step]) -> RunReport:
    """Build the report of a run from its log."""
    return RunReport(
        base=change.snapshot.commit,
        tip=change.tip,
        diff=await change.diff(),
        verdict=find_verdict(steps, await change.workspace.tree(change.tip)),
        conflicted=change.snapshot.conflicted,
        left_out=change.snapshot.left_out,
        root=change.workspace.root,
    )


def _render_stat(changes: Sequence[PathChange]) -> Sequence[str]:
    if not changes:
        return (translate("stat.none"),)
    names = [to_one_line(change.path) for change in changes[:MAX_FILES_SHOWN]]
    width = max(map(len, names))
    lines = [f"  {name:{width}}  {_render_change(change)}" for name, change in zip(names, changes, strict=False)]
    hidden = len(changes) - MAX_FILES_SHOWN
    more = [f"  {translate('conversation.more', count=hidden)}"] if hidden > 0 else []
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    files = count_things("file", len(changes))
    return (translate("stat.total", files=files, added=added, removed=removed), *lines, *more)


def _render_change(change: PathChange) -> str:
    key = f"stat.{change.kind}"
    what = f" {translate(key, before=to_one_line(change.before))}" if change.kind != "changed" else ""
    return f"{translate('stat.binary')}{what}" if change.binary else f"+{change.added} −{change.removed}{what}"


def render_receipt(receipt: Receipt) -> str:
    """Render the result of a check in one line."""
    key = "stat.passed" if receipt.passed else f"stat.outcome_{receipt.outcome}"
    outcome, sign = translate(key, count=receipt.passed), OUTCOME_SIGNS[receipt.outcome]
    if receipt.failing:
        outcome = translate("stat.outcome_failing", outcome=outcome, failing=receipt.failing)
    return translate("stat.receipt", sign=sign, check=receipt.check, outcome=outcome, seconds=receipt.seconds)


def _find_only_tests(changes: Sequence[PathChange]) -> Sequence[str]:
    code = [change.path for change in changes if not change.path.lower().endswith(DOC_SUFFIXES)]
    return code if code and all(map(is_test, code)) else ()


def _render_note(key: str, names: Sequence[str]) -> Sequence[str]:
    return (translate(key, names=shorten_names(names)),) if names else ()


def _find_outside_links(changes: Sequence[PathChange], root: str) -> Sequence[str]:
    """Find links that lead out of the repository. They look like ordinary files."""
    links: list[str] = []
    for change in (change for change in changes if change.target):
        target = posixpath.normpath(posixpath.join(root, posixpath.dirname(change.path), change.target))
        if target != root and not target.startswith(f"{root}/"):
            links.append(f"{to_one_line(change.path)} → {to_one_line(change.target)}")
    return links
