"""`greenroom team` and `talk`: the file of an organisation, its work, how it stands, and a person's inbox in it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

import typer
from rich.text import Text

from greenroom.app.conversation.typed import Nobody, Person
from greenroom.app.host import Host
from greenroom.app.messages import LANGUAGES, phrase
from greenroom.app.organisation.charter import Wish, charters, find_charter, write_charter
from greenroom.app.organisation.founders import founded, organisations, over
from greenroom.app.organisation.inbox import at_rest, states
from greenroom.app.organisation.input import Address, Plain
from greenroom.app.organisation.people import HumanAgent, person_of
from greenroom.app.organisation.words import BASE, commands, nobody, refused
from greenroom.app.task_status import pause_word
from greenroom.app.toolset.redaction import Redaction
from greenroom.cli.context import Invocation, command, invoke
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.interactive.follow import attend, telling
from greenroom.cli.interactive.inbox import Inbox
from greenroom.cli.interactive.lines import Aids, typist
from greenroom.cli.interactive.organisation import (
    Listener,
    Organisation,
    WaitResult,
    bad_model,
    bring_up,
    find_founded,
    find_mistakes,
    find_organisation,
    resume_intents,
    running,
    wait_result,
    way_on,
)
from greenroom.cli.options import DEFAULTS, ModelName, Record, Replay, RunOptions
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.team import TeamHistory, language_of, picture
from greenroom.cli.render.words import CATALOGUE, STOPPED, reason, stands_word, still, team_word, word
from greenroom.cli.start import new_limits
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import record as as_record
from greenroom.core.rules.intents import PauseTeam, RemoveAgent
from greenroom.core.state.world import World

LONG: Final = 50_000  # events. A longer log is not read again only to say what each agent spent before
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
    cli.progress.note(team_word("talk_to", language, command=_talk_command(cli, name, people)))
    return cli.out.result("written", Exit.DONE, name=name, file=str(path), people=list(people))


def _login() -> str:
    """The name of the person who is logged in, as far as that is known."""
    try:
        name = "".join(sign for sign in getpass.getuser() if sign.isalnum() or sign in "-_").lstrip("-")
    except (OSError, KeyError):
        name = ""
    return name or "me"


def _talk_command(cli: Invocation, name: str, people: tuple[str, ...]) -> str:
    return command(cli, "talk", name, *(("--as", people[0]) if len(people) > 1 else ()))


def _people(world: World) -> tuple[str, ...]:
    return tuple(name for name, agent in sorted(world.agents.items()) if agent.spec.kind == "human")


async def team_start(cli: Invocation, name: OrganisationName = "", *, options: RunOptions = DEFAULTS) -> Exit:
    """Let an organisation work, here and until Ctrl-C. Whatever ended it, it goes on where it was."""
    one = await find_organisation(cli, name)
    holder = await cli.runtime.log.holder(one.team) if one.team is not None else None
    if one.team is not None and holder is not None:
        language = language_of(await cli.runtime.world(one.team))
        known = {"talk": command(cli, "talk", one.called), "stop": command(cli, "team", "stop", one.called)}
        raise WorldFault(team_word("held", language, name=one.name, owner=holder.owner, **known))
    options.limit(cli.means)
    team = await bring_up(cli, one, options)
    world = await cli.runtime.world(team)
    limits = () if one.chartered else new_limits(cli, world, options)
    await cli.runtime.ask(team, *limits, *resume_intents(world))
    cli.out.begin(team=team, name=one.name)
    history = await _history(cli, team)
    host, language = await cli.runtime.start(team), history.language
    try:
        cli.progress.note(team_word("works", language, name=one.name, team=team), style="bold")
        told = team_word("talk", language, command=_talk_command(cli, one.called, _people(history.world)))
        cli.progress.note(told, style="dim")
        cli.progress.begin(history)
        async with telling(cli, team, history):
            world = await _until_over(cli, host)
    except asyncio.CancelledError:
        cli.progress.end()
        again = command(cli, "team", "start", one.called)
        cli.progress.note(team_word("again", language, command=again), style="bold")
        raise
    finally:
        cli.progress.end()
        await cli.runtime.stop(team)
    return _over(cli, world)


async def _history(cli: Invocation, team: TeamId) -> TeamHistory:
    """What has happened so far, without what has ended; of a long log only how it stands."""
    head = (await cli.runtime.log.head(team)).version
    history = TeamHistory(keeps=False)
    if head > LONG:
        history = TeamHistory(world=await cli.runtime.world(team, head), version=head, keeps=False)
    else:
        async for told in cli.runtime.events(team):
            history.add(told)
    history.language = language_of(history.world)
    return history


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
    one, team = await find_founded(cli, name)
    world, holder = await cli.runtime.world(team), await cli.runtime.log.holder(team)
    cli.out.begin(team=team, name=one.name)
    if kind:
        found = await states(cli.runtime, team, kind, secrets=cli.means.provisions.keys())
        for state, fields in found.items():
            short = ((key, harmless(" ".join(str(value).split()))[:200]) for key, value in fields.items())
            cli.out.show(Text(state, style="bold"), *(Text(f"  {key}: {value}") for key, value in short))
        return cli.out.result("ok", Exit.DONE, states=found)
    history, stands = await _history(cli, team), at_rest(world).word
    language = history.language
    where = team_word("runs_in", language, owner=holder.owner) if holder is not None else team_word("nobody", language)
    told = Text(f"\n{stands_word(stands, language)} · {where}", style="dim")
    cli.out.show(picture(history, moving=False), told)
    if holder is None:
        cli.progress.note(team_word("start", language, command=command(cli, "team", "start", one.called)))
    agents = {agent: state.working_state for agent, state in sorted(world.agents.items())}
    owner = holder.owner if holder else None
    return cli.out.result("ok", Exit.DONE, name=one.name, stands=stands, owner=owner, agents=agents)


COLUMNS: Final = (
    Column(name="name"),
    Column(name="id", style="dim"),
    Column(name="stands", gives=True),
    Column(name="people", needs=60),
    Column(name="where", style="dim", gives=True, needs=80),
)


async def team_list(cli: Invocation) -> None:
    """List the organisations of this workspace, and those that run from others."""
    root, language = cli.means.root, cli.means.language
    found = [(team, world) async for team, world in organisations(cli.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    broken = {name: fault for name in charters(root) if (fault := find_mistakes(cli, name))}
    cli.out.expect("teams")
    rows = [await _unbegun(cli, name, broken.get(name, "")) for name in charters(root) if name not in begun]
    for team, world in found:
        here = world.team.workspace == str(root)
        rows.append(await _listed(cli, team, world, broken.get(world.team.name, "") if here else ""))
    if not rows:
        cli.progress.note(team_word("none", language, command=command(cli, "team", "new", "NAME")))
    elif cli.out.text:
        heads = CATALOGUE.table("columns", language)
        cli.out.show(Fitted([replace(column, name=heads[column.name]) for column in COLUMNS], rows))
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
    one, team = await find_founded(cli, name)
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
    one, team = await find_founded(cli, name)
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


# ----------------------------------------------------------------------------------------------------------------- talk


def talk(
    context: typer.Context,
    name: OrganisationName = "",
    *,
    person: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Who you are. [default: the only person that there is]")
    ] = "",
    say: Annotated[
        str | None,
        typer.Option(
            "--say",
            metavar="TEXT",
            help="Do what this line does when it is typed, and leave: `/answer 1 Green`. A space before it says it as "
            "it is.",
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="AGENT", help="Say it to them, as it is. [default: the manager]")
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay until nothing more happens by itself, and tell what comes.")
    ] = False,
    inbox: Annotated[bool, typer.Option("--inbox", help="Only show what waits for you.")] = False,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Talk to an organisation as one of its people: read, answer, ask for something. Each line of a pipe is one too."""
    if say is not None and not say.strip():
        raise typer.BadParameter("--say has nothing to say.")
    if to and not say:
        raise typer.BadParameter("--to says whom --say is for. Say something, too.")
    if to and not to.strip(", "):
        raise typer.BadParameter("--to names nobody.")
    if inbox and (say or wait):
        raise typer.BadParameter("--inbox only looks. Leave out --say and --wait.")
    order = Order(person=person, say=say or "", to=to, wait=wait, inbox=inbox)
    options = RunOptions(record=record, replay=replay)
    return invoke(context, lambda cli: _talk(cli, name, order, options))


