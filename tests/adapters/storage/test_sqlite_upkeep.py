"""What keeps the store small and sound, and what a closed one leaves behind: nothing."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from greenroom.adapters.storage.sqlite import SqliteLog, statements
from greenroom.adapters.storage.sqlite.files import LeaseFiles
from greenroom.core.base.errors import StoreFault, StoreFull
from tests.adapters.storage.faulty import Faulty
from tests.conformance.store import acquire_stream, batch, intent, wait_soon


async def test_the_wal_does_not_grow_without_end(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    version = 0
    for _ in range(60):
        version = await log.append(batch(lease, version, 500, text="x" * 300))
    assert log.path.with_name("greenroom.db-wal").stat().st_size < 20_000_000


async def test_collecting_gives_the_room_of_a_forgotten_stream_back(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    version = 0
    for _ in range(10):
        version = await log.append(batch(lease, version, 1000, text="x" * 300))
    await log.forget("s")
    assert await log.collect() > 2_000_000
    assert log.path.stat().st_size < 500_000
    assert log.path.with_name("greenroom.db-wal").stat().st_size == 0


async def test_a_sweep_that_was_cut_off_is_finished_by_collecting(log: SqliteLog, faults: type[Faulty]) -> None:
    await log.append(batch(await acquire_stream(log, "s"), 0, 10))
    faults.before = {"DELETE FROM events": sqlite3.SQLITE_FULL}
    with pytest.raises(StoreFull):
        await log.forget("s")
    faults.before = {}
    assert await log.streams() == []
    await log.collect()
    rows = await log._readers.query(lambda db: db.execute("SELECT count(*) FROM events").fetchone())
    assert rows == (0,)


async def test_the_check_finds_what_is_missing(log: SqliteLog) -> None:
    digests = [await log.put_blob(data) for data in (b"gone", b"damaged", b"sound")]
    await log.append(batch(await acquire_stream(log, "s"), 0, 5, blobs=digests))
    blobs = log.path.parent / "blobs"
    (blobs / digests[0][:2] / digests[0]).unlink()
    (blobs / digests[1][:2] / digests[1]).write_bytes(b"rotten")
    await log._open_writer.change(lambda db: (db.execute("DELETE FROM events WHERE id & 7 = 3").rowcount, None))
    found = " ".join(await log.check())
    assert "'s' should have 5 events: it has 4" in found
    assert f"{digests[0]} is missing" in found
    assert f"{digests[1]} is damaged" in found
    assert digests[2] not in found
    with pytest.raises(StoreFault, match="is damaged"):
        await log.get_blob(digests[1])


async def test_writers_go_on_while_the_store_is_checked(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    await log.append(batch(lease, 0, 100))
    started, gate = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def check(db: sqlite3.Connection) -> Sequence[str]:
        db.execute("BEGIN")
        found = statements.find_damage(db)
        loop.call_soon_threadsafe(started.set)
        gate.wait(20)
        found = [*found, *statements.find_damage(db)]
        db.execute("COMMIT")
        return found

    checking = asyncio.create_task(log._readers.query(check))
    await wait_soon(started.wait())
    for version in range(100, 120):
        await log.append(batch(lease, version))
    gate.set()
    assert await wait_soon(checking) == []


async def test_closing_breaks_off_a_check(log: SqliteLog) -> None:
    version = 0
    lease = await acquire_stream(log, "s")
    for _ in range(10):
        version = await log.append(batch(lease, version, 3000, text="x" * 300))
    checking = asyncio.create_task(log.check())
    await asyncio.sleep(0)
    await log.close()
    with pytest.raises(StoreFault, match="was closed"):
        await wait_soon(checking)


async def test_a_stored_blob_leaves_nothing_half_written_behind(log: SqliteLog) -> None:
    digest = await log.put_blob(b"x" * 100_000)
    files = [path for path in (log.path.parent / "blobs").rglob("*") if path.is_file() and path.name != ".lock"]
    assert [path.name for path in files] == [digest]


async def test_what_a_crash_left_half_written_is_collected(log: SqliteLog) -> None:
    digest = await log.put_blob(b"x" * 1000)
    folder = log.path.parent / "blobs" / digest[:2]
    old, young = folder / "tmpold.new", folder / "tmpyoung.new"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    await log.collect()
    assert sorted(path.name for path in folder.iterdir()) == sorted([digest, young.name])


async def test_a_blob_put_again_is_young_again(log: SqliteLog) -> None:
    digest = await log.put_blob(b"x" * 1000)
    os.utime(log.path.parent / "blobs" / digest[:2] / digest, (0, 0))
    await log.put_blob(b"x" * 1000)
    await log.collect()
    assert await log.get_blob(digest) == b"x" * 1000


async def test_an_open_and_closed_log_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    async def use() -> None:
        log = await SqliteLog.open(tmp_path, poll=0.01)
        await log.create("s", 1)
        lease = await acquire_stream(log, "s", force=True)
        tail = log.tail("s")
        await log.append(batch(lease, (await log.head("s")).version))
        await wait_soon(anext(tail))
        await log.put("s", intent("i"))
        await asyncio.gather(*(log.head("s") for _ in range(10)))
        await log.close()
        with pytest.raises(StoreFault):
            await wait_soon(anext(tail))

    await use()
    process = psutil.Process()
    before = (threading.active_count(), process.num_fds())
    for _ in range(5):
        await use()
    assert (threading.active_count(), process.num_fds()) == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("greenroom")]


async def test_nobody_polls_while_nobody_listens(log: SqliteLog) -> None:
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "greenroom-poller"]
    tail = log.tail("s")
    following = asyncio.ensure_future(anext(tail))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    polling = [task for task in asyncio.all_tasks() if task.get_name() == "greenroom-poller"]
    assert len(polling) == 1
    await wait_soon(asyncio.wait(polling))


async def test_who_asks_for_the_owner_of_a_stream_that_is_just_forgotten_is_told_so(log: SqliteLog) -> None:
    class Slow(LeaseFiles):
        def is_live(self, stream: str) -> bool:
            with closing(sqlite3.connect(log.path)) as db:
                db.execute("DELETE FROM streams")
                db.commit()
            return super().is_live(stream)

    with pytest.raises(StoreFault, match="There is no run 's'"):
        await log._readers.query(lambda db: statements.find_holder(db, Slow(log.path.parent / "leases"), "s"))
