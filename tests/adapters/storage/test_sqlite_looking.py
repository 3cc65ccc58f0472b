"""Only looking: nothing is made, nothing is changed, and a folder that cannot be written can be read."""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from greenroom.adapters.storage.database import list_team_names
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.adapters.storage.sqlite.store_folder import Access
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.log import Lease, StateSnapshot
from tests.adapters.storage.processes import child, contents
from tests.adapters.storage.read_only import make_read_only, make_writable
from tests.conformance.store import acquire_stream, batch, finish, intent, read_all_events, wait_soon

NOBODY = 65534
LEASE = Lease(stream="s", owner="me", epoch=1)


async def fill(home: Path) -> None:
    log = await SqliteLog.open(home)
    await log.create("s", 1)
    await log.append(batch(await acquire_stream(log, "s"), 0, 3))
    await log.put_blob(b"a large result")
    await log.close()


async def seen(home: Path) -> int:
    """How many events somebody finds who only looks."""
    log = await SqliteLog.open(home, access="look")
    try:
        assert [info.stream for info in await log.streams()] == ["s"]
        assert await log.check() == []
        assert await log.holder("s") is None
        return len(await read_all_events(log, "s"))
    finally:
        await log.close()


@pytest.mark.parametrize("access", ["look", "change"])
async def test_a_store_that_is_not_there_looks_like_an_empty_one_and_is_not_made(
    tmp_path: Path, access: Access
) -> None:
    home = tmp_path / "a" / "home"
    log = await SqliteLog.open(home, access=access)
    assert await log.streams() == []
    assert await log.check() == []
    assert log.commits == 0
    with pytest.raises(StoreFault, match="no run 's'"):
        await log.head("s")
    assert not (tmp_path / "a").exists()
    await fill(home)
    assert [info.stream for info in await log.streams()] == ["s"], "it is seen as soon as somebody makes it"
    await log.close()


async def test_looking_changes_nothing_and_sees_everything(tmp_path: Path) -> None:
    await fill(tmp_path)
    before = contents(tmp_path)
    assert await seen(tmp_path) == 3
    assert contents(tmp_path) == before


REFUSED: list[Callable[[SqliteLog], Awaitable[object]]] = [
    lambda log: log.create("t", 1),
    lambda log: log.append(batch(LEASE, 3)),
    lambda log: log.put("s", intent("i1")),
    lambda log: log.acquire("s", "me"),
    lambda log: log.release(LEASE),
    lambda log: log.forget("s"),
    lambda log: log.collect(),
    lambda log: log.save_snapshot("s", StateSnapshot(version=1, fingerprint="f", data=b"")),
    lambda log: log.put_blob(b"another one"),
]


@pytest.mark.parametrize("change", REFUSED, ids=range(len(REFUSED)))
async def test_who_only_looks_can_change_nothing(
    tmp_path: Path, change: Callable[[SqliteLog], Awaitable[object]]
) -> None:
    await fill(tmp_path)
    before = contents(tmp_path)
    log = await SqliteLog.open(tmp_path, access="look")
    with pytest.raises(StoreFault, match="opened for reading only"):
        await change(log)
    await log.close()
    assert contents(tmp_path) == before


