"""Processes that open one home at the same moment, each to found the same organisation."""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.organisation.creation import create_organisation
from greenroom.app.runtime import Runtime
from greenroom.core.base.records import evolve
from tests.app.organisation.office import founders
from tests.crash.lives import DyingLog

MINUTE: Final = 60


def _arrive(home: str, name: str, door: Barrier, dies: bool) -> None:
    """Open the home, wait for the others, found the organisation, and record its id."""
    os._exit(asyncio.run(_found(Path(home), name, door, dies)))


async def _found(home: Path, name: str, door: Barrier, dies: bool) -> int:
    log = await (DyingLog if dies else SqliteLog).open(home)
    DyingLog.at = 1
    runtime = Runtime(log)
    await asyncio.to_thread(door.wait, MINUTE)
    team = await create_organisation(runtime, evolve(founders(), workspace="/w"))
    (home / f"{name}.found").write_text(team, "utf-8")
    await runtime.close()
    return 0


def together(home: Path, dying: Sequence[bool]) -> list[int | None]:
    """Run processes concurrently, some of which die. Return their exit codes."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.arrivals"])
    door = context.Barrier(len(dying))
    lives = [context.Process(target=_arrive, args=(str(home), str(one), door, dies)) for one, dies in enumerate(dying)]
    for one in lives:
        one.start()
    for one in lives:
        one.join(MINUTE)
    codes = [one.exitcode for one in lives]
    for one in lives:
        one.kill()
    return codes
