"""The writer thread: grouping, faults of the disk in the middle of a commit, and what it leaves behind."""

import asyncio
import os
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.errors import Bug, CommitUnknown, StaleOwner, StoreFault, StoreFull
from greenroom.core.ports.log import Held, Lease
from greenroom.testing.conformance.store import batch, everything, intent, moved, own, soon


class Faulty(sqlite3.Connection):
    """A connection that fails where a test wants it to: before or after it does a statement."""

    before: dict[str, int] = {}
    after: dict[str, int] = {}

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._fail(self.before, sql)
        cursor = super().execute(sql, *values)
        self._fail(self.after, sql)
        return cursor

    @staticmethod
    def _fail(faults: dict[str, int], sql: str) -> None:
        for start, code in faults.items():
            if sql.strip().startswith(start):
                error = sqlite3.OperationalError(f"injected {code}")
                error.sqlite_errorcode = code
                raise error


@pytest.fixture
def faults() -> Iterator[type[Faulty]]:
    yield Faulty
    Faulty.before, Faulty.after = {}, {}


@pytest.fixture
async def log(tmp_path: Path, faults: type[Faulty]) -> AsyncIterator[SqliteLog]:
    log = await SqliteLog.open(tmp_path / "home", connection=faults)
    await log.create("s", 1)
    yield log
    faults.before, faults.after = {}, {}
    await log.close()


def hold_up(log: SqliteLog) -> threading.Event:
    """Let the writer thread stand still, so that everything that comes waits for the next group."""
    gate = threading.Event()

    def stand_still(_: sqlite3.Connection) -> tuple[bool, None]:
        return gate.wait(20), None

    log._writer.change(stand_still, mode="bare")
    return gate


async def leases(log: SqliteLog, count: int) -> list[Lease]:
    for n in range(count):
        await log.create(f"s{n}", n)
    return [await own(log, f"s{n}") for n in range(count)]


async def test_all_appends_that_wait_share_one_commit(log: SqliteLog) -> None:
    owned = await leases(log, 200)
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, 0, 3))) for lease in owned]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    assert await soon(asyncio.gather(*tasks)) == [3] * 200
    assert log.commits - before == 1


async def test_one_stale_append_of_a_group_does_not_cost_a_second_commit(log: SqliteLog) -> None:
    owned = await leases(log, 3)
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, n))) for n, lease in enumerate(owned)]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    answers = await soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [type(answer) for answer in answers] == [int, StaleOwner, StaleOwner]
    assert log.commits - before == 1


async def test_a_mistake_in_a_group_is_undone_alone(log: SqliteLog) -> None:
    owned = await leases(log, 4)
    gate = hold_up(log)
    batches = [batch(lease, 0, 2, archive=[moved("s", 1)]) for lease in owned]
    batches[1] = batch(owned[1], 0, 2, taken=["never put"])
    batches[2] = batch(owned[2], 5, 2)
    tasks = [asyncio.create_task(log.append(one)) for one in batches]
    await asyncio.sleep(0)
    before = log.commits
    gate.set()
    answers = await soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [type(answer) for answer in answers] == [int, Bug, StaleOwner, int]
    assert log.commits - before == 1
    assert [(await log.head(lease.stream)).version for lease in owned] == [2, 0, 0, 2]
    assert list(await log.check()) == []


async def test_appends_of_one_stream_can_follow_each_other_in_one_group(log: SqliteLog) -> None:
    lease = await own(log, "s")
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, n))) for n in range(5)]
    await asyncio.sleep(0)
    gate.set()
    assert await soon(asyncio.gather(*tasks)) == [1, 2, 3, 4, 5]


async def test_a_group_whose_members_are_all_refused_commits_nothing(log: SqliteLog) -> None:
    lease = await own(log, "s")
    before = log.commits
    with pytest.raises(StaleOwner):
        await log.append(batch(lease, 7))
    assert log.commits == before


