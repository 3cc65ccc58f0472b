"""The writer thread: grouping, faults of the disk in the middle of a commit, and what it leaves behind."""

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.errors import Bug, CommitUnknown, StaleOwner, StoreFault, StoreFull
from greenroom.core.base.records import evolve
from greenroom.core.ports.log import Lease, LeaseHolder, NewEvent
from tests.adapters.storage.faulty import Faulty, hold_up
from tests.conformance.store import acquire_stream, batch, make_archive_row, read_all_events, wait_soon


async def leases(log: SqliteLog, count: int) -> list[Lease]:
    for n in range(count):
        await log.create(f"s{n}", n)
    return [await acquire_stream(log, f"s{n}") for n in range(count)]


async def test_all_appends_that_wait_share_one_commit(log: SqliteLog) -> None:
    owned = await leases(log, 200)
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, 0, 3))) for lease in owned]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    assert await wait_soon(asyncio.gather(*tasks)) == [3] * 200
    assert log.commits - before == 1


async def test_lease_changes_that_wait_share_the_commit_of_the_appends(log: SqliteLog) -> None:
    owned = await leases(log, 2)
    gate = hold_up(log)
    tasks = [
        asyncio.create_task(log.acquire("new", "me", made_at=1)),
        asyncio.create_task(log.acquire("missing", "me")),
        asyncio.create_task(log.append(batch(owned[0], 0, 3))),
        asyncio.create_task(log.release(owned[0])),
        asyncio.create_task(log.release(owned[1])),
    ]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    lease, missing, version, *released = await wait_soon(asyncio.gather(*tasks, return_exceptions=True))
    assert log.commits - before == 1
    assert (lease, version, released) == (Lease(stream="new", owner="me", epoch=1), 3, [None, None])
    assert isinstance(missing, StoreFault)
    assert [await log.holder(name) is not None for name in ("new", "s0", "s1")] == [True, False, False]
    assert await log.append(batch(cast("Lease", lease), 0)) == 1


async def test_one_stale_append_of_a_group_does_not_cost_a_second_commit(log: SqliteLog) -> None:
    owned = await leases(log, 3)
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, n))) for n, lease in enumerate(owned)]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    answers = await wait_soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [type(answer) for answer in answers] == [int, StaleOwner, StaleOwner]
    assert log.commits - before == 1


async def test_a_mistake_in_a_group_is_undone_alone(log: SqliteLog) -> None:
    owned = await leases(log, 4)
    gate = hold_up(log)
    batches = [batch(lease, 0, 2, archive=[make_archive_row("s", 1)]) for lease in owned]
    batches[1] = batch(owned[1], 0, 2, taken=["never put"])
    batches[2] = batch(owned[2], 5, 2)
    tasks = [asyncio.create_task(log.append(one)) for one in batches]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    answers = await wait_soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [type(answer) for answer in answers] == [int, Bug, StaleOwner, int]
    assert log.commits - before == 1
    assert [(await log.head(lease.stream)).version for lease in owned] == [2, 0, 0, 2]
    assert list(await log.check()) == []


async def test_appends_of_one_stream_can_follow_each_other_in_one_group(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, n))) for n in range(5)]
    await asyncio.sleep(0)
    gate.set()
    assert await wait_soon(asyncio.gather(*tasks)) == [1, 2, 3, 4, 5]


