"""`greenroom tasks`: what was and is being worked on, newest first."""

from __future__ import annotations

import time
from typing import Final

from rich.text import Text

from greenroom.app.lookup import shortest
from greenroom.app.task_status import standing
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record, whole
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.task import Task
from greenroom.interfaces.cli.asked.orders import Tasks
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

FEW: Final = 10
COLUMNS: Final = (
    Column(name="id"),
    Column(name="task", gives=True),
    Column(name="state"),
    Column(name="begun", needs=50),
    Column(name="runs in", needs=60),
)
STYLES: Final = {
    "damaged": "red",
    "finished": "green",
    "failed": "red",
    "cancelled": "red",
    "working": "bold",
    "stopped": "yellow",
}


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


async def tasks(door: Door, order: Tasks) -> Exit:
    """A row per task."""
    infos = list(reversed(await door.runtime.log.streams()))
    shown = infos if order.every else infos[:FEW]
    rows = [one for info in shown for one in await _rows(door, info)]
    door.out.begin(command="tasks", home=str(door.home))
    door.out.expect("tasks")
    for one in rows:
        door.out.item("task", whole(one))
    if door.out.text and rows:
        door.out.show(_table(rows, shortest([TeamId(info.stream) for info in infos])))
    if not rows:
        door.progress.note(f"Nothing has run in {door.home} yet. Try: {command(door, 'demo')}")
    elif len(infos) > len(shown):
        door.progress.note(f"{len(infos) - len(shown)} older teams: {command(door, 'tasks', '--all')}")
    return door.out.result("ok", Exit.DONE)


async def _rows(door: Door, info: StreamInfo) -> list[Row]:
    try:
        return await _rows_of(door, info)
    except StoreFault as error:
        # One log that cannot be read does not hide the others.
        door.progress.note(str(error), style="red")
        return [_alone(info, "", "damaged", str(error))]


def _alone(info: StreamInfo, name: str, state: str, why: str = "") -> Row:
    """The row of a team that has no task to show."""
    made = info.created_at
    return Row(team=TeamId(info.stream), task="", name=name, state=state, why=why, created_at=made, owner=info.owner)


async def _rows_of(door: Door, info: StreamInfo) -> list[Row]:
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
        found.append(_alone(info, world.team.name, "no task"))
    return sorted(found, key=lambda one: -one.created_at)


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


def _table(rows: list[Row], short: dict[TeamId, str]) -> Fitted:
    return Fitted(COLUMNS, [_cells(row, short[row.team]) for row in rows])


def _cells(one: Row, head: str) -> list[Text]:
    rest = one.team[len(head) :] + (f"/{one.task}" if one.task else "")
    label = Text(head, style="bold cyan").append(rest, style="not bold dim")
    state = Text(one.state, style=STYLES.get(one.state, "yellow"))
    return row(label, shorten(one.name, 48), state, ago(one.created_at), one.owner or "")


def ago(millis: int) -> str:
    """How long since, in the largest unit."""
    return f"{_span(int(time.time()) - millis // 1000)} ago"


def ahead(millis: int) -> str:
    """How long until then, in the largest unit."""
    left = millis // 1000 - int(time.time())
    return f"in {_span(left)}" if left > 0 else "now"


def _span(seconds: int) -> str:
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word}"
    return f"{max(seconds, 0)} s"
