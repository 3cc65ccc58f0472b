"""`greenroom tasks`, `show`, `cost`, `events`, `replay`: what was and is being worked on, and what happened in it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Final, Literal, cast

import msgspec
import typer
from rich.text import Text

from greenroom.app.conversation.names import JOB
from greenroom.app.cost import MILLION, Account, Sum, dollars, summed, total
from greenroom.app.lookup import Found, find, shortest
from greenroom.app.messages.findings import sentence
from greenroom.app.task_status import standing
from greenroom.cli.context import Invocation, command, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import unverified_code
from greenroom.cli.options import Id, complete_id
from greenroom.cli.render.output import Column, Fitted, event_fields, row
from greenroom.cli.render.progress import event_text
from greenroom.cli.render.team import TeamHistory, portrait, read_history, seconds, team_fields
from greenroom.cli.render.words import shorten
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.log import StreamInfo
from greenroom.runs.verdict import Finding, Verdict, as_kept, verdict_in

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


async def tasks(
    cli: Invocation, *, every: Annotated[bool, typer.Option("--all", help="All teams, not only the newest.")] = False
) -> None:
    """List what was and is being worked on, newest first."""
    infos = list(reversed(await cli.runtime.log.streams()))
    shown = infos if every else infos[:FEW]
    rows = [row for info in shown for row in await _rows(cli, info)]
    cli.out.listing("task", rows)
    if cli.out.text and rows:
        short = shortest([TeamId(info.stream) for info in infos])
        cli.out.show(Fitted(COLUMNS, [_cells(each, short) for each in rows]))
    if not rows:
        cli.progress.note(f"Nothing has run in {cli.home} yet. Try: {command(cli, 'demo')}")
    elif len(infos) > len(shown):
        cli.progress.note(f"{len(infos) - len(shown)} older teams: {command(cli, 'tasks', '--all')}")


async def _rows(cli: Invocation, info: StreamInfo) -> list[Data]:
    """The tasks of a team for programs, newest first; one row for a team that has none, or that cannot be read."""
    team = TeamId(info.stream)
    alone = {"team": team, "task": "", "name": "", "created_at": info.created_at, "owner": info.owner}
    try:
        world, ended = await cli.runtime.world(team), await cli.runtime.ended_tasks(team)
    except StoreFault as error:  # one log that cannot be read does not hide the others
        cli.progress.note(str(error), style="red")
        return [{**alone, "state": "damaged", "why": str(error)}]
    found = [(task, str(task.state), shorten(task.summary)) for task in ended]
    for task in world.tasks.values():
        if (stands := standing(world, task.task_id)) is not None:
            word = "stopped" if stands.word == "working" and not info.owner else stands.word
            found.append((task, word, stands.why))
    if not found and world.team.team_id:
        return [{**alone, "name": world.team.name, "state": "no task", "why": ""}]
    return [
        {**alone, "task": task.task_id, "name": task.name, "state": state, "why": why, "created_at": task.created_at}
        for task, state, why in sorted(found, key=lambda each: -each[0].created_at)
    ]


def _cells(each: Data, short: Mapping[TeamId, str]) -> list[Text]:
    team, task, state = TeamId(str(each["team"])), str(each["task"]), str(each["state"])
    label = team_label(team, short[team]).append(f"/{task}" if task else "", style="not bold dim")
    told, begun = Text(state, style=STYLES.get(state, "yellow")), ago(cast("int", each["created_at"]))
    return row(label, shorten(str(each["name"]), 48), told, begun, str(each["owner"] or ""))


def team_label(team: TeamId, short: str) -> Text:
    """A team's id, of which the part is bold that is enough to type."""
    return Text(short, style="bold cyan").append(team[len(short) :], style="not bold dim")


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
    history = await read_history(cli.runtime, found.team)
    holder = await cli.runtime.log.holder(found.team)
    owner = holder.owner if holder else None
    cli.out.begin(team=found.team)
    how = f"version {history.version} · " + (f"runs in {owner}" if owner else "nobody runs it")
    cli.out.show(*portrait(history, how, found.task))
    verdict = _verdict(history)
    if verdict is not None:
        reasons = (sentence(reason, cli.means.language) for reason in (*verdict.reasons, *verdict.notes))
        cli.out.show("", f"verdict: {verdict.state}", *(f"  {reason}" for reason in reasons))
    if history.world.tasks and owner is None:
        cli.progress.note(f"\nGo on with: {command(cli, 'resume', found.team)}")
    else:
        cli.progress.note(f"\nThe whole story: {command(cli, 'replay', name)}")
    if history.steps:
        cli.progress.note(f"Its steps, to go back to one: {command(cli, 'rewind', found.team)}")
    kept = {"verdict": as_kept(verdict)} if verdict is not None else {}
    return cli.out.result("ok", Exit.DONE, **team_fields(history, owner, found.task), **kept)


