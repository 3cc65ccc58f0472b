"""For scripts and notebooks: a house that is opened for one call, and calls without `await`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.crew import everybody
from greenroom.app.library.deciding import Approve
from greenroom.app.library.house import Greenroom
from greenroom.app.library.results import Result, T
from greenroom.app.library.talk import Talk
from greenroom.app.talks.history import Exchange

S = TypeVar("S")


@asynccontextmanager
async def at_once(house: Greenroom | None, agent: Blueprint[Any]) -> AsyncIterator[Greenroom]:
    """The house that is given, which stays open, or one for this once: in this folder, if the agent works in one."""
    if house is not None:
        yield house
        return
    works = any(one.gear.of_house for one in everybody(agent).values())
    async with Greenroom(workspace="." if works else None) as here:
        yield here


def synchronously(work: Coroutine[Any, Any, S]) -> S:
    """Run it to its end; beside a loop that runs already (a notebook's) in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="greenroom-run") as aside:
        return aside.submit(asyncio.run, work).result()


class SyncTalk(Generic[T]):
    """A conversation without `await`, kept in `.greenroom/`; `id` is its name there, once something was said."""

    def __init__(self, agent: Blueprint[T], *, resume: str, approve: Approve | None, context: object) -> None:
        self.id = resume
        self._agent = agent
        self._approve = approve
        self._context = context

    def say(self, text: str) -> Result[T]:
        """Say something and wait for the answer."""
        return synchronously(self._say(text))

    def exchanges(self) -> list[Exchange]:
        """What was said and answered so far, oldest first."""
        return synchronously(self._exchanges())

    async def _say(self, text: str) -> Result[T]:
        async with self._open() as talk:
            try:
                return await talk.say(text)
            finally:
                self.id = talk.id

    async def _exchanges(self) -> list[Exchange]:
        async with self._open() as talk:
            return await talk.exchanges()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Talk[T]]:
        async with (
            at_once(None, self._agent) as house,
            house.chat(self._agent, resume=self.id, approve=self._approve, context=self._context) as talk,
        ):
            yield talk