@as_record
class Order:
    """What to do there: `say` something `to` agents and leave, `wait` for what comes of it, or only see the `inbox`."""

    person: str
    say: str
    to: str
    wait: bool
    inbox: bool


async def _talk(cli: Invocation, name: str, order: Order, options: RunOptions) -> Exit:
    """Come in as one of its people; look, say something, or stay. Keys that are known here are shown nowhere."""
    cli.out.hide(Redaction(cli.means.provisions.keys()))
    one = await find_organisation(cli, name)
    team = await _team(cli, one, order, options)
    human = HumanAgent(cli.runtime, team, person_of(await cli.runtime.world(team), order.person))
    cli.out.begin(team=team, name=one.name, person=human.me)
    listener = Listener(cli, human)
    try:
        await listener.open()
        inbox = Inbox(cli, human, listener, Nobody())
        if order.inbox:
            inbox.show_inbox()
            said = {} if cli.out.text else (await human.pool()).portrait  # all that was ever said: for programs only
            return cli.out.result("ok", Exit.DONE, person=human.me, conversation_pool=said)
        if order.say:
            return await _say_line(cli, order, inbox, listener)
        # Here an @ names an agent and not a file, and what was typed in a chat is not offered.
        aids = Aids(
            commands=commands(listener.language),
            words=lambda typed: (name for name in sorted(listener.world.agents) if name.startswith(typed)),
        )
        with typist(cli.out, aids) as person:
            return await _hold(cli, order, Inbox(cli, human, listener, person), listener, person)
    finally:
        await listener.close()


