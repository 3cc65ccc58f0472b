"""The integration report of a team run, from its log: outputs, conflicts and their resolutions, merge, validation.

It also says what was not verified."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from greenroom.app.approvals import pending_approvals
from greenroom.app.context import AppContext
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.messages import shorten_names, to_one_line, translate
from greenroom.app.messages.findings import render_finding
from greenroom.app.runs.report import build_report
from greenroom.app.runs.workspaces import RunChange, find_change
from greenroom.app.task_status import RunFigures
from greenroom.app.teams.report import Contribution, describe_missing, find_stage, list_contributions
from greenroom.app.teams.start import CODE_WRITER
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import Data, record, to_full_dict
from greenroom.core.base.text import add_fence
from greenroom.core.ports.checks import CheckReport
from greenroom.core.ports.workspace import PathChange
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import DELIVER, SETTLE_CONFLICT, Receipt, Verdict, find_base_report, read_report
from greenroom.teamwork.conflicts import CONFLICTS_KEY, ConflictRecord, collect_conflicts, read_conflicts
from greenroom.teamwork.ladder import load_merge, settle_files
from greenroom.teamwork.plan import Plan, PlannedSubtask, TeamSettings
from greenroom.teamwork.plan_graph import OWN_SUBTASKS, may_overlap
from greenroom.teamwork.symbols.conflicts import SCRIPTS, parse_symbols
from greenroom.teamwork.validation import (
    Coverage,
    MergedOutput,
    ValidationResult,
    classify_file,
    find_syntax_fault,
    merge_outputs,
    parse_coverage,
    read_outputs,
    validate,
)

LOST_STATES: Final = ("failed", "skipped", "cancelled")
"""States of ended subtasks whose work is not in the change."""

SUGGESTIONS: Final = "suggestions"
"""The subtask of a follow-up run."""


@record
class IntegrationSummary:
    """The figures of a team run: times in seconds, `cost` in dollars. `serial_seconds` is what the plan expects if one
    subtask runs after the other, `work_seconds` what they took together. `verdict` is the state of the change."""

    total_agents: int
    total_subtasks: int
    completed_subtasks: int
    failed_subtasks: int
    total_duration: float
    files_modified: int
    lines_changed: int
    tests_added: float | None
    coverage: float | None
    coverage_source: str
    verdict: str
    cost: float
    serial_seconds: float
    work_seconds: float


@record
class ProfileContribution:
    """What the agents of one profile contributed. An agent can have several subtasks."""

    agents: tuple[str, ...]
    subtasks: tuple[str, ...]
    completed: int
    files: tuple[str, ...]
    lines_added: int
    lines_removed: int
    seconds: float
    tokens: int
    cost: float


@record
class WriteSetRecord:
    """What a subtask was expected to change, and what it changed: `outside` was not planned, `unused` not needed."""

    subtask: str
    planned: tuple[str, ...]
    changed: tuple[str, ...]
    outside: tuple[str, ...]
    unused: tuple[str, ...]


@record
class IntegrationReport:
    """The report of a team run. `agent_contributions` are by profile, `summaries` are the agents' own, by subtask.

    Each round of the `reviews` is a subtask. `suggestions` are lines of the last ones. `not_verified` are sentences.
    """

    execution_id: str
    summary: IntegrationSummary
    agent_contributions: Mapping[str, ProfileContribution]
    validation_result: ValidationResult
    recommendations: tuple[str, ...]
    checks: tuple[Receipt, ...]
    reviews: tuple[Data, ...]
    suggestions: tuple[str, ...]
    write_sets: tuple[WriteSetRecord, ...]
    summaries: Mapping[str, str]
    not_verified: tuple[str, ...]


@record
class IntegratedResult:
    """The integrated work of a team. `conflicts` is how many there were; `resolutions` are their records."""

    outputs: Mapping[str, tuple[Data, ...]]
    merged: MergedOutput
    validation: ValidationResult
    report: IntegrationReport
    conflicts: int
    resolutions: tuple[ConflictRecord, ...]


async def integrate_results(app: AppContext, team: TeamId, at: int | None = None) -> IntegratedResult:
    """Build the integration report of a team run, now or at a version. Raise `RefusedError` for other runs."""
    state, settings = await app.runtime.state(team, at), app.settings.team
    stage = await find_stage(app.runtime, state)
    steps = [step for step in await app.steps(team) if at is None or step.ended_in <= at]
    if stage is None:
        raise make_refusal("no_team_run", translate("integration.no_team_run", team=team))
    figures = await _count_figures(app, state, steps)
    everything = list_contributions(stage, steps, figures.spent_on, figures.at, figures.stops)
    rows = [row for row in everything if row.subtask.name not in OWN_SUBTASKS]
    written = {row.subtask.name: row.changes.files for row in rows if row.subtask.state == "finished"}
    outputs = {row.subtask.name: read_outputs(row.changes.files, row.subtask.output) for row in rows}
    lost = [row.subtask for row in rows if row.subtask.state in LOST_STATES]
    resolutions = tuple(collect_conflicts(steps, {subtask.subtask_id for subtask in lost}))
    change = await find_change(state.team, app.steps, at)
    run, checks = await build_report(change, steps), _find_checks(steps)
    coverage = await _find_coverage(app, checks, outputs)
    tests_added = _count_new_tests(find_base_report(steps), checks)
    merged = merge_outputs(written, run.diff.changes, run.verdict.receipts, coverage, tests_added)
    faults, unknown = await _check_syntax(change, run.diff.changes) if settings.validate_syntax else ({}, ())
    scores = [row.review.overall_score for row in rows if row.review and row.review.overall_score is not None]
    validation = validate(
        merged,
        run.verdict,
        settings,
        coverage,
        missing=[subtask.name for subtask in lost if subtask.required],
        syntax_faults=faults,
        review_score=scores[-1] if scores else None,
    )
    gaps = (
        *_list_doubts(run.verdict, checks, is_over=not state.tasks),
        *_list_gaps(settings, coverage, merged.files, unknown),
        describe_missing(stage),
    )
    profiles = {name: agent.spec.name for name, agent in state.agents.items()}
    report = IntegrationReport(
        execution_id=team,
        summary=_summarise(rows, merged, coverage, run.verdict.state, figures),
        agent_contributions=_sum_contributions(rows, profiles),
        validation_result=validation,
        recommendations=tuple(
            dict.fromkeys(": ".join(filter(None, (issue.file, issue.suggestion))) for issue in validation.issues)
        ),
        checks=run.verdict.receipts,
        reviews=tuple(_list_reviews(rows)),
        suggestions=list_suggestions(rows),
        write_sets=tuple(_compare_write_set(row) for row in rows if row.subtask.writes and row.changes.file_count),
        summaries={row.subtask.name: row.subtask.summary for row in rows},
        not_verified=tuple(filter(None, gaps)),
    )
    return IntegratedResult(
        outputs=outputs,
        merged=merged,
        validation=validation,
        report=report,
        conflicts=len(resolutions),
        resolutions=resolutions,
    )


async def _count_figures(app: AppContext, state: TeamState, steps: Iterable[Step]) -> RunFigures:
    """Return what a run took up to the version of its state."""
    figures, subtasks = RunFigures(), {step.step_id: step.subtask_id for step in steps}
    async for logged in app.runtime.events(state.team.team_id):
        if logged.version > state.version:
            break
        figures.count(logged.event, subtasks.get)
    return figures


def _summarise(
    rows: Sequence[Contribution],
    merged: MergedOutput,
    coverage: Coverage,
    verdict: str,
    figures: RunFigures,
) -> IntegrationSummary:
    states = [row.subtask.state for row in rows]
    return IntegrationSummary(
        total_agents=len({row.subtask.agent for row in rows}),
        total_subtasks=len(rows),
        completed_subtasks=states.count("finished"),
        failed_subtasks=states.count("failed"),
        total_duration=figures.millis / 1000,
        files_modified=len(merged.files),
        lines_changed=sum(file.added + file.removed for file in merged.files.values()),
        tests_added=merged.metrics["tests_added"],
        coverage=coverage.percent,
        coverage_source=coverage.source,
        verdict=verdict,
        cost=sum(amounts.money for amounts in figures.spent_on.values()) / MILLIONTHS_PER_DOLLAR,
        serial_seconds=sum(row.subtask.seconds for row in rows),
        work_seconds=sum(row.millis for row in rows) / 1000,
    )


def _find_checks(steps: Sequence[Step]) -> CheckReport | None:
    """Return the last report of the checks on the whole change."""
    delivered = (read_report(step) for step in reversed(steps) if step.work.executor == DELIVER)
    return next((report for report in delivered if report is not None), None)


async def _find_coverage(
    app: AppContext, checks: CheckReport | None, outputs: Mapping[str, Sequence[Data]]
) -> Coverage:
    """Return the lowest coverage that a check printed; without one, the last that a specialist claims."""
    measured = list[Coverage]()
    for entry in checks.checks if checks is not None else ():
        text = (await app.blob(entry.output)).decode(errors="replace") if entry.kind == "test" and entry.output else ""
        if (percent := parse_coverage(text)) is not None:
            measured.append(Coverage(percent=percent, source="measured", check=entry.check))
    if measured:
        return min(measured, key=lambda coverage: coverage.percent or 0)
    claims = (part.get("coverage") for parts in outputs.values() for part in parts)
    known = [claim for claim in claims if isinstance(claim, float)]
    return Coverage(percent=known[-1], source="claimed") if known else Coverage()


def _count_new_tests(base: CheckReport | None, checks: CheckReport | None) -> int | None:
    """Return how many tests more there are than on the base commit.

    None if no check ran on both, or if there are fewer and one failed: it may not have found them all.
    """
    if base is None or checks is None:
        return None
    before, now = (
        {
            entry.check: entry.passed + entry.failing + entry.skipped
            for entry in report.checks
            if entry.kind == "test" and entry.outcome != "could_not_run"
        }
        for report in (base, checks)
    )
    both = before.keys() & now.keys()
    count = sum(now[name] - before[name] for name in both)
    has_failed = any(entry.outcome == "failed" for entry in checks.checks if entry.check in both)
    return None if not both or (count < 0 and has_failed) else count


async def _check_syntax(change: RunChange, changes: Sequence[PathChange]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the files whose syntax became wrong, with details, and the code whose syntax cannot be checked here."""
    faults, unknown = dict[str, str](), list[str]()
    for path in (item.path for item in changes if item.kind in ("added", "changed", "renamed") and not item.target):
        now, before = [await change.workspace.read(commit, path) for commit in (change.tip, change.snapshot.commit)]
        fault = find_syntax_fault(path, now) if now is not None else ""
        if fault and not (before is not None and find_syntax_fault(path, before)):
            faults[path] = fault
        unknown += [path] if fault is None and classify_file(path) != "documentation" else []
    return faults, unknown


