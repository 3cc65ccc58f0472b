"""`greenroom tasks`: what was and is being worked on, newest first."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from greenroom.app.lookup import shortest
from greenroom.app.standing import standing
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.task import Task
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.running import command
from greenroom.interfaces.cli.session import Door, run
from greenroom.interfaces.cli.words import shorten

FEW: Final = 10
STYLES: Final = {"finished": "green", "failed": "red", "cancelled": "red", "working": "bold", "stopped": "yellow"}


@record
class Row:
    """One task in the list. `state` is how it stands, in a word."""

    team: TeamId
    task: str
    name: str
    state: str
    why: str
    created_at: int
    owner: str | None


def tasks(
    context: typer.Context,
    *,
    every: Annotated[bool, typer.Option("--all", help="All teams, not only the newest.")] = False,
) -> int:
    """List what was and is being worked on, newest first."""
    return run(context, partial(_tasks, every=every))


async def _tasks(door: Door, *, every: bool) -> Exit:
    infos = list(reversed(await door.runtime.log.streams()))
    shown = infos if every else infos[:FEW]
    rows = [row for info in shown for row in await _rows(door, info)]
    door.out.begin(command="tasks", home=str(door.home))
    for row in rows:
        door.out.item("task", asdict(row))
    if door.out.text and rows:
        door.out.show(_table(rows, shortest([TeamId(info.stream) for info in infos])))
    if not rows:
        door.progress.note(f"Nothing has run in {door.home} yet. Try: {command(door, 'demo')}")
    elif len(infos) > len(shown):
        door.progress.note(f"{len(infos) - len(shown)} older teams: {command(door, 'tasks', '--all')}")
    return door.out.result("ok", Exit.DONE, **({} if rows else {"tasks": []}))


async def _rows(door: Door, info: StreamInfo) -> list[Row]:
    team = TeamId(info.stream)
    world = await door.runtime.world(team)
    found = [_row(info, task, task.state, shorten(task.summary)) for task in await door.runtime.ended_tasks(team)]
    for task in world.tasks.values():
        stands = standing(world, task.task_id)
        word = stands.word if stands else task.state
        found.append(
            _row(info, task, "stopped" if word == "working" and not info.owner else word, stands.why if stands else "")
        )
    if not found and world.team.team_id:
        found.append(
            Row(
                team=team,
                task="",
                name=world.team.name,
                state="no task",
                why="",
                created_at=info.created_at,
                owner=info.owner,
            )
        )
    return sorted(found, key=lambda row: -row.created_at)


def _row(info: StreamInfo, task: Task, state: str, why: str) -> Row:
    return Row(
        team=TeamId(info.stream),
        task=task.task_id,
        name=task.name,
        state=state,
        why=why,
        created_at=task.created_at,
        owner=info.owner,
    )


def _table(rows: list[Row], short: dict[TeamId, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("id", "task", "state", "begun", "runs in"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        head = short[row.team]
        label = Text(head, style="bold cyan").append(
            row.team[len(head) :] + (f"/{row.task}" if row.task else ""), style="not bold dim"
        )
        table.add_row(
            label,
            shorten(row.name, 48),
            Text(row.state, style=STYLES.get(row.state, "yellow")),
            ago(row.created_at),
            row.owner or "",
        )
    return table


def ago(millis: int) -> str:
    """How long since, in the largest unit."""
    gone = max(int(time.time()) - millis // 1000, 0)
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if gone >= size:
            return f"{gone // size} {word} ago"
    return f"{gone} s ago"
