"""Another process that shares a store: a writer to be killed during or after its work, and an owner that answers."""

import asyncio
import sys
from pathlib import Path

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.errors import StaleOwner
from greenroom.core.ports.log import EventBatch, InboxRow, LeaseHolder, NewEvent, TakenIntent

TEXT = b'{"text": "' + b"x" * 200 + b'"}'


def batch(stream: str, version: int, epoch: int, count: int, taken: list[InboxRow]) -> EventBatch:
    return EventBatch(
        stream=stream,
        expected_version=version,
        epoch=epoch,
        batch=f"b{version}",
        events=[NewEvent(at=1, type="Tested", data=TEXT)] * count,
        taken=[TakenIntent(intent_id=row.intent_id, outcome=b"done " + row.data) for row in taken],
    )


async def append(log: SqliteLog, stream: str, limit: int) -> None:
    """Append, and print each version once it is acknowledged."""
    await log.create(stream, 1)
    lease = await log.acquire(stream, "child")
    assert not isinstance(lease, LeaseHolder)
    version = 0
    print("ready", flush=True)
    while version < limit:
        try:
            version = await log.append(batch(stream, version, lease.epoch, 1 + version % 3, []))
        except StaleOwner:
            print("stale", flush=True)
            return
        print(version, flush=True)


async def answer(log: SqliteLog, stream: str, limit: int) -> None:
    """Own the stream and take everything from its inbox."""
    await log.create(stream, 1)
    lease = await log.acquire(stream, "child")
    assert not isinstance(lease, LeaseHolder)
    version = 0
    print("ready", flush=True)
    async for rows in log.arrivals(stream):
        try:
            version = await log.append(batch(stream, version, lease.epoch, len(rows), list(rows)))
        except StaleOwner:
            print("stale", flush=True)
            return
        if version >= limit:
            return


async def main(mode: str, home: str, stream: str, limit: str) -> None:
    log = await SqliteLog.open(Path(home), poll=0.01)
    await (answer if mode == "answer" else append)(log, stream, int(limit))
    if mode == "hold":
        await asyncio.Event().wait()
    await log.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
