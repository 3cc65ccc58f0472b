"""Other processes, killed and alive: what was acknowledged stays, who is dead owns nothing, what is lost is noticed."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.adapters.storage.sqlite.store_folder import SideRecord
from greenroom.core.base.errors import StaleOwner, StoreFault
from greenroom.core.ports.log import Lease, LeaseHolder
from tests.adapters.storage.processes import child, contents
from tests.conformance.store import STREAM, acquire_stream, batch, intent, read_all_events, wait_soon


async def killed_after(home: Path, acknowledged: int) -> None:
    with child("append", home, "s") as writer:
        known = max(writer.acknowledged(acknowledged), writer.kill())
    log = await SqliteLog.open(home)
    try:
        head = await log.head("s")
        assert head.version >= known
        assert [event.version for event in await read_all_events(log, "s")] == list(range(1, head.version + 1))
        assert await log.holder("s") is None
        lease = await log.acquire("s", "next")
        assert isinstance(lease, Lease)
        assert await log.append(batch(lease, head.version)) == head.version + 1
        assert list(await log.check()) == []
    finally:
        await log.close()


@pytest.mark.parametrize("acknowledged", [1, 2, 23, 150])
async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, acknowledged: int) -> None:
    await killed_after(tmp_path, acknowledged)


@pytest.mark.prove
@pytest.mark.parametrize("acknowledged", range(1, 101))
async def test_what_was_acknowledged_survives_kill_9_at_every_step(tmp_path: Path, acknowledged: int) -> None:
    await killed_after(tmp_path, acknowledged)


async def test_who_is_alive_in_another_process_is_respected(tmp_path: Path) -> None:
    with child("append", tmp_path, "s") as writer:
        log = await SqliteLog.open(tmp_path)
        assert await log.acquire("s", "me") == LeaseHolder(stream="s", owner="child", epoch=1)
        assert await log.holder("s") == LeaseHolder(stream="s", owner="child", epoch=1)
        with pytest.raises(StaleOwner, match="'child'"):
            await log.forget("s")
        writer.kill()
        assert await log.holder("s") is None
        assert (await acquire_stream(log, "s")).epoch == 2
        await log.close()


async def test_an_owner_that_slept_through_a_takeover_is_refused(tmp_path: Path) -> None:
    with child("answer", tmp_path, "s") as sleeper:
        os.kill(sleeper.process.pid, signal.SIGSTOP)
        log = await SqliteLog.open(tmp_path)
        assert isinstance(await log.acquire("s", "me"), LeaseHolder)
        lease = await acquire_stream(log, "s", force=True)
        assert await log.append(batch(lease, 0)) == 1
        await log.put("s", intent("i1"))
        os.kill(sleeper.process.pid, signal.SIGCONT)
        assert await asyncio.to_thread(sleeper.rest) == ["stale"]
        assert await log.append(batch(lease, 1, taken=["i1"])) == 2
        assert await log.holder("s") == LeaseHolder(stream="s", owner="me", epoch=2)
        await log.close()


async def test_two_processes_write_to_one_database(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path, poll=0.01)
    await log.create("mine", 1)
    lease = await acquire_stream(log, "mine")
    with child("append", tmp_path, "theirs", 300) as writer:
        seen: list[int] = []

        async def follow() -> None:
            async for page in log.tail("theirs"):
                seen.extend(event.version for event in page)
                if len(seen) >= 300:
                    return

        following = asyncio.create_task(follow())
        for version in range(150):
            await log.append(batch(lease, version))
        await wait_soon(following)
        assert len(await asyncio.to_thread(writer.rest)) > 0
    assert seen[:300] == list(range(1, 301))
    assert len(await read_all_events(log, "mine")) == 150
    assert list(await log.check()) == []
    await log.close()


async def test_a_second_terminal_is_answered_through_the_inbox(tmp_path: Path) -> None:
    with child("answer", tmp_path, "s", 30) as owner:
        log = await SqliteLog.open(tmp_path, poll=0.01)
        for number in range(30):
            await log.put("s", intent(f"i{number}"))
        async for page in log.tail("s"):
            if page[-1].version == 30:
                break
        outcomes = [await log.outcome("s", f"i{number}") for number in range(30)]
        assert outcomes == [f"done do i{number}".encode() for number in range(30)]
        await log.close()
        await asyncio.to_thread(owner.rest)


def _noted(side: SideRecord, version: int) -> None:
    deadline = time.monotonic() + 20
    while (mark := side.read()) is None or mark.version < version:
        assert time.monotonic() < deadline, mark
        time.sleep(0.01)


async def crashed(home: Path, versions: int = 120) -> int:
    """A store whose newest commits lie only in the WAL, as a killed process leaves it.

    They are few, so that the WAL has not begun anew with old ones behind its end; and the record beside it, which may
    lag behind, knows of them all.
    """
    side = SideRecord(home)
    with child("hold", home, "s", versions) as writer:
        known = 0
        while known < versions:
            known = writer.acknowledged(1)
        await asyncio.to_thread(_noted, side, known)
        writer.kill()
    return known


@pytest.mark.parametrize("damage", ["cut", "garbled", "deleted", "database"])
async def test_lost_commits_are_noticed_and_nothing_is_touched(tmp_path: Path, damage: str) -> None:
    await crashed(tmp_path)
    wal = tmp_path / "greenroom.db-wal"
    whole = wal.read_bytes()
    match damage:
        case "cut":
            wal.write_bytes(whole[: len(whole) // 2])
        case "garbled":
            wal.write_bytes(whole[: len(whole) // 2] + bytes(len(whole) // 2))
        case "deleted":
            wal.unlink()
        case _:
            (tmp_path / "greenroom.db").unlink()
    before = contents(tmp_path)
    with pytest.raises(StoreFault, match="has lost commits") as fault:
        await SqliteLog.open(tmp_path)
    assert "greenroom.head" in str(fault.value)
    assert contents(tmp_path) == before


async def test_the_loss_can_be_accepted(tmp_path: Path) -> None:
    known = await crashed(tmp_path)
    wal = tmp_path / "greenroom.db-wal"
    wal.write_bytes(wal.read_bytes()[: wal.stat().st_size // 2])
    log = await SqliteLog.open(tmp_path, accept_loss=True)
    head = await log.head("s")
    assert 0 < head.version < known
    lease = await acquire_stream(log, "s")
    await log.append(batch(lease, head.version))
    await log.close()
    again = await SqliteLog.open(tmp_path)
    assert (await again.head("s")).version == head.version + 1
    await again.close()


async def test_an_old_copy_put_back_is_noticed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = await SqliteLog.open(home)
    await log.create("s", 1)
    await log.close()
    copy = (home / "greenroom.db").read_bytes()
    log = await SqliteLog.open(home)
    await log.put("s", intent("i1"))
    await log.close()
    (home / "greenroom.db").write_bytes(copy)
    with pytest.raises(StoreFault, match="has lost commits"):
        await SqliteLog.open(home)


async def test_a_side_record_that_is_torn_or_gone_proves_nothing(tmp_path: Path) -> None:
    known = await crashed(tmp_path, 10)
    for content in (b"", b"1 2 3", b"\xff" * 200):
        (tmp_path / "greenroom.head").write_bytes(content)
        log = await SqliteLog.open(tmp_path)
        assert (await log.head("s")).version >= known
        await log.close()
    (tmp_path / "greenroom.head").unlink()
    await (await SqliteLog.open(tmp_path)).close()


async def test_a_forgotten_stream_is_no_loss(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path)
    await log.create("s", 1)
    await log.append(batch(await acquire_stream(log, "s"), 0, 5))
    await log.forget("s")
    await log.close()
    await (await SqliteLog.open(tmp_path)).close()


async def test_a_store_that_is_deleted_or_replaced_while_it_is_open_is_noticed(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path)
    await log.create(STREAM, 1)
    lease = await acquire_stream(log)
    await log.append(batch(lease, 0))
    (tmp_path / "greenroom.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(StoreFault, match="deleted or replaced"):
        await log.append(batch(lease, 1))
    await log.close()
