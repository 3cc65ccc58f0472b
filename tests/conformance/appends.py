"""Tests of a log's content: appended batches, snapshots, blobs and archives."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence

import pytest

from greenroom.core.base.errors import Bug, StaleOwner, StoreFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.log import (
    ArchiveRow,
    EventBatch,
    Lease,
    Log,
    NewEvent,
    StateSnapshot,
    Store,
    StoredEvent,
    StreamHead,
)
from tests.conformance.store import (
    STREAM,
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


class AppendsConformance(StoreCase):
    """Streams, versions, fencing, atomicity, reading and following."""

    async def test_a_stream_is_created_once(self, log: Store) -> None:
        assert await log.create("team-2", 2) is True
        assert await log.create("team-2", 3) is False

    async def test_a_new_stream_is_at_version_0(self, log: Store) -> None:
        assert await log.head(STREAM) == StreamHead(version=0, epoch=0, batch="")
        assert await read_all_events(log) == []

    async def test_an_unknown_stream_is_a_clear_fault(self, log: Store) -> None:
        with pytest.raises(StoreFault, match=r"There is no .*'team-9'"):
            await log.head("team-9")
        with pytest.raises(StoreFault, match=r"There is no .*'team-9'"):
            await read_all_events(log, "team-9")
        with pytest.raises(StoreFault, match=r"There is no .*'team-9'"):
            await log.acquire("team-9", "me")
        with pytest.raises(StoreFault, match=r"There is no .*'team-9'"):
            await log.put("team-9", intent("i"))
        with pytest.raises(StoreFault, match=r"There is no .*'team-9'"):
            await log.append(batch(Lease(stream="team-9", owner="me", epoch=1), 0))

    async def test_versions_count_from_1_without_holes(self, log: Store, lease: Lease) -> None:
        assert await log.append(batch(lease, 0, 3)) == 3
        assert await log.append(batch(lease, 3, 2)) == 5
        assert [event.version for event in await read_all_events(log)] == [1, 2, 3, 4, 5]

    async def test_an_event_comes_back_as_it_went_in(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, text="ünï\x00"))
        assert await read_all_events(log) == [StoredEvent(version=1, at=1000, type="Tested", data="ünï\x000".encode())]

    async def test_the_head_tells_version_epoch_and_batch_of_the_newest_append(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 2, name="first"))
        await log.append(batch(lease, 2, 1, name="second"))
        assert await log.head(STREAM) == StreamHead(version=3, epoch=lease.epoch, batch="second")

    async def test_the_head_keeps_the_epoch_that_wrote_it_when_the_owner_changes(
        self, log: Store, lease: Lease
    ) -> None:
        await log.append(batch(lease, 0, name="first"))
        await acquire_stream(log, owner="other", force=True)
        assert await log.head(STREAM) == StreamHead(version=1, epoch=lease.epoch, batch="first")

    async def test_a_batch_without_events_is_a_batch(self, log: Store, lease: Lease) -> None:
        await log.put(STREAM, intent("i1"))
        assert await log.append(batch(lease, 0, 0, name="answer", taken=["i1"])) == 0
        assert (await log.head(STREAM)).batch == "answer"

    async def test_a_stale_epoch_is_refused(self, log: Store, lease: Lease) -> None:
        newer = await acquire_stream(log, owner="other", force=True)
        with pytest.raises(StaleOwner, match=f"'other' with epoch {newer.epoch}"):
            await log.append(batch(lease, 0))
        assert await log.append(batch(newer, 0)) == 1

    async def test_an_epoch_that_nobody_has_yet_is_refused(self, log: Store, lease: Lease) -> None:
        with pytest.raises(StaleOwner):
            await log.append(batch(Lease(stream=STREAM, owner="me", epoch=lease.epoch + 1), 0))

    async def test_nobody_appends_without_a_lease(self, log: Store) -> None:
        with pytest.raises(StaleOwner):
            await log.append(batch(Lease(stream=STREAM, owner="me", epoch=0), 0))

    @pytest.mark.parametrize("expected", [0, 1, 3])
    async def test_a_stale_version_is_refused(self, log: Store, lease: Lease, expected: int) -> None:
        await log.append(batch(lease, 0, 2))
        with pytest.raises(StaleOwner, match=f"at version 2, not {expected}"):
            await log.append(batch(lease, expected))

    async def test_nothing_of_a_refused_batch_is_visible(self, log: Store, lease: Lease) -> None:
        digest = await log.put_blob(b"large")
        await log.put(STREAM, intent("i1"))
        await log.append(batch(lease, 0, 1, name="good"))
        with pytest.raises(StaleOwner):
            await log.append(batch(lease, 0, 3, archive=[make_archive_row("s1", 1)], taken=["i1"], blobs=[digest]))
        assert len(await read_all_events(log)) == 1
        assert (await log.head(STREAM)).batch == "good"
        assert await log.find(STREAM, "step", "s1") is None
        assert await log.outcome(STREAM, "i1") is None
        assert [info.blob_bytes for info in await log.streams()] == [0]

    async def test_events_archive_and_taken_rows_are_one_transaction(self, log: Store, lease: Lease) -> None:
        await log.put(STREAM, intent("i1"))
        with pytest.raises(Bug):
            await log.append(batch(lease, 0, 2, archive=[make_archive_row("s1", 1)], taken=["i1", "never put"]))
        assert await read_all_events(log) == []
        assert await log.find(STREAM, "step", "s1") is None
        assert await log.outcome(STREAM, "i1") is None
        assert await log.append(batch(lease, 0, 2, archive=[make_archive_row("s1", 1)], taken=["i1"])) == 2
        assert await log.find(STREAM, "step", "s1") == make_archive_row("s1", 1)
        assert await log.outcome(STREAM, "i1") == b"done i1"

    async def test_one_bad_append_does_not_hurt_the_others_of_its_group(self, log: Store) -> None:
        leases = []
        for n in range(9):
            await log.create(f"s{n}", n)
            leases.append(await acquire_stream(log, f"s{n}"))
        batches = [batch(lease, 0, 2, archive=[make_archive_row("s", 1)]) for lease in leases]
        batches[2] = batch(leases[2], 7, 2)
        batches[5] = batch(leases[5], 0, 2, archive=[make_archive_row("s", 1)], taken=["never put"])
        answers = await asyncio.gather(*(log.append(new_batch) for new_batch in batches), return_exceptions=True)
        assert [type(answer) for answer in answers] == [int, int, StaleOwner, int, int, Bug, int, int, int]
        for n, lease in enumerate(leases):
            good = n not in {2, 5}
            assert len(await read_all_events(log, lease.stream)) == (2 if good else 0)
            assert (await log.find(lease.stream, "step", "s") is not None) is good

    async def test_many_streams_grow_side_by_side(self, log: Store) -> None:
        async def grow(n: int) -> None:
            await log.create(f"s{n}", n)
            lease = await acquire_stream(log, f"s{n}")
            for expected in range(0, 30, 3):
                await log.append(batch(lease, expected, 3, text=f"{n}-{expected}-"))

        await wait_soon(asyncio.gather(*(grow(n) for n in range(40))))
        for n in range(40):
            found = await read_all_events(log, f"s{n}")
            assert [event.version for event in found] == list(range(1, 31))
            assert found[4].data == f"{n}-3-1".encode()

    async def test_of_two_appends_at_the_same_version_one_is_refused(self, log: Store, lease: Lease) -> None:
        answers = await asyncio.gather(
            log.append(batch(lease, 0, 1, text="a")), log.append(batch(lease, 0, 1, text="b")), return_exceptions=True
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["StaleOwner", "int"]
        assert len(await read_all_events(log)) == 1

    async def test_a_cancelled_append_leaves_all_of_it_or_nothing(self, log: Store, lease: Lease) -> None:
        task = asyncio.create_task(log.append(batch(lease, 0, 3)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])  # a store without latency was done before
        await log.put(STREAM, intent("barrier"))  # everything in transit has arrived
        version = (await log.head(STREAM)).version
        assert version in {0, 3}
        assert await log.append(batch(lease, version, 1)) == version + 1

    async def test_a_large_batch_is_written_and_read_in_pages(self, log: Store, lease: Lease) -> None:
        rows = [make_archive_row(f"s{n}", n) for n in range(1, 1201)]
        assert await log.append(batch(lease, 0, 3001, archive=rows)) == 3001
        pages = [page async for page in log.read(STREAM)]
        assert len(pages) > 1
        assert [event.version for page in pages for event in page] == list(range(1, 3002))
        assert len(await log.read_archive(STREAM, "step", limit=5000)) == 1200

    async def test_reading_keeps_to_its_bounds(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 700))
        assert [event.version for event in await read_all_events(log, after=2, upto=5)] == [3, 4, 5]
        assert [event.version for event in await read_all_events(log, after=698)] == [699, 700]
        assert len(await read_all_events(log, upto=600)) == 600
        assert await read_all_events(log, after=700) == []
        assert await read_all_events(log, after=5, upto=5) == []
        assert await read_all_events(log, upto=0) == []

    async def test_a_stream_reads_only_its_own_events(self, log: Store, lease: Lease) -> None:
        await log.create("team-2", 2)
        other = await acquire_stream(log, "team-2")
        await log.append(batch(other, 0, 2, text="other"))
        await log.append(batch(lease, 0, 1, text="mine"))
        assert [event.data for event in await read_all_events(log)] == [b"mine0"]
        assert [event.data for event in await read_all_events(log, "team-2")] == [b"other0", b"other1"]

    async def test_a_tail_reads_what_is_there_and_then_what_comes(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 2))
        tail = log.tail(STREAM, after=1)
        assert [event.version for event in await wait_soon(anext(tail))] == [2]
        following = asyncio.ensure_future(anext(tail))
        await log.append(batch(lease, 2, 2))
        assert [event.version for event in await wait_soon(following)] == [3, 4]
        await finish(tail)

    async def test_a_tail_sees_what_another_instance_commits(self, open_log: OpenLog, log: Store) -> None:
        watcher = await open_log()
        lease = await acquire_stream(log)
        seen = asyncio.create_task(self._follow(watcher, 20))
        for expected in range(20):
            await log.append(batch(lease, expected))
        assert await wait_soon(seen) == list(range(1, 21))

    @staticmethod
    async def _follow(log: Log, upto: int) -> list[int]:
        versions: list[int] = []
        async for page in log.tail(STREAM):
            versions += [event.version for event in page]
            if versions[-1] >= upto:
                return versions
        return versions

    async def test_two_tails_see_the_same(self, log: Store, lease: Lease) -> None:
        tails = [asyncio.create_task(self._follow(log, 5)) for _ in range(2)]
        for expected in range(5):
            await log.append(batch(lease, expected))
        assert await wait_soon(asyncio.gather(*tails)) == [[1, 2, 3, 4, 5]] * 2

    async def test_what_was_acknowledged_is_there_when_it_is_opened_again(self, open_log: OpenLog, log: Store) -> None:
        lease = await acquire_stream(log)
        await log.append(batch(lease, 0, 4, name="last"))
        await log.close()
        again = await open_log()
        assert await again.head(STREAM) == StreamHead(version=4, epoch=lease.epoch, batch="last")
        assert len(await read_all_events(again)) == 4

    async def test_a_closed_log_says_so(self, log: Store, lease: Lease) -> None:
        await log.close()
        await log.close()
        for call in (log.append(batch(lease, 0)), log.head(STREAM), log.streams(), log.put_blob(b"x")):
            with pytest.raises(StoreFault, match="was closed"):
                await call

    async def test_closing_ends_a_tail_with_a_clear_fault(self, log: Store) -> None:
        following = asyncio.create_task(self._follow(log, 1))
        await asyncio.sleep(0)
        await log.close()
        with pytest.raises(StoreFault, match="was closed"):
            await wait_soon(following)


def snapshot(version: int, fingerprint: str = "f1") -> StateSnapshot:
    """Return a small snapshot."""
    return StateSnapshot(version=version, fingerprint=fingerprint, data=f"{fingerprint}@{version}".encode())


async def pages(*rows: Sequence[ArchiveRow]) -> AsyncIterator[Sequence[ArchiveRow]]:
    """Yield rows in the form of a replay."""
    for page in rows:
        yield page


async def broken_pages() -> AsyncIterator[Sequence[ArchiveRow]]:
    """Fail half-way through a replay."""
    yield [make_archive_row("new", 1)]
    raise ValueError("broken")


class ArchiveConformance(StoreCase):
    """Archives, snapshots, blobs, and the number of pending questions."""

    async def test_how_many_questions_wait_is_what_was_said_last(self, log: Store, lease: Lease) -> None:
        async def count_questions() -> list[int | None]:
            return [info.questions for info in await log.streams()]

        await log.append(batch(lease, 0))
        assert await count_questions() == [None]
        await log.append(evolve(batch(lease, 1), questions=2))
        await log.append(batch(lease, 2))
        assert await count_questions() == [2]
        await log.append(evolve(batch(lease, 3), questions=0))
        assert await count_questions() == [0]
        await log.forget(STREAM)
        await log.create(STREAM, 1)
        assert await count_questions() == [None]

    async def test_archive_rows_come_by_version(self, log: Store, lease: Lease) -> None:
        await log.append(
            batch(lease, 0, 3, archive=[make_archive_row("b", 1), make_archive_row("a", 2), make_archive_row("c", 3)])
        )
        assert [row.key for row in await log.read_archive(STREAM, "step")] == ["b", "a", "c"]

    async def test_archive_rows_can_be_asked_by_kind_owner_version_and_number(self, log: Store, lease: Lease) -> None:
        rows = [make_archive_row(f"s{n}", n, owner=f"t{n % 2}") for n in range(1, 7)] + [
            make_archive_row("m1", 7, kind="message", owner="t1")
        ]
        await log.append(batch(lease, 0, 7, archive=rows))
        assert [row.key for row in await log.read_archive(STREAM, "message")] == ["m1"]
        assert [row.key for row in await log.read_archive(STREAM, "step", owner="t1")] == ["s1", "s3", "s5"]
        assert [row.key for row in await log.read_archive(STREAM, "step", owner="t0", after=2)] == ["s4", "s6"]
        assert [row.key for row in await log.read_archive(STREAM, "step", after=1, limit=2)] == ["s2", "s3"]
        assert await log.read_archive(STREAM, "note") == []

    async def test_one_archive_row_is_found_by_its_key(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, archive=[make_archive_row("s1", 1)]))
        assert await log.find(STREAM, "step", "s1") == make_archive_row("s1", 1)
        assert await log.find(STREAM, "step", "s2") is None
        assert await log.find(STREAM, "task", "s1") is None

    async def test_the_newest_row_of_a_key_is_found(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, archive=[make_archive_row("s1", 1)]))
        await log.append(batch(lease, 1, 1, archive=[make_archive_row("s1", 2)]))
        assert await log.find(STREAM, "step", "s1") == make_archive_row("s1", 2)

    async def test_a_chain_leads_back_from_an_event_oldest_first(self, log: Store, lease: Lease) -> None:
        links = (0, 0, 1, 0, 3)
        events = [NewEvent(at=1, type="Linked", data=b'{"previous":%d}' % link) for link in links]
        append = EventBatch(stream=STREAM, expected_version=0, epoch=lease.epoch, batch="linked", events=events)
        await log.append(append)
        assert [event.version for event in await log.chain(STREAM, 5)] == [1, 3, 5]
        assert [event.version for event in await log.chain(STREAM, 5, limit=2)] == [3, 5]
        assert [event.version for event in await log.chain(STREAM, 2)] == [2]
        assert list(await log.chain(STREAM, 0)) == list(await log.chain(STREAM, 9)) == []

    async def test_single_events_can_be_picked(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1200))
        assert [event.version for event in await log.pick(STREAM, [7, 3, 1200, 5000])] == [3, 7, 1200]
        assert len(await log.pick(STREAM, range(1, 1201))) == 1200
        assert list(await log.pick(STREAM, [])) == []

    async def test_the_newest_event_that_says_something_is_found(self, log: Store, lease: Lease) -> None:
        said = [("Said", "a"), ("Said", "b"), ("Said", "a"), ("Heard", "a"), ("Said", 'a\u00e9 "x')]
        events = [NewEvent(at=1, type=kind, data=json.dumps({"word": word}).encode()) for kind, word in said]
        append = EventBatch(stream=STREAM, expected_version=0, epoch=lease.epoch, batch="said", events=events)
        await log.append(append)
        await log.create("team-2", 2)

        async def version(type_: str, field: str, value: str, stream: str = STREAM) -> int:
            found = await log.newest(stream, type_, field, value)
            return found.version if found is not None else 0

        assert [await version("Said", "word", word) for word in ("a", "b", 'a\u00e9 "x')] == [3, 2, 5]
        assert await version("Heard", "word", "a") == 4
        assert [await version("Heard", "word", "b"), await version("Said", "name", "a")] == [0, 0]
        assert await version("Said", "word", "a", "team-2") == 0

    async def test_one_event_moves_one_record(self, log: Store, lease: Lease) -> None:
        with pytest.raises(Bug):
            await log.append(batch(lease, 0, 1, archive=[make_archive_row("s1", 1), make_archive_row("s2", 1)]))
        assert (await log.head(STREAM)).version == 0
        assert await log.read_archive(STREAM, "step") == []

    async def test_an_archive_belongs_to_its_stream(self, log: Store, lease: Lease) -> None:
        await log.create("team-2", 2)
        await log.append(batch(lease, 0, 1, archive=[make_archive_row("s1", 1)]))
        assert await log.read_archive("team-2", "step") == []
        assert await log.find("team-2", "step", "s1") is None

    async def test_a_rebuilt_archive_takes_the_place_of_the_old_one(self, log: Store, lease: Lease) -> None:
        await log.create("team-2", 2)
        other = await acquire_stream(log, "team-2")
        await log.append(batch(other, 0, 1, archive=[make_archive_row("theirs", 1)]))
        await log.append(batch(lease, 0, 2, archive=[make_archive_row("old", 1), make_archive_row("both", 2)]))
        fresh = [make_archive_row(f"n{n}", n) for n in range(3, 600)]
        assert (
            await log.rebuild_archive(
                STREAM, pages([make_archive_row("new", 1), make_archive_row("both", 2)], fresh, [])
            )
            == 599
        )
        assert [row.key for row in (await log.read_archive(STREAM, "step"))[:3]] == ["new", "both", "n3"]
        assert await log.find(STREAM, "step", "old") is None
        assert len(await log.read_archive("team-2", "step")) == 1
        sizes = {info.stream: info.archive_bytes for info in await log.streams()}
        assert sizes[STREAM] == sum(len(row.data) for row in await log.read_archive(STREAM, "step"))

    async def test_an_archive_stays_as_it_was_when_rebuilding_fails(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, archive=[make_archive_row("old", 1)]))
        with pytest.raises(ValueError, match="broken"):
            await log.rebuild_archive(STREAM, broken_pages())
        assert [row.key for row in await log.read_archive(STREAM, "step")] == ["old"]
        assert await log.rebuild_archive(STREAM, pages([make_archive_row("newer", 1)])) == 1
        assert [row.key for row in await log.read_archive(STREAM, "step")] == ["newer"]

    async def test_a_snapshot_comes_back_as_it_went_in(self, log: Store) -> None:
        assert await log.load_snapshot(STREAM, "f1") is None
        await log.save_snapshot(STREAM, snapshot(10))
        assert await log.load_snapshot(STREAM, "f1") == snapshot(10)

    async def test_a_snapshot_of_other_reducers_is_not_given(self, log: Store) -> None:
        await log.save_snapshot(STREAM, snapshot(10, "f1"))
        assert await log.load_snapshot(STREAM, "f2") is None

    async def test_a_snapshot_newer_than_wanted_is_not_given(self, log: Store) -> None:
        await log.save_snapshot(STREAM, snapshot(10))
        assert await log.load_snapshot(STREAM, "f1", upto=9) is None
        assert await log.load_snapshot(STREAM, "f1", upto=10) == snapshot(10)

    async def test_a_new_snapshot_replaces_the_older_ones_of_other_reducers(self, log: Store) -> None:
        await log.save_snapshot(STREAM, snapshot(10, "f1"))
        await log.save_snapshot(STREAM, snapshot(20, "f2"))
        assert await log.load_snapshot(STREAM, "f1") is None
        assert await log.load_snapshot(STREAM, "f2") == snapshot(20, "f2")

    async def test_snapshots_of_the_past_stay(self, log: Store) -> None:
        for version in (10, 20, 30):
            await log.save_snapshot(STREAM, snapshot(version))
        found = [await log.load_snapshot(STREAM, "f1", upto=upto) for upto in (9, 10, 25, None)]
        assert found == [None, snapshot(10), snapshot(20), snapshot(30)]

    async def test_an_older_snapshot_does_not_replace_a_newer_one(self, log: Store) -> None:
        await log.save_snapshot(STREAM, snapshot(20))
        await log.save_snapshot(STREAM, snapshot(10))
        assert await log.load_snapshot(STREAM, "f1") == snapshot(20)
        assert await log.load_snapshot(STREAM, "f1", upto=15) == snapshot(10)

    async def test_a_snapshot_can_be_saved_again(self, log: Store) -> None:
        await log.save_snapshot(STREAM, snapshot(10, "f1"))
        await log.save_snapshot(STREAM, snapshot(10, "f2"))
        assert await log.load_snapshot(STREAM, "f2") == snapshot(10, "f2")

    async def test_a_blob_is_named_by_its_content(self, log: Store) -> None:
        data = bytes(range(256)) * 1000
        digest = await log.put_blob(data)
        assert digest == hashlib.sha256(data).hexdigest()
        assert await log.get_blob(digest) == data
        assert await log.put_blob(data) == digest
        assert await log.get_blob(await log.put_blob(b"")) == b""

    @pytest.mark.parametrize("digest", ["0" * 64, "short", "../../etc/passwd", ""])
    async def test_a_missing_blob_is_a_clear_fault(self, log: Store, digest: str) -> None:
        with pytest.raises(StoreFault):
            await log.get_blob(digest)

    async def test_an_event_cannot_name_a_blob_that_was_never_put(self, log: Store, lease: Lease) -> None:
        with pytest.raises(Bug, match="not stored"):
            await log.append(batch(lease, 0, blobs=["0" * 64]))
        assert (await log.head(STREAM)).version == 0

    async def test_a_blob_put_by_another_instance_can_be_named(
        self, open_log: OpenLog, log: Store, lease: Lease
    ) -> None:
        digest = await (await open_log()).put_blob(b"12345")
        assert await log.append(batch(lease, 0, blobs=[digest])) == 1
        assert await log.get_blob(digest) == b"12345"
        assert [info.blob_bytes for info in await log.streams()] == [5]

    async def test_a_blob_named_twice_counts_once(self, log: Store, lease: Lease) -> None:
        digest = await log.put_blob(b"12345")
        await log.append(batch(lease, 0, blobs=[digest, digest]))
        await log.append(batch(lease, 1, blobs=[digest]))
        assert [info.blob_bytes for info in await log.streams()] == [5]
