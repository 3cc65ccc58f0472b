"""The conformance suite of `Log` and `Blobs`: every sentence of the port as a test.

    class TestMyLog(LogConformance):
        async def open_store(self, folder, clock):
            return await MyLog.open(folder, clock=clock)

Requires pytest and pytest-asyncio.
"""

from __future__ import annotations

import asyncio

import pytest

from greenroom.core.base.errors import Bug, StaleOwner, StoreFault
from greenroom.core.ports.log import Lease, LeaseHolder, StateSnapshot, Store, StreamHead, StreamInfo
from tests.conformance.appends import AppendsConformance, ArchiveConformance
from tests.conformance.store import (
    STREAM,
    AdjustableClock,
    OpenLog,
    StoreCase,
    acquire_stream,
    batch,
    finish,
    intent,
    make_archive_row,
    read_all_events,
    wait_soon,
)

HOUR = 3600.0
DAY = 24 * HOUR


class InboxConformance(StoreCase):
    """Intents of processes that do not own the stream."""

    async def test_an_intent_id_is_taken_once(self, log: Store) -> None:
        assert await log.put(STREAM, intent("i1")) is True
        assert await log.put(STREAM, intent("i1")) is False
        assert await log.list_inbox(STREAM) == [intent("i1")]

    async def test_an_intent_id_stays_taken_after_its_answer(self, log: Store, lease: Lease) -> None:
        await log.put(STREAM, intent("i1"))
        await log.append(batch(lease, 0, taken=["i1"]))
        assert await log.put(STREAM, intent("i1")) is False
        assert await log.list_inbox(STREAM) == []

    async def test_intents_wait_oldest_first(self, log: Store) -> None:
        for name in ("c", "a", "b"):
            await log.put(STREAM, intent(name))
        assert [row.intent_id for row in await log.list_inbox(STREAM)] == ["c", "a", "b"]

    async def test_an_outcome_is_there_once_the_owner_took_the_intent(self, log: Store, lease: Lease) -> None:
        await log.put(STREAM, intent("i1"))
        assert await log.outcome(STREAM, "i1") is None
        assert await log.outcome(STREAM, "unknown") is None
        await log.append(batch(lease, 0, taken=["i1"]))
        assert await log.outcome(STREAM, "i1") == b"done i1"

    async def test_a_sender_can_wait_for_its_answer(self, open_log: OpenLog, log: Store) -> None:
        lease = await acquire_stream(log)
        sender = await open_log()
        await sender.put(STREAM, intent("i1"))
        answer = asyncio.create_task(sender.answer(STREAM, "i1"))
        await log.append(batch(lease, 0))
        await log.append(batch(lease, 1, taken=["i1"]))
        assert await wait_soon(answer) == b"done i1"
        assert await wait_soon(sender.answer(STREAM, "i1")) == b"done i1"

    async def test_waiting_for_an_answer_ends_with_the_stream(self, log: Store) -> None:
        await log.put(STREAM, intent("i1"))
        answer = asyncio.create_task(log.answer(STREAM, "i1"))
        await asyncio.sleep(0)
        await log.forget(STREAM)
        with pytest.raises(StoreFault, match="There is no"):
            await wait_soon(answer)

    async def test_an_intent_cannot_be_taken_twice(self, log: Store, lease: Lease) -> None:
        await log.put(STREAM, intent("i1"))
        await log.append(batch(lease, 0, taken=["i1"]))
        with pytest.raises(Bug, match="'i1'"):
            await log.append(batch(lease, 1, taken=["i1"]))
        assert (await log.head(STREAM)).version == 1

    async def test_an_intent_belongs_to_its_stream(self, log: Store, lease: Lease) -> None:
        await log.create("team-2", 2)
        await log.put("team-2", intent("i1"))
        assert await log.list_inbox(STREAM) == []
        with pytest.raises(Bug):
            await log.append(batch(lease, 0, taken=["i1"]))
        assert await log.put(STREAM, intent("i1")) is True

    async def test_arrivals_are_those_that_wait_and_then_each_new_one_once(self, log: Store) -> None:
        await log.put(STREAM, intent("i1"))
        await log.put(STREAM, intent("i2"))
        arrivals = log.arrivals(STREAM)
        assert [row.intent_id for row in await wait_soon(anext(arrivals))] == ["i1", "i2"]
        coming = asyncio.ensure_future(anext(arrivals))
        await log.put(STREAM, intent("i3"))
        assert [row.intent_id for row in await wait_soon(coming)] == ["i3"]
        await finish(arrivals)

    async def test_an_intent_put_by_another_instance_arrives(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        arrivals = log.arrivals(STREAM)
        coming = asyncio.ensure_future(anext(arrivals))
        await asyncio.sleep(0)
        await other.put(STREAM, intent("i1"))
        assert [row.intent_id for row in await wait_soon(coming)] == ["i1"]
        await finish(arrivals)

    async def test_an_intent_taken_by_an_earlier_owner_does_not_arrive(self, log: Store, lease: Lease) -> None:
        for name in ("i1", "i2"):
            await log.put(STREAM, intent(name))
        await log.append(batch(lease, 0, taken=["i1"]))
        arrivals = log.arrivals(STREAM)
        assert [row.intent_id for row in await wait_soon(anext(arrivals))] == ["i2"]
        await finish(arrivals)


class LeaseConformance(StoreCase):
    """A stream has a single owner at a time."""

    async def test_a_new_stream_is_made_and_owned_at_once(self, log: Store) -> None:
        """Acquiring an existing stream does not return its first lease."""
        first = Lease(stream="new", owner="me", epoch=1)
        assert await log.acquire("new", "me", made_at=5) == first
        assert ("new", 5) in [(info.stream, info.created_at) for info in await log.streams()]
        await log.release(first)
        assert await log.acquire("new", "me", made_at=6) == Lease(stream="new", owner="me", epoch=2)

    async def test_a_free_stream_is_acquired(self, log: Store) -> None:
        assert await log.holder(STREAM) is None
        assert await log.acquire(STREAM, "me") == Lease(stream=STREAM, owner="me", epoch=1)
        assert await log.holder(STREAM) == LeaseHolder(stream=STREAM, owner="me", epoch=1)

    async def test_a_stream_that_another_instance_owns_is_held(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        await acquire_stream(log, owner="first")
        assert await other.acquire(STREAM, "second") == LeaseHolder(stream=STREAM, owner="first", epoch=1)
        assert await other.holder(STREAM) == LeaseHolder(stream=STREAM, owner="first", epoch=1)

    async def test_another_owner_of_the_same_instance_is_held_too(self, log: Store) -> None:
        await acquire_stream(log, owner="first")
        assert isinstance(await log.acquire(STREAM, "second"), LeaseHolder)

    async def test_of_many_who_want_a_stream_one_gets_it(self, open_log: OpenLog, log: Store) -> None:
        logs = [log, *[await open_log() for _ in range(4)]]
        answers = await wait_soon(
            asyncio.gather(*(instance.acquire(STREAM, f"o{n}") for n, instance in enumerate(logs)))
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["Lease"] + ["LeaseHolder"] * 4

    async def test_an_owner_who_acquires_again_is_told_that_it_is_held(self, log: Store) -> None:
        lease = await acquire_stream(log)
        assert await log.acquire(STREAM, "me") == LeaseHolder(stream=STREAM, owner="me", epoch=lease.epoch)
        assert await log.append(batch(lease, 0)) == 1
        await log.release(lease)
        assert (await acquire_stream(log)).epoch > lease.epoch

    async def test_of_many_tries_of_one_owner_one_gets_the_stream(self, log: Store) -> None:
        answers = await wait_soon(asyncio.gather(*(log.acquire(STREAM, "me") for _ in range(5))))
        assert sorted(type(answer).__name__ for answer in answers) == ["Lease"] + ["LeaseHolder"] * 4

    async def test_who_goes_away_while_it_acquires_keeps_nothing(self, log: Store) -> None:
        acquisition = asyncio.ensure_future(log.acquire(STREAM, "me"))
        await asyncio.sleep(0)
        acquisition.cancel()
        (lease,) = await asyncio.gather(acquisition, return_exceptions=True)
        if isinstance(lease, Lease):
            await log.release(lease)  # it was faster than the cancellation
        for _ in range(1000):
            if isinstance(await log.acquire(STREAM, "me"), Lease):
                return
        raise AssertionError("the stream is free, but cannot be acquired")

    async def test_acquiring_again_by_force_raises_the_epoch(self, log: Store) -> None:
        first = await acquire_stream(log)
        second = await acquire_stream(log, force=True)
        assert second.epoch > first.epoch
        with pytest.raises(StaleOwner):
            await log.append(batch(first, 0))
        assert await log.append(batch(second, 0)) == 1

    async def test_force_takes_over_from_a_living_owner(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        first = await acquire_stream(log, owner="first")
        second = await acquire_stream(other, owner="second", force=True)
        assert second.epoch > first.epoch
        with pytest.raises(StaleOwner, match="'second'"):
            await log.append(batch(first, 0))
        assert await other.append(batch(second, 0)) == 1
        assert await log.holder(STREAM) == LeaseHolder(stream=STREAM, owner="second", epoch=second.epoch)

    async def test_releasing_a_stale_lease_is_harmless(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        first = await acquire_stream(log, owner="first")
        second = await acquire_stream(other, owner="second", force=True)
        await log.release(first)
        await log.release(first)
        assert await log.holder(STREAM) == LeaseHolder(stream=STREAM, owner="second", epoch=second.epoch)
        assert isinstance(await log.acquire(STREAM, "third"), LeaseHolder)
        assert await other.append(batch(second, 0)) == 1

    async def test_an_older_lease_of_the_same_instance_does_not_release_the_newer(self, log: Store) -> None:
        first = await acquire_stream(log)
        second = await acquire_stream(log, force=True)
        await log.release(first)
        assert await log.holder(STREAM) == LeaseHolder(stream=STREAM, owner="me", epoch=second.epoch)
        assert await log.append(batch(second, 0)) == 1

    async def test_a_released_stream_is_free(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        lease = await acquire_stream(log, owner="first")
        await log.release(lease)
        assert await other.holder(STREAM) is None
        assert (await acquire_stream(other, owner="second")).epoch > lease.epoch

    async def test_nobody_appends_with_a_released_lease(self, log: Store, lease: Lease) -> None:
        await log.release(lease)
        with pytest.raises(StaleOwner):
            await log.append(batch(lease, 0))

    async def test_closing_frees_what_the_instance_owned(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        lease = await acquire_stream(log, owner="first")
        await log.close()
        assert await other.holder(STREAM) is None
        assert (await acquire_stream(other, owner="second")).epoch > lease.epoch

    async def test_an_owner_of_one_stream_does_not_hold_another(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        await log.create("team-2", 2)
        await acquire_stream(log)
        assert (await acquire_stream(other, "team-2")).epoch == 1


class UpkeepConformance(StoreCase):
    """Listing, deleting, garbage collection and checking."""

    async def test_streams_are_listed_oldest_first(self, log: Store) -> None:
        await log.create("younger", 30)
        await log.create("middle", 20)
        assert [info.stream for info in await log.streams()] == [STREAM, "middle", "younger"]

    async def test_a_listed_stream_tells_head_owner_and_sizes(self, log: Store, lease: Lease) -> None:
        digest = await log.put_blob(b"12345")
        await log.append(batch(lease, 0, 2, name="b1", archive=[make_archive_row("s1", 1)], blobs=[digest]))
        await log.append(batch(lease, 2, 1, name="b2"))
        assert await log.streams() == [
            StreamInfo(
                stream=STREAM,
                created_at=1,
                head=StreamHead(version=3, epoch=lease.epoch, batch="b2"),
                owner="me",
                event_bytes=6,
                archive_bytes=len(make_archive_row("s1", 1).data),
                blob_bytes=5,
            )
        ]
        await log.release(lease)
        assert [info.owner for info in await log.streams()] == [None]

    async def test_a_forgotten_stream_is_gone_with_everything_beside_it(self, log: Store, lease: Lease) -> None:
        await log.put(STREAM, intent("i1"))
        await log.append(batch(lease, 0, 3, archive=[make_archive_row("s1", 1)]))
        await log.save_snapshot(STREAM, StateSnapshot(version=3, fingerprint="f", data=b"world"))
        await log.forget(STREAM)
        assert await log.streams() == []
        with pytest.raises(StoreFault, match="There is no"):
            await log.head(STREAM)
        assert await log.create(STREAM, 9) is True
        assert await read_all_events(log) == []
        assert await log.list_inbox(STREAM) == []
        assert await log.read_archive(STREAM, "step") == []
        assert await log.load_snapshot(STREAM, "f") is None
        assert await log.append(batch(await acquire_stream(log), 0)) == 1

    async def test_forgetting_touches_no_other_stream(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 3, archive=[make_archive_row("s1", 1)]))
        await log.create("team-2", 2)
        await log.append(batch(await acquire_stream(log, "team-2"), 0, 2))
        await log.forget("team-2")
        assert len(await read_all_events(log)) == 3
        assert await log.find(STREAM, "step", "s1") is not None

    async def test_a_stream_that_somebody_else_owns_is_not_forgotten(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        lease = await acquire_stream(log)
        with pytest.raises(StaleOwner, match="'me'"):
            await other.forget(STREAM)
        assert await log.append(batch(lease, 0)) == 1

    async def test_a_stream_that_nobody_owns_is_forgotten_by_anybody(self, open_log: OpenLog, log: Store) -> None:
        other = await open_log()
        await other.forget(STREAM)
        assert await log.streams() == []

    async def test_an_unknown_stream_cannot_be_forgotten(self, log: Store) -> None:
        with pytest.raises(StoreFault, match="There is no"):
            await log.forget("team-9")

    async def test_a_blob_that_nothing_names_is_collected_after_an_hour(
        self, log: Store, clock: AdjustableClock
    ) -> None:
        digest = await log.put_blob(b"x" * 5000)
        await log.collect()
        assert await log.get_blob(digest)
        clock.offset_s += 2 * HOUR
        assert await log.collect() >= 5000
        with pytest.raises(StoreFault):
            await log.get_blob(digest)

    async def test_a_blob_that_an_event_names_stays(self, log: Store, lease: Lease, clock: AdjustableClock) -> None:
        digest = await log.put_blob(b"x" * 5000)
        await log.append(batch(lease, 0, blobs=[digest]))
        clock.offset_s += 2 * HOUR
        await log.collect()
        assert await log.get_blob(digest) == b"x" * 5000

    async def test_a_blob_of_a_forgotten_stream_is_collected(
        self, log: Store, lease: Lease, clock: AdjustableClock
    ) -> None:
        digest = await log.put_blob(b"x" * 5000)
        await log.append(batch(lease, 0, blobs=[digest]))
        await log.forget(STREAM)
        clock.offset_s += 2 * HOUR
        assert await log.collect() >= 5000
        with pytest.raises(StoreFault):
            await log.get_blob(digest)

    async def test_an_answered_intent_is_collected_after_a_day(
        self, log: Store, lease: Lease, clock: AdjustableClock
    ) -> None:
        for name in ("answered", "waiting"):
            await log.put(STREAM, intent(name))
        await log.append(batch(lease, 0, taken=["answered"]))
        clock.offset_s += DAY / 2
        await log.collect()
        assert await log.outcome(STREAM, "answered") is not None
        clock.offset_s += DAY
        await log.collect()
        assert await log.outcome(STREAM, "answered") is None
        assert [row.intent_id for row in await log.list_inbox(STREAM)] == ["waiting"]

    async def test_collecting_while_others_append_loses_nothing(self, log: Store, lease: Lease) -> None:
        async def grow() -> None:
            for expected in range(50):
                digest = await log.put_blob(f"blob {expected % 7}".encode())
                await log.append(batch(lease, expected, blobs=[digest]))

        async def collect() -> None:
            for _ in range(5):
                await log.collect()

        await wait_soon(asyncio.gather(grow(), collect()))
        assert len(await read_all_events(log)) == 50
        assert list(await log.check()) == []

    async def test_a_sound_store_has_nothing_to_tell(self, log: Store, lease: Lease) -> None:
        digest = await log.put_blob(b"large")
        await log.append(batch(lease, 0, 3, archive=[make_archive_row("s1", 1)], blobs=[digest]))
        assert list(await log.check()) == []


class LogConformance(AppendsConformance, ArchiveConformance, InboxConformance, LeaseConformance, UpkeepConformance):
    """Inherit from this class and implement `open_store`."""
