"""`greenroom runs`, `show`, `cost`, `events`, `replay`: tasks, teams, costs and events."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, cast

import msgspec
import typer
from rich.text import Text

from greenroom.app.conversation.capability_names import CHANGING_RUNS, RUN
from greenroom.app.cost import CostSum, TeamCosts, format_dollars, group_costs, sum_costs
from greenroom.app.lookup import TaskReference, find_short_ids, resolve_id
from greenroom.app.messages import count_things, translate
from greenroom.app.messages.findings import render_finding
from greenroom.app.runs.report import AgentPlan, find_agent_plans
from greenroom.app.task_status import format_duration, read_status
from greenroom.app.teams.report import count_subtasks, describe_missing, find_stage
from greenroom.app.teams.team_file import measure_routing
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import unverified_code
from greenroom.cli.interactive.report import name_way_on, summarise
from greenroom.cli.options import Id, complete_id
from greenroom.cli.render.output import Column, FittedTable, event_fields, make_row, strip_control_characters
from greenroom.cli.render.progress import event_text
from greenroom.cli.render.team import (
    TeamHistory,
    read_history,
    render_history,
    task_title,
    team_fields,
)
from greenroom.cli.render.team_progress import find_team_stage, render_results, subtask_fields
from greenroom.core.base.errors import StoreFault, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, to_full_dict
from greenroom.core.ports.codec import to_json_dict
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import Finding, Verdict, encode_verdict, find_verdict

MAX_TEAMS_SHOWN: Final = 10
TASK_COLUMNS: Final = (
    Column(name="id"),
    Column(name="task", can_shrink=True),
    Column(name="state"),
    Column(name="verdict", min_terminal_width=50),
    Column(name="started", min_terminal_width=60),
    Column(name="runs in", min_terminal_width=100),
)
VERDICT_STYLES: Final = {"verified": "green", "failed": "red", "unverified": "yellow"}
STATE_STYLES: Final = {
    "damaged": "red",
    "finished": "green",
    "failed": "red",
    "cancelled": "red",
    "working": "bold",
    "stopped": "yellow",
}


async def runs(
    cli: Invocation, *, show_all: Annotated[bool, typer.Option("--all", help="List all, not only the newest.")] = False
) -> None:
    """List runs and their tasks, newest first.

    The bold part of an id is enough to type.

    Examples:
      greenroom runs
      greenroom runs --all --output-format json

    Exit codes: 0; 2; 3.
    """
    infos = list(reversed(await cli.runtime.log.streams()))
    shown = infos if show_all else infos[:MAX_TEAMS_SHOWN]
    rows = [row for info in shown for row in await _list_rows(cli, info)]
    cli.out.listing("task", rows)
    if cli.out.is_text and rows:
        short = find_short_ids([TeamId(info.stream) for info in infos])
        columns = TASK_COLUMNS if any(row["owner"] for row in rows) else TASK_COLUMNS[:-1]
        cli.out.show(FittedTable(columns, [_render_cells(task_row, short) for task_row in rows]))
    if not rows:
        cli.progress.note(translate("runs.none_yet", home=cli.home, command=render_command(cli, "run", "TASK")))
    elif len(infos) > len(shown):
        command = render_command(cli, "runs", "--all")
        cli.progress.note(translate("runs.older", count=len(infos) - len(shown), command=command))


async def _list_rows(cli: Invocation, info: StreamInfo) -> list[Data]:
    """Return the tasks of a team as fields, newest first; one row for a team without tasks or with a damaged log."""
    team = TeamId(info.stream)
    team_row = {"team": team, "task": "", "name": "", "created_at": info.created_at, "owner": info.owner}
    try:
        state, ended = await cli.runtime.state(team), await cli.runtime.ended_tasks(team)
        is_over = state.team.kit in (*CHANGING_RUNS, RUN) and not state.tasks
        verdict = _find_verdict(state, await cli.app.steps(team)) if is_over else None
    except StoreFault as error:  # a damaged log must not hide the others
        cli.progress.note(str(error), style="red")
        return [{**team_row, "state": "damaged", "why": str(error)}]
    task_states = [(task, str(task.state), shorten(task.summary)) for task in ended]
    for task in state.tasks.values():
        if (status := read_status(state, task.task_id)) is not None:
            word = "stopped" if status.state == "working" and not info.owner else status.state
            task_states.append((task, word, status.reason))
    if not task_states and state.team.team_id:
        return [{**team_row, "name": state.team.name, "state": "no task", "why": ""}]
    team_row["verdict"] = verdict.state if verdict is not None else ""
    team_row |= await _count_subtasks(cli, state)
    return [
        {
            **team_row,
            "task": task.task_id,
            "name": task_title(task),
            "state": state_name,
            "why": why,
            "created_at": task.created_at,
        }
        for task, state_name, why in sorted(task_states, key=lambda entry: -entry[0].created_at)
    ]


async def _count_subtasks(cli: Invocation, state: TeamState) -> Data:
    """Return how many subtasks of a team run are finished; nothing for other runs."""
    stage = await find_stage(cli.runtime, state)
    if stage is None:
        return {}
    done, count = count_subtasks(stage)
    return {"subtasks_finished": done, "subtasks": count}


def _render_cells(task_row: Data, short: Mapping[TeamId, str]) -> list[Text]:
    team, task, state = TeamId(str(task_row["team"])), str(task_row["task"]), str(task_row["state"])
    label = team_label(team, short[team]).append(f"/{task}" if task else "", style="not bold dim")
    state_text = Text(translate(f"states.{state.replace(' ', '_')}"), style=STATE_STYLES.get(state, "yellow"))
    verdict = str(task_row.get("verdict", ""))
    verdict_text = Text(translate(f"states.{verdict}") if verdict else "–", style=VERDICT_STYLES.get(verdict, ""))
    begun = format_ago(cast("int", task_row["created_at"]))
    name, owner = shorten(str(task_row["name"]), 48), str(task_row["owner"] or "")
    if "subtasks" in task_row:
        done, count = task_row["subtasks_finished"], task_row["subtasks"]
        name = translate("runs.team_subtasks", done=done, count=count, name=name)
    return make_row(label, name, state_text, verdict_text, begun, owner)


def team_label(team: TeamId, short: str) -> Text:
    """Render a team's id; the part that is enough to type is bold."""
    return Text(short, style="bold cyan").append(team[len(short) :], style="not bold dim")


