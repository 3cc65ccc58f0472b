"""The view of a team run: a table with a row per agent that changes in place, and the table of results at its end."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.cost import format_dollars
from greenroom.app.messages import count_things, current_language, shorten_names, translate
from greenroom.app.task_status import format_duration
from greenroom.app.teams.report import Contribution, count_subtasks, find_phase, list_contributions
from greenroom.app.words import MAX_REASON_CHARS, attempt_words, shorten
from greenroom.cli.render.conversation import RunView, describe_step
from greenroom.cli.render.output import Column, FittedTable, Output, make_row, strip_control_characters
from greenroom.cli.render.progress import LineProgress, LiveDisplay, describe_retry
from greenroom.cli.render.team import SUBTASK_SIGNS, EventLine, TeamHistory, colour, describe_activity
from greenroom.cli.setup import CommandSetup
from greenroom.core.base.ids import TEAM_BUDGET, StepId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import ModelTextDelta, Retried
from greenroom.core.state.stage import Stage, Subtask
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import (
    DELIVER,
    FAILURES_KEY,
    FAULTS_KEY,
    FINISH_MERGE,
    MERGE,
    MERGE_QUEUE,
    PUT_OFF_KEY,
    SENT_BACK_KEY,
    SETTLE_CONFLICT,
)
from greenroom.teamwork.plan import TeamSettings
from greenroom.teamwork.plan_graph import VERIFY_SUBTASK

MAX_ROWS: Final = 20  # rows of the live table
ROWS_AROUND: Final = 8  # lines of the screen that the live table leaves free
IDLE_S: Final = 0.875  # of a frame in which nothing changes but the time
BAR_WIDTH: Final = 8
MAX_NAME_CHARS: Final = 24
MAX_TITLE_CHARS: Final = 40
MAX_WAITS_NAMED: Final = 3
MAX_PERCENT: Final = 99  # of a subtask that has not ended
MAX_RESULT_ROWS: Final = 200  # rows of the table at the end of a run
SUBTASK_ENDS: Final = ("SubtaskEnded", "SubtaskRetried", "StageReplanned")
"""Events that get a line of their own above the table."""

HIDDEN_STEPS: Final = ("open_workspace", "hand_in", "split_code", "send_back", "prepare", MERGE, FINISH_MERGE)
"""Greenroom's own steps, which the lines about subtasks already tell."""

LIVE_COLUMNS: Final = (
    Column(name=""),
    Column(name="agent"),
    Column(name="subtask"),
    Column(name="title", can_shrink=True, min_terminal_width=130),
    Column(name="now", can_shrink=True),
    Column(name="progress", min_width=BAR_WIDTH + 5, min_terminal_width=70),
    Column(name="time", right=True, min_width=6),
    Column(name="tokens", right=True, min_width=6, min_terminal_width=88),
    Column(name="cost", right=True, min_width=7, min_terminal_width=96),
)
RESULT_COLUMNS: Final = (
    Column(name=""),
    Column(name="subtask"),
    Column(name="title", can_shrink=True, min_terminal_width=110),
    Column(name="agent", min_terminal_width=60),
    Column(name="attempt", right=True, min_terminal_width=130),
    Column(name="time", right=True),
    Column(name="tokens", right=True, min_terminal_width=100),
    Column(name="cost", right=True, min_terminal_width=70),
    Column(name="files", right=True, min_terminal_width=70),
    Column(name="lines", right=True),
    Column(name="hand-off", min_terminal_width=160),
    Column(name="summary", can_shrink=True),
)


def find_team_stage(history: TeamHistory) -> Stage | None:
    """Return the stage of a team run; None for other teams."""
    if history.state.team.kit != TEAM_RUN:
        return None
    return next(iter((*history.state.stages.values(), *history.stages)), None)


# ---------------------------------------------------------------------------------------------------------- the tables


def render_live(history: TeamHistory, now: int, height: int) -> Sequence[RenderableType]:
    """Render a team run: its phase, a row per agent, and the figures so far. `now` is in milliseconds."""
    stage = find_team_stage(history)
    if stage is None:
        return ()
    rows = list_contributions(stage, (), history.spent_on, now, history.stops)
    count = max(min(MAX_ROWS, height - ROWS_AROUND), 1)
    number, total = find_phase(stage)
    head = Text(translate("team_view.phase", number=number, total=total), "bold", no_wrap=True, overflow="ellipsis")
    head.append(f" {strip_control_characters(shorten(stage.intention, 200))}", style="not bold")
    table = _render_table(history, LIVE_COLUMNS, rows, count, is_expanded=True)
    return (Text(""), head, *table, _render_foot(history, stage, now))


