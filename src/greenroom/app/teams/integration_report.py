"""The integration report of a team run as text and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.messages import count_things, shorten_names, to_one_line, translate
from greenroom.app.runs.report import render_receipt
from greenroom.app.task_status import format_duration
from greenroom.app.teams.integration import IntegratedResult, ProfileContribution, WriteSetRecord
from greenroom.core.base.records import Data
from greenroom.teamwork.conflicts import ConflictRecord
from greenroom.teamwork.validation import ValidationIssue

Section: TypeAlias = tuple[str, Sequence[str]]
"""A heading and its lines."""

MAX_LINE_CHARS: Final = 80
_MARKDOWN: Final = re.compile(r"([\\*_<>\[\]|#])")


def render_text(result: IntegratedResult, least: int, *, is_detailed: bool = True) -> str:
    """Render the report for a terminal. `least` is the minimum of the coverage."""
    blocks = [translate("integration.title", team=result.report.execution_id)]
    for title, lines in _list_sections(result, least, is_detailed):
        blocks.append("\n".join((title, *(f"  {line}" for line in lines))))
    return "\n\n".join(blocks) + "\n"


def render_markdown(result: IntegratedResult, least: int) -> str:
    """Render the whole report as Markdown. What agents wrote cannot format it."""
    blocks = [f"# {translate('integration.title', team=result.report.execution_id)}"]
    for title, lines in _list_sections(result, least, is_detailed=True):
        escaped = (_MARKDOWN.sub(r"\\\1", line) for line in lines)
        blocks.append("\n".join((f"## {title}", "", *(f"- {line}" for line in escaped))))
    return "\n\n".join(blocks) + "\n"


def render_summary(result: IntegratedResult, least: int) -> Sequence[str]:
    """Render the report in a few lines: the figures, and each conflict."""
    return [*_list_figures(result, least), *(_describe_conflict(row) for row in result.resolutions)]


def _list_sections(result: IntegratedResult, least: int, is_detailed: bool) -> Iterator[Section]:
    """Yield the sections that have lines. Only a detailed report has files, summaries and the parts of the score."""
    report, merged = result.report, result.merged
    sections: dict[str, Sequence[str]] = {
        "result": _list_figures(result, least),
        "contributions": [_describe_contribution(name, row) for name, row in report.agent_contributions.items()],
        "tests": [render_receipt(receipt).strip() for receipt in report.checks],
        "issues": [_describe_issue(issue) for issue in result.validation.issues],
        "conflicts": [_describe_conflict(row) for row in result.resolutions],
        "reviews": [_describe_review(row) for row in report.reviews],
        "suggestions": report.suggestions,
        "write_sets": _list_write_sets(report.write_sets),
        "not_verified": report.not_verified,
        "recommendations": report.recommendations,
    }
    if is_detailed:
        sections["files"] = [
            f"{path}  +{file.added} −{file.removed}  {', '.join(file.subtasks)}".rstrip()
            for path, file in merged.files.items()
        ]
        sections["summaries"] = [f"{name}: {text}" for name, text in report.summaries.items() if text]
        sections["score"] = [f"{name}: {points:+g}" for name, points in result.validation.score_parts.items() if points]
    for key, lines in sections.items():
        if lines:
            yield translate(f"integration.{key}"), [to_one_line(" ".join(line.splitlines())) for line in lines]


def _list_figures(result: IntegratedResult, least: int) -> Sequence[str]:
    summary, metrics = result.report.summary, result.merged.metrics
    lines = [
        translate("integration.quality", score=result.validation.score, state=translate(f"states.{summary.verdict}")),
        translate(
            "integration.figures",
            done=summary.completed_subtasks,
            count=summary.total_subtasks,
            files=count_things("file", summary.files_modified),
            added=metrics["lines_added"],
            removed=metrics["lines_removed"],
        ),
    ]
    if summary.tests_added is not None:
        lines.append(translate("integration.tests_added", count=summary.tests_added))
    if summary.coverage is not None:
        source = translate(f"validation.{summary.coverage_source}")
        lines.append(translate("integration.coverage", percent=f"{summary.coverage:g}", source=source, least=least))
    times = (summary.total_duration, summary.work_seconds, summary.serial_seconds)
    duration, work, serial = (format_duration(round(seconds * 1000)) for seconds in times)
    cost = format_dollars(round(summary.cost * MILLIONTHS_PER_DOLLAR))
    return [*lines, translate("integration.times", duration=duration, work=work, serial=serial, cost=cost)]


def _describe_contribution(profile: str, row: ProfileContribution) -> str:
    return translate(
        "integration.contribution",
        profile=profile,
        agents=shorten_names(row.agents),
        subtasks=shorten_names(row.subtasks),
        files=count_things("file", len(row.files)),
        added=row.lines_added,
        removed=row.lines_removed,
        duration=format_duration(round(row.seconds * 1000)),
        cost=format_dollars(round(row.cost * MILLIONTHS_PER_DOLLAR)),
    )


def _describe_issue(issue: ValidationIssue) -> str:
    where = ": ".join(filter(None, (issue.file, issue.details)))
    values = {"severity": translate(f"validation.{issue.severity}"), "where": f"({where})" if where else ""}
    return translate("integration.issue", message=issue.message, suggestion=issue.suggestion, **values)


def _describe_conflict(found: ConflictRecord) -> str:
    text = translate(
        "integration.conflict",
        type=found.type,
        path=found.path or "–",
        agents=shorten_names(found.involved_agents),
        how=", ".join(name_progress(found)),
        why=found.why or found.description,
    )
    return f"{text} {render_dropped(found)}" if found.dropped_lines else text


def name_progress(found: ConflictRecord) -> tuple[str, str]:
    """Return the state of a conflict and the rung of the ladder that it reached, for a person."""
    state = translate(f"conflicts.state_{found.state.replace(' ', '_')}")
    return state, translate(f"conflicts.rung_{found.rung}")


def render_dropped(found: ConflictRecord) -> str:
    """Render the first lines that the result of a conflict lacks."""
    return translate("conflicts.lacks", lines=shorten_names([line[:MAX_LINE_CHARS] for line in found.dropped_lines]))


def _describe_review(row: Data) -> str:
    key = "integration.review_asks" if row["requires_changes"] else "integration.review"
    score = "–" if row["score"] is None else row["score"]
    return translate(key, subtask=row["subtask"], score=score, issues=count_things("issue", int(str(row["issues"]))))


def _list_write_sets(rows: Sequence[WriteSetRecord]) -> Sequence[str]:
    outside = [row for row in rows if row.outside]
    held = translate("integration.write_sets_held", held=len(rows) - len(outside), count=len(rows))
    names = (translate("integration.outside", subtask=row.subtask, paths=shorten_names(row.outside)) for row in outside)
    return [held, *names] if rows else []