def _list_reviews(rows: Iterable[Contribution]) -> Iterator[Data]:
    for row in rows:
        if (review := row.review) is not None:
            found = {"subtask": row.subtask.name, "score": review.overall_score, "issues": len(review.faults)}
            yield {**found, "requires_changes": review.requires_changes}


def list_suggestions(rows: Iterable[Contribution]) -> tuple[str, ...]:
    """Return what the last review of each reviewer asks for or suggests, one line each."""
    reviews = {row.subtask.agent: review for row in rows if (review := row.review) is not None}
    found = list[str]()
    for review in reviews.values():
        found += map(str, review.faults)
        found += [
            to_one_line(f"{item.priority}: {item.description} {item.example or ''}".rstrip())
            for item in review.suggestions
        ]
    return tuple(dict.fromkeys(found))


def _sum_contributions(
    rows: Sequence[Contribution], profiles: Mapping[AgentId, str]
) -> Mapping[str, ProfileContribution]:
    found = dict[str, list[Contribution]]()
    for row in rows:
        found.setdefault(profiles.get(row.subtask.agent, row.subtask.agent), []).append(row)
    return {profile: _sum_rows(own) for profile, own in found.items()}


def _sum_rows(rows: Sequence[Contribution]) -> ProfileContribution:
    done = [row for row in rows if row.subtask.state == "finished"]  # other work is not in the change
    return ProfileContribution(
        agents=tuple(dict.fromkeys(row.subtask.agent for row in rows)),
        subtasks=tuple(row.subtask.name for row in rows),
        completed=len(done),
        files=tuple(dict.fromkeys(path for row in done for path in row.changes.files)),
        lines_added=sum(row.changes.added for row in done),
        lines_removed=sum(row.changes.removed for row in done),
        seconds=sum(row.millis for row in rows) / 1000,
        tokens=sum(row.spent.tokens for row in rows),
        cost=sum(row.spent.money for row in rows) / MILLIONTHS_PER_DOLLAR,
    )