async def test_a_cancelled_append_that_waits_is_committed_and_forgotten(log: SqliteLog) -> None:
    lease = await own(log, "s")
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
    lease = await own(log, "s")
    gate = hold_up(log)
    tasks = [asyncio.create_task(log.append(batch(lease, n))) for n in range(3)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(log.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreFault, match="was closed"):
        await log.append(batch(lease, 3))
    gate.set()
    assert await soon(asyncio.gather(*tasks)) == [1, 2, 3]
    await closing


async def test_an_unexpected_error_reaches_its_caller_and_the_thread_lives_on(log: SqliteLog) -> None:
    lease = await own(log, "s")
    with pytest.raises(ZeroDivisionError):
        await log._writer.change(lambda _: (1 // 0, None))
    assert await log.append(batch(lease, 0)) == 1


async def test_what_cannot_be_stored_is_an_error_of_its_caller_only(log: SqliteLog) -> None:
    owned = await leases(log, 3)
    gate = hold_up(log)
    batches = [batch(lease, 0) for lease in owned]
    object.__setattr__(batches[1].events[0], "at", "x" if False else [])
    tasks = [asyncio.create_task(log.append(one)) for one in batches]
    await asyncio.sleep(0)
    gate.set()
    answers = await soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [isinstance(answer, int) for answer in answers] == [True, False, True]


@pytest.mark.parametrize("happened", [True, False])
async def test_a_commit_that_is_cut_off_is_unknown_and_the_head_tells(
    log: SqliteLog, faults: type[Faulty], happened: bool
) -> None:
    lease = await own(log, "s")
    setattr(faults, "after" if happened else "before", {"COMMIT": sqlite3.SQLITE_IOERR_FSYNC})
    with pytest.raises(CommitUnknown, match="may or may not"):
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
    answers = await soon(asyncio.gather(*tasks, return_exceptions=True))
    assert [type(answer) for answer in answers] == [StoreFull] * 3
    faults.before = {}
    for lease in owned:
        assert (await log.head(lease.stream)).version == 0
        assert await log.append(batch(lease, 0)) == 1


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (sqlite3.SQLITE_IOERR, "The disk failed under"),
        (sqlite3.SQLITE_CORRUPT, "is damaged"),
        (sqlite3.SQLITE_READONLY, "read-only"),
        (sqlite3.SQLITE_MISUSE, "cannot be used"),
    ],
)
async def test_other_faults_say_what_and_which_file(
    log: SqliteLog, faults: type[Faulty], code: int, sentence: str
) -> None:
    lease = await own(log, "s")
    faults.before = {"UPDATE streams": code}
    with pytest.raises(StoreFault, match=sentence) as fault:
        await log.append(batch(lease, 0))
    assert str(log.path) in str(fault.value)
    faults.before = {}
    assert await log.append(batch(lease, 0)) == 1


async def test_when_even_the_rollback_fails_a_new_connection_goes_on(log: SqliteLog, faults: type[Faulty]) -> None:
    lease = await own(log, "s")
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
    assert isinstance(await log.acquire("s", "me"), Held)
    await other.close()


async def test_a_release_on_a_full_disk_still_lets_go(log: SqliteLog, faults: type[Faulty]) -> None:
    lease = await own(log, "s")
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


async def test_a_disk_that_is_really_full_loses_nothing_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    log = await SqliteLog.open(small_disk / "home")
    await log.create("s", 1)
    lease = await own(log, "s")
    version = 0
    with pytest.raises(StoreFull, match="is full"):
        while version < 100_000:
            version = await log.append(batch(lease, version, 20, text="x" * 100))
    assert version > 0
    assert len(await everything(log, "s")) == version
    with pytest.raises(StoreFull, match="is full"):
        await log.put_blob(os.urandom(600_000))
    ballast.unlink()
    assert await log.append(batch(lease, version)) == version + 1
    assert list(await log.check()) == []
    await log.close()
    again = await SqliteLog.open(small_disk / "home")
    assert (await again.head("s")).version == version + 1
    await again.close()


async def test_the_wal_does_not_grow_without_end(log: SqliteLog) -> None:
    lease = await own(log, "s")
    version = 0
    for _ in range(60):
        version = await log.append(batch(lease, version, 500, text="x" * 300))
    assert log.path.with_name("greenroom.db-wal").stat().st_size < 20_000_000


async def test_collecting_gives_the_room_of_a_forgotten_stream_back(log: SqliteLog) -> None:
    lease = await own(log, "s")
    version = 0
    for _ in range(10):
        version = await log.append(batch(lease, version, 1000, text="x" * 300))
    await log.forget("s")
    assert await log.collect() > 2_000_000
    assert log.path.stat().st_size < 500_000
    assert log.path.with_name("greenroom.db-wal").stat().st_size == 0


async def test_a_sweep_that_was_cut_off_is_finished_by_collecting(log: SqliteLog, faults: type[Faulty]) -> None:
    await log.append(batch(await own(log, "s"), 0, 10))
    faults.before = {"DELETE FROM events": sqlite3.SQLITE_FULL}
    with pytest.raises(StoreFull):
        await log.forget("s")
    faults.before = {}
    assert await log.streams() == []
    await log.collect()
    rows = await log._readers.ask(lambda db: db.execute("SELECT count(*) FROM events").fetchone())
    assert rows == (0,)


async def test_the_check_finds_what_is_missing(log: SqliteLog) -> None:
    digests = [await log.put_blob(data) for data in (b"gone", b"damaged", b"sound")]
    await log.append(batch(await own(log, "s"), 0, 5, blobs=digests))
    blobs = log.path.parent / "blobs"
    (blobs / digests[0][:2] / digests[0]).unlink()
    (blobs / digests[1][:2] / digests[1]).write_bytes(b"rotten")
    await log._writer.change(lambda db: (db.execute("DELETE FROM events WHERE id & 7 = 3").rowcount, None))
    found = " ".join(await log.check())
    assert "'s' says it has 5 events, but 4 are there" in found
    assert f"{digests[0]} is missing" in found
    assert f"{digests[1]} is damaged" in found
    assert digests[2] not in found
    with pytest.raises(StoreFault, match="is damaged"):
        await log.get_blob(digests[1])


async def test_writers_go_on_while_the_store_is_checked(log: SqliteLog) -> None:
    lease = await own(log, "s")
    version = await log.append(batch(lease, 0, 5000, text="x" * 200))
    checking = asyncio.create_task(log.check())
    while not checking.done():
        version = await log.append(batch(lease, version))
    assert list(await checking) == []
    assert version > 5001


async def test_closing_breaks_off_a_check(log: SqliteLog) -> None:
    version = 0
    lease = await own(log, "s")
    for _ in range(10):
        version = await log.append(batch(lease, version, 3000, text="x" * 300))
    checking = asyncio.create_task(log.check())
    await asyncio.sleep(0)
    await log.close()
    with pytest.raises(StoreFault, match="was closed"):
        await soon(checking)


async def test_a_stored_blob_leaves_nothing_half_written_behind(log: SqliteLog) -> None:
    digest = await log.put_blob(b"x" * 100_000)
    files = [path for path in (log.path.parent / "blobs").rglob("*") if path.is_file() and path.name != ".lock"]
    assert [path.name for path in files] == [digest]


async def test_an_open_and_closed_log_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    async def use() -> None:
        log = await SqliteLog.open(tmp_path, poll=0.01)
        await log.create("s", 1)
        lease = await own(log, "s", force=True)
        tail = log.tail("s")
        await log.append(batch(lease, (await log.head("s")).version))
        await soon(anext(tail))
        await log.put("s", intent("i"))
        await asyncio.gather(*(log.head("s") for _ in range(10)))
        await log.close()
        with pytest.raises(StoreFault):
            await soon(anext(tail))

    await use()
    process = psutil.Process()
    before = (threading.active_count(), process.num_fds())
    for _ in range(5):
        await use()
    assert (threading.active_count(), process.num_fds()) == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("greenroom")]


async def test_nobody_polls_while_nobody_listens(log: SqliteLog) -> None:
    assert log._poller._task is None
    tail = log.tail("s")
    following = asyncio.ensure_future(anext(tail))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task = log._poller._task
    assert task is not None
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    await soon(asyncio.wait([task]))
    assert task.done()
