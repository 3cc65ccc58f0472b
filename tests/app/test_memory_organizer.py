"""The memory organizer: what is merged with what, how an answer is read, and that no kill loses anything."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from greenroom.adapters.storage import memory_files
from greenroom.adapters.storage.memory_files import REPLACED_FOLDER, MemoryFiles
from greenroom.adapters.storage.text_index import SqliteTextIndex
from greenroom.app.memory_organizer import (
    MAX_GROUP,
    MERGER,
    MemoryOrganizer,
    group_memories,
    import_record,
    parse_merged,
)
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.ids import MemoryId, memory_id
from greenroom.core.base.records import evolve
from greenroom.core.state.knowledge import Memory

PROJECT = memory_files.PROJECT
ANSWER = "<merged_memory>\ncontent: |\n  All of it.\ntags:\n  - deploy\n  - api\n</merged_memory>"


def remembered(number: int, *tags: str, content: str = "", origins: tuple[str, ...] = ()) -> Memory:
    at = number * 1000
    name, text = memory_id(at, ""), content or f"fact {number}"
    return Memory(memory_id=name, type=PROJECT, content=text, created_at=at, tags=tags, origins=origins)


def opened(home: Path) -> MemoryFiles:
    index = SqliteTextIndex(home / "index.db")
    return MemoryFiles(home / "data", home / "work" / "memory", lambda: index)


def filled(home: Path, memories: Sequence[Memory]) -> MemoryFiles:
    files = opened(home)
    for memory in memories:
        files.save(memory)
    return files


async def answer(_: str) -> str:
    return ANSWER


async def organize(files: MemoryFiles, at: int = 10**9) -> list[Memory]:
    organizer = MemoryOrganizer(files, PROJECT, at)
    return [await organizer.merge(group, answer, "en") for group in organizer.find_groups(2, completes=True)]


def contents(files: MemoryFiles) -> list[str]:
    return sorted(memory.content for memory in files.find([PROJECT]))


def foreign(home: Path, memory: Memory) -> Memory:
    """Put a memory beside the others as a cloned repository brings it: without a seal of this machine."""
    (home / "work" / "memory").mkdir(parents=True, exist_ok=True)
    path = home / "work" / "memory" / f"{memory.memory_id}.json"
    path.write_bytes(msgspec.json.encode(memory_files.to_entry(memory)))
    return memory


async def test_a_cloned_memory_replaces_none_and_what_was_merged_of_it_stays_labelled(tmp_path: Path) -> None:
    files = filled(tmp_path, [remembered(1, "a")])
    evil = evolve(remembered(2, "b"), merged_from=(memory_id(1000, ""),), by=MERGER)
    foreign(tmp_path, evil)
    assert MemoryOrganizer(files, PROJECT, 10**9).find_groups(2, completes=True) == []
    assert MemoryOrganizer(files, PROJECT, 10**9).undo() == []
    assert contents(files) == ["fact 1", "fact 2"]
    for number in (3, 4):
        foreign(tmp_path, remembered(number, "x", "y"))
    (merged,) = await organize(files)
    assert merged.origins == (memory_files.FOREIGN,)
    trusting = MemoryFiles(
        tmp_path / "data", tmp_path / "work" / "memory", lambda: SqliteTextIndex(tmp_path / "i.db"), lambda _: True
    )
    labels = {memory.content: memory.origins for memory in trusting.find([PROJECT])}
    assert labels == {"fact 1": (), "fact 2": (), merged.content: (memory_files.FOREIGN,)}


def test_a_memory_of_an_impossible_time_or_id_is_no_memory(tmp_path: Path) -> None:
    files = opened(tmp_path)
    path = tmp_path / "work" / "memory" / "20240101_000000_000000.json"
    path.parent.mkdir(parents=True)
    record = {"id": "x", "type": PROJECT, "content": "c", "created_at": "0001-01-01T00:00:00"}
    path.write_bytes(msgspec.json.encode(record))
    assert files.find([PROJECT]) == []
    with pytest.raises(WorldFault, match="year 0 is out of range"):
        import_record(files, msgspec.Raw(msgspec.json.encode(record)), overwrite=False)
    other = {**record, "id": "a/b", "created_at": "2024-01-01T00:00:00"}
    with pytest.raises(WorldFault, match="'a/b' cannot be used"):
        import_record(files, msgspec.Raw(msgspec.json.encode(other)), overwrite=False)


@pytest.mark.req("AG-90")
def test_those_that_share_most_tags_are_merged_first_and_the_newest_leads() -> None:
    memories = [
        remembered(1, "a", "b", "c"),
        remembered(2, "A", "b"),
        remembered(3, "a", "b", "c"),
        remembered(4, "x", "y"),
        remembered(5, "a", "x"),
    ]
    assert [[item.content for item in group] for group in group_memories(memories, 2)] == [["fact 3", "fact 1"]]
    assert [[item.content for item in group] for group in group_memories(memories[:2], 2)] == [["fact 2", "fact 1"]]
    assert group_memories(memories, 4) == []
    assert group_memories([], 2) == []


def test_a_large_group_is_merged_in_parts() -> None:
    groups = group_memories([remembered(number, "a", "b") for number in range(MAX_GROUP + 1)], 2)
    assert [len(group) for group in groups] == [MAX_GROUP]
    long = [remembered(number, "a", "b", content="x" * 25_000) for number in range(5)]
    assert [len(group) for group in group_memories(long, 2)] == [2, 2]


@pytest.mark.req("AG-91", "AG-92", "AG-93")
async def test_the_new_memory_takes_the_place_of_the_old_ones_and_undo_brings_them_back(tmp_path: Path) -> None:
    old = [remembered(1, "api", "deploy", origins=("web:a",)), remembered(2, "deploy", "api"), remembered(3, "other")]
    files, asked = filled(tmp_path, old), list[str]()
    before = {path.name: path.read_bytes() for path in (tmp_path / "work" / "memory").glob("*.json")}

    async def ask(prompt: str) -> str:
        asked.append(prompt)
        return ANSWER

    organizer = MemoryOrganizer(files, PROJECT, 10**9)
    (group,) = organizer.find_groups(2, completes=True)
    merged = await organizer.merge(group, ask, "en")
    assert asked[0].index("fact 2") < asked[0].index("fact 1"), "the newest comes first"
    assert (merged.merged_from, merged.by, merged.origins) == (
        (old[1].memory_id, old[0].memory_id),
        MERGER,
        ("web:a",),
    )
    assert contents(opened(tmp_path)) == ["All of it.", "fact 3"]
    again = opened(tmp_path)
    assert [item.memory_id for item in MemoryOrganizer(again, PROJECT, 0).undo()] == [merged.memory_id]
    assert {path.name: path.read_bytes() for path in (tmp_path / "work" / "memory").glob("*.json")} == before
    assert MemoryOrganizer(again, PROJECT, 0).undo() == []


BODIES: tuple[str, ...] = (
    "- a",
    "content: x",
    "content: ''\ntags: [a]",
    "content: x\ntags: a",
    "content: x\ntags: [['a']]",
)
BODIES += ("content: x\ntags: ['']", "content: *x\ntags: [a]", "content: [x]\ntags: [a]")


@pytest.mark.req("AG-92")
@pytest.mark.parametrize("text", ["", "no block", *(f"<merged_memory>\n{body}\n</merged_memory>" for body in BODIES)])
def test_an_answer_that_is_no_memory_is_a_fault_of_the_model(text: str) -> None:
    with pytest.raises(ModelFault):
        parse_merged(text)


def test_an_answer_is_read_as_text() -> None:
    text = "Here:\n<merged_memory>\ncontent: |\n  a: 1\n  b\ntags: [yes, 2, yes]\n</merged_memory>\nDone."
    assert parse_merged(text) == ("a: 1\nb", ("yes", "2"))


class Killed(BaseException):
    """Stands for a kill -9: nothing that comes after it happens."""


@contextmanager
def killed_at(moment: int) -> Iterator[list[str]]:
    """Let so many writes happen, and stop at the next one. A file that is being written is half there."""
    done = list[str]()
    replace, unlink, write = Path.replace, Path.unlink, memory_files._write_new
    add, drop = SqliteTextIndex.replace, SqliteTextIndex.remove

    def counted(
        name: str, work: Callable[..., object], half: Callable[..., object] | None = None
    ) -> Callable[..., object]:
        def run(*given: object, **named: object) -> object:
            if len(done) == moment:
                if half is not None:
                    half(*given)
                raise Killed
            done.append(name)
            return work(*given, **named)

        return run

    def write_half(path: Path, content: bytes) -> None:
        path.write_bytes(content[: len(content) // 2])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", counted("move", replace))
        patch.setattr(Path, "unlink", counted("unlink", unlink))
        patch.setattr(memory_files, "_write_new", counted("write", write, write_half))
        patch.setattr(SqliteTextIndex, "replace", counted("index", add))
        patch.setattr(SqliteTextIndex, "remove", counted("index", drop))
        yield done


@pytest.mark.req("AG-93")
async def test_a_kill_at_any_moment_of_a_merge_loses_nothing(tmp_path: Path) -> None:
    old = [remembered(number, "api", "deploy") for number in range(1, 4)]
    for moment in range(100):
        home = tmp_path / str(moment)
        files = filled(home, old)
        with killed_at(moment) as done:
            try:
                await organize(files)
                over = True
            except Killed:
                over = False
        now = opened(home)
        kept = {path.stem for path in (home / "work" / "memory").rglob("*.json")}
        assert {memory.memory_id for memory in old} <= kept
        assert over or set(contents(now)) >= {"fact 1", "fact 2", "fact 3"} or "All of it." in contents(now)
        await organize(now, 2 * 10**9)
        assert contents(now) == ["All of it."], moment
        MemoryOrganizer(now, PROJECT, 0).undo()
        assert contents(now) == ["fact 1", "fact 2", "fact 3"], moment
        if over:
            break
    else:
        pytest.fail("the merge never came to its end")
    assert done.count("move") == 1 + len(old)


async def test_a_kill_at_any_moment_of_an_undo_loses_nothing(tmp_path: Path) -> None:
    old = [remembered(number, "api", "deploy") for number in range(1, 3)]
    for moment in range(100):
        home = tmp_path / str(moment)
        files = filled(home, old)
        await organize(files)
        with killed_at(moment):
            try:
                MemoryOrganizer(files, PROJECT, 0).undo()
                over = True
            except Killed:
                over = False
        now = opened(home)
        assert {memory.memory_id for memory in old} <= {path.stem for path in (home / "work").rglob("*.json")}
        MemoryOrganizer(now, PROJECT, 0).undo()
        assert contents(now) == ["fact 1", "fact 2"]
        if over:
            break
    else:
        pytest.fail("the undo never came to its end")


@pytest.mark.req("AG-90", "AG-93")
async def test_five_hundred_overlapping_memories_are_merged_and_come_back(tmp_path: Path) -> None:
    chance = random.Random(7)
    tags = [f"tag{number}" for number in range(12)]
    old = [remembered(number, *chance.sample(tags, 4)) for number in range(500)]
    files = filled(tmp_path, old)
    merged = await organize(files)
    taken = [name for memory in merged for name in memory.merged_from]
    assert len(taken) == len(set(taken)) > 450, "each memory is in one group"
    assert len(files.find([PROJECT])) == 500 - len(taken) + len(merged)
    assert len(list((tmp_path / "work" / "memory" / REPLACED_FOLDER).iterdir())) == len(taken)
    MemoryOrganizer(files, PROJECT, 0).undo()
    assert contents(files) == sorted(memory.content for memory in old)


async def test_a_file_of_the_project_cannot_say_that_it_is_of_another_type(tmp_path: Path) -> None:
    files = filled(tmp_path, [remembered(1, "a")])
    path = next((tmp_path / "work" / "memory").glob("*.json"))
    path.write_text(path.read_text().replace(PROJECT, "global_long_term"))
    (found,) = opened(tmp_path).find([PROJECT])
    assert (found.type, found.origins) == (PROJECT, (memory_files.FOREIGN,))
    assert files.get(PROJECT, [MemoryId("none")]) == []
