"""Hand in: the last step of a specialist. Its work is committed and queued to be merged, or its subtask ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from greenroom.abilities.skills.conversation.transcript import has_unread_message
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.errors import Bug, translate
from greenroom.core.base.ids import AgentId, StageId
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import MAIN_THREAD, Conflicts, PathChange, SkippedPath, StepCommit
from greenroom.core.rules.intents import FinishSubtask, QueueSteps
from greenroom.core.state.stage import Subtask
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState
from greenroom.runs.delivery import build_facts, build_mark
from greenroom.runs.verdict import (
    CHANGES_KEY,
    COMMIT_KEY,
    HAND_IN,
    INTEGRATED_KEY,
    MERGE,
    MERGE_QUEUE,
    THREAD_KEY,
)
from greenroom.runs.workspace import RunWorkspace, StopBackground
from greenroom.teamwork.handoffs import build_handoff_schema, read_review, validate_handoff, wrap_handoff
from greenroom.teamwork.plan_graph import may_overlap

UNDELIVERED_KEY: Final = "undelivered"
"""The key of the files that no commit holds in the step's result. Their worktree is kept."""

CHANGED_NOTHING: Final = "Changed nothing."
"""How the summary of a writer begins whose files are as they were. It has finished: its part may have been there."""

STATUS: Final = (
    "Whether your goal is reached. `unchanged`: it was reached before, so you changed no file; the summary says why."
)
"""What a specialist reads about the status of its report."""

PLANNER: Final = AgentId("planner")
SEND_BACK: Final = "send_back"
"""The step of the planner that ends a review: what must change goes back to the writers."""

END_KEY: Final = "end"
"""The key of how the subtask would have ended, in the step that ends it."""

MAX_REPAIRS: Final = 1
"""How often a specialist may correct its report."""

MAX_PATHS_NAMED: Final = 8

MAX_PATHS_KEPT: Final = 50
SPEC: Final = ToolSpec(
    name=HAND_IN,
    description="Commit a specialist's work, and queue it to be merged for the agents that need it.",
    parameters={"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]},
)


class SubtaskReport(msgspec.Struct, frozen=True):
    """What a specialist reports when it has finished."""

    summary: str = ""
    status: str = "done"
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    handoff: dict[str, object] | None = None


def build_report_schema(protocol: str) -> Data:
    """Return the schema of the report that ends a specialist's work, with a hand-off of this protocol.

    The hand-off is only described here. `HandInTool` checks it: a wrong one must not cost the work.
    """
    names, schema = {"type": "array", "items": {"type": "string"}}, build_handoff_schema(protocol) if protocol else {}
    described = f"What the others need, as {protocol} by this JSON Schema: {encode(schema).decode()}"
    return {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["done", "unchanged", "failed"], "description": STATUS},
            "summary": {"type": "string", "description": "The result first, then what is missing."},
            "files": {**names, "description": "The files that you changed or made."},
            "tests": {**names, "description": "The tests that show it: files, or names."},
            **({"handoff": {"type": "object", "description": described}} if protocol else {}),
        },
        "required": ["status", "summary"],
    }


def parse_report(said: str) -> SubtaskReport:
    """Parse a specialist's report. Any other text counts as its summary."""
    try:
        return msgspec.json.decode(said.encode(errors="replace"), type=SubtaskReport)
    except msgspec.MsgspecError:
        return SubtaskReport(summary=said)


def find_subtask(state: TeamState, step: Step) -> Subtask:
    """Return the subtask that a step belongs to."""
    found = state.find_subtask(step)
    if found is None:
        raise Bug(f"The step {step.step_id} belongs to no open subtask.")
    return found


def build_entry(step: Step, thread: str, commit: str, end: FinishSubtask) -> QueueSteps:
    """Return the entry of the merge queue that merges `thread` up to a commit, and then ends the subtask so."""
    order = {THREAD_KEY: thread, COMMIT_KEY: commit, END_KEY: msgspec.to_builtins(end)}
    work = Work(type="tool", executor=MERGE, intention=f"Merge {thread}.", instruction_content=order)
    return QueueSteps(agent_id=MERGE_QUEUE, works=(work,), task_id=step.task_id)


def read_end(step: Step) -> FinishSubtask:
    """Return how the subtask of an entry ends when it is merged."""
    return msgspec.convert((step.work.instruction_content or {})[END_KEY], FinishSubtask)


def describe_conflicts(conflicts: Conflicts) -> list[str]:
    """Describe conflicts for people and agents, one line for each pair of sides."""
    sides = dict[str, list[str]]()
    for clash in conflicts.clashes:
        sides.setdefault(clash.why, []).append(clash.path)
    return [translate("teams.conflict", sides=names, paths=_join(paths)) for names, paths in sides.items()]


