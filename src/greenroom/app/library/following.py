"""Following: a team that works here for a program is heard, decided for, and told to callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

from msgspec import json

from greenroom.app.hands.unattended import answer_pending
from greenroom.app.host import Host
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.deciding import Deciding
from greenroom.app.library.events import EventBus
from greenroom.app.library.hearing import Hearing
from greenroom.app.library.results import Heard, Result, T
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TeamId


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
