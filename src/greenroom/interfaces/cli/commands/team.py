"""`greenroom team`: write the charter of an organisation, let it work, see how it stands, stop it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace

from rich.text import Text

from greenroom.app.host import Host
from greenroom.app.organisation.charter import charters
from greenroom.app.organisation.chartering import Wish, write_charter
from greenroom.app.organisation.finding import organisations
from greenroom.app.organisation.names import BASE, in_language
from greenroom.app.organisation.rest import at_rest
from greenroom.app.organisation.states import states
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.rules.intents import PauseTeam
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Caps, Tape
from greenroom.interfaces.cli.asked.organising import TeamList, TeamNew, TeamStart, TeamStatus, TeamStop
from greenroom.interfaces.cli.display.organised import language_of, picture, pictured
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.organising import brought_up, held_up, meant, there
from greenroom.interfaces.cli.runs.running import attend, command, so_far, telling
from greenroom.interfaces.cli.runs.session import Desk, Door

LANGUAGES = ("en", "zh")
WORKS = {"en": "{name} works ({team}). Ctrl-C stops it.", "zh": "{name}开始工作（{team}）。按Ctrl-C停止。"}
TALK = {"en": "Talk to it: {command}", "zh": "与它对话：{command}"}
GO_ON = {"en": "Stopped. Go on with: {command}", "zh": "已停止。继续：{command}"}
COLUMNS = (
    Column(name="name"),
    Column(name="id", style="dim"),
    Column(name="stands", gives=True),
    Column(name="people", needs=60),
)


async def team_new(desk: Desk, order: TeamNew) -> Exit:
    """Write it, and say what comes next."""
    language = order.language or desk.means.provisions.loaded.settings.language
    if language not in LANGUAGES:
        why = f"{language!r} is no language that an organisation speaks."
        raise Refused(Rejected(code="bad_language", why=why, hint=f"There are: {', '.join(LANGUAGES)}."))
    people = tuple(dict.fromkeys(order.people)) or (_you(),)
    wish = Wish(name=order.name, people=people, language=language, model=order.model)
    path = write_charter(desk.means.surroundings.root, wish)
    desk.out.begin(command="team new")
    desk.out.show(harmless(str(path)))
    desk.progress.note(f"✓ {order.name}: a manager, and {', '.join(people)}.", style="green")
    desk.progress.note(f"Let it work:  {command(desk, 'team', 'start', order.name)}")
    desk.progress.note(f"Talk to it:   {command(desk, 'talk', order.name, *_as(people))}")
    return desk.out.result("written", Exit.DONE, name=order.name, file=str(path), people=list(people))


def _you() -> str:
    """Whoever is logged in, as far as that is known."""
    try:
        name = "".join(sign for sign in getpass.getuser() if sign.isalnum() or sign in "-_")
    except (OSError, KeyError):
        name = ""
    return name or "me"


def _as(people: tuple[str, ...]) -> tuple[str, ...]:
    return ("--as", people[0]) if len(people) > 1 else ()


# ----------------------------------------------------------------------------------------------------------- start


async def team_start(door: Door, order: TeamStart) -> Exit:
    """Let it work until somebody stops it."""
    one = await meant(door, order.name)
    if one.team is not None:
        await _refuse_held(door, one.team, one.name)
    door.means.cap(Caps(cost=order.cost, tokens=order.tokens, time=order.time))
    team = await brought_up(door, one, Tape(record=order.record, replay=order.replay))
    world = await door.runtime.world(team)
    await door.runtime.ask(team, *held_up(world))
    door.out.begin(team=team, command="team start", name=one.name, home=str(door.home))
    people = [name for name, it in sorted(world.agents.items()) if it.spec.kind == "human"]
    language = language_of(world)
    door.progress.note(in_language(WORKS, language).format(name=one.name, team=team), style="bold")
    told = command(door, "talk", one.name, *_as(tuple(people)))
    door.progress.note(in_language(TALK, language).format(command=told), style="dim")
    shown = pictured(door.progress, everything=door.setup.verbose)
    return await _running(replace(door, progress=shown), team, one.name)


async def _refuse_held(door: Door, team: TeamId, name: str) -> None:
    holder = await door.runtime.log.holder(team)
    if holder is not None:
        told = f"Talk to it with `{command(door, 'talk', name)}`, stop it with `{command(door, 'team', 'stop', name)}`."
        raise WorldFault(f"The organisation {name!r} works already, in {holder.owner}. {told}")


async def _running(door: Door, team: TeamId, name: str) -> Exit:
    teller = await so_far(door, team)
    door.progress.begin(teller)
    try:
        async with telling(door, team, teller):
            why = await _until_over(door, team)
    except asyncio.CancelledError:
        door.progress.end()
        again = in_language(GO_ON, language_of(teller.world)).format(command=command(door, "team", "start", name))
        door.progress.note(again, style="bold")
        raise
    finally:
        door.progress.end()
        await door.runtime.stop(team)
    door.progress.note(why, style="bold")
    return door.out.result("stopped", Exit.DONE, team=team, why=why)


async def _until_over(door: Door, team: TeamId) -> str:
    """Let it work; returns why it ends, when it is not we who end it."""
    host = await door.runtime.start(team)
    attend(host, door.progress)
    over = asyncio.Event()
    for listen in (host.listen, host.listen_trouble):
        listen(lambda _: over.set() if _ended(host) else None)
    while not _ended(host):
        over.clear()
        await over.wait()
    if host.sync.stopped is not None:
        raise host.sync.stopped
    return _why(host.world)


def _ended(host: Host) -> bool:
    return host.sync.stopped is not None or host.world.team.paused is not None or BASE not in host.world.tasks


def _why(world: World) -> str:
    return f"Stopped: {world.team.paused}." if world.team.paused is not None else "The organisation is over."


# ------------------------------------------------------------------------------------------------- looking, stopping


async def team_status(door: Door, order: TeamStatus) -> Exit:
    """Show it, or its states."""
    one, team = await there(door, order.name)
    world, holder = await door.runtime.world(team), await door.runtime.log.holder(team)
    door.out.begin(team=team, command="team status", name=one.name, home=str(door.home))
    stands = at_rest(world)
    if order.kind:
        found = await states(door.runtime, team, order.kind, secrets=door.means.provisions.keys())
        for name, fields in found.items():
            door.out.show(
                Text(f"{name}", style="bold"), *(Text(f"  {key}: {_short(it)}") for key, it in fields.items())
            )
        return door.out.result("ok", Exit.DONE, states=found)
    teller = await so_far(door, team)
    where = f"runs in {holder.owner}" if holder is not None else "nobody runs it"
    door.out.show(picture(teller, moving=False), Text(f"\n{stands.word} · {where}", style="dim"))
    if holder is None:
        door.progress.note(f"Let it work: {command(door, 'team', 'start', one.name)}")
    agents = {name: it.working_state for name, it in sorted(world.agents.items())}
    return door.out.result(
        "ok", Exit.DONE, name=one.name, stands=stands.word, owner=holder.owner if holder else None, agents=agents
    )


def _short(value: object) -> str:
    return harmless(" ".join(str(value).split()))[:200]


async def team_list(door: Door, _: TeamList) -> Exit:
    """A row for each: what is written here, and what was founded anywhere."""
    root = door.means.surroundings.root
    found = [(team, world) async for team, world in organisations(door.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    door.out.begin(command="team list", home=str(door.home))
    door.out.expect("teams")
    rows = [row(Text(name, style="bold"), "", "has not begun", "") for name in charters(root) if name not in begun]
    for name in charters(root):
        if name not in begun:
            door.out.item("team", {"name": name, "team": None, "stands": "new", "workspace": str(root)})
    for team, world in found:
        rows.append(await _listed(door, team, world))
    if not rows:
        door.progress.note(f"There is no organisation. Make one: {command(door, 'team', 'new', 'NAME')}")
    elif door.out.text:
        door.out.show(Fitted(COLUMNS, rows))
    return door.out.result("ok", Exit.DONE)


async def _listed(door: Door, team: TeamId, world: World) -> list[Text]:
    holder = await door.runtime.log.holder(team)
    people = [name for name, it in sorted(world.agents.items()) if it.spec.kind == "human"]
    stands = at_rest(world).word if holder is not None or world.team.paused is None else "stopped"
    told = f"{stands}, in {holder.owner}" if holder is not None else "nobody runs it" if stands != "stopped" else stands
    workspace = world.team.workspace
    fields = {"name": world.team.name, "team": team, "stands": stands, "owner": holder.owner if holder else None}
    door.out.item("team", {**fields, "workspace": workspace, "people": people})
    return row(Text(world.team.name, style="bold"), team, told, ", ".join(people))


async def team_stop(door: Door, order: TeamStop) -> Exit:
    """What runs is interrupted and queued again; whoever runs it ends."""
    one, team = await there(door, order.name)
    world, holder = await door.runtime.world(team), await door.runtime.log.holder(team)
    if world.team.paused is None:
        await door.runtime.ask(team, PauseTeam(why="stopped by a person", now=True))
    door.out.show(f"{one.name} is stopped.")
    door.progress.note(f"Go on with: {command(door, 'team', 'start', one.name)}")
    return door.out.result("stopped", Exit.DONE, team=team, owner=holder.owner if holder else None)
