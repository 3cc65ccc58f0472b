"""`Run` and `Talk`: one thing that an agent was given to do, and a conversation with it, while they go on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeAlias, cast

from msgspec import json

from greenroom.app.conversation.chat import SPOKEN, Chat, Exchange, last_error
from greenroom.app.conversation.send import tell
from greenroom.app.conversation.start import FIRST
from greenroom.app.host import Host, watch_steps
from greenroom.app.library.approval import Deciding
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.events import BEFORE_HISTORY_CLEAR, INTERRUPT_TRIGGERED, EventBus
from greenroom.app.library.results import (
    Again,
    Called,
    Executed,
    Heard,
    Result,
    Returned,
    Said,
    T,
    Thought,
    executed_in,
    fault,
    telling_of,
)
from greenroom.app.lookup import Found
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import Standing
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, TeamId
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import ReasoningDelta, Retried, TextDelta
from greenroom.core.rules.intents import CancelTask, ResumeTask
from greenroom.core.state.step import Step

Piece: TypeAlias = Said | Thought | Called | Returned | Again

EARLY: Final = 1_000
"""Pieces that are kept for somebody who begins to listen a little late: while nobody does, no more pile up."""


class Hearing:
    """Who listens hears all, in order, however slowly they take it. `early` pieces are kept until somebody listens."""

    def __init__(self, early: int | None) -> None:
        self._early: deque[Piece] = deque(maxlen=early)
        self._listening: list[asyncio.Queue[Piece | None]] = []

    def forget(self) -> None:
        """What nobody has heard is of no interest any more."""
        self._early.clear()

    async def until(self, over: asyncio.Future[Any]) -> AsyncIterator[Piece]:
        """All that is heard before this is over."""
        news: asyncio.Queue[Piece | None] = asyncio.Queue()
        for piece in self._early:
            news.put_nowait(piece)
        self._early.clear()
        self._listening.append(news)
        over.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while (heard := await news.get()) is not None:
                yield heard
        finally:
            self._listening.remove(news)

    def watch(self, step: Step, event: Live) -> None:
        """A piece of a reply has come."""
        if step.work.executor not in SPOKEN:
            return
        match event:
            case TextDelta():
                self._tell(Said(agent=step.agent_id, text=event.text))
            case ReasoningDelta():
                self._tell(Thought(agent=step.agent_id, text=event.text))
            case Retried():
                self._tell(Again(agent=step.agent_id, why=event.failed.why))
            case _:
                pass

    def began(self, step: Step) -> None:
        """A step has begun."""
        if step.work.type == "tool":
            given = dict(step.work.instruction_content or {})
            name, call = step.work.executor, step.work.call_id or ""
            self._tell(Called(agent=step.agent_id, tool=name, arguments=given, call_id=call))

    def ended(self, step: Step) -> None:
        """A step is over."""
        if step.work.type == "tool":
            output, failed = str((step.result or {}).get("output", "")), step.state != "finished"
            name, call = step.work.executor, step.work.call_id or ""
            told = Returned(agent=step.agent_id, tool=name, output=step.error or output, failed=failed, call_id=call)
            self._tell(told)

    def _tell(self, piece: Piece) -> None:
        for news in self._listening:
            news.put_nowait(piece)
        if not self._listening:
            self._early.append(piece)


class Following:
    """What a run and a conversation have in common. With 0 `early` pieces nobody will listen; None keeps all."""

    def __init__(
        self, runtime: Runtime, events: EventBus, deciding: Deciding, *, unattended: bool, early: int | None
    ) -> None:
        self.runtime = runtime
        self.events = events
        self.hearing = Hearing(early)
        self.deciding = deciding
        self._unattended = unattended
        self._is_heard = early != 0
        self._stops: list[Callable[[], None]] = []

    def attach(self, host: Host) -> None:
        """Follow what happens in a team from now on."""
        self._stops = [host.listen(self.events.follow)]
        if self._is_heard:
            heard = self.hearing
            self._stops += (watch_steps(host, heard.began, heard.ended), host.watch(heard.watch))
        if self.deciding.is_asked:
            self._stops.append(host.listen(self.deciding.follow))

    async def begin(self, host: Host) -> None:
        """Follow a team that has just been started again."""
        self.attach(host)
        if self._unattended:
            await answer_pending(host)
        self.deciding.look(host.world)

    async def heard(self, result: Coroutine[Any, Any, Result[T]]) -> AsyncIterator[Heard[T]]:
        """What happens until there is a result; that comes last."""
        waiting = asyncio.ensure_future(result)
        try:
            async for piece in self.hearing.until(waiting):
                yield piece
            yield await waiting
        finally:
            waiting.cancel()

    async def end(self, team: TeamId | None) -> None:
        """Stop it; what is cut off by that is still told."""
        await self.deciding.close()
        try:
            if team is not None:
                await self.runtime.stop(team)
        finally:
            for stop in self._stops:
                stop()


def made(agent: Blueprint[T], text: str, run: TeamId, spent: Amounts) -> Result[T]:
    """The result of an answer: of the type that was asked for."""
    output = text if agent.shape is None else agent.shape.read(json.decode(text))
    return Result(output=cast("T", output), text=text, run=run, spent=spent)


class Run(Generic[T]):
    """Heard as it goes on, or only waited for. `id` is its name in the log: with it one goes on with it later."""

    def __init__(self, agent: Blueprint[T], team: TeamId, following: Following) -> None:
        self.id = team
        self._agent = agent
        self._following = following
        self._runtime = following.runtime

    async def begin(self) -> None:
        """Let the agents work."""
        task = (await self._runtime.world(self.id)).tasks.get(FIRST)
        if task is not None and task.paused is not None:
            await self._runtime.ask(self.id, ResumeTask(task_id=FIRST))
        await self._following.begin(await self._runtime.start(self.id))

    async def close(self) -> None:
        """Stop; it goes on where it was when somebody resumes it."""
        await self._following.end(self.id)

    async def cancel(self) -> None:
        """End it for good."""
        await self._runtime.ask(self.id, CancelTask(task_id=FIRST))

    async def spent(self) -> Amounts:
        """What it has taken so far."""
        return (await self._runtime.world(self.id)).budgets[TEAM_BUDGET].spent

    async def executed(self) -> Executed:
        """Which tools it has executed so far, and how often."""
        return await executed_in(self._runtime, self.id)

    async def tell(self, text: str) -> None:
        """Say something to the agent; it reads that in its next turn."""
        with telling_of(lambda: self.id):
            await tell(self._runtime, Found(team=self.id, task=FIRST), text)

    async def result(self) -> Result[T]:
        """Wait for the result; raises by whom to blame if there is none. What it raises has `run`, the run's id."""
        deciding = self._following.deciding
        with telling_of(lambda: self.id):
            while True:
                stands = await deciding.until(self._runtime.wait(self.id, FIRST))
                if stands.word == "finished":
                    return made(self._agent, stands.why, self.id, await self.spent())
                if stands.word != "waiting" or not await deciding.next():
                    raise await self._fault(stands)

    async def heard(self) -> AsyncIterator[Heard[T]]:
        """What happens, as it happens; the result last."""
        async for heard in self._following.heard(self.result()):
            yield heard

    async def _fault(self, stands: Standing) -> GreenroomError:
        why = stands.why
        if stands.word == "idle":
            why = await last_error(self._runtime, self.id, FIRST)
        return fault(stands.word, why, go_on=f"`house.resume(agent, {str(self.id)!r})`")


