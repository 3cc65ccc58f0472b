"""Listening to an organisation for one of its people, wherever it runs: what comes for them, and when it is at rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from greenroom.app.host import Host
from greenroom.app.organisation.letters import Letter, kind_of, owed
from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.rest import at_rest
from greenroom.app.runtime import Told
from greenroom.app.standing import Standing
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.runs.failing import Failures, GaveUp, Lost
from greenroom.interfaces.cli.runs.session import Door

LOOK: Final = 1.0
"""Seconds between two looks whether anybody runs the organisation."""

GRACE: Final = 0.3
"""Seconds. That nobody has anything to do may be true between two commits: look again."""


class Ear:
    """Follows the log. What came for the person is kept until somebody takes it; `woken` says that there is some, or
    that they do not belong to it any more. `language` is theirs."""

    def __init__(self, door: Door, human: HumanAgent) -> None:
        self._door = door
        self._human = human
        self._teller = Teller()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._news: list[Message] = []
        self._pauses: list[str] = []
        self._failures = Failures()
        self.language = ""
        self.woken = asyncio.Event()

    @property
    def me(self) -> AgentId:
        """Whose ear it is."""
        return self._human.me

    @property
    def team(self) -> TeamId:
        """Where it listens."""
        return self._human.team

    @property
    def world(self) -> World:
        """What is true as far as it was heard."""
        return self._teller.world

    @property
    def gone(self) -> bool:
        """Whether the person does not belong to it any more."""
        return self.me not in self.world.agents

    async def open(self) -> None:
        """Know what was, and listen from now on."""
        head = (await self._door.runtime.log.head(self.team)).version
        self._teller = Teller(world=await self._door.runtime.world(self.team, head), version=head)
        self.language = self.world.agents[self.me].spec.language
        self._tasks.append(asyncio.create_task(self._follow()))

    async def close(self) -> None:
        """Listen no more."""
        for one in self._tasks:
            one.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self) -> None:
        async for told in self._door.runtime.events(self.team, after=self._teller.version, follow=True):
            self._hear(told)

    def _hear(self, told: Told) -> None:
        self._failures.hear(self.world, told.event)
        self._teller.tell(told)
        self._door.out.stream(self.team, told)
        self._changed.set()
        match told.event:
            case MessageSent(message=message):
                self._hear_message(message)
            case TaskPaused(why=why) | TeamPaused(why=why):
                self._pauses.append(why)
                self.woken.set()
            case AgentRemoved() if self.gone:
                self.woken.set()
            case _:
                pass

    def _hear_message(self, message: Message) -> None:
        if message.sender_id != self.me and (self.me in message.receiver or kind_of(message) == "approval"):
            self._news.append(message)
            self.woken.set()

    async def caught_up(self) -> None:
        """Wait until all that is in the log by now was heard."""
        head = (await self._door.runtime.log.head(self.team)).version
        while self._teller.version < head:
            await self._next()

    async def _next(self) -> None:
        """Wait for more. Whoever cannot be told any more, or a log that cannot be read, ends it."""
        for one in self._tasks:
            if one.done():
                one.result()
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._changed.wait()

    def taken(self) -> Iterator[tuple[Message, Letter | None]]:
        """What came since somebody last took it; with its letter, where it still waits for an answer."""
        self.woken.clear()
        news, self._news = self._news, []
        owed = {one.message.message_id: one for one in self.owed()}
        for one in news:
            yield one, owed.get(one.message_id)

    def stops(self) -> tuple[str, ...]:
        """Why it came to stand still since somebody last looked."""
        found, self._pauses = tuple(dict.fromkeys(self._pauses)), []
        return found

    def failures(self) -> tuple[GaveUp | Lost, ...]:
        """What went wrong for good since it was opened."""
        return self._failures.all()

    def owed(self) -> tuple[Letter, ...]:
        """What waits for the person now."""
        return owed(self.world, self.me)

    async def rested(self) -> Standing:
        """Wait until nothing more happens by itself."""
        while True:
            await self.caught_up()
            version = self._teller.version
            stands = at_rest(self.world)
            if stands.settled:
                await asyncio.sleep(GRACE)
                await self.caught_up()
                if self._teller.version == version:
                    return stands
            else:
                await self._next()


class Keeper:
    """Runs the organisation here whenever nobody else does, as long as somebody is here. One that is stopped rests."""

    def __init__(self, door: Door, ear: Ear) -> None:
        self._door = door
        self._ear = ear
        self._team = ear.team
        self._task: asyncio.Task[None] | None = None
        self._host: Host | None = None

    @property
    def here(self) -> bool:
        """Whether it runs here."""
        return self._host is not None

    async def open(self) -> None:
        """Look once, then again and again."""
        await self._look()
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Run it no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._door.runtime.stop(self._team)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._look()
            except WorldFault as fault:
                self._door.progress.trouble(str(fault))

    async def _look(self) -> None:
        await self._ear.caught_up()
        world = self._ear.world
        rests = world.team.paused is not None or BASE not in world.tasks
        lost = self._host is not None and self._host.sync.stopped is not None
        if self._host is not None and (rests or lost):
            self._host = None
            await self._door.runtime.stop(self._team)
        elif self._host is None and not rests and await self._door.runtime.log.holder(self._team) is None:
            self._host = await self._begun()

    async def _begun(self) -> Host | None:
        try:
            host = await self._door.runtime.start(self._team)
        except WorldFault:
            if await self._door.runtime.log.holder(self._team) is None:
                raise
            return None  # somebody else was quicker
        host.listen_trouble(self._door.progress.trouble)
        return host
