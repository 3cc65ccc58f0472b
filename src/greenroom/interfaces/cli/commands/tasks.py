"""`greenroom tasks`, `show`, `cost`: what was and is being worked on, one team of it, and what it has cost."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
import typer
from rich.text import Text

from greenroom.app.conversation.names import JOB
from greenroom.app.cost import Account, Sum, summed, total
from greenroom.app.jobs.verdict import Finding, Verdict, as_kept, sentence, verdict_in
from greenroom.app.lookup import find, shortest
from greenroom.app.task_status import standing
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record, whole
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.task import Task
from greenroom.interfaces.cli.context import Invocation, command
from greenroom.interfaces.cli.display.output import Column, Fitted, row
from greenroom.interfaces.cli.display.portrait import Portrait, fields, portray, rendered
from greenroom.interfaces.cli.display.team import MILLION, dollars
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.options import Id, complete_id
from greenroom.interfaces.cli.runs.follow import unverified_code

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


async def tasks(
    cli: Invocation, *, every: Annotated[bool, typer.Option("--all", help="All teams, not only the newest.")] = False
) -> Exit:
    """List what was and is being worked on, newest first."""
    infos = list(reversed(await cli.runtime.log.streams()))
    shown = infos if every else infos[:FEW]
    rows = [one for info in shown for one in await _rows(cli, info)]
    cli.out.begin(command="tasks", home=str(cli.home))
    cli.out.listing("task", map(whole, rows))
    if cli.out.text and rows:
        short = shortest([TeamId(info.stream) for info in infos])
        cli.out.show(Fitted(COLUMNS, [_cells(each, short[each.team]) for each in rows]))
    if not rows:
        cli.progress.note(f"Nothing has run in {cli.home} yet. Try: {command(cli, 'demo')}")
    elif len(infos) > len(shown):
        cli.progress.note(f"{len(infos) - len(shown)} older teams: {command(cli, 'tasks', '--all')}")
    return cli.out.result("ok", Exit.DONE)


async def _rows(cli: Invocation, info: StreamInfo) -> list[Row]:
    try:
        return await _rows_of(cli, info)
    except StoreFault as error:
        # One log that cannot be read does not hide the others.
        cli.progress.note(str(error), style="red")
        return [_alone(info, "", "damaged", str(error))]


def _alone(info: StreamInfo, name: str, state: str, why: str = "") -> Row:
    """The row of a team that has no task to show."""
    made = info.created_at
    return Row(team=TeamId(info.stream), task="", name=name, state=state, why=why, created_at=made, owner=info.owner)


async def _rows_of(cli: Invocation, info: StreamInfo) -> list[Row]:
    team = TeamId(info.stream)
    world = await cli.runtime.world(team)
    found = [_row(info, task, task.state, shorten(task.summary)) for task in await cli.runtime.ended_tasks(team)]
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


# ---------------------------------------------------------------------------------------------------------------- show


async def show(cli: Invocation, name: Id) -> Exit:
    """Show a team (or one task of it): tasks, agents, messages, costs."""
    found = await find(cli.runtime, name)
    portrait = await portray(cli.runtime, found.team)
    holder = await cli.runtime.log.holder(found.team)
    owner = holder.owner if holder else None
    cli.out.begin(team=found.team, command="show")
    how = f"version {portrait.teller.version} · " + (f"runs in {owner}" if owner else "nobody runs it")
    cli.out.show(*rendered(portrait, how, found.task))
    verdict = await _verdict(cli, portrait)
    if verdict is not None:
        reasons = (sentence(reason, cli.means.language) for reason in (*verdict.reasons, *verdict.notes))
        cli.out.show("", f"verdict: {verdict.state}", *(f"  {reason}" for reason in reasons))
    if portrait.teller.world.tasks and owner is None:
        cli.progress.note(f"\nGo on with: {command(cli, 'resume', found.team)}")
    else:
        cli.progress.note(f"\nThe whole story: {command(cli, 'replay', name)}")
    if portrait.steps:
        cli.progress.note(f"Its steps, to go back to one: {command(cli, 'rewind', found.team)}")
    kept = {"verdict": as_kept(verdict)} if verdict is not None else {}
    return cli.out.result("ok", Exit.DONE, **fields(portrait, owner, found.task), **kept)


async def _verdict(cli: Invocation, portrait: Portrait) -> Verdict | None:
    """What the checks said of a run's change; None for a team that makes none."""
    team = portrait.teller.world.team
    if team.kit == JOB:
        return verdict_in(await cli.means.steps(team.team_id))
    code = await unverified_code(cli, team.team_id, portrait.teller)
    return Verdict(state="unverified", reasons=(msgspec.convert({"code": code}, Finding),)) if code else None