def format_ago(millis: int) -> str:
    """Format the time since then in the largest unit."""
    return _format_span("ago", max(int(time.time()) - millis // 1000, 0))


def format_ahead(millis: int) -> str:
    """Format the time until then in the largest unit; empty if it is over."""
    left = millis // 1000 - int(time.time())
    return _format_span("in", left) if left > 0 else ""


def _format_span(prefix: str, seconds: int) -> str:
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= size:
            return translate(f"counts.{prefix}_{unit}", count=seconds // size)
    return translate(f"counts.{prefix}_seconds", count=seconds)


async def show(cli: Invocation, name: Id) -> Exit:
    """Show a run: tasks, agents, messages, costs.

    It also shows the verdict and its reasons.

    Examples:
      greenroom show last
      greenroom show last --output-format json

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    history = await read_history(cli.runtime, reference.team)
    holder = await cli.runtime.log.holder(reference.team)
    owner = holder.owner if holder else None
    cli.out.begin(team=reference.team)
    key = "runs.state_running" if owner else "runs.state_not_running"
    how = translate(key, version=history.version, owner=owner)
    parts = render_history(history, how, reference.task, render_results(history))
    cli.out.show(*parts, "", summarise(history))
    verdict = _find_verdict(history.state, history.steps)
    if verdict is not None:
        resume = translate("runs.not_judged_yet", command=render_command(cli, "resume", reference.team))
        reasons = (
            resume if history.state.tasks and reason.code == "not_judged" else render_finding(reason)
            for reason in (*verdict.reasons, *verdict.notes)
        )
        heading = translate("runs.verdict", state=translate(f"states.{verdict.state}"))
        cli.out.show(heading, *(f"  {reason}" for reason in reasons))
    if missing := describe_missing(find_team_stage(history)):
        cli.out.show(missing)
    plans = find_agent_plans(history.steps)
    for agent_plan in plans:
        _show_plan(cli, agent_plan)
    figures = measure_routing(history.all_tasks(), history.steps, history.messages)
    if figures is not None:
        cli.out.show(translate("routing.figures", messages=figures.messages, mean=figures.mean_hops))
        counts = figures.failures.items()
        cli.out.show(*(translate("routing.failures", count=count, reason=shorten(why)) for why, count in counts))
    cli.progress.note("")
    if history.state.tasks and owner is None:
        cli.progress.note(name_way_on(cli, reference.team, history))
    else:
        cli.progress.note(translate("runs.replay", command=render_command(cli, "replay", reference.team)))
    if history.steps:
        cli.progress.note(translate("runs.list_steps", command=render_command(cli, "rewind", reference.team)))
    kept: dict[str, object] = {"verdict": encode_verdict(verdict)} if verdict is not None else {}
    kept |= {"plans": [to_json_dict(agent_plan) for agent_plan in plans]} if plans else {}
    if figures is not None:
        kept["routing"] = {**to_full_dict(figures), "mean_hops": figures.mean_hops}
    fields = {**team_fields(history, owner, reference.task), **subtask_fields(history)}
    return cli.out.result("ok", Exit.DONE, **fields, **kept)


def _show_plan(cli: Invocation, agent_plan: AgentPlan) -> None:
    """Show the parts of a task that an agent has split, and what came of each."""
    subtasks = agent_plan.plan.subtasks
    rows = (
        f"  {number}. {shorten(subtask.name)}  {translate(f'states.{state}')}"
        for number, (subtask, state) in enumerate(zip(subtasks, agent_plan.states, strict=True), start=1)
    )
    heading = translate("conversation.task_split", agent=agent_plan.agent, count=len(subtasks))
    cli.out.show(*map(strip_control_characters, (heading, *rows)))


def _find_verdict(state: TeamState, steps: Sequence[Step]) -> Verdict | None:
    """Return the verdict of a run; None for a team that changes no files."""
    if state.team.kit in CHANGING_RUNS:
        return find_verdict(steps)
    code = unverified_code(state, steps)
    return Verdict(state="unverified", reasons=(msgspec.convert({"code": code}, Finding),)) if code else None


async def cost(
    cli: Invocation,
    name: Annotated[
        str,
        typer.Argument(metavar="ID", help="Only this run: the start of its id, or `last`.", autocompletion=complete_id),
    ] = "",
    *,
    by: Annotated[
        Literal["run", "agent", "model"],
        typer.Option("--by", metavar="run|agent|model", help="What to sum by."),
    ] = "run",
) -> Exit:
    """Show the cost of runs, agents or models.

    Without an ID it sums up all runs: money, tokens, calls.

    Examples:
      greenroom cost
      greenroom cost last --by model

    Exit codes: 0; 2; 3.
    """
    team_ids = [TeamId(info.stream) for info in reversed(await cli.runtime.log.streams()) if info.head.version]
    teams = [(await resolve_id(cli.runtime, name)).team] if name else team_ids
    accounts = [team_account for team in teams if (team_account := await _read_account(cli, team)) is not None]
    rows = group_costs(accounts, by)
    grand_total = sum_costs(rows.values())
    cli.out.begin(by=by)
    cli.out.listing("row", ({by: key, **_sum_fields(row_sum)} for key, row_sum in rows.items()))
    if not rows:
        cli.progress.note(translate("runs.no_model_called", command=render_command(cli, "ask", "QUESTION")))
    elif cli.out.is_text:
        names = {str(account.team): account.name for account in accounts} if by == "run" else {}
        cli.out.show(_render_table(rows, grand_total, by, names))
    if grand_total.reserved:
        calls = count_things("estimated_call", grand_total.reserved)
        cli.progress.note(translate("runs.reserved_calls", calls=calls), style="yellow")
    if grand_total.unpriced:
        why = translate("runs.unpriced_calls", count_calls=count_things("call", grand_total.unpriced))
        cli.progress.note(why, style="yellow")
    status, code = ("ok", Exit.DONE) if len(accounts) == len(teams) else ("damaged", Exit.CONFIG)
    return cli.out.result(status, code, by=by, **_sum_fields(grand_total))


async def _read_account(cli: Invocation, team: TeamId) -> TeamCosts | None:
    account = TeamCosts(team)
    try:
        async for logged_event in cli.runtime.events(team):
            account.add_event(logged_event.event)
    except StoreFault as error:  # a damaged log must not hide the others
        cli.progress.note(str(error), style="red")
        return None
    return account


def _sum_fields(row_sum: CostSum) -> Data:
    """Return a sum as fields. If a part of the cost is unknown, it is the known part."""
    return {
        "cost": row_sum.dollars,
        "tokens": row_sum.spent.tokens,
        "calls": row_sum.calls,
        "unpriced_calls": row_sum.unpriced,
        "reserved_calls": row_sum.reserved,
    }


def _render_table(rows: Mapping[str, CostSum], grand_total: CostSum, by: str, names: Mapping[str, str]) -> FittedTable:
    name_columns = (
        (Column(name="team"), Column(name="task", can_shrink=True, min_terminal_width=60))
        if names
        else (Column(name=by),)
    )
    figures = tuple(Column(name=name, right=True) for name in ("calls", "tokens", "cost"))
    titles = {key: [shorten(names.get(key, ""), 48)] if names else [] for key in rows}
    cells = [make_row(key, *titles[key], *_render_figures(row_sum)) for key, row_sum in rows.items()]
    if len(rows) > 1:
        cells.append(
            make_row(
                Text(translate("runs.total"), style="bold"), *([""] if names else []), *_render_figures(grand_total)
            )
        )
    return FittedTable((*name_columns, *figures), cells)


def _render_figures(row_sum: CostSum) -> tuple[str, str, str]:
    price = format_dollars(row_sum.spent.money)
    if row_sum.unpriced:
        is_partly_known = row_sum.unpriced < row_sum.calls
        price = translate("runs.cost_and_unknown", price=price) if is_partly_known else translate("runs.unknown")
    return f"{row_sum.calls:,}", f"{row_sum.spent.tokens:,}", price


async def events(
    cli: Invocation,
    name: Id,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing events until no task is open.")] = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Skip events up to version N.")] = 0,
) -> Exit:
    """Print the events of a run; --follow keeps watching.

    Each event is one line. A run in another terminal can be followed too.

    Examples:
      greenroom events last --follow
      greenroom events last --after 100 --output-format stream-json

    Exit codes: 0; 2; 3.
    """
    reference, head = await _find_with_head(cli, name)
    cli.out.begin(team=reference.team, head=head)
    cli.out.expect("events")
    history, follow = TeamHistory(keeps_records=False), follow and await _can_follow(cli, reference.team)
    _note_whole_team(cli, reference)
    async for logged_event in cli.runtime.events(reference.team, follow=follow):
        line = history.add(logged_event)
        if logged_event.version > after and cli.out.is_text:
            clock = time.strftime("%H:%M:%S", time.localtime(line.at / 1000))
            before = f"{line.version:>6}  {clock}.{line.at % 1000:03}  "
            cli.out.show(event_text(before, history, line, with_type=True))
        elif logged_event.version > after:
            cli.out.item(line.type, event_fields(reference.team, logged_event, line.subtask), many="events")
        if follow and logged_event.version >= head and not history.state.tasks:
            break
    return cli.out.result("ok", Exit.DONE, team=reference.team, version=history.version)


async def _find_with_head(cli: Invocation, name: str) -> tuple[TaskReference, int]:
    reference = await resolve_id(cli.runtime, name)
    return reference, (await cli.runtime.log.head(reference.team)).version


async def _can_follow(cli: Invocation, team: TeamId) -> bool:
    """Whether the team has open tasks. Print a note if no process runs it."""
    if not (await cli.runtime.state(team)).tasks:
        return False
    if await cli.runtime.log.holder(team) is None:
        cli.progress.note(translate("runs.not_running", command=render_command(cli, "resume", team)), style="yellow")
    return True


def _note_whole_team(cli: Invocation, reference: TaskReference) -> None:
    if reference.task is not None:
        cli.progress.note(translate("runs.whole_team", team=reference.team), style="dim")


async def replay(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[int | None, typer.Option("--at", min=1, metavar="N", help="Show the state at version N.")] = None,
) -> Exit:
    """Replay a run, or show its state at a version.

    It is read from the log: nothing is run again and no model is called.

    Examples:
      greenroom replay last
      greenroom replay last --at 20

    Exit codes: 0; 2; 3.
    """
    reference, head = await _find_with_head(cli, name)
    if at is not None and at > head:
        raise make_refusal("no_such_version", translate("runs.no_such_version", team=reference.team, head=head, at=at))
    cli.out.begin(team=reference.team, at=at or head)
    cli.progress.note(translate("runs.from_log"), style="dim")
    if at is not None:
        history = await read_history(cli.runtime, reference.team, at)
        how, results = translate("runs.state_at", at=at, head=head), render_results(history)
        cli.out.show(*render_history(history, how, reference.task, results))
        command = render_command(cli, "fork", reference.team, "--at", str(at))
        cli.progress.note(f"\n{translate('runs.fork_here', command=command)}")
        return cli.out.result("ok", Exit.DONE, **team_fields(history, None, reference.task))
    _note_whole_team(cli, reference)
    history = TeamHistory(keeps_records=False)
    async for logged_event in cli.runtime.events(reference.team):
        line = history.add(logged_event)
        cli.out.stream(reference.team, logged_event, line.subtask)
        if line.summary.story or cli.setup.verbose:
            before = f"{line.version:>5}  {'+' + format_duration(line.at - history.began_at):>7}  "
            cli.out.show(event_text(before, history, line))
    command = render_command(cli, "replay", reference.team, "--at", "VERSION")
    cli.progress.note(f"\n{translate('runs.state_at_version', command=command)}")
    spent = history.total()
    counts = {"steps": spent.steps, "tokens": spent.tokens, "messages": history.messages_sent}
    return cli.out.result("ok", Exit.DONE, team=reference.team, version=history.version, **counts)
