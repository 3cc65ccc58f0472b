"""Checks that all data in a store can be read, and copies what can, for `greenroom doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from greenroom.adapters.storage.sqlite.salvage import copy_readable
from greenroom.app.messages import translate
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import ARCHIVE_TYPES, compute_fingerprint, decode_archived, decode_event, decode_state
from greenroom.core.ports.log import Log


async def find_damage(log: Log) -> Sequence[str]:
    """Return the problems of a store, one sentence each, at most one per team."""
    problems = list(await log.check())
    for info in await log.streams():
        try:
            await _read_all(log, info.stream)
        except StoreFault as fault:
            problems.append(translate("home.team_fault", team=info.stream, fault=fault))
    return problems


async def find_damaged_snapshots(log: Log) -> Sequence[str]:
    """Return the snapshots that cannot be read. They only save time; no data is lost without them."""
    problems = list[str]()
    for info in await log.streams():
        snapshot = await log.load_snapshot(info.stream, compute_fingerprint())
        if snapshot is None:
            continue
        try:
            decode_state(snapshot.data)
        except StoreFault as fault:
            problems.append(translate("home.team_fault", team=info.stream, fault=fault))
    return problems


async def copy_readable_store(home: Path, folder: Path) -> tuple[Mapping[str, tuple[int, int]], bool]:
    """Copy what is readable of a store to a new folder. Return the copied and the recorded events of each run, and
    whether every other row was read."""
    return await asyncio.to_thread(copy_readable, home, folder)


async def _read_all(log: Log, stream: str) -> None:
    async for page in log.read(stream):
        for stored in page:
            decode_event(stored)
    for kind in ARCHIVE_TYPES:
        after = 0
        while rows := await log.read_archive(stream, kind, after=after):
            for row in rows:
                decode_archived(row)
            after = rows[-1].version
