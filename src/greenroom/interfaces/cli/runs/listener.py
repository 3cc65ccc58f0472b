"""Listening to an organisation for one of its people: what comes for them, when it rests, and how waiting ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from greenroom.app.host import Host
from greenroom.app.organisation.inbox import Letter, kind_of, owed
from greenroom.app.organisation.people import HumanAgent, oldest_first
from greenroom.app.organisation.states import at_rest
from greenroom.app.organisation.words import BASE
from greenroom.app.runtime import Told
from greenroom.app.task_status import Standing, standing
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, agent_of
from greenroom.core.base.records import record
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.events import Event
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.step import Step, StepEnded, StepQueued
from greenroom.core.state.task import EndWord, TaskEnded, TaskPaused
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.phrases import Way, end_word, reason, still, word
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.runs.session import Door

LOOK: Final = 1.0
"""Seconds between two looks whether the organisation runs anywhere."""

GRACE: Final = 0.3
"""Seconds. That there is nothing to do may be true between two commits: look again."""

SUMS_UP: Final = "compact"
"""Makes the window of a thread shorter. Where it fails the work goes on with a longer one: nothing was given up."""


# ----------------------------------------------------------------------------------------------------- what went wrong


@record
class GaveUp:
    """Work of a manager that is not tried again."""

    who: str
    why: str


@record
class Lost:
    """A task that is over without having been done."""

    task: TaskId
    name: str
    state: EndWord


class Failures:
    """Hears every event. A worker's failure is its manager's to deal with; a manager's stays."""

    def __init__(self) -> None:
        self._steps: dict[StepId, tuple[str, GaveUp]] = {}
        self._tasks: list[Lost] = []

    def hear(self, world: World, event: Event) -> None:
        """One event, on the world as it was before it."""
        match event:
            case StepEnded(state="failed", step_id=name) if _is_managers(world, step := world.steps[name]):
                self._steps[name] = (step.work.executor, GaveUp(who=step.agent_id, why=event.error))
            case StepQueued(cause=cause, agent_id=agent) if cause in self._steps and agent_of(cause) == agent:
                # The same work once more. What others do because they hear of the failure repairs nothing.
                if event.work.executor == self._steps[cause][0]:
                    del self._steps[cause]
            case TaskEnded(state="failed" | "cancelled") if (task := world.tasks[event.task_id]).parent in (None, BASE):
                # A part of another task is for that one's manager.
                self._tasks.append(Lost(task=task.task_id, name=task.name, state=event.state))
            case _:
                pass

    def all(self) -> tuple[GaveUp | Lost, ...]:
        """Everything that stays as it is."""
        return (*(failure for _, failure in self._steps.values()), *self._tasks)


def _is_managers(world: World, step: Step) -> bool:
    """Whether it is a manager's own work: no agent is above it who would hear of a failure and do something."""
    thread = world.threads.get(step.thread_id)
    if thread is None or thread.subtask_id is not None or thread.call is not None:
        return False
    task = world.tasks.get(thread.task_id)
    own = task is not None and task.manager == thread.agent_id
    return own and step.work.type == "skill" and step.work.executor != SUMS_UP


@record
class Fate:
    """How waiting ended: a status in a word, its exit code, and a sentence for all that is not as it should be."""

    status: str
    code: Exit
    reasons: tuple[str, ...] = ()


def fate_of(world: World, stands: Standing, failures: tuple[GaveUp | Lost, ...], language: str, way: Way) -> Fate:
    """The worst of how it stands and what went wrong. `way` is what lets it go on."""
    lost = [
        word("gave_up", language, who=failure.who, why=failure.why)
        if isinstance(failure, GaveUp)
        else word("lost", language, task=failure.task, name=failure.name, state=end_word(failure.state, language))
        for failure in failures
    ]
    if stands.word == "idle":
        lost += _stuck(world, language)
    if lost:
        return Fate(status="failed", code=Exit.FAILED, reasons=tuple(lost))
    if stands.word == "idle":
        return Fate(status="idle", code=Exit.DONE)
    code = of_standings([stands.word])
    return Fate(status=stands.word, code=code, reasons=(_still(world, stands, language, way),))


def _stuck(world: World, language: str) -> Iterator[str]:
    """Tasks that are not over although nothing happens in them any more."""
    for task in oldest_first(world.tasks):
        stands = standing(world, task.task_id)
        if task.task_id != BASE and stands is not None and stands.word == "idle":
            yield word("stuck", language, task=task.task_id, name=task.name, manager=task.manager)


