"""`greenroom talk`: a person talks to an organisation, while it runs here or in another terminal."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from greenroom.app.conversation.typed import Nobody, Person
from greenroom.app.organisation.input import Address, Plain
from greenroom.app.organisation.people import HumanAgent, person_of
from greenroom.app.organisation.words import BASE, commands
from greenroom.app.toolset.redaction import Redaction
from greenroom.cli.commands.team import OrganisationName
from greenroom.cli.context import Invocation, command, invoke
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Record, Replay, RunOptions
from greenroom.cli.render.lines import Aids, typist
from greenroom.cli.render.words import still, word
from greenroom.cli.runs.organisation import (
    Ear,
    Fate,
    Meant,
    brought_up,
    fate_of,
    meant,
    running,
    there,
    way_on,
)
from greenroom.cli.runs.room import Room
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record as as_record


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
    one = await meant(cli, name)
    team = await _team(cli, one, order, options)
    human = HumanAgent(cli.runtime, team, person_of(await cli.runtime.world(team), order.person))
    cli.out.begin(team=team, name=one.name, person=human.me)
    ear = Ear(cli, human)
    try:
        await ear.open()
        room = Room(cli, human, ear, Nobody())
        if order.inbox:
            room.show_inbox()
            said = {} if cli.out.text else (await human.pool()).portrait  # all that was ever said: for programs only
            return cli.out.result("ok", Exit.DONE, person=human.me, conversation_pool=said)
        if order.say:
            return await _say(cli, order, room, ear)
        # Here an @ names an agent and not a file, and what was typed in a chat is not offered.
        aids = Aids(
            commands=commands(ear.language),
            words=lambda typed: (name for name in sorted(ear.world.agents) if name.startswith(typed)),
        )
        with typist(cli.out, aids) as person:
            return await _hold(cli, order, Room(cli, human, ear, person), ear, person)
    finally:
        await ear.close()


async def _team(cli: Invocation, one: Meant, order: Order, options: RunOptions) -> TeamId:
    """Its id; it is founded, or brought up to date, unless it runs elsewhere or is only looked at."""
    if order.inbox:
        return (await there(cli, one.name))[1]
    if one.team is not None and await cli.runtime.log.holder(one.team) is not None:
        return one.team
    return await brought_up(cli, one, options)


async def _say(cli: Invocation, order: Order, room: Room, ear: Ear) -> Exit:
    """One line, which means what it means when it is typed; with `wait`, tell what comes of it.

    What is said to agents by name is said as it is, and never a command.
    """
    line: str | Plain | Address = order.say
    names = tuple(dict.fromkeys(name.strip().lstrip("@") for name in order.to.split(",") if name.strip()))
    if names == (ear.world.tasks[BASE].manager,):
        line = Plain(text=order.say.strip())
    elif order.to:
        line = Address(names=names, text=order.say.strip(), how="to")
    code = await room.do(line)
    if code == Exit.DONE and order.wait:
        return await _wait(cli, order, room, ear)
    return await _end(cli, room, ear, "ok" if room.looked else "sent", code)


async def _end(cli: Invocation, room: Room, ear: Ear, status: str, code: Exit) -> Exit:
    """The end of what was said or piped: whether it runs anywhere, and for a program what could not be done."""
    if await cli.runtime.log.holder(ear.team) is None:
        start = way_on(cli, ear.world).start
        cli.progress.note(word("nobody", ear.language, command=start), style="dim")
    if code == Exit.DONE:
        return cli.out.result(status, code, person=ear.me)
    return cli.out.result("error", code, person=ear.me, error="\n".join(room.wrong))


async def _wait(cli: Invocation, order: Order, room: Room, ear: Ear) -> Exit:
    """Stay until it rests. What keeps it from being done is said, and is the code; also that the manager was asked for
    something and has not answered."""
    try:
        async with running(cli, ear):
            stands = await room.settled()
    except asyncio.CancelledError:
        cli.progress.note(word("stopped_waiting", ear.language, command=_again(cli, order, ear)), style="bold")
        raise
    fate = fate_of(ear.world, stands, ear.failures(), ear.language, way_on(cli, ear.world))
    if room.asked and fate.code == Exit.DONE and not room.heard:
        why = word("unanswered", ear.language, manager=ear.world.tasks[BASE].manager)
        fate = Fate(status="failed", code=Exit.FAILED, reasons=(why,))
    room.tell_reasons(fate.reasons)
    return cli.out.result(fate.status, fate.code, why=" ".join(fate.reasons))


async def _hold(cli: Invocation, order: Order, room: Room, ear: Ear, person: Person) -> Exit:
    if not person.attended:
        code = await room.hold()
        return await (
            _wait(cli, order, room, ear) if order.wait and code == Exit.DONE else _end(cli, room, ear, "ok", code)
        )
    async with running(cli, ear) as here:
        _greet(cli, room, ear, here=here)
        await room.hold()
    if not ear.gone:
        cli.progress.note(word("left", ear.language, command=_again(cli, order, ear)), style="dim")
    return cli.out.result("left", Exit.DONE)


def _again(cli: Invocation, order: Order, ear: Ear) -> str:
    """The command that comes back here."""
    return command(cli, "talk", ear.world.team.name, *(("--as", ear.me) if order.person else ()))


def _greet(cli: Invocation, room: Room, ear: Ear, *, here: bool) -> None:
    world, language, name = ear.world, ear.language, ear.world.team.name
    where = "stopped" if world.team.paused is not None else "runs_here" if here else "runs_there"
    hello = word("hello", language, name=name, me=ear.me, where=word(where, language, name=name))
    cli.progress.note(hello, style="dim")
    for task in world.tasks.values():
        if task.paused is not None:
            room.say(still(task.paused, language, way_on(cli, world)), "yellow")
    room.show_inbox()