def render_results(history: TeamHistory, max_rows: int | None = None) -> Sequence[RenderableType]:
    """Render the subtasks of a team run with files, lines, cost and result; empty for other teams."""
    rows = _list_rows(history)
    table = _render_table(history, RESULT_COLUMNS, rows, max_rows)
    return (*table, *_render_remarks(history, rows)) if rows else ()


def _list_rows(history: TeamHistory) -> Sequence[Contribution]:
    """Return the contributions so far; none for other teams."""
    stage = find_team_stage(history)
    return (
        () if stage is None else list_contributions(stage, history.steps, history.spent_on, history.at, history.stops)
    )


def _render_remarks(history: TeamHistory, rows: Sequence[Contribution]) -> Iterator[Text]:
    """Yield what the table has no room for: why a subtask failed, files outside a write set, the issues of a review."""
    last = {row.subtask.agent: row.subtask.name for row in rows}
    for row in rows:
        subtask, known = row.subtask, {"name": row.subtask.name, "agent": row.subtask.agent}
        if subtask.state == "failed":
            why = shorten(subtask.summary, MAX_REASON_CHARS)
            yield _make_remark("red", "team_view.failed", **known, why=why)
            command = f"greenroom diff {history.state.team.team_id}/{subtask.name}"
            yield from [_make_remark("", "team_view.kept_work", command=command)] if row.has_work else ()
        if outside := row.changes.outside:
            yield _make_remark("yellow", "team_view.outside", **known, paths=shorten_names(outside))
        if (review := row.review) and (review.requires_changes or review.faults):
            score = "" if review.overall_score is None else f" ({review.overall_score}/100)"
            is_open = review.requires_changes and last[subtask.agent] == subtask.name
            key = "team_view.asks_for_changes" if is_open else "team_view.has_remarks"
            yield _make_remark("yellow" if is_open else "", key, **known, score=score)
            for issue in review.faults:
                words = {"severity": issue.severity, "description": issue.description, "suggestion": issue.suggestion}
                yield _make_remark("", "team_view.issue", **words, where=issue.location)
    scores = [
        f"{row.subtask.name} {row.review.overall_score}/100"
        for row in rows
        if row.review and row.review.overall_score is not None
    ]
    if len(scores) > 1:
        yield _make_remark("", "team_view.scores", scores=translate("counts.comma").join(scores))


def _make_remark(style: str, key: str, /, **known: object) -> Text:
    return Text(strip_control_characters(translate(key, **known)), style=style)