async def _team(cli: Invocation, one: Organisation, order: Order, options: RunOptions) -> TeamId:
    """Its id; it is founded, or brought up to date, unless it runs elsewhere or is only looked at."""
    if order.inbox:
        return (await find_founded(cli, one.name))[1]
    if one.team is not None and await cli.runtime.log.holder(one.team) is not None:
        return one.team
    return await bring_up(cli, one, options)


async def _say_line(cli: Invocation, order: Order, inbox: Inbox, listener: Listener) -> Exit:
    """One line, which means what it means when it is typed; with `wait`, tell what comes of it.

    What is said to agents by name is said as it is, and never a command.
    """
    line: str | Plain | Address = order.say
    names = tuple(dict.fromkeys(name.strip().lstrip("@") for name in order.to.split(",") if name.strip()))
    if names == (listener.world.tasks[BASE].manager,):
        line = Plain(text=order.say.strip())
    elif order.to:
        line = Address(names=names, text=order.say.strip(), how="to")
    code = await inbox.do(line)
    if code == Exit.DONE and order.wait:
        return await _wait_for(cli, order, inbox, listener)
    return await _end_talk(cli, inbox, listener, "ok" if inbox.looked else "sent", code)


async def _end_talk(cli: Invocation, inbox: Inbox, listener: Listener, status: str, code: Exit) -> Exit:
    """The end of what was said or piped: whether it runs anywhere, and for a program what could not be done."""
    if await cli.runtime.log.holder(listener.team) is None:
        start = way_on(cli, listener.world).start
        cli.progress.note(word("nobody", listener.language, command=start), style="dim")
    if code == Exit.DONE:
        return cli.out.result(status, code, person=listener.me)
    return cli.out.result("error", code, person=listener.me, error="\n".join(inbox.wrong))


async def _wait_for(cli: Invocation, order: Order, inbox: Inbox, listener: Listener) -> Exit:
    """Stay until it rests. What keeps it from being done is said, and is the code; also that the manager was asked for
    something and has not answered."""
    try:
        async with running(cli, listener):
            stands = await inbox.settled()
    except asyncio.CancelledError:
        cli.progress.note(
            word("stopped_waiting", listener.language, command=_again(cli, order, listener)), style="bold"
        )
        raise
    ended = wait_result(listener.world, stands, listener.failures.all(), listener.language, way_on(cli, listener.world))
    if inbox.asked and ended.code == Exit.DONE and not inbox.heard:
        why = word("unanswered", listener.language, manager=listener.world.tasks[BASE].manager)
        ended = WaitResult(status="failed", code=Exit.FAILED, reasons=(why,))
    inbox.tell_reasons(ended.reasons)
    return cli.out.result(ended.status, ended.code, why=" ".join(ended.reasons))


async def _hold(cli: Invocation, order: Order, inbox: Inbox, listener: Listener, person: Person) -> Exit:
    if not person.attended:
        code = await inbox.hold()
        return await (
            _wait_for(cli, order, inbox, listener)
            if order.wait and code == Exit.DONE
            else _end_talk(cli, inbox, listener, "ok", code)
        )
    async with running(cli, listener) as here:
        _greet(cli, inbox, listener, here=here)
        await inbox.hold()
    if not listener.gone:
        cli.progress.note(word("left", listener.language, command=_again(cli, order, listener)), style="dim")
    return cli.out.result("left", Exit.DONE)


def _again(cli: Invocation, order: Order, listener: Listener) -> str:
    """The command that comes back here."""
    return command(cli, "talk", listener.world.team.name, *(("--as", listener.me) if order.person else ()))


def _greet(cli: Invocation, inbox: Inbox, listener: Listener, *, here: bool) -> None:
    world, language, name = listener.world, listener.language, listener.world.team.name
    where = "stopped" if world.team.paused is not None else "runs_here" if here else "runs_there"
    hello = word("hello", language, name=name, me=listener.me, where=word(where, language, name=name))
    cli.progress.note(hello, style="dim")
    for task in world.tasks.values():
        if task.paused is not None:
            inbox.say(still(task.paused, language, way_on(cli, world)), "yellow")
    inbox.show_inbox()