def _compare_write_set(row: Contribution) -> WriteSetRecord:
    planned, changed = row.subtask.writes, row.changes.files
    unused = tuple(pattern for pattern in planned if not any(may_overlap(path, pattern) for path in changed))
    return WriteSetRecord(
        subtask=row.subtask.name, planned=planned, changed=changed, outside=row.changes.outside, unused=unused
    )


def plan_follow_up(report: IntegrationReport) -> Plan:
    """Return the plan of a run that applies the review's suggestions. Raise `RefusedError` if there are none."""
    team, lines = report.execution_id, add_fence("\n".join(f"- {line}" for line in report.suggestions))
    if not report.suggestions:
        raise make_refusal("no_suggestions", translate("integration.no_suggestions", team=team))
    title, duty = translate("integration.follow_up", team=team), translate("integration.apply_them", lines=lines)
    part = PlannedSubtask(id=SUGGESTIONS, agent=CODE_WRITER, name=title, description=duty)
    return Plan(request=title, subtasks=(part,), source="file")


def describe_result(result: IntegratedResult) -> Data:
    """Return the result as data for programs, with all fields: `msgspec` would leave out those with their default."""
    return {name: _to_data(value) for name, value in to_full_dict(result).items()}


def _to_data(value: object) -> object:
    match value:
        case msgspec.Struct() | Mapping():
            parts = to_full_dict(value) if isinstance(value, msgspec.Struct) else value
            return {str(name): _to_data(part) for name, part in parts.items()}
        case tuple() | list():
            return [_to_data(part) for part in value]
        case _:
            return value