def _render_table(
    history: TeamHistory,
    columns: Sequence[Column],
    rows: Sequence[Contribution],
    max_rows: int | None,
    *,
    is_expanded: bool = False,
) -> Sequence[RenderableType]:
    """Render what runs and the rows around it, and how many others there are, by state."""
    running = [index for index, row in enumerate(rows) if row.subtask.state == "running"]
    middle = running[len(running) // 2] if running else 0
    order = sorted(range(len(rows)), key=lambda index: (rows[index].subtask.state != "running", abs(index - middle)))
    cells = [_render_row(history, rows[index]) for index in sorted(order[:max_rows])]
    table = FittedTable(columns, [make_row(*(row[column.name] for column in columns)) for row in cells], is_expanded)
    hidden = Counter(rows[index].subtask.state for index in order[len(cells) :])
    parts = translate("counts.comma").join(f"{count} {translate(f'states.{name}')}" for name, count in hidden.items())
    more = translate("team_view.more", count=hidden.total(), parts=parts)
    return (table, Text(f"   {more}", style="dim")) if hidden else (table,)


def _render_row(history: TeamHistory, row: Contribution) -> Mapping[str, Text | str]:
    """Render the cells of a subtask, by column."""
    subtask, spent, state, changes = row.subtask, row.spent, history.state, row.changes
    sign, style = SUBTASK_SIGNS[subtask.state]
    pending = {approval.step_id for approval in state.approvals.values() if approval.state == "pending"}
    if any(state.steps[name].subtask_id == subtask.subtask_id for name in pending if name in state.steps):
        sign, style = "?", "yellow"
    now_style = "" if subtask.state in ("running", "failed") else "dim"
    now = Text(strip_control_characters(_describe_now(history, row)), style=now_style)
    title = "" if subtask.title.casefold() == subtask.name else strip_control_characters(subtask.title)
    at_most = "≤ " if spent.estimated else ""
    return {
        "": Text(sign, style=style),
        "agent": Text(subtask.agent, style=colour(state, subtask.agent)),
        "subtask": shorten(subtask.name, MAX_NAME_CHARS),
        "title": shorten(title, MAX_TITLE_CHARS),
        "now": now,
        "progress": _render_bar(row),
        "time": format_duration(row.millis) if subtask.started_at else "",
        "tokens": f"{at_most}{spent.tokens:,}" if spent.tokens else "",
        "cost": f"{at_most}{format_dollars(spent.money)}" if spent.money else "",
        "attempt": str(subtask.attempt) if subtask.started_at else "",
        "files": str(changes.file_count) if changes.file_count else "",
        "lines": f"+{changes.added} −{changes.removed}" if changes.file_count else "",
        "hand-off": Text(row.protocol, style="dim"),
        "summary": now,
    }


def _describe_now(history: TeamHistory, row: Contribution) -> str:
    """Describe what an agent does, what its subtask waits for, or how it ended."""
    subtask, state, language = row.subtask, history.state, current_language()
    again = attempt_words(subtask.attempt, language)
    agent = state.agents.get(subtask.agent)
    merging = _find_merge(state, subtask)
    match subtask.state:
        case "running" if merging is not None:
            words = {"running": "team_view.merging", "awaiting_approval": "team_view.asks_merge"}
            return translate(words.get(merging.state, "team_view.waits_for_merge"))
        case "running" if agent is not None and agent.running is not None:
            return f"{describe_step(state.steps[agent.running])}{again}"
        case "running" if agent is not None:
            return f"{describe_activity(state, agent, language)[0]}{again}"
        case "init" if len(row.waits_for) > MAX_WAITS_NAMED:
            return translate("team_view.waits_for_many", count=len(row.waits_for))
        case "init" if row.waits_for:
            return translate("team_view.waits_for", names=translate("counts.comma").join(row.waits_for))
        case "init":
            return f"{translate('team_view.waits_for_place')}{again}"
        case "cancelled":
            return translate("states.cancelled")
        case _:
            return shorten(subtask.summary, 200)


def describe_merge_faults(result: Data) -> str:
    """Describe what is wrong with work that went back or was put off: `pytest fails (2 tests)`."""
    pairs, faults = result.get(FAILURES_KEY) or result.get(PUT_OFF_KEY), result.get(FAULTS_KEY)
    counts = Counter(str(pair[0]) for pair in pairs) if isinstance(pairs, list) else Counter[str]()
    parts = [
        translate("team_view.check_fails", check=check, tests=count_things("test", count))
        for check, count in counts.items()
    ]
    parts += [str(fault) for fault in faults] if isinstance(faults, list) else []
    return translate("counts.comma").join(parts)


def _find_merge(state: TeamState, subtask: Subtask) -> Step | None:
    """Return the step that merges the work of a subtask, if the work is handed in."""
    steps = state.steps_of(MERGE_QUEUE) if MERGE_QUEUE in state.agents else ()
    return next((step for step in steps if step.subtask_id == subtask.subtask_id), None)


def _render_bar(row: Contribution) -> Text:
    """Render the share of the expected time. Only a finished subtask has all of it."""
    subtask = row.subtask
    if subtask.state == "finished":
        return Text("━" * BAR_WIDTH + " 100%", style="green")
    if subtask.state != "running":
        return Text("")
    if not subtask.seconds:
        return Text("╌" * BAR_WIDTH, style="dim")
    percent = min(row.millis // (10 * subtask.seconds), MAX_PERCENT)
    done = BAR_WIDTH * percent // 100
    return Text("━" * done, style="cyan").append("╌" * (BAR_WIDTH - done), style="dim").append(f" {percent:3}%")


def _render_foot(history: TeamHistory, stage: Stage, now: int) -> Text:
    """Render the figures of the whole run, each with its limit."""
    total, limits = history.total(), history.state.budgets[TEAM_BUDGET].limits
    done, count = count_subtasks(stage)
    at_most, tokens = "≤ " if history.is_at_most else "", translate("conversation.figures_tokens", tokens=total.tokens)
    work = translate("conversation.figures_work", duration=format_duration(total.millis))
    figures = (
        (translate("team_view.subtasks", done=done, count=count), ""),
        (translate("team_view.elapsed", duration=format_duration(max(now - history.began_at, 0))), ""),
        (f"{at_most}{format_dollars(total.money)}", limits.money and format_dollars(limits.money)),
        (f"{at_most}{tokens}", limits.tokens and f"{limits.tokens:,}"),
        (work, limits.millis and format_duration(limits.millis)),
    )
    parts = (translate("team_view.of_limit", figure=text, limit=limit) if limit else text for text, limit in figures)
    return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


# ------------------------------------------------------------------------------------------------ results for programs


def subtask_fields(history: TeamHistory) -> dict[str, object]:
    """Return the subtasks of a team run as a field for programs; empty for other teams."""
    rows = _list_rows(history)
    return {"subtasks": [row.fields for row in rows]} if rows else {}


def find_last_score(history: TeamHistory) -> int | None:
    """Return the newest score that a reviewer of a team run gave; None if there is none."""
    reviews = [(row.subtask.ended_at or 0, row.review.overall_score) for row in _list_rows(history) if row.review]
    return max(((at, score) for at, score in reviews if score is not None), default=(0, None))[1]


def find_unfinished(history: TeamHistory) -> str:
    """Return a sentence about the subtasks of an ended team run that are not finished; empty if all are."""
    stage = find_team_stage(history)
    if stage is None or stage.state == "cancelled":  # with its task, which has its own reason
        return ""
    rest = [subtask for subtask in stage.subtasks if subtask.state != "finished"]
    text = translate("team_view.unfinished", count=len(rest), names=shorten_names([part.name for part in rest]))
    why = rest[0].summary if len(rest) == 1 and rest[0].name == VERIFY_SUBTASK else ""
    return f"{text} {why}".rstrip() if rest else ""


# ------------------------------------------------------------------------------------------------------------ the view


class TeamView(RunView):
    """Shows one team run. On a terminal a table changes in place; elsewhere each start and end of a subtask is a line.

    Texts of models are not printed, because several agents speak at once. Tool calls are printed if `settings` have
    detailed logs.
    """

    def __init__(self, setup: CommandSetup, out: Output, settings: TeamSettings) -> None:
        super().__init__(setup, out)
        is_terminal = self._console.is_terminal and not self._console.is_dumb_terminal and not os.environ.get("CI")
        self._has_table = is_terminal and settings.real_time_progress and not setup.verbose and not self._is_silent
        self._is_detailed = settings.detailed_logs and settings.real_time_progress
        self._moving = LiveDisplay(self._console, idle_s=IDLE_S)
        self._noted_conflicts = set[StepId]()

    def line(self, history: TeamHistory, line: EventLine) -> None:
        """Print the starts and ends of subtasks; with --verbose every event."""
        self._history = history
        is_shown = line.type in SUBTASK_ENDS or (line.type == "SubtaskAssigned" and not self._has_table)
        if self._verbose or (is_shown and not self._is_silent):
            LineProgress.line(self, history, line)
        self._note_conflicts(history.state)
        self._moving.refresh_soon()

    def begin_step(self, step: Step) -> None:
        """Show what the step announces."""
        self._announce(step)
        self._moving.refresh_soon()

    def end_step(self, step: Step) -> None:
        """Show the result of a tool call, if logs are detailed. Verdicts and warnings are always shown."""
        is_call = step.work.type == "tool" and step.work.executor != DELIVER
        self._note_merge(step)
        if not is_call or (self._is_detailed and step.work.executor not in HIDDEN_STEPS):
            super().end_step(step)
        self._moving.refresh_soon()

    def _note_conflicts(self, state: TeamState) -> None:
        """Print once what to type for each conflict that waits for a person."""
        pending = {approval.step_id for approval in state.approvals.values() if approval.state == "pending"}
        steps = (state.steps[name] for name in pending - self._noted_conflicts if name in state.steps)
        new = {step.step_id for step in steps if step.work.executor == SETTLE_CONFLICT}
        self._noted_conflicts |= new
        if new and not self._is_silent:
            text = translate("team_view.conflict", command=f"greenroom conflicts {state.team.team_id}")
            self._print_line(Text(text, style="yellow"))

    def _note_merge(self, step: Step) -> None:
        """Print what fails in a merge that went back to its author, or that was put off."""
        result, state = step.result or {}, self._history.state
        keys = {SENT_BACK_KEY: "team_view.sent_back", PUT_OFF_KEY: "team_view.put_off"}
        key = next((keys[name] for name in keys if name in result), None)
        subtask = state.find_subtask(step)
        if key is None or subtask is None or self._is_silent:
            return
        why = shorten(describe_merge_faults(result), MAX_REASON_CHARS)
        text = translate(key, name=subtask.name, agent=subtask.agent, why=why)
        self._print_line(Text(strip_control_characters(text), style="yellow"))

    def show_results(self, history: TeamHistory) -> None:
        """Print the table of results."""
        if not self._is_silent:
            self._console.print()
            for part in render_results(history, MAX_RESULT_ROWS):
                self._console.print(part)

    def _note_call(self, step: Step, sign: str, result: str) -> None:
        if not self._is_silent:
            self._print_line(Text(f"{sign} {step.agent_id} {describe_step(step)} → {result}", style="dim"))

    def _show(self, step: Step, event: LiveEvent) -> None:
        match event:
            case ModelTextDelta():
                pass
            case Retried():
                self.note(f"{step.agent_id}: {describe_retry(event)}", style="yellow")
            case _:
                super()._show(step, event)

    def _show_activity(self, _: str) -> None:
        if self._has_table and not self._moving.is_running:
            self._moving.begin(self._render_activity)

    def _render_activity(self) -> RenderableType:
        rows = render_live(self._history, int(time.time() * 1000), self._console.height)
        trouble = [Text(self._trouble, style="bold red")] if self._trouble else []
        return Group(*rows, *trouble, *self._render_typed())
