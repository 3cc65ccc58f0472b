"""Whether all that lies in a store can be read: what `doctor` looks at, beyond what the store knows of itself."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import ARCHIVE_TYPES, decode_archived, decode_event, decode_world, fingerprint
from greenroom.core.ports.log import Log


async def damage(log: Log) -> Sequence[str]:
    """What is wrong with a store, one sentence each; of every team the first thing that cannot be read."""
    found = list(await log.check())
    for info in await log.streams():
        try:
            await _read_all(log, info.stream)
        except StoreFault as fault:
            found.append(f"Team {info.stream!r}: {fault}")
    return found


async def spoilt_snapshots(log: Log) -> Sequence[str]:
    """The snapshots that cannot be read, one sentence each. They only save time: nothing is lost with them."""
    found = list[str]()
    for info in await log.streams():
        snapshot = await log.load_snapshot(info.stream, fingerprint())
        if snapshot is None:
            continue
        try:
            decode_world(snapshot.data)
        except StoreFault as fault:
            found.append(f"Team {info.stream!r}: {fault}")
    return found


async def _read_all(log: Log, stream: str) -> None:
    async for page in log.read(stream):
        for stored in page:
            decode_event(stored)
    for kind in ARCHIVE_TYPES:
        after = 0
        while rows := await log.archived(stream, kind, after=after):
            for row in rows:
                decode_archived(row)
            after = rows[-1].version
