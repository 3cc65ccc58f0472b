"""Runs: the session, the list of runs, one run at a version, and its plan."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final, TypeVar

from fastapi import APIRouter

from greenroom.app.approvals import pending_approvals, quote_for_page
from greenroom.app.conversation.capability_names import CHANGING_RUNS
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.messages import current_language, translate
from greenroom.app.messages.findings import LOG_SENTENCES, find_plan_refusal, render_finding
from greenroom.app.organisation.inbox import find_unanswered
from greenroom.app.run_host import list_refusals
from greenroom.app.settings.home import home_folder
from greenroom.app.task_status import TaskStatus, format_duration, read_ended_status, read_status
from greenroom.app.teams.report import count_subtasks
from greenroom.app.words import LIMIT_FLAGS, LIMIT_REASON, MAX_REASON_CHARS, describe_reason, shorten
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import GreenroomError, StoreFault
from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, TeamId
from greenroom.core.ports.codec import decode_archived
from greenroom.core.ports.log import StreamInfo
from greenroom.core.rules.stages import list_failed
from greenroom.core.state import stage as stages
from greenroom.core.state.archive import ArchiveKind
from greenroom.core.state.message import Message
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import TeamState
from greenroom.http import schemas
from greenroom.http.context import MAX_ROWS, At, Context, Cursor, Limit, RunPath, ServerContext, read_cursor
from greenroom.http.state_reader import JUDGED, RunIndex, keep
from greenroom.runs.verdict import Verdict, find_verdict
from greenroom.teamwork.plan_graph import OWN_SUBTASKS, find_longest_chain

MAX_ENDED: Final = 2_000
"""Ended stages, tasks and notes that one answer holds."""

MAX_PART_CHARS: Final = 200
"""Characters of why a subtask failed, in the reason of its run."""

LIMIT_FIELDS: Final[Mapping[str, tuple[schemas.LimitField, int]]] = {
    "money": ("cost_limit", MILLIONTHS_PER_DOLLAR),
    "millis": ("time_limit_s", 1_000),
    "tokens": ("token_limit", 1),
}
"""The limits of a run by their names in its state: the fields of the API, and how many are one of its units."""

T = TypeVar("T")

router = APIRouter(tags=["runs"])


@router.get("/session")
async def read_session(context: Context) -> schemas.Session:
    """Say who looks, and what this server works on."""
    model, hint = "", ""
    try:
        context.app.get_model("")  # its key may be missing
        model = context.app.resolve_alias("")
    except GreenroomError as error:
        hint = str(error)
    return schemas.Session(
        folder=str(context.app.root),
        home=str(home_folder(context.app.home)),
        language="zh" if current_language().startswith("zh") else "en",
        person=getpass.getuser(),
        version=version("greenroom"),
        model=model,
        model_hint=hint,
        sandbox=context.app.sandbox_tier,
    )


@router.get("/runs")
async def list_runs(
    context: Context,
    state: schemas.RunState | None = None,
    search: str = "",
    folder: str = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> schemas.Page[schemas.Run]:
    """List the runs, newest first."""
    infos = [info for info in reversed(await context.runtime.log.streams()) if info.head.version]
    shown, place = list[schemas.Run](), read_cursor(cursor)
    while place < len(infos) and len(shown) < limit:
        row = await make_row(context, infos[place])
        place += 1
        if state in (None, row.state) and search.lower() in row.title.lower() and folder in ("", row.folder):
            shown.append(row)
    return schemas.Page(items=shown, next=str(place) if place < len(infos) else None, total=len(infos))


@router.get("/runs/{run}")
async def read_run(context: Context, run: RunPath, at: At = None) -> schemas.RunDetail:
    """Show a run at a version."""
    info = await find_info(context, run)
    state = await context.reader.read(run, at)
    is_newest = state.version >= info.head.version
    row = await (make_row(context, info) if is_newest else make_row_at(context, info, state))
    tasks = await read_tasks(context, state)
    first = next(iter(tasks), None)
    models = {str((agent.spec.llm_config or {}).get("model", "")) for agent in state.agents.values()}
    origin, past = state.team.origin, "" if is_newest else translate("actions.past")
    return schemas.RunDetail(
        **row.model_dump(),
        request=first.intention if first is not None else "",
        answer=first.summary if first is not None and first.summary.split("\n")[0] not in LOG_SENTENCES else "",
        models=sorted(models - {""}),
        at=state.version,
        head=info.head.version,
        actions=[
            schemas.Action.model_validate({"verb": verb, "is_allowed": not (past or why), "why": past or why})
            for verb, why in (await list_refusals(context.app, context.host, run)).items()
        ],
        forked_from=schemas.Origin(run=origin.team_id, version=origin.version) if origin is not None else None,
    )


async def find_info(context: ServerContext, run: TeamId) -> StreamInfo:
    """Return what the log says about a run that exists."""
    return next(info for info in await context.runtime.log.streams() if info.stream == run)


async def read_ended(context: ServerContext, state: TeamState, kind: ArchiveKind, type_: type[T]) -> list[T]:
    """Return the records of a kind that have left the state at its version, oldest first."""
    rows = await context.runtime.log.read_archive(state.team.team_id, kind, limit=MAX_ENDED)
    records = [decode_archived(row) for row in rows if row.version <= state.version]
    return [record for record in records if isinstance(record, type_)]


async def read_tasks(context: ServerContext, state: TeamState) -> list[Task]:
    """Return the tasks of a run at a version, oldest first."""
    tasks = [*await read_ended(context, state, "task", Task), *state.tasks.values()]
    return sorted(tasks, key=lambda task: (len(task.task_id), task.task_id))


async def read_stages(context: ServerContext, state: TeamState) -> list[stages.Stage]:
    """Return the stages of a run at a version, oldest first."""
    known = [*await read_ended(context, state, "stage", stages.Stage), *state.stages.values()]
    return sorted(known, key=lambda stage: (len(stage.stage_id), stage.stage_id))


async def make_row(context: ServerContext, info: StreamInfo) -> schemas.Run:
    """Return a run as a list shows it. A run with a damaged log has a row too."""
    run = TeamId(info.stream)
    key, mark = (run, current_language()), (info.head.version, info.owner, context.host.is_hosting(run))
    kept = context.rows.get(key)
    if kept is not None and kept[0] == mark:
        return kept[1]
    try:
        row = await make_row_at(context, info, await context.reader.read(run))
    except StoreFault as fault:
        fields = {"id": run, "title": run, "kind": "", "folder": "", "state": "damaged", "reason": str(fault)}
        return schemas.Run.make(info, **fields, version=info.head.version)
    keep(context.rows, key, (mark, row), MAX_ROWS)
    return row


async def make_row_at(context: ServerContext, info: StreamInfo, state: TeamState) -> schemas.Run:
    """Return a run at a version as a list shows it."""
    run, tasks = TeamId(info.stream), await read_tasks(context, state)
    first, is_newest = next(iter(tasks), None), state.version >= info.head.version
    status = TaskStatus(state="idle")
    if first is not None:
        status = read_status(state, first.task_id) or read_ended_status(first)
    known = await read_stages(context, state)
    done = [count_subtasks(stage) for stage in known]
    budget = state.budgets.get(TEAM_BUDGET)
    spent = budget.spent if budget is not None else NOTHING
    limit = budget.limits.money if budget is not None else None
    cost: float | None = spent.money / MILLIONTHS_PER_DOLLAR
    if spent.tokens and not spent.money:  # free, or of unknown price
        cost = (await context.reader.index(run)).sum_all(state.version).dollars
    is_stopped = status.state == "working" and not info.owner and is_newest
    verdict = await find_run_verdict(context, state)
    is_refused = status.state == "failed" and find_plan_refusal(status.reason) is not None
    return schemas.Run(
        id=run,
        title=first.name if first is not None else state.team.name,
        kind=state.team.kit,
        folder=state.team.workspace,
        state="stopped" if is_stopped else "cancelled" if is_refused else status.state,
        reason=explain_status(state, status, known, verdict) if first is not None else "",
        verdict=verdict.state if verdict is not None and not is_refused else None,
        waits_for_me=len(pending_approvals(state)) + len(list_letters(state)),
        subtasks=sum(count for _, count in done),
        subtasks_done=sum(finished for finished, _ in done),
        agents=len(state.agents),
        cost=cost,
        cost_limit=limit / MILLIONTHS_PER_DOLLAR if limit is not None else None,
        reached=find_reached_limit(state),
        tokens=spent.tokens,
        created_at=info.created_at,
        ended_at=first.ended_at if first is not None else None,
        working_ms=spent.millis,
        owner=info.owner if is_newest else None,
        is_hosted=context.host.is_hosting(run),
        version=state.version,
    )


def list_letters(state: TeamState) -> list[Message]:
    """Return the messages that people of a run must answer, without those that a request for approval sent."""
    people = [name for name, agent in state.agents.items() if agent.spec.kind == "human"]
    unanswered = [item for person in people for item in find_unanswered(state, person) if item.kind != "approval"]
    return list({item.message.message_id: item.message for item in unanswered}.values())


def is_over(state: TeamState) -> bool:
    """Return whether all tasks of a run had ended; a run without any has not begun."""
    return bool(state.team.tasks_made) and not state.tasks


def find_reached_limit(state: TeamState) -> schemas.ReachedLimit | None:
    """Return the limit of the whole run that paused it."""
    found = LIMIT_REASON.fullmatch(state.team.paused or "")
    if found is None or found[1] != TEAM_BUDGET or found[2] not in LIMIT_FIELDS:
        return None
    field, unit = LIMIT_FIELDS[found[2]]
    return schemas.ReachedLimit(field=field, value=(getattr(state.budgets[TEAM_BUDGET].limits, found[2]) or 0) / unit)


def explain_status(state: TeamState, status: TaskStatus, known: Sequence[stages.Stage], verdict: Verdict | None) -> str:
    """Return in words why a run waits, is paused, failed or is not verified; empty if there is nothing to say."""
    why, limit = status.reason, LIMIT_REASON.fullmatch(status.reason)
    if status.state == "waiting":
        pending = pending_approvals(state)
        return quote_for_page(state, pending[0]) if pending else why
    if limit is not None and limit[2] in LIMIT_FLAGS and (budget := state.budgets.get(BudgetId(limit[1]))) is not None:
        amount = getattr(budget.limits, limit[2]) or 0
        texts = {"money": f"${amount / MILLIONTHS_PER_DOLLAR:g}", "millis": format_duration(amount)}
        return translate(f"actions.limit_{limit[2]}", limit=texts.get(limit[2], f"{amount:,}"))
    if (refusal := find_plan_refusal(why)) is not None:
        key = "actions.plan_refused_because" if refusal else "actions.plan_refused"
        return translate(key, who=getpass.getuser(), why=shorten(refusal, MAX_REASON_CHARS))
    if status.state == "failed":
        parts = [part for stage in known for part in list_failed(stage) if part.state == "failed"]
        names = [f"{part.title or part.name} ({shorten(part.summary, MAX_PART_CHARS)})" for part in parts]
        if names:
            return translate("actions.subtasks_failed", names="; ".join(names))
        words, quoted = describe_reason(why, current_language()), shorten(why, MAX_REASON_CHARS)
        return words if words != why.rstrip(".") else translate("actions.run_failed", why=quoted)
    if state.tasks:
        return describe_reason(why, current_language())
    reasons = verdict.reasons if verdict is not None and verdict.state != "verified" else ()
    return "; ".join(map(render_finding, reasons))


async def find_run_verdict(context: ServerContext, state: TeamState) -> Verdict | None:
    """Return the verdict of a run that changes files and is over; None for another one."""
    if state.team.kit not in CHANGING_RUNS or not is_over(state):
        return None
    run = state.team.team_id
    index = await context.reader.index(run)
    ends = [row for row in index.rows(last=state.version, types=frozenset({"StepEnded"})) if row.flags & JUDGED]
    return find_verdict(await context.reader.read_steps(run, ends))


@router.get("/runs/{run}/plan")
async def read_plan(context: Context, run: RunPath, at: At = None) -> schemas.Plan:
    """Show all stages of a run with their subtasks."""
    state = await context.reader.read(run, at)
    known = await read_stages(context, state)
    index = await context.reader.index(run) if known else RunIndex()
    return schemas.Plan(at=state.version, stages=[_show_stage(stage, index, state.version) for stage in known])


def _show_stage(stage: stages.Stage, index: RunIndex, at: int) -> schemas.Stage:
    known = {subtask.subtask_id: subtask for subtask in stage.subtasks}
    needs = {name: [need for need in part.needs if need in known] for name, part in known.items()}
    critical = find_longest_chain({name: max(part.seconds, 1) for name, part in known.items()}, needs)
    spent = {name: index.sum_costs("subtask", name, at)[1] for name in known}
    subtasks = [
        schemas.Subtask.make(
            part,
            id=name,
            waits_for=", ".join(known[need].name for need in part.needs if known[need].state != "finished")
            if part.state == "init"
            else "",
            cost=spent[name].dollars,
            tokens=spent[name].spent.tokens,
            expected_s=part.seconds,
            is_critical=name in critical,
            is_own=part.name in OWN_SUBTASKS,
        )
        for name, part in known.items()
    ]
    return schemas.Stage.make(stage, id=stage.stage_id, task=stage.task_id, subtasks=subtasks)
