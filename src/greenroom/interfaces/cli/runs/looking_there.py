"""What a person looks at in an organisation at this door: shown to people, and told to programs as fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from rich.text import Text

from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.refusals import nobody
from greenroom.app.organisation.typed import Looks
from greenroom.interfaces.cli.display.json_lines import Json
from greenroom.interfaces.cli.display.organised import tasks_lines, waits_lines
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.room import Hanging, help_lines, hung, letter_text, who_lines, word
from greenroom.interfaces.cli.display.room_json import (
    agents_fields,
    commands_fields,
    letter_fields,
    said_fields,
    task_fields,
)
from greenroom.interfaces.cli.runs.listening import Ear
from greenroom.interfaces.cli.runs.session import Door


class Looking:
    """Looks for one of the people, and changes nothing."""

    def __init__(self, door: Door, human: HumanAgent, ear: Ear) -> None:
        self._door = door
        self._human = human
        self._ear = ear
        self._language = ear.language

    async def look(self, typed: Looks) -> None:
        """One thing."""
        match typed.what:
            case "inbox":
                self._inbox()
            case "notices":
                await self._notices()
            case "tasks":
                self._tasks()
            case "who":
                self._who()
            case "history":
                await self._history(typed.about)
            case "help":
                self._help()
            case _:
                assert_never(typed.what)

    def _tell(self, kind: str, told: Iterable[Json], many: str = "") -> None:
        self._door.out.expect(many or f"{kind}s")
        for one in told:
            self._door.out.item(kind, one, many=many)

    def _show(self, lines: Iterable[Text]) -> None:
        for line in lines:
            shown(self._door, line)

    def _inbox(self) -> None:
        owed = self._ear.owed()
        self._show(letter_text(self._ear.world, one, self._language) for one in owed)
        self._tell("letter", map(letter_fields, owed))
        if not owed:
            self._say("nothing")

    async def _notices(self) -> None:
        told = (await self._human.pool()).global_messages
        self._show(Text(hung(one)) for one in told)
        self._tell("notice", ({"text": one} for one in told))
        if not told:
            self._say("no_notices")

    def _tasks(self) -> None:
        world = self._ear.world
        self._show((*tasks_lines(world), *waits_lines(world)))
        self._tell("task", (task_fields(world, one) for one in world.tasks.values()))

    def _who(self) -> None:
        world, me = self._ear.world, self._human.me
        self._show(who_lines(world, me, self._language))
        self._tell("agent", agents_fields(world, me, self._language))

    async def _history(self, other: str) -> None:
        world = self._ear.world
        said = (await self._human.pool()).conversation_privates.get(other, ())
        if not said and other not in (*world.agents, *world.retired):
            raise nobody(other, world.agents, self._language)
        self._show(Text(hung(f"{one.timestamp}  {one.sender_id}: {one.content}")) for one in said)
        self._tell("said", (said_fields(other, one) for one in said), many="history")
        if not said:
            self._say("no_history", who=other)

    def _help(self) -> None:
        for line, column in help_lines(self._language, self._ear.world.tasks[BASE].manager):
            shown(self._door, line, column)
        self._tell("command", commands_fields(self._language))

    def _say(self, name: str, **known: object) -> None:
        noted(self._door, word(name, self._language, **known), "dim")


def shown(door: Door, text: Text, column: int = 0) -> None:
    """Show it: as it is where a program reads it, else broken between words."""
    safe = door.out.safe_text(text)
    door.out.show(Hanging(safe, column) if door.out.live else safe)


def noted(door: Door, text: str, style: str) -> None:
    """Words of the room beside what it shows, with the same things hidden; a command to be copied is not broken."""
    told = harmless(door.out.safe(text))
    if door.out.live and "greenroom " not in told:
        lines = Text(told).wrap(door.out.console, door.out.console.width)
        told = "\n".join(line.plain.rstrip() for line in lines)
    door.progress.note(told, style=style)
