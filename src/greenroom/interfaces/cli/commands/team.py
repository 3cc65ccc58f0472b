"""`greenroom team`: write the charter of an organisation, let it work, see how it stands, stop it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace
from typing import Annotated, TypeAlias

import typer
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
from greenroom.interfaces.cli.context import Invocation, command
from greenroom.interfaces.cli.display.organisation import columns, language_of, picture, pictured
from greenroom.interfaces.cli.display.output import Fitted, harmless, row
from greenroom.interfaces.cli.display.team import Teller
from greenroom.interfaces.cli.display.words import LIMIT, STOPPED, reason, stands_word, still, team_word
from greenroom.interfaces.cli.exit_codes import Exit, of_standings
from greenroom.interfaces.cli.options import DEFAULTS, ModelName, RunOptions
from greenroom.interfaces.cli.runs.follow import attend, so_far, telling
from greenroom.interfaces.cli.runs.organisation import (
    Meant,
    bad_model,
    brought_up,
    held_up,
    meant,
    mistakes,
    there,
    way_on,
)
from greenroom.interfaces.cli.runs.start import new_limits

OrganisationName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="[NAME]", help="Which one: its name, or the beginning of its id. [default: the only one]"),
]


async def team_new(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    *,
    person: Annotated[
        list[str] | None,
        typer.Option("--person", metavar="NAME", help="Who belongs to it; again for more people. [default: you]"),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="en|zh", help="In which language it speaks. [default: your settings']")
    ] = "",
    model: ModelName = "",
) -> Exit:
    """Write the file of a new organisation, to go on with in your editor."""
    language, root = language or cli.means.language, cli.means.root
    if language not in LANGUAGES:
        why = phrase("charter", "no_language", cli.means.language, language=language, known=", ".join(LANGUAGES))
        raise Refused(Rejected(code="bad_language", why=why))
    people, others = tuple(person or (_login(),)), tuple(cli.means.surroundings.agents().specs)
    no_model = bad_model(cli, model, language)
    wish = Wish(name=name, people=people, language=language, model=model, others=others, no_model=no_model)
    path = write_charter(root, wish)
    cli.out.begin(command="team new")
    cli.out.show(harmless(str(path)))
    cli.progress.note(team_word("made", language, name=name, people=", ".join(people)), style="green")
    before = await founded(cli.runtime, root, name)
    if before is not None:
        known = {"name": name, "team": before, "command": command(cli, "cancel", before)}
        cli.progress.note(team_word("before", language, **known), style="yellow")
    cli.progress.note(team_word("let_work", language, command=command(cli, "team", "start", name)))
    cli.progress.note(team_word("talk_to", language, command=_talk(cli, name, people)))
    return cli.out.result("written", Exit.DONE, name=name, file=str(path), people=list(people))


def _login() -> str:
    """The name of the person who is logged in, as far as that is known."""
    try:
        name = "".join(sign for sign in getpass.getuser() if sign.isalnum() or sign in "-_").lstrip("-")
    except (OSError, KeyError):
        name = ""
    return name or "me"


def _talk(cli: Invocation, name: str, people: tuple[str, ...]) -> str:
    return command(cli, "talk", name, *(("--as", people[0]) if len(people) > 1 else ()))


def _people(world: World) -> tuple[str, ...]:
    return tuple(name for name, agent in sorted(world.agents.items()) if agent.spec.kind == "human")


# ----------------------------------------------------------------------------------------------------------- start


async def team_start(
    cli: Invocation,
    name: OrganisationName = "",
    *,
    options: RunOptions = DEFAULTS,
) -> Exit:
    """Let an organisation work, here and until Ctrl-C. Whatever ended it, it goes on where it was."""
    one, since = await meant(cli, name), 0
    if one.team is not None:
        await _refuse_held(cli, one.team, one)
        since = (await cli.runtime.log.head(one.team)).version
    cli.means.cap(options)
    team = await brought_up(cli, one, options)
    world = await cli.runtime.world(team)
    limits = () if one.chartered else new_limits(cli, world, options)
    await cli.runtime.ask(team, *limits, *held_up(world))
    cli.out.begin(team=team, command="team start", name=one.name, home=str(cli.home))
    if await _stopped_since(cli, team, since):
        return _over(cli, await cli.runtime.world(team))
    teller = await so_far(cli, team)
    teller.language = language = language_of(teller.world)
    try:
        host = await _host(cli, team, one)
        cli.progress.note(team_word("works", language, name=one.name, team=team), style="bold")
        told = team_word("talk", language, command=_talk(cli, one.called, _people(teller.world)))
        cli.progress.note(told, style="dim")
        shown = pictured(cli.progress, everything=cli.setup.verbose)
        world = await _run(replace(cli, progress=shown), host, teller, one)
    finally:
        await cli.runtime.stop(team)
    return _over(cli, world)


async def _host(cli: Invocation, team: TeamId, one: Meant) -> Host:
    """Begin to run it, unless another process has come first."""
    try:
        return await cli.runtime.start(team)
    except RunsElsewhere:
        await _refuse_held(cli, team, one)
        raise


async def _refuse_held(cli: Invocation, team: TeamId, one: Meant) -> None:
    holder = await cli.runtime.log.holder(team)
    if holder is not None:
        language = language_of(await cli.runtime.world(team))
        known = {"talk": command(cli, "talk", one.called), "stop": command(cli, "team", "stop", one.called)}
        raise WorldFault(team_word("held", language, name=one.name, owner=holder.owner, **known))


async def _stopped_since(cli: Invocation, team: TeamId, version: int) -> bool:
    """Whether a person has stopped it since this version, which is when this start was typed: then it is stopped."""
    events = [told.event async for told in cli.runtime.events(team, after=version)]
    if all(LIMIT.fullmatch(event.why) for event in events if isinstance(event, TeamPaused)):
        return False
    await cli.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    return True


async def _run(cli: Invocation, host: Host, teller: Teller, one: Meant) -> World:
    cli.progress.begin(teller)
    try:
        async with telling(cli, teller.world.team.team_id, teller):
            return await _until_over(cli, host)
    except asyncio.CancelledError:
        cli.progress.end()
        again = command(cli, "team", "start", one.called)
        cli.progress.note(team_word("again", language_of(teller.world), command=again), style="bold")
        raise
    finally:
        cli.progress.end()


async def _until_over(cli: Invocation, host: Host) -> World:
    """Let it work; returns how it is when it has ended by itself or elsewhere."""

    def ended() -> bool:
        return host.sync.stopped is not None or host.world.team.paused is not None or BASE not in host.world.tasks

    attend(host, cli.progress)
    over = asyncio.Event()
    for listen in (host.listen, host.listen_trouble):
        listen(lambda _: over.set() if ended() else None)
    while not ended():
        over.clear()
        await over.wait()
    if host.sync.stopped is not None:
        raise host.sync.stopped
    return host.world


def _over(cli: Invocation, world: World) -> Exit:
    """Say what ended it. That a person stopped it is as it should be; that it ran into a limit is not."""
    language, paused, code = language_of(world), world.team.paused, Exit.DONE
    if paused is None:
        why = team_word("over", language)
    elif (stands := pause_word(paused)) == "paused":  # also while a step is still at work
        why = team_word("ended", language, why=reason(paused, language))
    else:
        why, code = still(paused, language, way_on(cli, world)), of_standings([stands])
    cli.progress.note(why, style="bold")
    return cli.out.result("stopped", code, team=world.team.team_id, why=why)


# ------------------------------------------------------------------------------------------------- looking, stopping


async def team_status(
    cli: Invocation,
    name: OrganisationName = "",
    *,
    kind: Annotated[
        str,
        typer.Option("--type", metavar="task|stage|agent|step", help="All states of one type, by their ids."),
    ] = "",
) -> Exit:
    """Show how an organisation stands, who does what, and who waits for whom; or all its states."""
    one, team = await there(cli, name)
    world, holder = await cli.runtime.world(team), await cli.runtime.log.holder(team)
    cli.out.begin(team=team, command="team status", name=one.name, home=str(cli.home))
    if kind:
        found = await states(cli.runtime, team, kind, secrets=cli.means.provisions.keys())
        for state, fields in found.items():
            short = ((key, harmless(" ".join(str(value).split()))[:200]) for key, value in fields.items())
            cli.out.show(Text(state, style="bold"), *(Text(f"  {key}: {value}") for key, value in short))
        return cli.out.result("ok", Exit.DONE, states=found)
    teller, language, stands = await so_far(cli, team), language_of(world), at_rest(world).word
    teller.language = language
    where = team_word("runs_in", language, owner=holder.owner) if holder is not None else team_word("nobody", language)
    told = Text(f"\n{stands_word(stands, language)} · {where}", style="dim")
    cli.out.show(picture(teller, moving=False), told)
    if holder is None:
        cli.progress.note(team_word("start", language, command=command(cli, "team", "start", one.called)))
    agents = {agent: state.working_state for agent, state in sorted(world.agents.items())}
    owner = holder.owner if holder else None
    return cli.out.result("ok", Exit.DONE, name=one.name, stands=stands, owner=owner, agents=agents)


async def team_list(cli: Invocation) -> Exit:
    """List the organisations of this workspace, and those that run from others."""
    root, language = cli.means.root, cli.means.language
    found = [(team, world) async for team, world in organisations(cli.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    broken = {name: fault for name in charters(root) if (fault := mistakes(cli, name))}
    cli.out.begin(command="team list", home=str(cli.home))
    cli.out.expect("teams")
    rows = [await _unbegun(cli, name, broken.get(name, "")) for name in charters(root) if name not in begun]
    for team, world in found:
        here = world.team.workspace == str(root)
        rows.append(await _listed(cli, team, world, broken.get(world.team.name, "") if here else ""))
    if not rows:
        cli.progress.note(team_word("none", language, command=command(cli, "team", "new", "NAME")))
    elif cli.out.text:
        cli.out.show(Fitted(columns(language), rows))
    for fault in broken.values():
        cli.progress.note(harmless(fault), style="yellow")
    return cli.out.result("ok", Exit.DONE)


async def _unbegun(cli: Invocation, name: str, fault: str) -> list[Text]:
    """One that is only written, or that was and is over."""
    root = cli.means.root
    stands = "broken" if fault else "gone" if await over(cli.runtime, root, name) else "new"
    fields = {"name": name, "team": None, "stands": stands, "workspace": str(root)}
    cli.out.item("team", {**fields, "fault": fault or None})
    return row(Text(harmless(name), style="bold"), "", team_word(stands, cli.means.language), "", harmless(str(root)))


async def _listed(cli: Invocation, team: TeamId, world: World, fault: str) -> list[Text]:
    language, holder = cli.means.language, await cli.runtime.log.holder(team)
    people, its = list(_people(world)), world.team
    stands = at_rest(world).word if holder is not None or its.paused is None else "stopped"
    if holder is not None:
        told = team_word("stands_in", language, stands=stands_word(stands, language), owner=holder.owner)
    else:
        told = stands_word(stands, language) if stands == "stopped" else team_word("nobody", language)
    if fault:
        told = f"{told}; {team_word('broken', language)}"
    fields = {"name": its.name, "team": team, "stands": stands, "owner": holder.owner if holder else None}
    cli.out.item("team", {**fields, "workspace": its.workspace, "people": people, "fault": fault or None})
    return row(Text(its.name, style="bold"), team, told, ", ".join(people), harmless(its.workspace))


async def team_stop(cli: Invocation, name: OrganisationName = "") -> Exit:
    """Stop an organisation, also one that runs in another terminal. `greenroom team start` goes on with it."""
    # One that stands still is stopped anew: it may be starting, and what is in the log after that start counts.
    one, team = await there(cli, name)
    language, holder = language_of(await cli.runtime.world(team)), await cli.runtime.log.holder(team)
    await cli.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    cli.out.show(team_word("is_stopped", language, name=one.name))
    cli.progress.note(team_word("go_on", language, command=command(cli, "team", "start", one.called)))
    return cli.out.result("stopped", Exit.DONE, team=team, owner=holder.owner if holder else None)


async def team_dismiss(
    cli: Invocation,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Who is to go.")],
    name: OrganisationName = "",
) -> Exit:
    """Let somebody go who has nothing open: an agent that a manager made, or whom the file does not name any more."""
    one, team = await there(cli, name)
    world, who = await cli.runtime.world(team), AgentId(agent)
    language = language_of(world)
    if one.chartered:  # whom the charter names would come back with each start, and cannot: a name is used once
        charter = find_charter(cli.means.root, one.name, language)
        if who in (*charter.managers, *(person.name for person in charter.people)):
            raise refused("in_charter", "take_out", language, name=who, path=charter.path)
    try:
        await cli.runtime.ask(team, RemoveAgent(agent_id=who, why="dismissed by a person"))
    except Refused as error:
        raise _needed(cli, one, world, who, error) from None
    cli.out.show(harmless(team_word("left", language, who=who, name=one.name)))
    undone = len(world.agents[who].todo) if who in world.agents else 0
    if undone:
        cli.progress.note(harmless(team_word("undone", language, who=who, count=undone)), style="yellow")
    return cli.out.result("left", Exit.DONE, team=team, agent=who)


def _needed(cli: Invocation, one: Meant, world: World, who: AgentId, error: Refused) -> Refused:
    """Why they cannot go, and what to do first. That is never to end the organisation itself."""
    language, code, manager = language_of(world), error.rejected.code, world.tasks[BASE].manager
    match code:
        case "unknown_agent":
            return nobody(who, world.agents, language)
        case "agent_busy":
            return refused(code, "first", language, name=who, command=command(cli, "team", "stop", one.called))
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
    cancel = command(cli, "cancel", f"{world.team.team_id}/{task}")
    return refused(code, "first", language, name=who, command=cancel)
