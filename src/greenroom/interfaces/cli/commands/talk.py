"""`greenroom talk`: a person talks to an organisation, while it runs here or in another terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

from greenroom.app.hands.redaction import Redaction
from greenroom.app.organisation.commands import commands
from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.people import HumanAgent, person_of
from greenroom.app.organisation.typed import Address, Plain
from greenroom.app.talks.typed.people import Nobody, Person
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Tape
from greenroom.interfaces.cli.asked.organising import Talk
from greenroom.interfaces.cli.commands.chat import Aids, somebody
from greenroom.interfaces.cli.display.reasons import still
from greenroom.interfaces.cli.display.room import word
from greenroom.interfaces.cli.display.room_json import letter_fields
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.fates import fate_of, unanswered
from greenroom.interfaces.cli.runs.listening import Ear, Keeper
from greenroom.interfaces.cli.runs.looking_there import noted
from greenroom.interfaces.cli.runs.organising import Meant, brought_up, meant, there, way_on
from greenroom.interfaces.cli.runs.room import Room
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door


async def talk(door: Door, order: Talk) -> Exit:
    """Come in as one of its people; look, say something, or stay. Keys that are known here are shown nowhere."""
    door.out.hide(Redaction(door.means.provisions.keys()))
    one = await meant(door, order.name)
    team = await _team(door, one, order)
    human = HumanAgent(door.runtime, team, person_of(await door.runtime.world(team), order.person))
    door.out.begin(team=team, command="talk", name=one.name, person=human.me, home=str(door.home))
    ear = Ear(door, human)
    async with AsyncExitStack() as last:
        last.push_async_callback(ear.close)
        await ear.open()
        if order.inbox:
            return await _looked(door, human, ear)
        if order.say:
            return await _said(door, order, human, ear)
        with somebody(door, aids=_aids(ear)) as person:
            return await _held(door, order, Room(door, human, ear, person), ear, person)


def _aids(ear: Ear) -> Aids:
    """What is offered here: an @ names an agent and no file, and what was typed in a chat is nobody's business here."""

    def agents(beginning: str) -> Iterator[str]:
        return (one for one in sorted(ear.world.agents) if one.startswith(beginning))

    return Aids(commands=commands(ear.language), words=agents)


async def _team(door: Door, one: Meant, order: Talk) -> TeamId:
    """Where it is; founded, or brought up to date, unless somebody else runs it or it is only looked at."""
    tape = Tape(record=order.record, replay=order.replay)
    if order.inbox:
        return (await there(door, one.name))[1]
    if one.team is not None and await door.runtime.log.holder(one.team) is not None:
        return one.team
    return await brought_up(door, one, tape)


async def _looked(door: Door, human: HumanAgent, ear: Ear) -> Exit:
    """The inbox and nothing else."""
    room = Room(door, human, ear, Nobody())
    room.tell_inbox()
    door.out.expect("letters")
    for one in ear.owed():
        door.out.item("letter", letter_fields(one))
    said = {} if door.out.text else (await human.pool()).portrait  # all that was ever said: only a program reads it
    return door.out.result("ok", Exit.DONE, person=human.me, conversation_pool=said)


async def _said(door: Door, order: Talk, human: HumanAgent, ear: Ear) -> Exit:
    """One line, which means what it means when it is typed; with `wait`, tell what comes of it."""
    room, keeper = Room(door, human, ear, Nobody()), Keeper(door, ear)
    code = await (room.act(_addressed(order, ear)) if order.to else room.do(order.say))
    if code != Exit.DONE or not order.wait:
        await _say_if_nobody_runs_it(door, ear)
        return _done(door, room, human.me, "ok" if room.looked else "sent", code)
    return await _waited(door, order, room, ear, keeper)


def _addressed(order: Talk, ear: Ear) -> Plain | Address:
    """What is said to somebody by name is said as it is: it is no command."""
    text = order.say.strip()
    names = tuple(dict.fromkeys(one.strip().lstrip("@") for one in order.to.split(",") if one.strip()))
    if names == (ear.world.tasks[BASE].manager,):
        return Plain(text=text)
    return Address(names=names, text=text, how="to")


def _done(door: Door, room: Room, me: AgentId, status: str, code: Exit) -> Exit:
    """The end of what was said or piped: a program is told what could not be done."""
    if code == Exit.DONE:
        return door.out.result(status, code, person=me)
    return door.out.result("error", code, person=me, error=room.wrong)


async def _say_if_nobody_runs_it(door: Door, ear: Ear) -> None:
    if await door.runtime.log.holder(ear.team) is None:
        start = way_on(door, ear.world).start
        door.progress.note(word("nobody", ear.language, command=start), style="dim")


async def _waited(door: Door, order: Talk, room: Room, ear: Ear, keeper: Keeper) -> Exit:
    """Stay until it rests. Whatever it is that keeps it from being done is said, and is the code; also that the manager
    was asked for something and nothing came."""
    try:
        await keeper.open()
        stands = await room.settled()
    except asyncio.CancelledError:
        door.progress.note(word("stopped_waiting", ear.language, command=_again(door, order, ear)), style="bold")
        raise
    finally:
        await keeper.close()
    fate = fate_of(ear.world, stands, ear.failures(), ear.language, way_on(door, ear.world))
    if room.asked and fate.code == Exit.DONE and not room.heard:
        fate = unanswered(ear.world, ear.language)
    room.tell_reasons(fate.reasons)
    return door.out.result(fate.status, fate.code, why=" ".join(fate.reasons))


async def _held(door: Door, order: Talk, room: Room, ear: Ear, person: Person) -> Exit:
    keeper = Keeper(door, ear)
    try:
        if person.attended:
            await keeper.open()
            _greet(door, order, ear.world, ear.me, here=keeper.here)
            room.tell_inbox()
        code = await room.hold()
        if not person.attended and order.wait and code == Exit.DONE:
            return await _waited(door, order, room, ear, keeper)
    finally:
        await keeper.close()
    if not person.attended:
        await _say_if_nobody_runs_it(door, ear)
        return _done(door, room, ear.me, "ok", code)
    if not ear.gone:
        door.progress.note(word("left", ear.language, command=_again(door, order, ear)), style="dim")
    return door.out.result("left", Exit.DONE)


def _again(door: Door, order: Talk, ear: Ear) -> str:
    """The command that comes back here."""
    return command(door, "talk", ear.world.team.name, *(("--as", ear.me) if order.person else ()))


def _greet(door: Door, order: Talk, world: World, me: AgentId, *, here: bool) -> None:
    language, name = world.agents[me].spec.language, world.team.name
    where = "stopped" if world.team.paused is not None else "runs_here" if here else "runs_there"
    hello = word("hello", language, name=name, me=me, where=word(where, language, name=name))
    door.progress.note(hello, style="dim")
    for task in world.tasks.values():
        if task.paused is not None:
            noted(door, still(task.paused, language, way_on(door, world)), "yellow")