async def test_a_group_whose_members_are_all_refused_commits_nothing(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    before = log.commits
    with pytest.raises(StaleOwner):
        await log.append(batch(lease, 7))
    assert log.commits == before


async def test_a_cancelled_append_that_waits_is_committed_and_forgotten(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    gate = hold_up(log)
    task = asyncio.create_task(log.append(batch(lease, 0)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert await log.append(batch(lease, 1)) == 2


async def test_closing_writes_what_waits(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path)
    await log.create("s", 1)
    lease = await acquire_stream(log, "s")
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, n))) for n in range(3)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(log.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreFault, match="was closed"):
        await log.append(batch(lease, 3))
    gate.set()
    assert await wait_soon(asyncio.gather(*tasks)) == [1, 2, 3]
    await closing


async def test_an_unexpected_error_reaches_its_caller_and_the_thread_lives_on(log: SqliteLog) -> None:
    lease = await acquire_stream(log, "s")
    with pytest.raises(ZeroDivisionError):
        await log._open_writer.change(lambda _: (1 // 0, None))
    assert await log.append(batch(lease, 0)) == 1


async def test_what_cannot_be_stored_is_an_error_of_its_caller_only(log: SqliteLog) -> None:
    owned = await leases(log, 3)
    gate = hold_up(log)
    batches = [batch(lease, 0) for lease in owned]
    batches[1] = evolve(batches[1], events=[NewEvent(at=1, type="Tested", data=cast("bytes", object()))])
    tasks = [asyncio.create_task(log.append(one)) for one in batches]
    await asyncio.sleep(0)
    gate.set()
    answers = await wait_soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [isinstance(answer, int) for answer in answers] == [True, False, True]


@pytest.mark.parametrize("happened", [True, False])
async def test_a_commit_that_is_cut_off_is_unknown_and_the_head_tells(
    log: SqliteLog, faults: type[Faulty], happened: bool
) -> None:
    lease = await acquire_stream(log, "s")
    setattr(faults, "after" if happened else "before", {"COMMIT": sqlite3.SQLITE_IOERR_FSYNC})
    with pytest.raises(CommitUnknown, match="may or may not be saved"):
        await log.append(batch(lease, 0, 2, name="mine"))
    faults.before, faults.after = {}, {}
    head = await log.head("s")
    assert (head.version, head.batch) == ((2, "mine") if happened else (0, ""))
    assert await log.append(batch(lease, head.version)) == head.version + 1


@pytest.mark.parametrize("statement", ["BEGIN", "UPDATE streams", "INSERT INTO events", "COMMIT"])
async def test_a_full_disk_at_any_statement_is_said_so_and_leaves_nothing(
    log: SqliteLog, faults: type[Faulty], statement: str
) -> None:
    owned = await leases(log, 3)
    faults.before = {statement: sqlite3.SQLITE_FULL}
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, 0))) for lease in owned]
    await asyncio.sleep(0)
    gate.set()
    answers = await wait_soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [type(answer) for answer in answers] == [StoreFull] * 3
    faults.before = {}
    for lease in owned:
        assert (await log.head(lease.stream)).version == 0
        assert await log.append(batch(lease, 0)) == 1


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (sqlite3.SQLITE_IOERR, "The disk failed under"),
        (sqlite3.SQLITE_READONLY, "read-only"),
        (sqlite3.SQLITE_MISUSE, "cannot be used"),
    ],
)
async def test_other_faults_say_what_and_which_file(
    log: SqliteLog, faults: type[Faulty], code: int, sentence: str
) -> None:
    lease = await acquire_stream(log, "s")
    faults.before = {"UPDATE streams": code}
    with pytest.raises(StoreFault, match=sentence) as fault:
        await log.append(batch(lease, 0))
    assert str(log.path) in str(fault.value)
    faults.before = {}
    assert await log.append(batch(lease, 0)) == 1


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB])
async def test_after_damage_was_met_nothing_more_is_written(log: SqliteLog, faults: type[Faulty], code: int) -> None:
    lease = await acquire_stream(log, "s")
    faults.before = {"UPDATE streams": code}
    for _ in range(2):
        with pytest.raises(StoreFault, match="Nothing was written"):
            await log.append(batch(lease, 0))
        faults.before = {}
    assert (await log.head("s")).version == 0


async def test_when_even_the_rollback_fails_a_new_connection_goes_on(log: SqliteLog, faults: type[Faulty]) -> None:
    lease = await acquire_stream(log, "s")
    faults.before = {"INSERT INTO events": sqlite3.SQLITE_IOERR, "ROLLBACK": sqlite3.SQLITE_IOERR}
    with pytest.raises(StoreFault):
        await log.append(batch(lease, 0))
    faults.before = {}
    assert await log.append(batch(lease, 0)) == 1


async def test_an_acquire_that_fails_leaves_the_stream_free(log: SqliteLog, faults: type[Faulty]) -> None:
    faults.before = {"COMMIT": sqlite3.SQLITE_FULL}
    with pytest.raises(StoreFull):
        await log.acquire("s", "me")
    with pytest.raises(StoreFull):
        await log.forget("s")
    faults.before = {}
    assert await log.holder("s") is None
    other = await SqliteLog.open(log.path.parent)
    assert isinstance(await other.acquire("s", "other"), Lease)
    assert isinstance(await log.acquire("s", "me"), LeaseHolder)
    await other.close()


async def test_a_release_on_a_full_disk_still_lets_go(log: SqliteLog, faults: type[Faulty]) -> None:
    lease = await acquire_stream(log, "s")
    faults.before = {"UPDATE streams SET owner": sqlite3.SQLITE_FULL}
    with pytest.raises(StoreFull):
        await log.release(lease)
    faults.before = {}
    assert await log.holder("s") is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk; the injected faults above cover the same sentences")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        pytest.skip(
            "this machine does not let us mount a small disk; the injected faults above cover the same sentences"
        )
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def fill(log: SqliteLog, lease: Lease) -> int:
    """Append until there is no room; how far it went."""
    version = 0
    try:
        while version < 100_000:
            version = await log.append(batch(lease, version, 20, text="x" * 100))
    except StoreFull:
        return version
    return version


async def test_a_disk_that_is_really_full_loses_nothing_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    log = await SqliteLog.open(small_disk / "home")
    await log.create("s", 1)
    lease = await acquire_stream(log, "s")
    version = await fill(log, lease)
    assert 0 < version < 100_000
    assert len(await read_all_events(log, "s")) == version
    with pytest.raises(StoreFull, match="is full"):
        await log.put_blob(os.urandom(600_000))
    ballast.unlink()
    assert await log.append(batch(lease, version)) == version + 1
    assert list(await log.check()) == []
    await log.close()
    again = await SqliteLog.open(small_disk / "home")
    assert (await again.head("s")).version == version + 1
    await again.close()
