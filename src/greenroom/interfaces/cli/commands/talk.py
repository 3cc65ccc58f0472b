"""`greenroom talk`: a person talks to an organisation, while it runs here or in another terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from greenroom.app.conversation.people import Nobody, Person
from greenroom.app.organisation.input import Address, Plain
from greenroom.app.organisation.people import HumanAgent, person_of
from greenroom.app.organisation.words import BASE, commands
from greenroom.app.toolset.redaction import Redaction
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.asked.orders import Tape
from greenroom.interfaces.cli.asked.organising import Talk
from greenroom.interfaces.cli.commands.chat import Aids, somebody
from greenroom.interfaces.cli.display.phrases import still, word
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.listener import Ear, Fate, Keeper, fate_of
from greenroom.interfaces.cli.runs.organisation import Meant, brought_up, meant, there, way_on
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
    try:
        await ear.open()
        room = Room(door, human, ear, Nobody())
        if order.inbox:
            room.actions.show_inbox()
            said = {} if door.out.text else (await human.pool()).portrait  # all that was ever said: for programs only
            return door.out.result("ok", Exit.DONE, person=human.me, conversation_pool=said)
        if order.say:
            return await _say(door, order, room, ear)
        with somebody(door, aids=_aids(ear)) as person:
            return await _hold(door, order, Room(door, human, ear, person), ear, person)
    finally:
        await ear.close()


def _aids(ear: Ear) -> Aids:
    """What is offered here: an @ names an agent and not a file, and what was typed in a chat is not offered."""

    def agents(beginning: str) -> Iterator[str]:
        return (name for name in sorted(ear.world.agents) if name.startswith(beginning))

    return Aids(commands=commands(ear.language), words=agents)


async def _team(door: Door, one: Meant, order: Talk) -> TeamId:
    """Its id; it is founded, or brought up to date, unless it runs elsewhere or is only looked at."""
    if order.inbox:
        return (await there(door, one.name))[1]
    if one.team is not None and await door.runtime.log.holder(one.team) is not None:
        return one.team
    return await brought_up(door, one, Tape(record=order.record, replay=order.replay))


async def _say(door: Door, order: Talk, room: Room, ear: Ear) -> Exit:
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
        return await _wait(door, order, room, ear, Keeper(door, ear))
    return await _end(door, room, ear, "ok" if room.looked else "sent", code)


async def _end(door: Door, room: Room, ear: Ear, status: str, code: Exit) -> Exit:
    """The end of what was said or piped: whether it runs anywhere, and for a program what could not be done."""
    if await door.runtime.log.holder(ear.team) is None:
        start = way_on(door, ear.world).start
        door.progress.note(word("nobody", ear.language, command=start), style="dim")
    if code == Exit.DONE:
        return door.out.result(status, code, person=ear.me)
    return door.out.result("error", code, person=ear.me, error="\n".join(room.actions.wrong))


async def _wait(door: Door, order: Talk, room: Room, ear: Ear, keeper: Keeper) -> Exit:
    """Stay until it rests. What keeps it from being done is said, and is the code; also that the manager was asked for
    something and has not answered."""
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
        why = word("unanswered", ear.language, manager=ear.world.tasks[BASE].manager)
        fate = Fate(status="failed", code=Exit.FAILED, reasons=(why,))
    room.tell_reasons(fate.reasons)
    return door.out.result(fate.status, fate.code, why=" ".join(fate.reasons))


async def _hold(door: Door, order: Talk, room: Room, ear: Ear, person: Person) -> Exit:
    keeper = Keeper(door, ear)
    try:
        if person.attended:
            await keeper.open()
            _greet(door, room, ear, here=keeper.here)
        code = await room.hold()
        if not person.attended and order.wait and code == Exit.DONE:
            return await _wait(door, order, room, ear, keeper)
    finally:
        await keeper.close()
    if not person.attended:
        return await _end(door, room, ear, "ok", code)
    if not ear.gone:
        door.progress.note(word("left", ear.language, command=_again(door, order, ear)), style="dim")
    return door.out.result("left", Exit.DONE)


def _again(door: Door, order: Talk, ear: Ear) -> str:
    """The command that comes back here."""
    return command(door, "talk", ear.world.team.name, *(("--as", ear.me) if order.person else ()))


def _greet(door: Door, room: Room, ear: Ear, *, here: bool) -> None:
    world, language, name = ear.world, ear.language, ear.world.team.name
    where = "stopped" if world.team.paused is not None else "runs_here" if here else "runs_there"
    hello = word("hello", language, name=name, me=ear.me, where=word(where, language, name=name))
    door.progress.note(hello, style="dim")
    for task in world.tasks.values():
        if task.paused is not None:
            room.actions.say(still(task.paused, language, way_on(door, world)), "yellow")
    room.actions.show_inbox()
