"""`greenroom team`: write the charter of an organisation, let it work, see how it stands, stop it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace

from rich.text import Text

from greenroom.app.host import Host
from greenroom.app.messages import LANGUAGES
from greenroom.app.organisation.charter import Wish, charters, find_charter, write_charter
from greenroom.app.organisation.founders import founded, organisations, over
from greenroom.app.organisation.states import at_rest, states
from greenroom.app.organisation.words import BASE, nobody, phrase, refused
from greenroom.app.task_status import pause_word
from greenroom.core.base.errors import Refused, Rejected, RunsElsewhere, WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.rules.intents import PauseTeam, RemoveAgent
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Caps, Tape
from greenroom.interfaces.cli.asked.organising import TeamDismiss, TeamList, TeamNew, TeamStart, TeamStatus, TeamStop
from greenroom.interfaces.cli.display.organisation import columns, language_of, picture, pictured
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.phrases import LIMIT, STOPPED, reason, stands_word, still, team_word
from greenroom.interfaces.cli.display.tables import Fitted, row
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.runs.beginning import new_limits
from greenroom.interfaces.cli.runs.organisation import (
    Meant,
    bad_model,
    brought_up,
    held_up,
    meant,
    mistakes,
    spoken,
    there,
    way_on,
)
from greenroom.interfaces.cli.runs.running import attend, command, so_far, telling
from greenroom.interfaces.cli.runs.session import Door


async def team_new(door: Door, order: TeamNew) -> Exit:
    """Write the charter, and say what comes next."""
    language, root = order.language or spoken(door), door.means.root
    if language not in LANGUAGES:
        why = phrase("charter", "no_language", spoken(door), language=language, known=", ".join(LANGUAGES))
        raise Refused(Rejected(code="bad_language", why=why))
    people, others = order.people or (_login(),), tuple(door.means.surroundings.agents().specs)
    no_model = bad_model(door, order.model, language)
    wish = Wish(name=order.name, people=people, language=language, model=order.model, others=others, no_model=no_model)
    path = write_charter(root, wish)
    door.out.begin(command="team new")
    door.out.show(harmless(str(path)))
    door.progress.note(team_word("made", language, name=order.name, people=", ".join(people)), style="green")
    before = await founded(door.runtime, root, order.name)
    if before is not None:
        known = {"name": order.name, "team": before, "command": command(door, "cancel", before)}
        door.progress.note(team_word("before", language, **known), style="yellow")
    door.progress.note(team_word("let_work", language, command=command(door, "team", "start", order.name)))
    door.progress.note(team_word("talk_to", language, command=_talk(door, order.name, people)))
    return door.out.result("written", Exit.DONE, name=order.name, file=str(path), people=list(people))


def _login() -> str:
    """The name of the person who is logged in, as far as that is known."""
    try:
        name = "".join(sign for sign in getpass.getuser() if sign.isalnum() or sign in "-_").lstrip("-")
    except (OSError, KeyError):
        name = ""
    return name or "me"


def _talk(door: Door, name: str, people: tuple[str, ...]) -> str:
    return command(door, "talk", name, *(("--as", people[0]) if len(people) > 1 else ()))


def _people(world: World) -> tuple[str, ...]:
    return tuple(name for name, agent in sorted(world.agents.items()) if agent.spec.kind == "human")


# ----------------------------------------------------------------------------------------------------------- start


async def team_start(door: Door, order: TeamStart) -> Exit:
    """Let it work until a person stops it."""
    one, since = await meant(door, order.name), 0
    if one.team is not None:
        await _refuse_held(door, one.team, one)
        since = (await door.runtime.log.head(one.team)).version
    caps = Caps(cost=order.cost, tokens=order.tokens, time=order.time)
    door.means.cap(caps)
    team = await brought_up(door, one, Tape(record=order.record, replay=order.replay))
    world = await door.runtime.world(team)
    limits = () if one.chartered else new_limits(door, world, caps)
    await door.runtime.ask(team, *limits, *held_up(world))
    door.out.begin(team=team, command="team start", name=one.name, home=str(door.home))
    if await _stopped_since(door, team, since):
        return _over(door, await door.runtime.world(team))
    teller = await so_far(door, team)
    teller.language = language = language_of(teller.world)
    try:
        host = await _host(door, team, one)
        door.progress.note(team_word("works", language, name=one.name, team=team), style="bold")
        told = team_word("talk", language, command=_talk(door, one.called, _people(teller.world)))
        door.progress.note(told, style="dim")
        shown = pictured(door.progress, everything=door.setup.verbose)
        world = await _run(replace(door, progress=shown), host, teller, one)
    finally:
        await door.runtime.stop(team)
    return _over(door, world)


async def _host(door: Door, team: TeamId, one: Meant) -> Host:
    """Begin to run it, unless another process has come first."""
    try:
        return await door.runtime.start(team)
    except RunsElsewhere:
        await _refuse_held(door, team, one)
        raise


async def _refuse_held(door: Door, team: TeamId, one: Meant) -> None:
    holder = await door.runtime.log.holder(team)
    if holder is not None:
        language = language_of(await door.runtime.world(team))
        known = {"talk": command(door, "talk", one.called), "stop": command(door, "team", "stop", one.called)}
        raise WorldFault(team_word("held", language, name=one.name, owner=holder.owner, **known))


async def _stopped_since(door: Door, team: TeamId, version: int) -> bool:
    """Whether a person has stopped it since this version, which is when this start was typed: then it is stopped."""
    events = [told.event async for told in door.runtime.events(team, after=version)]
    if all(LIMIT.fullmatch(event.why) for event in events if isinstance(event, TeamPaused)):
        return False
    await door.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    return True


async def _run(door: Door, host: Host, teller: Teller, one: Meant) -> World:
    door.progress.begin(teller)
    try:
        async with telling(door, teller.world.team.team_id, teller):
            return await _until_over(door, host)
    except asyncio.CancelledError:
        door.progress.end()
        again = command(door, "team", "start", one.called)
        door.progress.note(team_word("again", language_of(teller.world), command=again), style="bold")
        raise
    finally:
        door.progress.end()


async def _until_over(door: Door, host: Host) -> World:
    """Let it work; returns how it is when it has ended by itself or elsewhere."""

    def ended() -> bool:
        return host.sync.stopped is not None or host.world.team.paused is not None or BASE not in host.world.tasks

    attend(host, door.progress)
    over = asyncio.Event()
    for listen in (host.listen, host.listen_trouble):
        listen(lambda _: over.set() if ended() else None)
    while not ended():
        over.clear()
        await over.wait()
    if host.sync.stopped is not None:
        raise host.sync.stopped
    return host.world


def _over(door: Door, world: World) -> Exit:
    """Say what ended it. That a person stopped it is as it should be; that it ran into a limit is not."""
    language, paused, code = language_of(world), world.team.paused, Exit.DONE
    if paused is None:
        why = team_word("over", language)
    elif (stands := pause_word(paused)) == "paused":  # also while a step is still at work
        why = team_word("ended", language, why=reason(paused, language))
    else:
        why, code = still(paused, language, way_on(door, world)), of_standings([stands])
    door.progress.note(why, style="bold")
    return door.out.result("stopped", code, team=world.team.team_id, why=why)


# ------------------------------------------------------------------------------------------------- looking, stopping


async def team_status(door: Door, order: TeamStatus) -> Exit:
    """Show it, or its states."""
    one, team = await there(door, order.name)
    world, holder = await door.runtime.world(team), await door.runtime.log.holder(team)
    door.out.begin(team=team, command="team status", name=one.name, home=str(door.home))
    if order.kind:
        found = await states(door.runtime, team, order.kind, secrets=door.means.provisions.keys())
        for name, fields in found.items():
            short = ((key, harmless(" ".join(str(value).split()))[:200]) for key, value in fields.items())
            door.out.show(Text(name, style="bold"), *(Text(f"  {key}: {value}") for key, value in short))
        return door.out.result("ok", Exit.DONE, states=found)
    teller, language, stands = await so_far(door, team), language_of(world), at_rest(world).word
    teller.language = language
    where = team_word("runs_in", language, owner=holder.owner) if holder is not None else team_word("nobody", language)
    told = Text(f"\n{stands_word(stands, language)} · {where}", style="dim")
    door.out.show(picture(teller, moving=False), told)
    if holder is None:
        door.progress.note(team_word("start", language, command=command(door, "team", "start", one.called)))
    agents = {name: agent.working_state for name, agent in sorted(world.agents.items())}
    owner = holder.owner if holder else None
    return door.out.result("ok", Exit.DONE, name=one.name, stands=stands, owner=owner, agents=agents)


async def team_list(door: Door, _: TeamList) -> Exit:
    """A row for each: what is written here, also with mistakes, and what was founded anywhere."""
    root, language = door.means.root, spoken(door)
    found = [(team, world) async for team, world in organisations(door.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    broken = {name: fault for name in charters(root) if (fault := mistakes(door, name))}
    door.out.begin(command="team list", home=str(door.home))
    door.out.expect("teams")
    rows = [await _unbegun(door, name, broken.get(name, "")) for name in charters(root) if name not in begun]
    for team, world in found:
        here = world.team.workspace == str(root)
        rows.append(await _listed(door, team, world, broken.get(world.team.name, "") if here else ""))
    if not rows:
        door.progress.note(team_word("none", language, command=command(door, "team", "new", "NAME")))
    elif door.out.text:
        door.out.show(Fitted(columns(language), rows))
    for fault in broken.values():
        door.progress.note(harmless(fault), style="yellow")
    return door.out.result("ok", Exit.DONE)


async def _unbegun(door: Door, name: str, fault: str) -> list[Text]:
    """One that is only written, or that was and is over."""
    root = door.means.root
    stands = "broken" if fault else "gone" if await over(door.runtime, root, name) else "new"
    fields = {"name": name, "team": None, "stands": stands, "workspace": str(root)}
    door.out.item("team", {**fields, "fault": fault or None})
    return row(Text(harmless(name), style="bold"), "", team_word(stands, spoken(door)), "", harmless(str(root)))


async def _listed(door: Door, team: TeamId, world: World, fault: str) -> list[Text]:
    language, holder = spoken(door), await door.runtime.log.holder(team)
    people, its = list(_people(world)), world.team
    stands = at_rest(world).word if holder is not None or its.paused is None else "stopped"
    if holder is not None:
        told = team_word("stands_in", language, stands=stands_word(stands, language), owner=holder.owner)
    else:
        told = stands_word(stands, language) if stands == "stopped" else team_word("nobody", language)
    if fault:
        told = f"{told}; {team_word('broken', language)}"
    fields = {"name": its.name, "team": team, "stands": stands, "owner": holder.owner if holder else None}
    door.out.item("team", {**fields, "workspace": its.workspace, "people": people, "fault": fault or None})
    return row(Text(its.name, style="bold"), team, told, ", ".join(people), harmless(its.workspace))


async def team_stop(door: Door, order: TeamStop) -> Exit:
    """Interrupt what runs and queue it again; the process that runs it ends. One that stands still is stopped anew: it
    may be starting, and what is in the log after that start counts."""
    one, team = await there(door, order.name)
    language, holder = language_of(await door.runtime.world(team)), await door.runtime.log.holder(team)
    await door.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    door.out.show(team_word("is_stopped", language, name=one.name))
    door.progress.note(team_word("go_on", language, command=command(door, "team", "start", one.called)))
    return door.out.result("stopped", Exit.DONE, team=team, owner=holder.owner if holder else None)


async def team_dismiss(door: Door, order: TeamDismiss) -> Exit:
    """Let an agent or a person go: no agent waits for them any more, and their name is not used again."""
    one, team = await there(door, order.name)
    world, who = await door.runtime.world(team), AgentId(order.agent)
    language = language_of(world)
    if one.chartered:  # whom the charter names would come back with each start, and cannot: a name is used once
        charter = find_charter(door.means.root, one.name, language)
        if who in (*charter.managers, *(person.name for person in charter.people)):
            raise refused("in_charter", "take_out", language, name=who, path=charter.path)
    try:
        await door.runtime.ask(team, RemoveAgent(agent_id=who, why="dismissed by a person"))
    except Refused as error:
        raise _needed(door, one, world, who, error) from None
    door.out.show(harmless(team_word("left", language, who=who, name=one.name)))
    undone = len(world.agents[who].todo) if who in world.agents else 0
    if undone:
        door.progress.note(harmless(team_word("undone", language, who=who, count=undone)), style="yellow")
    return door.out.result("left", Exit.DONE, team=team, agent=who)


def _needed(door: Door, one: Meant, world: World, who: AgentId, error: Refused) -> Refused:
    """Why they cannot go, and what to do first. That is never to end the organisation itself."""
    language, code, manager = language_of(world), error.rejected.code, world.tasks[BASE].manager
    match code:
        case "unknown_agent":
            return nobody(who, world.agents, language)
        case "agent_busy":
            return refused(code, "first", language, name=who, command=command(door, "team", "stop", one.called))
        case "agent_manages" if manager == who:
            return refused("hears_people", "stays", language, name=who)
        case "agent_manages":
            held = [task.task_id for task in world.tasks.values() if task.manager == who]
        case "agent_allotted":
            parts = ((stage.task_id, part) for stage in world.stages.values() for part in stage.subtasks)
            held = [task for task, part in parts if part.agent == who and part.state in ("init", "running")]
        case _:
            return error
    task = min(held, key=lambda task: (task == BASE, len(task), task), default=BASE)
    if task == BASE:
        return refused(code, "ask_manager", language, name=who, manager=manager)
    cancel = command(door, "cancel", f"{world.team.team_id}/{task}")
    return refused(code, "first", language, name=who, command=cancel)
