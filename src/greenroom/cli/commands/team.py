"""`greenroom team`: write the charter of an organisation, let it work, see how it stands, stop it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from greenroom.app.host import Host
from greenroom.app.messages import LANGUAGES, phrase
from greenroom.app.organisation.charter import Wish, charters, find_charter, write_charter
from greenroom.app.organisation.founders import founded, organisations, over
from greenroom.app.organisation.inbox import at_rest, states
from greenroom.app.organisation.words import BASE, nobody, refused
from greenroom.app.task_status import pause_word
from greenroom.cli.context import Invocation, command
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.options import DEFAULTS, ModelName, RunOptions
from greenroom.cli.render.organisation import columns, language_of, picture, pictured
from greenroom.cli.render.output import Fitted, harmless, row
from greenroom.cli.render.words import STOPPED, reason, stands_word, still, team_word
from greenroom.cli.runs.follow import attend, so_far, telling
from greenroom.cli.runs.organisation import (
    bad_model,
    brought_up,
    held_up,
    meant,
    mistakes,
    there,
    way_on,
)
from greenroom.cli.runs.start import new_limits
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.rules.intents import PauseTeam, RemoveAgent
from greenroom.core.state.world import World

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
    people, others = tuple(person or (_login(),)), tuple(cli.means.agents().specs)
    no_model = bad_model(cli, model, language)
    wish = Wish(name=name, people=people, language=language, model=model, others=others, no_model=no_model)
    path = write_charter(root, wish)
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


async def team_start(cli: Invocation, name: OrganisationName = "", *, options: RunOptions = DEFAULTS) -> Exit:
    """Let an organisation work, here and until Ctrl-C. Whatever ended it, it goes on where it was."""
    one = await meant(cli, name)
    holder = await cli.runtime.log.holder(one.team) if one.team is not None else None
    if one.team is not None and holder is not None:
        language = language_of(await cli.runtime.world(one.team))
        known = {"talk": command(cli, "talk", one.called), "stop": command(cli, "team", "stop", one.called)}
        raise WorldFault(team_word("held", language, name=one.name, owner=holder.owner, **known))
    options.limit(cli.means)
    team = await brought_up(cli, one, options)
    world = await cli.runtime.world(team)
    limits = () if one.chartered else new_limits(cli, world, options)
    await cli.runtime.ask(team, *limits, *held_up(world))
    cli.out.begin(team=team, name=one.name)
    teller = await so_far(cli, team)
    teller.language = language = language_of(teller.world)
    host = await cli.runtime.start(team)
    shown = replace(cli, progress=pictured(cli.progress, everything=cli.setup.verbose))
    try:
        cli.progress.note(team_word("works", language, name=one.name, team=team), style="bold")
        told = team_word("talk", language, command=_talk(cli, one.called, _people(teller.world)))
        cli.progress.note(told, style="dim")
        shown.progress.begin(teller)
        async with telling(shown, team, teller):
            world = await _until_over(shown, host)
    except asyncio.CancelledError:
        shown.progress.end()
        again = command(cli, "team", "start", one.called)
        cli.progress.note(team_word("again", language, command=again), style="bold")
        raise
    finally:
        shown.progress.end()
        await cli.runtime.stop(team)
    return _over(cli, world)


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
    cli.out.begin(team=team, name=one.name)
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


async def team_list(cli: Invocation) -> None:
    """List the organisations of this workspace, and those that run from others."""
    root, language = cli.means.root, cli.means.language
    found = [(team, world) async for team, world in organisations(cli.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    broken = {name: fault for name in charters(root) if (fault := mistakes(cli, name))}
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


async def _unbegun(cli: Invocation, name: str, fault: str) -> list[Text]:
    """One that is only written, or that was and is over."""
    root = cli.means.root
    stands = "broken" if fault else "gone" if await over(cli.runtime, root, name) else "new"
    told = {"name": name, "team": None, "stands": stands, "workspace": str(root), "fault": fault or None}
    cli.out.item("team", told)
    return row(Text(harmless(name), style="bold"), "", team_word(stands, cli.means.language), "", harmless(str(root)))


async def _listed(cli: Invocation, team: TeamId, world: World, fault: str) -> list[Text]:
    language, holder = cli.means.language, await cli.runtime.log.holder(team)
    people, its, owner = list(_people(world)), world.team, holder.owner if holder else None
    stands = at_rest(world).word if owner or its.paused is None else "stopped"
    told = stands_word(stands, language) if owner or stands == "stopped" else team_word("nobody", language)
    told = team_word("stands_in", language, stands=told, owner=owner) if owner else told
    told = f"{told}; {team_word('broken', language)}" if fault else told
    fields = {"name": its.name, "team": team, "stands": stands, "owner": owner, "workspace": its.workspace}
    cli.out.item("team", {**fields, "people": people, "fault": fault or None})
    return row(Text(its.name, style="bold"), team, told, ", ".join(people), harmless(its.workspace))


async def team_stop(cli: Invocation, name: OrganisationName = "") -> Exit:
    """Stop an organisation, also one that runs in another terminal. `greenroom team start` goes on with it."""
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
    if who not in world.agents:
        raise nobody(who, world.agents, language)
    if world.tasks[BASE].manager == who:
        raise refused("hears_people", "stays", language, name=who)
    await cli.runtime.ask(team, RemoveAgent(agent_id=who, why="dismissed by a person"))
    cli.out.show(harmless(team_word("left", language, who=who, name=one.name)))
    if undone := len(world.agents[who].todo):
        cli.progress.note(harmless(team_word("undone", language, who=who, count=undone)), style="yellow")
    return cli.out.result("left", Exit.DONE, team=team, agent=who)