def _still(world: World, stands: Standing, language: str, way: Way) -> str:
    if world.team.paused is not None and stands.word == "paused":
        why = reason(world.team.paused, language)
        return word("stopped_why", language, name=world.team.name, why=why, command=way.start)
    if stands.word != "waiting":
        return still(stands.why, language, way)
    each = (name for letter in world.mail.values() for name in letter.receiver)
    owing = Counter(name for name in each if name in world.agents and world.agents[name].spec.kind == "human")
    people = ", ".join(f"{name} ({count})" for name, count in sorted(owing.items()))
    return word("waits_for", language, people=people) if people else stands.why


# ----------------------------------------------------------------------------------------------------------- listening


class Ear:
    """Follows the log. What came for the person is kept until it is taken; `woken` says that there is some, or that
    they were dismissed. `language` is theirs."""

    def __init__(self, door: Door, human: HumanAgent) -> None:
        self._door = door
        self._teller = Teller()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._news: list[Message] = []
        self._pauses: list[str] = []
        self._failures = Failures()
        self.me: AgentId = human.me
        self.team: TeamId = human.team
        self.language = ""
        self.woken = asyncio.Event()

    @property
    def world(self) -> World:
        """What is true as far as it was heard."""
        return self._teller.world

    @property
    def gone(self) -> bool:
        """Whether the person was dismissed."""
        return self.me not in self.world.agents

    async def open(self) -> None:
        """Know what was, and listen from now on."""
        head = (await self._door.runtime.log.head(self.team)).version
        self._teller = Teller(world=await self._door.runtime.world(self.team, head), version=head)
        self.language = self.world.agents[self.me].spec.language
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        async for told in self._door.runtime.events(self.team, after=self._teller.version, follow=True):
            self._hear(told)

    def _hear(self, told: Told) -> None:
        self._failures.hear(self.world, told.event)
        self._teller.tell(told)
        self._door.out.stream(self.team, told)
        self._changed.set()
        match told.event:
            case MessageSent(message=message) if message.sender_id != self.me and (
                self.me in message.receiver or kind_of(message) == "approval"
            ):
                self._news.append(message)
                self.woken.set()
            case TaskPaused(why=why) | TeamPaused(why=why):
                self._pauses.append(why)
                self.woken.set()
            case AgentRemoved() if self.gone:
                self.woken.set()
            case _:
                pass

    async def caught_up(self) -> None:
        """Wait until all that is in the log by now was heard."""
        head = (await self._door.runtime.log.head(self.team)).version
        while self._teller.version < head:
            await self._next()

    async def _next(self) -> None:
        """Wait for more. A reader that has gone, or a log that cannot be read, ends it."""
        if self._task is not None and self._task.done():
            self._task.result()
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._changed.wait()

    def taken(self) -> Iterator[tuple[Message, Letter | None]]:
        """What came since it was last taken; with its letter, where it still waits for an answer."""
        self.woken.clear()
        news, self._news = self._news, []
        letters = {letter.message.message_id: letter for letter in self.owed()}
        for message in news:
            yield message, letters.get(message.message_id)

    def stops(self) -> tuple[str, ...]:
        """Why it came to stand still since this was last asked."""
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
            version, stands = self._teller.version, at_rest(self.world)
            if not stands.settled:
                await self._next()
                continue
            await asyncio.sleep(GRACE)
            await self.caught_up()
            if self._teller.version == version:
                return stands


class Keeper:
    """Runs the organisation here while it runs nowhere else, as long as a person is here. One that is stopped rests."""

    def __init__(self, door: Door, ear: Ear) -> None:
        self._door = door
        self._ear = ear
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
        await self._door.runtime.stop(self._ear.team)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._look()
            except WorldFault as fault:
                self._door.progress.trouble(str(fault))

    async def _look(self) -> None:
        await self._ear.caught_up()
        world, runtime, team = self._ear.world, self._door.runtime, self._ear.team
        rests = world.team.paused is not None or BASE not in world.tasks
        if self._host is not None and (rests or self._host.sync.stopped is not None):
            self._host = None
            await runtime.stop(team)
        elif self._host is None and not rests and await runtime.log.holder(team) is None:
            try:
                self._host = await runtime.start(team)
            except WorldFault:
                if await runtime.log.holder(team) is None:
                    raise
                return  # another process was quicker
            self._host.listen_trouble(self._door.progress.trouble)