# ---------------------------------------------------------------------------------------------------------------- cost

By = Literal["run", "agent", "model"]


async def cost(
    cli: Invocation,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Only this team: the beginning of its id, or `last`.", autocompletion=complete_id
        ),
    ] = "",
    *,
    by: Annotated[By, typer.Option("--by", metavar="run|agent|model", help="What each row is about.")] = "run",
) -> Exit:
    """Say what one team, or all of them, have cost: money, tokens, steps."""
    teams = [(await find(cli.runtime, name)).team] if name else await _all(cli)
    accounts = [found for team in teams if (found := await _account(cli, team)) is not None]
    rows = summed(accounts, by)
    every = total(rows.values())
    cli.out.begin(command="cost", by=by)
    cli.out.listing("row", ({by: key, **_fields(each)} for key, each in rows.items()))
    if not rows:
        cli.progress.note(f"No model was asked yet. Try: {command(cli, 'ask', 'QUESTION')}")
    elif cli.out.text:
        names = {str(account.team): account.name for account in accounts} if by == "run" else {}
        cli.out.show(_table(rows, every, by, names))
    if every.reserved:
        whose = "its" if every.reserved == 1 else "their"
        interrupted = _calls(every.reserved, "interrupted ")
        cli.progress.note(f"Includes {interrupted} counted at {whose} reservation.", style="yellow")
    if every.unpriced:
        why = f"The price of {_calls(every.unpriced)} is unknown. Prices can be set in your config.toml."
        cli.progress.note(why, style="yellow")
    return cli.out.result("ok", Exit.DONE, by=by, **_fields(every))


async def _all(cli: Invocation) -> Sequence[TeamId]:
    return [TeamId(info.stream) for info in reversed(await cli.runtime.log.streams()) if info.head.version]


async def _account(cli: Invocation, team: TeamId) -> Account | None:
    found = Account(team)
    try:
        async for told in cli.runtime.events(team):
            found.take(told.event)
    except StoreFault as error:
        # One log that cannot be read does not hide the others.
        cli.progress.note(str(error), style="red")
        return None
    return found


def _fields(each: Sum) -> dict[str, object]:
    """For programs. A cost of which a part is unknown is the part that is known."""
    return {
        "cost": each.spent.money / MILLION if each.unpriced < each.calls or not each.calls else None,
        "tokens": each.spent.tokens,
        "calls": each.calls,
        "unpriced_calls": each.unpriced,
        "reserved_calls": each.reserved,
    }


def _table(rows: Mapping[str, Sum], every: Sum, by: str, names: Mapping[str, str]) -> Fitted:
    """A table; runs have a name too."""
    named = (Column(name="team"), Column(name="task", gives=True, needs=60)) if names else (Column(name=by),)
    figures = tuple(Column(name=name, right=True) for name in ("calls", "tokens", "cost"))
    titles = {key: [shorten(names.get(key, ""), 48)] if names else [] for key in rows}
    cells = [row(key, *titles[key], *_figures(each)) for key, each in rows.items()]
    if len(rows) > 1:
        cells.append(row(Text("together", style="bold"), *([""] if names else []), *_figures(every)))
    return Fitted((*named, *figures), cells)


def _figures(each: Sum) -> tuple[str, str, str]:
    price = dollars(each.spent.money)
    if each.unpriced:
        price = f"{price} + unknown" if each.unpriced < each.calls else "unknown"
    return f"{each.calls:,}", f"{each.spent.tokens:,}", price


def _calls(count: int, kind: str = "") -> str:
    return f"1 {kind}call" if count == 1 else f"{count:,} {kind}calls"
