"""`Talk`: a conversation with an agent. Each thing that is said is answered with all that was said before in mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Generic

from greenroom.app.library.blueprint import Blueprint, said
from greenroom.app.library.events import BEFORE_HISTORY_CLEAR, INTERRUPT_TRIGGERED
from greenroom.app.library.executed import Executed, executed_in
from greenroom.app.library.faults import fault, telling_of
from greenroom.app.library.following import Following, made
from greenroom.app.library.results import Heard, Result, T
from greenroom.app.talks.chat import Chat
from greenroom.app.talks.history import Exchange
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import WorldFault

Found = Callable[[str], Awaitable[None]]
"""Makes the conversation, with the first thing that is said."""


class Talk(Generic[T]):
    """A conversation that stays open: `house.chat(agent)` begins one, `house.chat(agent, resume=id)` goes on with it.

    One thing is said at a time; who says something meanwhile waits for their turn. What a crash or a provider cut off
    goes on with the next thing that is said, or with `go_on`.
    """

    def __init__(self, agent: Blueprint[T], chat: Chat, following: Following, found: Found) -> None:
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
            await self._begun(self._said(text))
            return await self._over()

    async def stream(self, text: str) -> AsyncIterator[Heard[T]]:
        """The same, told as it happens; the answer comes last. Who listens no more has not stopped it: `interrupt`."""
        with telling_of(lambda: self.id):
            await self._begun(self._said(text))
            async for heard in self._following.heard(self._over()):
                yield heard

    async def go_on(self) -> Result[T]:
        """Let it go on with what was interrupted or cut off, and wait for the answer."""
        with telling_of(lambda: self.id):
            await self._begun(self._gone_on())
            return await self._over()

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

    async def _begun(self, turn: Coroutine[Any, Any, None]) -> None:
        """Begin a turn when all before it are over."""
        try:
            await self._turn.acquire()
        except BaseException:
            turn.close()
            raise
        try:
            await turn
        except BaseException:
            self._turn.release()
            raise

    async def _over(self) -> Result[T]:
        """The answer ends the turn, whether or not somebody still listens to it."""
        try:
            return await self._answer()
        finally:
            self._turn.release()

    async def _gone_on(self) -> None:
        self._must_exist()
        await self._chat.go_on()
        await self._opened()

    async def _said(self, text: str) -> None:
        if not said(text):
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