def _list_doubts(verdict: Verdict, checks: CheckReport | None, *, is_over: bool) -> Iterator[str]:
    """Yield what the project's checks say nothing about."""
    for finding in (*verdict.reasons, *verdict.notes):
        if finding.code == "not_judged" and not is_over:
            yield translate("integration.not_over")
        elif verdict.state == "unverified" or finding.code in ("does_not_judge", "uncovered", "not_rebuilt"):
            yield render_finding(finding)
    yield from checks.left if checks is not None else ()


def _list_gaps(
    settings: TeamSettings, coverage: Coverage, paths: Iterable[str], unknown: Sequence[str]
) -> Iterator[str]:
    """Yield what was not measured, or not wanted."""
    if coverage.source != "measured":
        yield translate(f"integration.coverage_{coverage.source}")
    if not settings.validate_syntax:
        yield translate("integration.no_syntax")
    if not settings.validate_types:
        yield translate("integration.no_types")
    if unknown:
        yield translate("integration.unknown_syntax", names=shorten_names(unknown))
    scripts = [path for path in paths if path.endswith(SCRIPTS)]
    if scripts and parse_symbols("a.ts", "") is None:
        yield translate("integration.no_scripts", names=shorten_names(scripts))
    yield translate("integration.claims")


# ----------------------------------------------------------------------------------- conflicts that wait for a person


def find_open_conflicts(state: TeamState) -> list[tuple[Approval, tuple[ConflictRecord, ...]]]:
    """Return the requests to settle a conflict, oldest first, each with its files that are not merged."""
    found = list[tuple[Approval, tuple[ConflictRecord, ...]]]()
    for approval in pending_approvals(state):
        work = state.steps[approval.step_id].work
        if work.executor == SETTLE_CONFLICT:
            records = read_conflicts((work.instruction_content or {}).get(CONFLICTS_KEY))
            found.append((approval, tuple(record for record in records if record.state != "resolved")))
    return found


async def check_conflict_answer(
    fetch: Callable[[str], Awaitable[bytes]], state: TeamState, approval: Approval, words: str
) -> None:
    """Raise `RefusedError` for an answer to a conflict that cannot be done. `fetch` reads blobs."""
    records = next(
        (found for asked, found in find_open_conflicts(state) if asked.approval_id == approval.approval_id), ()
    )
    if words.partition(" ")[0].lower().rstrip(":,.!") in ("back", "drop"):
        return
    try:
        settle_files([await load_merge(fetch, found) for found in records], words)
    except WorldFault as fault:
        left, right = records[0].subtasks
        choices = translate("conflicts.choices_without", left=left, right=right, run=state.team.team_id)
        raise make_refusal("bad_answer", str(fault), choices) from None


async def list_conflicts(app: AppContext, state: TeamState, steps: Sequence[Step]) -> Sequence[ConflictRecord]:
    """Return the conflicts of a team run in these steps. Those of subtasks whose work is lost are left out."""
    stage = await find_stage(app.runtime, state)
    lost = {part.subtask_id for part in stage.subtasks if part.state in LOST_STATES} if stage is not None else set()
    return collect_conflicts(steps, lost)


async def read_conflict(fetch: Callable[[str], Awaitable[bytes]], found: ConflictRecord) -> Data:
    """Return a record with the contents of its files instead of their blobs."""
    merge = await load_merge(fetch, found)
    contents = (merge.file.base, merge.file.left, merge.file.right, merge.content)
    base, *versions, result = [None if content is None else content.decode(errors="replace") for content in contents]
    return {**to_full_dict(found), "original": base, "versions": versions, "result": result}