def _build_facts(subtask: Subtask, commit: StepCommit, changes: Sequence[PathChange]) -> Data:
    """Return the commit and what changed, for the step's result."""
    counted = {
        "files": [change.path for change in changes[:MAX_PATHS_KEPT]],
        "outside": find_outside(subtask, changes)[:MAX_PATHS_KEPT],
        "planned": list(subtask.writes)[:MAX_PATHS_KEPT],
        "file_count": len(changes),
        "added": sum(change.added for change in changes),
        "removed": sum(change.removed for change in changes),
    }
    undelivered = list_undelivered(commit.left_out)
    return {**build_facts(commit), **({UNDELIVERED_KEY: undelivered} if undelivered else {}), CHANGES_KEY: counted}


def list_undelivered(left_out: Iterable[SkippedPath]) -> list[str]:
    """Return the files of a worktree that no commit holds, without packages that a setup installs again."""
    return [f"{item.path} ({item.why})" for item in left_out if item.why != "environment"]


class HandInTool(CardedTool):
    """Ends the work of one worktree. Keyed: its commit is found again. Without `writes`, nothing is merged."""

    def __init__(self, run_workspace: RunWorkspace, *, writes: bool, stop_background: StopBackground) -> None:
        self.card = ToolCard(spec=SPEC, group="edit" if writes else "read", effect="keyed")
        self._run_workspace = run_workspace
        self._writes = writes
        self._stop_background = stop_background

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return nothing: it commits what the specialist was allowed to write."""
        return ()

    async def run(self, context: StepContext) -> Outcome:
        """Queue the work to be merged or end the subtask, or ask once for a report that is valid and true."""
        step, subtask = context.step, find_subtask(context.state, context.step)
        if subtask.state != "running" or subtask.agent != step.agent_id:
            return Outcome(state="failed", error=f"Not handed in: {subtask.name} is no longer yours, or it is over.")
        report = parse_report(str((step.work.instruction_content or {}).get("said", "")))
        cooperation = context.agent.spec.cooperation
        protocol = cooperation.protocol if cooperation is not None else ""
        fault = validate_handoff(protocol, report.handoff) if protocol and report.status != "failed" else None
        stopped = await self._stop_background()
        commit = await self._run_workspace.worktree.commit(build_mark(context))
        changes = await self._list_changes(context)
        doubt = find_doubt(subtask, report) if self._writes and not changes else ""
        if (fault or doubt) and not await _has_repaired(context, subtask):
            return _ask_again(step, fault or "", doubt)
        has_failed = report.status == "failed" or bool(doubt)
        evidence = [*_describe_facts(subtask, report, commit, changes), *(f"stopped: {line}" for line in stopped)]
        evidence += [f"no valid hand-off: {fault}"] if fault else []
        nothing = CHANGED_NOTHING if self._writes and not changes and not has_failed else ""
        summary = "\n".join((*filter(None, (doubt,)), f"{nothing} {report.summary}".strip()))
        end = FinishSubtask(
            subtask_id=subtask.subtask_id,
            stage_id=step.stage_id or StageId(""),
            state="failed" if has_failed else "finished",
            summary=summary,
            evidence=tuple(evidence),
            output=wrap_handoff(protocol, report.handoff) if protocol and report.handoff and not fault else None,
        )
        after: FinishSubtask | QueueSteps = queue_review(context.state, end) or end
        result: Data = {"output": summary, **_build_facts(subtask, commit, changes)}
        if self._writes and changes and not has_failed:
            if MERGE_QUEUE in context.state.agents:
                tip = commit.commit or await self._run_workspace.worktree.tip()
                after = build_entry(step, self._run_workspace.thread, tip, end)
            else:
                after, result = await self._integrate(context, end, result)
        return Outcome(result=result, intents=() if has_unread_message(context.state, step) else (after,))

    async def _list_changes(self, context: StepContext) -> Sequence[PathChange]:
        """Return what the specialist changed. What was merged into its worktree since is not its change."""
        run = self._run_workspace
        if MERGE_QUEUE not in context.state.agents:
            return (await run.diff()).changes
        if (tip := await run.worktree.tip()) == run.snapshot.commit:  # it may share only the base with the main thread
            return ()
        fork = await run.workspace.find_fork(run.run, tip, await run.workspace.tip(run.run, MAIN_THREAD))
        return (await run.workspace.diff(fork, tip, limit=0)).changes

    async def _integrate(self, context: StepContext, end: FinishSubtask, result: Data) -> tuple[FinishSubtask, Data]:
        """Merge the work at once, in a run that was started before there was a merge queue."""
        run, subtask = self._run_workspace, find_subtask(context.state, context.step)
        info = evolve(build_mark(context), summary=subtask.title or subtask.name)
        merged = await run.workspace.integrate(run.run, run.thread, MAIN_THREAD, info)
        if isinstance(merged, StepCommit):
            return end, {**result, INTEGRATED_KEY: merged.commit}
        summary = "\n".join((*describe_conflicts(merged), end.summary))
        return evolve(end, state="failed", summary=summary, final=True), {**result, "output": summary}


def queue_review(state: TeamState, end: FinishSubtask) -> QueueSteps | None:
    """Return the planner's step that ends a review which requires changes; None for every other end.

    The planner of an older run sends nothing back.
    """
    review = read_review(end.output) if end.state == "finished" else None
    planner = state.agents.get(PLANNER)
    if review is None or not review.requires_changes or planner is None or SEND_BACK not in planner.spec.tools:
        return None
    content = {END_KEY: msgspec.to_builtins(end)}
    work = Work(type="tool", executor=SEND_BACK, intention="Send the findings back.", instruction_content=content)
    return QueueSteps(agent_id=PLANNER, works=(work,))


async def _has_repaired(context: StepContext, subtask: Subtask) -> bool:
    """Return whether the specialist was already asked for another report in this attempt."""
    asked = [step for step in await context.history() if step.work.executor == HAND_IN]
    return sum((step.ended_at or 0) >= (subtask.started_at or 0) for step in asked) >= MAX_REPAIRS


def _ask_again(step: Step, fault: str, doubt: str) -> Outcome:
    """Ask for another report: the hand-off has a `fault`, or there is `doubt` about what was done."""
    how = "Report again with a valid `handoff`; change no files for that."
    if doubt:
        how = "Make the change, then report again. If nothing had to change, report `unchanged` and name no files."
    message = " ".join(filter(None, ("Not handed in:", fault, doubt, how)))
    work = Work(type="skill", executor="converse", intention="Correct the report.")
    again = QueueSteps(agent_id=step.agent_id, works=(work,), place="next")
    return Outcome(result={"output": message}, intents=(again,))


def find_doubt(subtask: Subtask, report: SubtaskReport) -> str:
    """Return why the report of a writer that changed no file is not believed; empty if it is, or if it has failed.

    A writer without a write set need not change a file. It is believed unless it names files.
    """
    if report.status == "failed":
        return ""
    if claimed := list_claims(report):
        return translate("teams.only_claimed", paths=_join(claimed))
    return translate("teams.not_done") if report.status == "done" and subtask.writes else ""


def list_claims(report: SubtaskReport) -> list[str]:
    """Return the files that a report names as changed, in its list or in its hand-off."""
    rows = [row for value in (report.handoff or {}).values() if isinstance(value, list) for row in value]
    paths = [row["path"] for row in rows if isinstance(row, dict) and "change_type" in row and "path" in row]
    return list(dict.fromkeys(str(name).removeprefix("./") for name in (*report.files, *paths)))


def find_outside(subtask: Subtask, changes: Iterable[PathChange]) -> list[str]:
    """Return the changed files that are not in the write set of a subtask. Without a write set there are none."""
    paths = [change.path for change in changes if subtask.writes]
    return [path for path in paths if not any(may_overlap(path, pattern) for pattern in subtask.writes)]


def _describe_facts(
    subtask: Subtask, report: SubtaskReport, commit: StepCommit, changes: Sequence[PathChange]
) -> list[str]:
    """Describe what really changed, and how that differs from the report and from the write set."""
    paths = [change.path for change in changes]
    known = [*paths, *(change.before for change in changes)]
    added, removed = (sum(getattr(change, name) for change in changes) for name in ("added", "removed"))
    facts = [f"{len(paths)} files changed, +{added} −{removed}: {_join(paths)}"] if paths else ["no files changed"]
    claimed = list_claims(report)
    missing = [name for name in claimed if not any(path == name or path.endswith(f"/{name}") for path in known)]
    outside = find_outside(subtask, changes)
    undelivered = list_undelivered(commit.left_out)
    facts += [f"in no commit, kept in its worktree: {_join(undelivered)}"] if undelivered else []
    facts += [f"named but not changed: {_join(missing)}"] if missing else []
    return [*facts, *([f"outside its write set: {_join(outside)}"] if outside else [])]


def _join(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_PATHS_NAMED} more" if len(paths) > MAX_PATHS_NAMED else ""
    return ", ".join(paths[:MAX_PATHS_NAMED]) + more