async def test_looking_does_not_wait_for_who_writes(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "greenroom.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert await seen(tmp_path) == 3


@pytest.mark.parametrize("access", ["look", "change", "make"])
async def test_a_loss_is_noticed_by_looking(tmp_path: Path, access: Access) -> None:
    await fill(tmp_path)
    (tmp_path / "greenroom.db").unlink()
    with pytest.raises(StoreFault, match="has lost commits"):
        await SqliteLog.open(tmp_path, access=access)
    assert not (tmp_path / "greenroom.db").exists()


@pytest.mark.parametrize("access", ["look", "make"])
@pytest.mark.parametrize("below", ["", "below"])
async def test_a_home_that_is_a_file_is_refused_and_kept(tmp_path: Path, below: str, access: Access) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(StoreFault, match="is a file"):
        await SqliteLog.open(tmp_path / "home" / below, access=access)
    assert (tmp_path / "home").read_text() == "not a folder"


async def test_who_follows_sees_what_another_process_commits(tmp_path: Path) -> None:
    with child("append", tmp_path, "s") as writer:
        log = await SqliteLog.open(tmp_path, access="look")
        pages = log.tail("s")
        found = 0
        async for page in pages:
            found = page[-1].version
            if found >= 40:
                break
        await finish(pages)
        assert await wait_soon(log.holder("s")) is not None
        writer.kill()
        await log.close()


# ------------------------------------------------------------------------------------------- a read-only folder


async def test_a_folder_that_cannot_be_written_is_read(read_only: Path) -> None:
    await fill(read_only)
    make_read_only(read_only)
    before = contents(read_only)
    assert await seen(read_only) == 3
    assert list(list_team_names(read_only)) == ["s"]
    assert contents(read_only) == before


async def test_commits_that_a_crash_left_in_the_wal_are_read_too(read_only: Path, tmp_path: Path) -> None:
    version = crashed(tmp_path / "crashed", read_only)
    make_read_only(read_only)
    assert await seen(read_only) == version


async def test_commits_that_cannot_be_read_without_writing_are_not_passed_over(read_only: Path, tmp_path: Path) -> None:
    crashed(tmp_path / "crashed", read_only)
    (read_only / "greenroom.db-shm").unlink()
    make_read_only(read_only)
    with pytest.raises(StoreFault, match="Copy the folder"):
        await SqliteLog.open(read_only, access="look")


def crashed(home: Path, copy: Path) -> int:
    """A copy of a store whose owner was killed: what it committed is in the WAL. Returns the version."""
    with child("append", home, "s") as writer:
        writer.acknowledged(10)
        writer.kill()
    with closing(sqlite3.connect(f"file:{home}/greenroom.db?mode=ro", uri=True)) as db:
        (version,) = db.execute("SELECT version FROM streams").fetchone()
    shutil.copytree(home, copy, dirs_exist_ok=True)
    assert (copy / "greenroom.db-wal").stat().st_size > 0
    return int(version)


async def test_a_read_only_folder_in_which_nothing_is_looks_empty(read_only: Path) -> None:
    make_read_only(read_only)
    log = await SqliteLog.open(read_only, access="look")
    assert await log.streams() == []
    await log.close()


@pytest.mark.parametrize("access", ["make", "change"])
async def test_what_cannot_be_written_is_said_to_who_wants_to(read_only: Path, access: Access) -> None:
    await fill(read_only)
    make_read_only(read_only)
    before = contents(read_only)
    with pytest.raises(StoreFault, match=r"is read-only\. You can still read it"):
        await SqliteLog.open(read_only, access=access)
    assert contents(read_only) == before


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Path]:
    """Another name for the home, under which it cannot be written: a container's view of it."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    place = tmp_path / "window"
    place.mkdir()
    yield place
    make_writable(place)


async def open_between_reads(home: Path) -> SqliteLog:
    """Open a log that this process also reads without the right to write. While it reads, SQLite lets it only read."""
    for _ in range(1000):
        with suppress(StoreFault):
            return await SqliteLog.open(home)
        await asyncio.sleep(0.002)
    return await SqliteLog.open(home)


async def test_who_can_only_read_follows_an_owner_who_can_write(tmp_path: Path, window: Path) -> None:
    home = tmp_path / "home"
    await fill(home)
    make_read_only(home, under=window)
    log = await SqliteLog.open(window, access="look")
    pages = log.tail("s")
    assert len(await wait_soon(anext(pages))) == 3
    owner = await open_between_reads(home)
    lease = await acquire_stream(owner, "s")
    for version in range(3, 8):
        await owner.append(batch(lease, version))
        assert [event.version for event in await wait_soon(anext(pages))] == [version + 1]
    held = await log.holder("s")
    assert held is not None
    assert held.owner == "me"
    await finish(pages)
    await log.close()
    await owner.close()


@pytest.fixture
def powerless() -> Iterator[Path]:
    """A folder of one's own, and no power over it but what its permissions give: root becomes nobody meanwhile."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    root = os.geteuid() == 0
    if root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield place / "home"
    finally:
        if root:
            os.setresuid(0, 0, 0)
        shutil.rmtree(place)


def permit(home: Path, mode: int) -> None:
    """Give the folder these permissions, and what is in it the same without those to be entered."""
    home.chmod(0o700)
    for path in home.rglob("*"):
        path.chmod(mode if path.is_dir() else mode & 0o666)
    home.chmod(mode)


async def test_permissions_to_read_are_enough_to_look(powerless: Path) -> None:
    await fill(powerless)
    permit(powerless, 0o500)
    assert await seen(powerless) == 3
    with pytest.raises(StoreFault, match=r"is read-only\. You can still read it"):
        await SqliteLog.open(powerless)
    permit(powerless, 0o700)


async def test_a_file_that_cannot_be_written_in_a_folder_that_can_is_read(powerless: Path) -> None:
    await fill(powerless)
    (powerless / "greenroom.db").chmod(0o400)
    assert await seen(powerless) == 3
    with pytest.raises(StoreFault, match=r"is read-only\. You can still read it"):
        await SqliteLog.open(powerless)


async def test_a_folder_that_may_not_be_read_is_not_called_read_only(powerless: Path) -> None:
    await fill(powerless)
    permit(powerless, 0)
    with pytest.raises(StoreFault, match="cannot be read: permission denied"):
        await SqliteLog.open(powerless, access="look")
    permit(powerless, 0o700)


async def test_a_file_that_may_not_be_read_is_not_called_read_only(powerless: Path) -> None:
    await fill(powerless)
    (powerless / "greenroom.db").chmod(0)
    with pytest.raises(StoreFault, match="cannot be read: permission denied"):
        await SqliteLog.open(powerless, access="look")
