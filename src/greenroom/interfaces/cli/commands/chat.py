"""`greenroom chat`: talk with an agent, in a team that stays open; or go on with such a talk."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

from greenroom.app.conversation.chat import Chat, chats, choose_model, find_chat, models_of, typed_before, typed_in
from greenroom.app.conversation.people import Nobody, Person
from greenroom.app.conversation.start import FIRST
from greenroom.app.conversation.typed import COMMANDS, Handler, builtin, file_context, offered, shell
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked import orders
from greenroom.interfaces.cli.display.lines import PlainLines
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.beginning import Wish, begun, new_limits, see_what_is_brought
from greenroom.interfaces.cli.runs.conversing import PROMPT, Conversation
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

TERMINAL = Path("/dev/tty")
REMEMBERED = 200
"""Lines that can be had back with the arrow keys."""

SHOWN = 400
"""Characters of the last answer when a chat is taken up again."""


async def chat(door: Door, order: orders.Chat) -> Exit:
    """Begin a chat, or go on with one, and talk until somebody leaves."""
    team = await find_chat(door.runtime, order.resume) if order.resume else None
    with somebody(door, order.first) as person:
        if team is not None:
            return await _again(door, order, team, person)
        return await _new(door, order, person)


async def reopen(door: Door, order: orders.Chat) -> Exit:
    """Go on with a chat that was to be resumed; where nobody can type, only with what was begun."""
    team = TeamId(order.resume)
    if sys.stdin.isatty():
        with somebody(door, order.first) as person:
            return await _again(door, order, team, person, go_on=True)
    agent = (await door.runtime.world(team)).tasks[FIRST].manager
    if await Chat(door.runtime, team=team, agent=agent).goes_on():
        return await _again(door, order, team, Nobody(), go_on=True)
    told = command(door, "chat", "--resume", team)
    door.out.show(f"{team} is a chat, and it is your turn: {told}")
    return door.out.result("waiting", Exit.WAITING, team=team, hint=told)


async def _new(door: Door, order: orders.Chat, person: Person) -> Exit:
    beginning = await begun(door, Wish(agent=order.agent, model=order.model, caps=order.caps, tape=order.tape))
    talk = Conversation(door, Chat(door.runtime, agent=beginning.cast.first), person, _handlers(door), beginning)
    if order.resume:
        talk.note("There is no chat to go on with. This is a new one.", style="dim")
    talk.note(beginning.line + (" · /help" if person.attended else ""), style="dim")
    for note in beginning.notes:
        talk.note(note, style="dim")
    return await talk.hold(order.first, order.context)


async def _again(door: Door, order: orders.Chat, team: TeamId, person: Person, *, go_on: bool = False) -> Exit:
    world = await door.runtime.world(team)
    await _refuse_held(door, team)
    if world.team.workspace:
        see_what_is_brought(door, Path(world.team.workspace))
    door.means.tape(order.tape)
    limits = new_limits(door, world, order.caps)
    if order.model:
        settled = door.means.provisions.settled(order.model)
        await door.runtime.ask(team, *choose_model(world, world.tasks[FIRST].manager, settled))
        world = await door.runtime.world(team)
    for name in models_of(world):
        door.means.named(name)  # that nobody can be asked is said before anything goes on
    await door.runtime.ask(team, *limits)
    past = Chat(door.runtime, team=team, agent=world.tasks[FIRST].manager)
    talk = Conversation(door, past, person, _handlers(door), None)
    await _remind(talk, past, await door.runtime.world(team), enter=not go_on)
    return await talk.hold(order.first, order.context, go_on=go_on)


async def _refuse_held(door: Door, team: TeamId) -> None:
    holder = await door.runtime.log.holder(team)
    if holder is not None:
        told = command(door, "tell", team, "TEXT")
        raise WorldFault(f"The chat {team!r} is open already, in {holder.owner}. Say something there with `{told}`.")


async def _remind(talk: Conversation, past: Chat, world: World, *, enter: bool) -> None:
    """Where we were."""
    said = await past.exchanges()
    turns = f"{len(said)} turn{'s' if len(said) != 1 else ''} so far"
    talk.note(f"{past.team} · {past.agent} · {models_of(world)[0]} · {turns} · /help", style="dim")
    for one in said[-1:]:
        talk.note(f"{PROMPT}{shorten(one.asked, SHOWN)}", style="dim")
        talk.note(shorten(one.answer or f"({one.error or 'not answered'})", SHOWN), style="dim")
    for step in world.steps_of(past.agent):
        if typed_in(step):
            talk.note(f"{PROMPT}{shorten(typed_in(step), SHOWN)}", style="dim")
    paused = world.team.paused or world.tasks[FIRST].paused
    if paused and enter:
        talk.note(f"It stands still: {paused.rstrip('.')}. Enter goes on.", style="yellow")


def _handlers(door: Door) -> tuple[Handler, ...]:
    """What is done with what is typed, in this order."""
    around = door.means.surroundings
    return (builtin, shell, file_context(around.folder, around.root))


# ---------------------------------------------------------------------------------------------------------- people


@dataclass(frozen=True, kw_only=True)
class Aids:
    """What somebody who types is offered: commands behind a slash, words behind an @, and what they typed before, if
    that is anybody's business."""

    commands: Mapping[str, str]
    words: Callable[[str], Iterable[str]]
    before: Callable[[], AsyncIterator[str]] | None = None


@contextmanager
def somebody(door: Door, first: str = "", aids: Aids | None = None) -> Iterator[Person]:
    """Who talks: a person at a terminal; else whoever wrote the lines on stdin, or nobody if that was context.

    `first` is what was said already; who talks with an agent is offered files and what was typed in other chats.
    """
    with ExitStack() as open_:
        terminal = _terminal(open_, door, first)
        if terminal is None:
            yield Nobody() if first else PlainLines(sys.stdin.fileno())
        elif os.environ.get("TERM") == "dumb":
            yield PlainLines(terminal.fileno(), attended=True)
        else:
            make = cast("Callable[..., Person]", load("display.prompt", "Prompt"))
            offered_here = aids or _aids(door)
            yield make(terminal, _screen(open_, door), offered_here.words, offered_here.before, offered_here.commands)


def _terminal(open_: ExitStack, door: Door, first: str) -> TextIO | None:
    """Where somebody types: stdin, or the terminal behind it when stdin was only context."""
    if sys.stdin.isatty():
        return sys.stdin
    if not first or not door.out.file.isatty():
        return None
    try:
        return open_.enter_context(TERMINAL.open(encoding="utf-8"))
    except OSError:
        return None


def _screen(open_: ExitStack, door: Door) -> TextIO:
    """Where the prompt is shown: not among the answers, if that can be."""
    shown = next((one for one in (sys.stderr, door.out.file) if one.isatty()), None)
    return shown or open_.enter_context(TERMINAL.open("w", encoding="utf-8"))


def _aids(door: Door) -> Aids:
    around = door.means.surroundings

    def files(beginning: str) -> Iterator[str]:
        return offered(beginning, around.folder, around.root)

    async def before() -> AsyncIterator[str]:
        with suppress(StoreFault):  # a log that cannot be read keeps nobody from typing
            async for line in typed_before(door.runtime, await chats(door.runtime), most=REMEMBERED):
                yield line

    return Aids(commands=COMMANDS, words=files, before=before)
