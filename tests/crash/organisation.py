"""Processes of an organisation: each continues where the last one was killed, together with ann."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.records import record
from greenroom.core.ports.log import StoredEvent
from tests.crash.checker import check, check_end
from tests.crash.lives import UNFINISHED, DyingLog, Moment, fork_server
from tests.organisation.firm import NOTHING_LEFT, facts, firm, left, tasted

PACE = 0.01
"""Seconds per model reply and tool call, so that most kills happen during work."""

LONGEST = 0.7
"""Maximum seconds before a process is killed. The whole story takes about twice as long."""


@record
class Death:
    """When a process ends: just before or after an append, or (without a number) when it is killed."""

    at: int = 0
    moment: Moment = "before"


KILLED: Final = Death()


@contextmanager
def home() -> Iterator[Path]:
    """Return a folder in memory if possible: process crashes do not affect it, and fsync is fast there."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None, prefix="greenroom-firm-") as name:
        yield Path(name)


async def _life(folder: Path, language: str, death: Death) -> None:
    DyingLog.at, DyingLog.moment, DyingLog.appends = death.at, death.moment, 0
    pace = 0.0 if death.at else PACE
    async with firm(await DyingLog.open(folder / "log"), folder, language, pace=pace) as made:
        await asyncio.wait_for(made.play(), 60)


def life(folder: str, language: str, at: int, moment: Moment) -> None:
    """Play until the story is over, or the process is killed."""
    asyncio.run(_life(Path(folder), language, Death(at=at, moment=moment)))
    os._exit(0)


def context() -> ForkServerContext:
    """Return a fork server that has loaded this module too."""
    made = fork_server()
    made.set_forkserver_preload(["tests.crash.lives", "tests.crash.organisation"])
    return made


def live(folder: Path, language: str, kill_after: float | None, death: Death = KILLED) -> int:
    """Run one process in this folder. Return its exit code, negative for a signal."""
    process = context().Process(target=life, args=(str(folder), language, death.at, death.moment))
    process.start()
    process.join(90 if kill_after is None else kill_after)
    if process.exitcode is None:
        process.kill()
        process.join(10)
        assert kill_after is not None, "a life did not end in time"
    code = process.exitcode
    process.close()
    return UNFINISHED if code is None else code


@cache
def undisturbed(language: str) -> dict[str, object]:
    """Return the facts after an undisturbed story."""
    with home() as folder:
        assert live(folder, language, None) == 0
        found, broken = asyncio.run(judged(folder, language))
        assert broken == []
        return found


async def judged(folder: Path, language: str) -> tuple[dict[str, object], list[str]]:
    """Return the facts at the end of the story, and the violations."""
    async with firm(await SqliteLog.open(folder / "log"), folder, language) as made:
        found, remains = await facts(made), await left(made)
    seen = check(await _events(folder))
    broken = check_end(seen)
    broken += [f"{name} are left: {remains[name]}" for name in NOTHING_LEFT if remains[name] != NOTHING_LEFT[name]]
    lines = [line.split(" ", 2) for line in tasted(folder)]
    broken += [f"{step} ran {count} times" for step, count in _runs(lines) if count > seen.attempts[step]]
    if len({(step, attempt) for step, attempt, _ in lines}) != len(lines):
        broken.append("the tool ran twice in one attempt")
    return found, broken


async def _events(folder: Path) -> list[StoredEvent]:
    """Return all events of the organisation. A process killed before the founding leaves an empty stream."""
    log = await SqliteLog.open(folder / "log")
    try:
        (team,) = [one.stream for one in await log.streams() if one.head.version]
        return [stored async for page in log.read(team) for stored in page]
    finally:
        await log.close()


def _runs(lines: list[list[str]]) -> list[tuple[str, int]]:
    return [(step, sum(one[0] == step for one in lines)) for step in {one[0] for one in lines}]


def interruptions(folder: Path) -> int:
    """Return how many steps were interrupted."""
    return sum(one.type == "StepInterrupted" for one in asyncio.run(_events(folder)))
