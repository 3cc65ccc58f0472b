"""What every log must do with what lies beside the events: archive, snapshots, blobs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence

import pytest

from greenroom.core.base.errors import Bug, StoreFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.log import Append, ArchiveRow, Lease, NewEvent, Snapshot, Store
from greenroom.testing.conformance.store import STREAM, OpenLog, StoreCase, batch, moved, own


def snapshot(version: int, fingerprint: str = "f1") -> Snapshot:
    """A small snapshot."""
    return Snapshot(version=version, fingerprint=fingerprint, data=f"{fingerprint}@{version}".encode())


async def pages(*rows: Sequence[ArchiveRow]) -> AsyncIterator[Sequence[ArchiveRow]]:
    """Rows as a replay gives them."""
    for page in rows:
        yield page


async def broken_pages() -> AsyncIterator[Sequence[ArchiveRow]]:
    """A replay that fails half-way."""
    yield [moved("new", 1)]
    raise ValueError("broken")


class BesideConformance(StoreCase):
    """Archive, snapshots, blobs, and how many questions wait."""

    async def test_how_many_questions_wait_is_what_was_said_last(self, log: Store, lease: Lease) -> None:
        async def waiting() -> list[int | None]:
            return [one.questions for one in await log.streams()]

        await log.append(batch(lease, 0))
        assert await waiting() == [None]
        await log.append(evolve(batch(lease, 1), questions=2))
        await log.append(batch(lease, 2))
        assert await waiting() == [2]
        await log.append(evolve(batch(lease, 3), questions=0))
        assert await waiting() == [0]
        await log.forget(STREAM)
        await log.create(STREAM, 1)
        assert await waiting() == [None]

    async def test_archive_rows_come_by_version(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 3, archive=[moved("b", 1), moved("a", 2), moved("c", 3)]))
        assert [row.key for row in await log.archived(STREAM, "step")] == ["b", "a", "c"]

    async def test_archive_rows_can_be_asked_by_kind_owner_version_and_number(self, log: Store, lease: Lease) -> None:
        rows = [moved(f"s{n}", n, owner=f"t{n % 2}") for n in range(1, 7)] + [
            moved("m1", 7, kind="message", owner="t1")
        ]
        await log.append(batch(lease, 0, 7, archive=rows))
        assert [row.key for row in await log.archived(STREAM, "message")] == ["m1"]
        assert [row.key for row in await log.archived(STREAM, "step", owner="t1")] == ["s1", "s3", "s5"]
        assert [row.key for row in await log.archived(STREAM, "step", owner="t0", after=2)] == ["s4", "s6"]
        assert [row.key for row in await log.archived(STREAM, "step", after=1, limit=2)] == ["s2", "s3"]
        assert await log.archived(STREAM, "note") == []

    async def test_one_archive_row_is_found_by_its_key(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, archive=[moved("s1", 1)]))
        assert await log.find(STREAM, "step", "s1") == moved("s1", 1)
        assert await log.find(STREAM, "step", "s2") is None
        assert await log.find(STREAM, "task", "s1") is None

    async def test_the_newest_row_of_a_key_is_found(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, archive=[moved("s1", 1)]))
        await log.append(batch(lease, 1, 1, archive=[moved("s1", 2)]))
        assert await log.find(STREAM, "step", "s1") == moved("s1", 2)

    async def test_a_chain_leads_back_from_an_event_oldest_first(self, log: Store, lease: Lease) -> None:
        links = (0, 0, 1, 0, 3)
        events = [NewEvent(at=1, type="Linked", data=b'{"previous":%d}' % link) for link in links]
        append = Append(stream=STREAM, expected_version=0, epoch=lease.epoch, batch="linked", events=events)
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
        append = Append(stream=STREAM, expected_version=0, epoch=lease.epoch, batch="said", events=events)
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
            await log.append(batch(lease, 0, 1, archive=[moved("s1", 1), moved("s2", 1)]))
        assert (await log.head(STREAM)).version == 0
        assert await log.archived(STREAM, "step") == []

    async def test_an_archive_belongs_to_its_stream(self, log: Store, lease: Lease) -> None:
        await log.create("team-2", 2)
        await log.append(batch(lease, 0, 1, archive=[moved("s1", 1)]))
        assert await log.archived("team-2", "step") == []
        assert await log.find("team-2", "step", "s1") is None

    async def test_a_rebuilt_archive_takes_the_place_of_the_old_one(self, log: Store, lease: Lease) -> None:
        await log.create("team-2", 2)
        other = await own(log, "team-2")
        await log.append(batch(other, 0, 1, archive=[moved("theirs", 1)]))
        await log.append(batch(lease, 0, 2, archive=[moved("old", 1), moved("both", 2)]))
        fresh = [moved(f"n{n}", n) for n in range(3, 600)]
        assert await log.rebuild_archive(STREAM, pages([moved("new", 1), moved("both", 2)], fresh, [])) == 599
        assert [row.key for row in (await log.archived(STREAM, "step"))[:3]] == ["new", "both", "n3"]
        assert await log.find(STREAM, "step", "old") is None
        assert len(await log.archived("team-2", "step")) == 1
        sizes = {info.stream: info.archive_bytes for info in await log.streams()}
        assert sizes[STREAM] == sum(len(row.data) for row in await log.archived(STREAM, "step"))

    async def test_an_archive_stays_as_it_was_when_rebuilding_fails(self, log: Store, lease: Lease) -> None:
        await log.append(batch(lease, 0, 1, archive=[moved("old", 1)]))
        with pytest.raises(ValueError, match="broken"):
            await log.rebuild_archive(STREAM, broken_pages())
        assert [row.key for row in await log.archived(STREAM, "step")] == ["old"]
        assert await log.rebuild_archive(STREAM, pages([moved("newer", 1)])) == 1
        assert [row.key for row in await log.archived(STREAM, "step")] == ["newer"]

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

    async def test_a_new_snapshot_replaces_all_older_ones(self, log: Store) -> None:
        await log.save_snapshot(STREAM, snapshot(10, "f1"))
        await log.save_snapshot(STREAM, snapshot(20, "f2"))
        assert await log.load_snapshot(STREAM, "f1") is None
        assert await log.load_snapshot(STREAM, "f2") == snapshot(20, "f2")

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
        with pytest.raises(Bug, match="never put"):
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
