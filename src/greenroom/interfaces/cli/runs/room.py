"""A person's room in an organisation: what comes for them is told, what they type is done, until they leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Final

from rich.text import Text

from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.refusals import sent_away
from greenroom.app.organisation.typed import Here, Leaves, Looks, Plain, Resumes, Typed, understood
from greenroom.app.standing import Standing
from greenroom.app.talks.typed.lines import joined
from greenroom.app.talks.typed.people import Gone, Person, Stopped, Woken, Written
from greenroom.core.base.errors import Refused, StaleOwner, StoreFault, WorldFault
from greenroom.core.base.records import evolve
from greenroom.interfaces.cli.display.errors import Unheard, explain, fields
from greenroom.interfaces.cli.display.lines import BadLine
from greenroom.interfaces.cli.display.reasons import still
from greenroom.interfaces.cli.display.room import hung, letter_text, said_text, word
from greenroom.interfaces.cli.display.room_json import message_fields
from greenroom.interfaces.cli.exits import Exit, of_error
from greenroom.interfaces.cli.runs.doing_there import Doing, is_person
from greenroom.interfaces.cli.runs.listening import Ear
from greenroom.interfaces.cli.runs.looking_there import noted, shown
from greenroom.interfaces.cli.runs.organising import way_on
from greenroom.interfaces.cli.runs.session import Door

PROMPT: Final = "› "
QUICK: Final = 2.0
"""Seconds in which a second Ctrl-C leaves."""


class Room:
    """Somebody who reads and types. Where nobody is at a terminal, each line is done, and what comes is told.

    `heard` is how much came from others than people, `asked` that the manager was asked for something, `looked` that
    the last line only looked.
    """

    def __init__(self, door: Door, human: HumanAgent, ear: Ear, person: Person) -> None:
        self._door = door
        self._ear = ear
        self._person = person
        self._language = ear.language
        self._doing = Doing(door, human, ear)
        self._pressed = -QUICK
        self._fate = self._worst = Exit.DONE
        self._over = False
        self._told: set[str] = set()
        self.heard = 0
        self.asked = self.looked = False

    @property
    def wrong(self) -> str:
        """All that could not be done, for a program."""
        return "\n".join(self._doing.wrong)

    async def hold(self) -> Exit:
        """Stay until somebody leaves; returns what a script wants to know: how the first line ended that went wrong."""
        with self._door.stop.lent(self._person.stop) if self._person.attended else nullcontext():
            while not self._over:
                self.tell_news()
                if not self._sent_away():
                    await self._next()
        return self._worst

    async def _next(self) -> None:
        try:
            read = await self._person.write(PROMPT, self._ear.woken)
        except BadLine as bad:
            why = word(bad.rejected.code, self._language, line=bad.line)
            self._failed(Refused(evolve(bad.rejected, why=why, hint="")))
            return
        match read:
            case Written(text=text):
                await self.do(joined(text))
            case Woken():
                pass  # the news are told before the next line
            case Stopped():
                self._wants_to_leave()
            case Gone():
                self._over = True

    def _sent_away(self) -> bool:
        """Whether they do not belong to it any more: nothing can be done here then."""
        if self._ear.gone:
            self._over = True
            self._failed(sent_away(self._ear.world.team.name, self._language))
        return self._ear.gone

    def _wants_to_leave(self) -> None:
        """Ctrl-C at the prompt."""
        now = time.monotonic()
        self._over = now - self._pressed < QUICK
        self._pressed = now
        if not self._over:
            self._door.progress.note(word("leave", self._language), style="dim")

    async def do(self, line: str) -> Exit:
        """One line. What cannot be done is said in a sentence, and the room stays open."""
        if line.strip() and not self._sent_away():
            await self.act(understood(line, self._here(), self._language))
        return self._fate

    def _here(self) -> Here:
        """What can be meant by now."""
        world = self._ear.world
        return Here(
            letters={one.number: one.kind for one in self._ear.owed()},
            agents=frozenset(world.agents),
            groups=frozenset(world.groups),
            tools=frozenset(world.agents[self._ear.me].spec.tools),
        )

    async def act(self, typed: Typed) -> Exit:
        """The same for what is understood already."""
        if isinstance(typed, Leaves):
            self._over = True
            return self._fate
        try:
            self._ends(await self._doing.do(typed))
            self.asked |= isinstance(typed, Plain)
            self.looked = isinstance(typed, Looks)
            if not self.looked:  # whatever holds it up again is said again; that somebody has stopped it, once
                self._told.intersection_update(() if isinstance(typed, Resumes) else (word("rests", self._language),))
            await self._ear.caught_up()
            self._say_if_stopped()
        except (StaleOwner, StoreFault, Unheard):
            raise
        except (Refused, WorldFault, TimeoutError) as error:
            self._failed(error)
        return self._fate

    def _say_if_stopped(self) -> None:
        """Who sends something to an organisation that is stopped would wait in vain."""
        if self._ear.world.team.paused is not None and self._person.attended and not self.looked:
            self.tell_reasons((word("rests", self._language),))

    def _ends(self, code: Exit) -> None:
        """So a line has ended; of several, the first one counts that went wrong."""
        self._fate, self._worst = code, self._worst or code

    def _failed(self, error: Exception) -> None:
        """Say what could not be done; a program is told at once, and once more at the end."""
        self._ends(of_error(error))
        self._doing.wrong.append(explain(error))
        noted(self._door, explain(error), "yellow")
        self._door.out.item("refused", fields(error), many="refused")

    def tell_news(self) -> None:
        """Everything that came since."""
        for message, letter in self._ear.taken():
            self.heard += not is_person(self._ear.world, message.sender_id)
            if letter is not None:
                shown(self._door, letter_text(self._ear.world, letter, self._language))
            else:
                shown(self._door, said_text(self._ear.world, message, self._language, self._ear.me))
            self._door.out.item("message", message_fields(message, letter.number if letter else None))
        self.tell_reasons(still(why, self._language, way_on(self._door, self._ear.world)) for why in self._ear.stops())

    def tell_reasons(self, reasons: Iterable[str]) -> None:
        """Why it does not go on, each once."""
        for one in reasons:
            if one not in self._told:
                noted(self._door, hung(one), "yellow")
            self._told.add(one)

    def tell_inbox(self) -> None:
        """What waits for them, the oldest first."""
        owed = self._ear.owed()
        if not owed:
            self._door.progress.note(word("nothing", self._language), style="dim")
            return
        self._door.out.show(Text(word("some", self._language, count=len(owed)), style="bold"))
        for one in owed:
            shown(self._door, letter_text(self._ear.world, one, self._language))

    async def settled(self) -> Standing:
        """Tell what comes until nothing more happens by itself; returns how it stands then."""
        resting = asyncio.create_task(self._ear.rested())
        while not resting.done():
            woken = asyncio.create_task(self._ear.woken.wait())
            await asyncio.wait((resting, woken), return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            self.tell_news()
        return resting.result()
