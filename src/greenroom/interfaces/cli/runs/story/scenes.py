"""The lines of the story, played one after the other: what a person types, and what has to be true then."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Final, Self

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.story.children import Child, child
from greenroom.interfaces.cli.runs.story.stage import Stage
from greenroom.interfaces.cli.runs.story.telling import Telling
from greenroom.testing.story import facts, script
from greenroom.testing.story.facts import Before, Fact
from greenroom.testing.story.reading import Log, read
from greenroom.testing.story.script import Coder
from greenroom.testing.story.shop import git

UNWALLED: Final = "There is no sandbox here, so"
PATIENCE: Final = 120.0
"""Seconds until a command that does not end has failed."""


@record
class Done:
    """A command that has ended: its exit code, what it printed, which process it was."""

    code: int
    text: str
    pid: int


class Play:
    """What is known by now, and the process that works. Whatever happens, that is gone when the block ends."""

    def __init__(self, stage: Stage, coder: Coder, telling: Telling) -> None:
        self._stage = stage
        self._coder = coder
        self._telling = telling
        self._open = AsyncExitStack()
        self._was = Before(whole="", head="")
        self._first: Log | None = None
        self._working: Child | None = None
        self._report = ""
        self.place = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def repository(self) -> Iterable[Fact]:
        """What there is."""
        root = self._stage.shop
        for words in (("log", "--oneline"), ("status", "--short")):
            self._telling.command(f"git {' '.join(words)}")
            for line in git(root, *words).splitlines():
                self._telling.heard(line)
        self._was = facts.before(root)
        return [*facts.dirty(root)]

    async def work(self) -> Iterable[Fact]:
        """It begins, and goes on until the moment that was chosen for its death."""
        if self._stage.tier == "none":
            self._telling.note(f"{UNWALLED} you would be asked about the checks. The demo says yes for you.")
            await self._done("trust", "--yes")
        self._working = one = await self._open.enter_async_context(self._child("run", script.REQUEST, "--yes"))
        reached, ended = asyncio.create_task(self._coder.reached.wait()), asyncio.create_task(one.end())
        await asyncio.wait((reached, ended), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        there = reached.done()
        for task in (reached, ended):
            task.cancel()
        if not there:
            return [Fact(held=False, text="it ended, or stood still, before its work was half done")]
        log = self._first = await read(self._stage.home)
        return [*facts.based(log), facts.untouched(self._stage.shop, self._was)]

    async def death(self) -> Iterable[Fact]:
        """kill -9."""
        if self._working is None:
            raise WorldFault("Nothing runs that could be killed.")
        self._telling.command(f"kill -9 {self._working.pid}")
        code = await asyncio.wait_for(self._working.kill(), PATIENCE)
        log = self._first = await read(self._stage.home)
        shop = self._stage.shop
        return [*facts.killed(log, shop, code, self._working.pid), facts.untouched(shop, self._was)]

    async def resumption(self) -> Iterable[Fact]:
        """Another process goes on."""
        if self._first is None:
            raise WorldFault("Nothing was begun that could go on.")
        first = done = await self._done("resume", "last")
        if self._stage.tier == "none" and done.code == Exit.WAITING:
            self._telling.note(f"{UNWALLED} it asks before it runs tests that it wrote. The demo says yes for you.")
            await self._done("answer", "last", "yes", "--for", "run")
            done = await self._done("resume", "last")
        self._report = done.text
        return [*facts.resumed(await self.log(), self._first, done.code, first.pid)]

    async def mending(self) -> Iterable[Fact]:
        """What the log has of it."""
        return [*facts.mended(await self.log(), self._stage.tier)]

    async def report(self) -> Iterable[Fact]:
        """What is handed over."""
        root = self._stage.shop
        return [*facts.proven(root, await self.log(), self._report), facts.untouched(root, self._was)]

    async def applying(self) -> Iterable[Fact]:
        """The person takes it over."""
        await self._done("apply", "last")
        self.place = facts.place_of(self._stage.shop)
        return [*facts.applied(self._stage.shop, await self.log(), self._was)]

    async def blaming(self) -> Iterable[Fact]:
        """The person asks about a line."""
        done = await self._done("blame", self.place)
        return [*facts.blamed(await self.log(), done.text)]

    async def undoing(self) -> Iterable[Fact]:
        """The person takes it back."""
        await self._done("undo", "last")
        return [*facts.undone(self._stage.shop, self._was)]

    async def log(self) -> Log:
        """What the log says now."""
        return await read(self._stage.home)

    def _child(self, *words: str) -> AbstractAsyncContextManager[Child]:
        self._telling.command(f"greenroom {shlex.join(words)}")
        return child(self._stage, words, self._telling.heard)

    async def _done(self, *words: str) -> Done:
        """Type it and wait for its end."""
        async with self._child(*words) as one:
            code = await asyncio.wait_for(one.end(), PATIENCE)
            return Done(code=code, text=one.text, pid=one.pid)


Scene = Callable[[Play], Awaitable[Iterable[Fact]]]
LINES: Final[Sequence[tuple[str, Scene]]] = (
    ("A repository: one test fails already, one file is not committed", Play.repository),
    ("A job for a coder, who works in a copy of it", Play.work),
    ("In the middle of the work the process is killed", Play.death),
    ("Another process goes on in the same run", Play.resumption),
    ("A check failed; it was seen, and mended", Play.mending),
    ("What is handed over is what was proven", Play.report),
    ("You take it over: one commit, in your name", Play.applying),
    ("Who wrote that line, and why", Play.blaming),
    ("You take it back", Play.undoing),
)
