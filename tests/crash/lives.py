"""One process per life, started by a fork server, so that kill -9 is real and the start is fast."""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import signal
from collections.abc import AsyncIterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Literal

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.log import EventBatch, StoredEvent
from greenroom.testing.tools import LedgerTool, WriteFile
from tests.crash.scenario import begin, kits, play

Moment = Literal["before", "after"]
Spot = Literal["file_half", "file_done", "ledger_before", "ledger_done"]
UNFINISHED = 99


def die() -> None:
    """Die as with `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)


class DyingLog(SqliteLog):
    """A log whose process dies just before or after its n-th append becomes durable."""

    at = 0
    moment: Moment = "before"
    appends = 0

    async def append(self, batch: EventBatch) -> int:
        """Append, or die."""
        type(self).appends += 1
        if self.appends == self.at and self.moment == "before":
            die()
        version = await super().append(batch)
        if self.appends == self.at and self.moment == "after":
            die()
        return version


class DyingFile(WriteFile):
    """Dies with half of the file written, or with all of it unreported."""

    spot: Spot | None = None

    def _replace(self, path: Path, content: bytes) -> None:
        if self.spot == "file_half":
            self._root.mkdir(parents=True, exist_ok=True)
            path.with_name(f".{path.name}.tmp").write_bytes(content[: len(content) // 2])
            die()
        super()._replace(path, content)
        if self.spot == "file_done":
            die()


class DyingLedger(LedgerTool):
    """Dies before its line is written, or after it and unreported."""

    spot: Spot | None = None

    async def run(self, context: StepContext) -> Outcome:
        """Append the line, or die."""
        if self.spot == "ledger_before":
            die()
        outcome = await super().run(context)
        if self.spot == "ledger_done":
            die()
        return outcome


async def _life(home: Path, at: int, moment: Moment, pace: float) -> str:
    DyingLog.at, DyingLog.moment = at, moment
    log = await DyingLog.open(home)
    runtime = Runtime(log, capability_factories=kits(home / "work", pace, DyingFile, DyingLedger))
    teams = await log.streams()
    mine = TeamId(teams[0].stream) if teams else None
    if mine is None or not (await runtime.state(mine)).team.tasks_made:
        # The last process ended before the work was requested: nothing has been promised yet.
        if mine is not None:
            await log.forget(mine)
        mine = await begin(runtime)
    word = await asyncio.wait_for(play(runtime, mine), 30)
    await runtime.close()
    return word


def _main(home: str, at: int, moment: Moment, spot: Spot | None, pace: float) -> None:
    DyingFile.spot = DyingLedger.spot = spot
    word = asyncio.run(_life(Path(home), at, moment, pace))
    os._exit(0 if word == "finished" else UNFINISHED)


def fork_server() -> ForkServerContext:
    """Return a fork server that has imported everything once."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.lives"])
    return context


def live(
    home: Path,
    *,
    at: int = 0,
    moment: Moment = "before",
    spot: Spot | None = None,
    pace: float = 0.0,
    kill_after: float | None = None,
) -> int:
    """Run one process on this home. Return its exit code, negative for a signal."""
    process = fork_server().Process(target=_main, args=(str(home), at, moment, spot, pace))
    process.start()
    process.join(kill_after if kill_after is not None else 60)
    if process.exitcode is None:
        process.kill()
        process.join(10)
        if kill_after is None:
            raise AssertionError("a life did not end within a minute")
    code = process.exitcode
    process.close()
    return code if code is not None else UNFINISHED


async def events_of(home: Path) -> tuple[str, list[StoredEvent]]:
    """Return the team of a home and all its events."""
    log = await SqliteLog.open(home)
    try:
        team = (await log.streams())[0].stream
        found = [stored async for stored in _all(log, team)]
    finally:
        await log.close()
    return team, found


async def _all(log: SqliteLog, team: str) -> AsyncIterator[StoredEvent]:
    async for page in log.read(team):
        for stored in page:
            yield stored
