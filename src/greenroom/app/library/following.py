"""Following: a team that works here for a program is heard, decided for, and told to callbacks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, TypeAlias, cast

from msgspec import json

from greenroom.app.hands.unattended import answer_pending
from greenroom.app.host import Host
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.deciding import Deciding
from greenroom.app.library.events import EventBus
from greenroom.app.library.results import Again, Called, Heard, Result, Returned, Said, T, Thought
from greenroom.app.runtime import Runtime
from greenroom.app.talks.history import SPOKEN
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import ReasoningDelta, Retried, TextDelta
from greenroom.core.state.step import Step, StepEnded, StepStarted
from greenroom.core.sync.bus import Commit

Piece: TypeAlias = Said | Thought | Called | Returned | Again

EARLY: Final = 1_000
"""Pieces that are kept for somebody who begins to listen a little late: while nobody does, no more pile up."""


class Hearing:
    """Who listens hears all, in order, however slowly they take it."""

    def __init__(self) -> None:
        self._early: deque[Piece] = deque(maxlen=EARLY)
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

    def follow(self, commit: Commit) -> None:
        """Something has become true."""
        ended = {row.record.step_id: row.record for row in commit.archived if isinstance(row.record, Step)}
        for event in commit.events:
            if isinstance(event, StepStarted) and event.step_id in commit.world.steps:
                self._began(commit.world.steps[event.step_id])
            elif isinstance(event, StepEnded) and event.step_id in ended:
                self._ended(ended[event.step_id])

    def _began(self, step: Step) -> None:
        if step.work.type == "tool":
            given = dict(step.work.instruction_content or {})
            name, call = step.work.executor, step.work.call_id or ""
            self._tell(Called(agent=step.agent_id, tool=name, arguments=given, call_id=call))

    def _ended(self, step: Step) -> None:
        if step.work.type == "tool":
            came = Returned(
                agent=step.agent_id,
                tool=step.work.executor,
                output=step.error or str((step.result or {}).get("output", "")),
                failed=step.state != "finished",
                call_id=step.work.call_id or "",
            )
            self._tell(came)

    def _tell(self, piece: Piece) -> None:
        for news in self._listening:
            news.put_nowait(piece)
        if not self._listening:
            self._early.append(piece)


class Following:
    """What a run and a conversation have in common."""

    def __init__(self, runtime: Runtime, events: EventBus, deciding: Deciding, *, unattended: bool) -> None:
        self.runtime = runtime
        self.events = events
        self.hearing = Hearing()
        self.deciding = deciding
        self._unattended = unattended
        self._stops: list[Callable[[], None]] = []

    async def begin(self, host: Host) -> None:
        """Follow a team that has just been started."""
        self._stops = [
            host.listen(self.hearing.follow),
            host.listen(self.deciding.follow),
            host.listen(self.events.follow),
            host.watch(self.hearing.watch),
        ]
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
