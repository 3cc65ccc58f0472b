"""Bad input at the door: each a clear fault that names the file, and the data as it was."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from greenroom.adapters.storage.sqlite import SqliteLog, statements
from greenroom.adapters.storage.sqlite.store_folder import Access
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import SCHEMA_VERSION
from tests.adapters.storage.processes import contents
from tests.adapters.storage.read_only import make_read_only
from tests.conformance.store import acquire_stream, batch, intent, read_all_events


async def fill(home: Path) -> None:
    log = await SqliteLog.open(home)
    await log.create("s", 1)
    await log.append(batch(await acquire_stream(log, "s"), 0, 300))
    await log.close()


async def refused(home: Path, match: str) -> None:
    before = contents(home)
    with pytest.raises(StoreFault, match=match) as fault:
        await SqliteLog.open(home, timeout=0.1)
    assert str(home) in str(fault.value)
    assert contents(home) == before


async def test_a_folder_is_made_with_all_that_leads_to_it(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b" / "ünï %20 ?#"
    await fill(home)
    assert (home / "greenroom.db").stat().st_size > 0
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


async def test_many_may_make_the_same_store_at_once(tmp_path: Path) -> None:
    logs = await asyncio.gather(*(SqliteLog.open(tmp_path / "home") for _ in range(8)))
    await logs[0].create("s", 1)
    assert [[info.stream for info in await log.streams()] for log in logs] == [["s"]] * 8
    for log in logs:
        await log.close()


async def test_people_can_read_the_log_with_any_sqlite_shell(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db:
        rows = db.execute("SELECT stream, version, at, type, data FROM event_log WHERE version < 3").fetchall()
    assert rows == [("s", 1, 1000, "Tested", "e0"), ("s", 2, 1001, "Tested", "e1")]


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be one " * 20, b"short"])
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "greenroom.db").write_bytes(content)
    (tmp_path / "blobs").mkdir()
    await refused(tmp_path, "is not a Greenroom database")


async def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "greenroom.db").touch()
    await refused(tmp_path, "is an empty file")


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db:
        db.execute("CREATE TABLE precious (id INTEGER)")
    await refused(tmp_path, "to another program")


async def test_a_database_of_a_newer_greenroom_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION + 1,))
    await refused(tmp_path, "written by a newer Greenroom")


async def test_a_database_of_an_older_greenroom_is_raised(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db, db:
        db.execute("UPDATE meta SET value = 0 WHERE key = 'schema'")
    await (await SqliteLog.open(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() == (SCHEMA_VERSION,)


async def test_a_database_that_does_not_say_its_schema_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "greenroom.db")) as db, db:
        db.execute("DELETE FROM meta")
    await refused(tmp_path, "is damaged")


async def test_a_damaged_database_is_refused_for_writing_and_found_out_by_the_check(tmp_path: Path) -> None:
    await fill(tmp_path)
    path = tmp_path / "greenroom.db"
    whole = path.read_bytes()
    page = whole.rindex(b"Tested") // 4096 * 4096
    path.write_bytes(whole[:page] + b"\xa5" * 4096 + whole[page + 4096 :])
    await refused(tmp_path, "is damaged")
    log = await SqliteLog.open(tmp_path, access="look")
    assert any("damaged" in sentence for sentence in await log.check())
    with pytest.raises(StoreFault, match="is damaged"):
        await read_all_events(log, "s")
    await log.close()


async def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("not a folder")
    await refused(tmp_path, "leases is a file")


@pytest.mark.parametrize("access", ["make", "look"])
async def test_a_folder_in_the_place_of_the_database_is_said(tmp_path: Path, access: Access) -> None:
    (tmp_path / "greenroom.db").mkdir()
    with pytest.raises(StoreFault, match="is a folder, not a database file"):
        await SqliteLog.open(tmp_path, access=access)


async def test_a_read_only_folder_is_refused(read_only: Path) -> None:
    make_read_only(read_only)
    await refused(read_only, "read-only")


async def test_a_database_locked_for_too_long_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "greenroom.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFault, match="is locked by another process"):
            await SqliteLog.open(tmp_path, timeout=0.05)
        db.execute("ROLLBACK")
    await (await SqliteLog.open(tmp_path)).close()


async def test_a_lock_that_lasts_too_long_costs_one_append_and_nothing_else(tmp_path: Path) -> None:
    await fill(tmp_path)
    log = await SqliteLog.open(tmp_path, timeout=0.05)
    lease = await acquire_stream(log, "s")
    with closing(sqlite3.connect(tmp_path / "greenroom.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFault, match="is locked by another process"):
            await log.append(batch(lease, 300))
        with pytest.raises(StoreFault, match="is locked by another process"):
            await log.put("s", intent("i1"))
        assert (await log.head("s")).version == 300
        db.execute("ROLLBACK")
    assert await log.append(batch(lease, 300)) == 301
    await log.close()


async def test_no_refusal_leaves_a_thread_or_a_file_open(tmp_path: Path) -> None:
    (tmp_path / "greenroom.db").write_bytes(b"no database " * 100)
    process = psutil.Process()
    before = 0
    for _ in range(5):
        with pytest.raises(StoreFault):
            await SqliteLog.open(tmp_path)
        before = before or process.num_fds()
    assert process.num_fds() == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("greenroom")]


async def test_rows_that_come_again_are_damage_and_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path)
    read_page = statements.read_page
    monkeypatch.setattr(
        statements, "read_page", lambda db, stream, after, upto: read_page(db, stream, 0, upto if after < 0 else 1)
    )
    log = await SqliteLog.open(tmp_path, access="look")
    with pytest.raises(StoreFault, match="its rows are not in order"):
        await read_all_events(log, "s")
    await log.close()