Begin = Callable[[str], Awaitable[None]]
"""Makes the conversation, with the first thing that is said."""


class Talk(Generic[T]):
    """A conversation that stays open: `house.chat(agent)` begins one, `house.chat(agent, resume=id)` goes on with it.

    One thing is said at a time; who says something meanwhile waits for their turn. What a crash or a provider cut off
    goes on with the next thing that is said, or with `go_on`.
    """

    def __init__(self, agent: Blueprint[T], chat: Chat, following: Following, found: Begin) -> None:
        self._agent = agent
        self._chat = chat
        self._following = following
        self._found = found
        self._open = False
        self._turn = asyncio.Lock()

    @property
    def id(self) -> str:
        """Its name in the log; empty until something was said."""
        return self._chat.team or ""

    async def say(self, text: str) -> Result[T]:
        """Say something and wait for the answer; raises by whom to blame if there is none."""
        with telling_of(lambda: self.id):
            async with self._turn:
                await self._said(text)
                return await self._answer()

    async def stream(self, text: str) -> AsyncIterator[Heard[T]]:
        """The same, told as it happens; the answer comes last. Who listens no more has not stopped it: `interrupt`."""
        with telling_of(lambda: self.id):
            await self._turn.acquire()
            try:
                await self._said(text)
            except BaseException:
                self._turn.release()
                raise
            async for heard in self._following.heard(self._over()):
                yield heard

    async def go_on(self) -> Result[T]:
        """Let it go on with what was interrupted or cut off, and wait for the answer."""
        with telling_of(lambda: self.id):
            async with self._turn:
                self._must_exist()
                await self._chat.go_on()
                await self._opened()
                return await self._answer()

    async def interrupt(self) -> None:
        """Stop the answer that is being given: whoever waits for it is told so. What was said of it stays."""
        if self._open and await self._chat.goes_on():
            self._following.events.emit(INTERRUPT_TRIGGERED, run=self.id, agent=self._agent.name)
            await self._chat.interrupt()

    async def exchanges(self) -> list[Exchange]:
        """What was said and answered since the conversation was last cleared, oldest first."""
        return await self._chat.exchanges() if self._chat.team is not None else []

    async def executed(self) -> Executed:
        """Which tools were executed in it so far, and how often."""
        return await executed_in(self._following.runtime, self._chat.team) if self._chat.team else Executed()

    async def clear(self) -> None:
        """Begin anew: the agent is told nothing of what was said so far. The log keeps it."""
        self._must_exist()
        await self._opened()
        self._following.events.emit(BEFORE_HISTORY_CLEAR, run=self.id, thread=self._chat.thread)
        await self._chat.clear()

    async def close(self) -> None:
        """Leave; it goes on when somebody resumes it."""
        self._chat.close()
        await self._following.end(self._chat.team)

    async def _over(self) -> Result[T]:
        """The answer ends the turn, whether or not somebody still listens to it."""
        try:
            return await self._answer()
        finally:
            self._turn.release()

    async def _said(self, text: str) -> None:
        if not text.strip():
            raise WorldFault("Nothing was said: the text is empty.")
        self._following.hearing.forget()
        if self._chat.team is None:
            await self._found(text)
        else:
            await self._chat.say(text)
        await self._opened()

    async def _opened(self) -> None:
        """Let its agents work from now on."""
        if not self._open:
            await self._following.begin(await self._chat.open())
            self._open = True

    def _must_exist(self) -> None:
        if self._chat.team is None:
            raise WorldFault("Nothing was said in this conversation yet.")

    async def _answer(self) -> Result[T]:
        spent, deciding = NOTHING, self._following.deciding
        while True:
            turn = await deciding.until(self._chat.over())
            spent = spent.plus(turn.spent)
            if turn.word != "waiting" or not await deciding.next():
                break
        if turn.word == "answered" or (turn.word == "finished" and self._agent.shape is None):
            return made(self._agent, turn.answer or turn.why, self._chat.its_team, spent)
        raise fault(turn.word, turn.why, go_on=f"`talk.go_on()`, in `house.chat(agent, resume={self.id!r})`")
