"""While a job goes on, what is typed is said to the agent: it is acknowledged at once, and read in its next turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from greenroom.app.conversation.send import tell
from greenroom.app.lookup import Found
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.display.errors import explain
from greenroom.interfaces.cli.display.keys import TypedLine, watched
from greenroom.interfaces.cli.display.work import Work
from greenroom.interfaces.cli.runs.session import Door


class Hearing:
    """An open ear for one run. What was half typed when a question came is there again after it."""

    def __init__(self, door: Door, team: TeamId, work: Work) -> None:
        self._door = door
        self._team = team
        self._work = work
        self._line = TypedLine()
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._saying: asyncio.Task[None] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """From now on, until the run stands still."""
        loop = asyncio.get_running_loop()
        numbers = list[int]()

        def listen(number: int, ready: Callable[[], None]) -> None:
            loop.add_reader(number, ready)
            numbers.append(number)

        telling = loop.create_task(self._tell())
        self._work.hears, self._work.typed = True, self._line.text
        try:
            with watched(self._keys, listen):
                yield
        finally:
            for number in numbers:
                loop.remove_reader(number)
            telling.cancel()
            self._work.hears = False

    def _keys(self, data: bytes) -> None:
        for line in self._line.take(data):
            self._said.put_nowait(line)
        self._work.typed = self._line.text

    async def _tell(self) -> None:
        """One after the other, in the order in which it was typed."""
        while True:
            if self._saying is None or self._saying.done():
                text = await self._said.get()
                self._saying = asyncio.create_task(self._say(text))
            await asyncio.shield(self._saying)  # who is stopped here has said it all the same

    async def _say(self, text: str) -> None:
        try:
            told = await tell(self._door.runtime, Found(team=self._team), text)
        except GreenroomError as error:
            self._work.note(f"Not said: {explain(error)}", style="yellow")
        else:
            self._work.hear(text, f"{told.reader} reads it in its next turn")
