"""Runs: the session, the list of runs, and one run."""

from __future__ import annotations

import getpass
from importlib.metadata import version

from fastapi import APIRouter

from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.messages import current_language
from greenroom.app.settings.home import home_folder
from greenroom.app.task_status import read_ended_status, read_status
from greenroom.core.base.errors import GreenroomError, StoreFault
from greenroom.core.base.ids import TEAM_BUDGET, TeamId
from greenroom.core.ports.codec import decode_archived
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.task import Task
from greenroom.http.context import Context, Cursor, Limit, cut_page
from greenroom.http.schemas import Page, Run, RunState, Session

router = APIRouter(tags=["runs"])


@router.get("/session")
async def read_session(context: Context) -> Session:
    """Say who looks, and what this server works on."""
    model, hint = "", ""
    try:
        model = context.app.resolve_alias("")
    except GreenroomError as error:
        hint = str(error)
    return Session(
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
    context: Context, state: RunState | None = None, search: str = "", cursor: Cursor = "", limit: Limit = 100
) -> Page[Run]:
    """List the runs, newest first."""
    infos = [info for info in reversed(await context.runtime.log.streams()) if info.head.version]
    page = cut_page(infos, limit, cursor)
    rows = [await make_row(context, info) for info in page.items]
    shown = [row for row in rows if state in (None, row.state) and search.lower() in row.title.lower()]
    return Page(items=shown, next=page.next, total=page.total)


async def make_row(context: Context, info: StreamInfo) -> Run:
    """Return a run as a list shows it. A run with a damaged log has a row too."""
    run = TeamId(info.stream)
    row = Run(
        id=run,
        title=run,
        kind="",
        folder="",
        state="damaged",
        waits_for_me=info.questions or 0,
        created_at=info.created_at,
        owner=info.owner,
        version=info.head.version,
    )
    try:
        team = await context.reader.read(run)
        ended = [decode_archived(archived) for archived in await context.runtime.log.read_archive(run, "task", limit=1)]
    except StoreFault as fault:
        return row.model_copy(update={"reason": str(fault)})
    task = next(iter((*team.tasks.values(), *(record for record in ended if isinstance(record, Task)))), None)
    status = None
    if task is not None:
        status = read_status(team, task.task_id) or read_ended_status(task)
    word = status.state if status is not None else "idle"
    spent = team.budgets[TEAM_BUDGET].spent
    return row.model_copy(
        update={
            "title": task.name if task is not None else team.team.name,
            "kind": team.team.kit,
            "folder": team.team.workspace,
            "state": "stopped" if word == "working" and not info.owner else word,
            "reason": status.reason if status is not None else "",
            "agents": len(team.agents),
            "cost": spent.money / MILLIONTHS_PER_DOLLAR,
            "tokens": spent.tokens,
            "working_ms": spent.millis,
        }
    )