def _verdict(history: TeamHistory) -> Verdict | None:
    """What the checks said of a run's change; None for a team that makes none."""
    if history.world.team.kit == JOB:
        return verdict_in(history.steps)
    code = unverified_code(history)
    return Verdict(state="unverified", reasons=(msgspec.convert({"code": code}, Finding),)) if code else None


# ---------------------------------------------------------------------------------------------------------------- cost


async def cost(
    cli: Invocation,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Only this team: the beginning of its id, or `last`.", autocompletion=complete_id
        ),
    ] = "",
    *,
    by: Annotated[
        Literal["run", "agent", "model"],
        typer.Option("--by", metavar="run|agent|model", help="What each row is about."),
    ] = "run",
) -> Exit:
    """Say what one team, or all of them, have cost: money, tokens, steps."""
    every_team = [TeamId(info.stream) for info in reversed(await cli.runtime.log.streams()) if info.head.version]
    teams = [(await find(cli.runtime, name)).team] if name else every_team
    accounts = [found for team in teams if (found := await _account(cli, team)) is not None]
    rows = summed(accounts, by)
    every = total(rows.values())
    cli.out.begin(by=by)
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


async def _account(cli: Invocation, team: TeamId) -> Account | None:
    found = Account(team)
    try:
        async for told in cli.runtime.events(team):
            found.take(told.event)
    except StoreFault as error:  # one log that cannot be read does not hide the others
        cli.progress.note(str(error), style="red")
        return None
    return found


def _fields(each: Sum) -> Data:
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


# ------------------------------------------------------------------------------------------------------ events, replay

ONLY_A_VIEW: Final = "A view of the log: nothing is run again and no model is asked."


async def events(
    cli: Invocation,
    name: Id,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until no task is open.")
    ] = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only what came after version N.")] = 0,
) -> Exit:
    """Print what happened in a team, one line per event."""
    found, head = await _found(cli, name)
    cli.out.begin(team=found.team, head=head)
    cli.out.expect("events")
    history, follow = TeamHistory(keeps=False), follow and await _goes_on(cli, found.team)
    _note_whole(cli, found)
    async for told in cli.runtime.events(found.team, follow=follow):
        line = history.add(told)
        if told.version > after and cli.out.text:
            clock = time.strftime("%H:%M:%S", time.localtime(line.at / 1000))
            before = f"{line.version:>6}  {clock}.{line.at % 1000:03}  "
            cli.out.show(event_text(before, history, line, typed=True))
        elif told.version > after:
            cli.out.item(line.type, event_fields(found.team, told), many="events")
        if follow and told.version >= head and not history.world.tasks:
            break
    return cli.out.result("ok", Exit.DONE, team=found.team, version=history.version)


async def _found(cli: Invocation, name: str) -> tuple[Found, int]:
    """The team that is meant, and its newest version."""
    found = await find(cli.runtime, name)
    return found, (await cli.runtime.log.head(found.team)).version


async def _goes_on(cli: Invocation, team: TeamId) -> bool:
    """Whether there is anything to wait for; says so when no process works on it just now."""
    if not (await cli.runtime.world(team)).tasks:
        return False
    if await cli.runtime.log.holder(team) is None:
        cli.progress.note(f"Nobody runs it just now; to let it go on: {command(cli, 'resume', team)}", style="yellow")
    return True


def _note_whole(cli: Invocation, found: Found) -> None:
    if found.task is not None:
        cli.progress.note(f"The log is one of the whole team: all of {found.team} is told.", style="dim")


async def replay(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[int | None, typer.Option("--at", min=1, metavar="N", help="Show what was true at version N.")] = None,
) -> Exit:
    """Tell a run again as a story, or show what was true at one version of it."""
    found, head = await _found(cli, name)
    if at is not None and at > head:
        raise refused("no_such_version", f"Team {found.team!r} has versions 1 to {head}, not {at}.")
    cli.out.begin(team=found.team, at=at or head)
    cli.progress.note(ONLY_A_VIEW, style="dim")
    if at is not None:
        history = await read_history(cli.runtime, found.team, at)
        cli.out.show(*portrait(history, f"as it was at version {at} of {head}", found.task))
        cli.progress.note(f"\nBranch off from here: {command(cli, 'fork', found.team, '--at', str(at))}")
        return cli.out.result("ok", Exit.DONE, **team_fields(history, None, found.task))
    _note_whole(cli, found)
    history = TeamHistory(keeps=False)
    async for told in cli.runtime.events(found.team):
        line = history.add(told)
        cli.out.stream(found.team, told)
        if line.said.story or cli.setup.verbose:
            before = f"{line.version:>5}  {'+' + seconds(line.at - history.began_at):>7}  "
            cli.out.show(event_text(before, history, line))
    cli.progress.note(f"\nWhat was true at any version: {command(cli, 'replay', found.team, '--at', 'VERSION')}")
    spent = history.total()
    counts = {"steps": spent.steps, "tokens": spent.tokens, "messages": history.messages_sent}
    return cli.out.result("ok", Exit.DONE, team=found.team, version=history.version, **counts)
