"""What memories, artifacts and long results say of where they come from reaches whoever reads them."""

from __future__ import annotations

from pathlib import Path

from greenroom.abilities.tools.memory import collect_origins as of_memories
from greenroom.core.base.ids import MemoryId
from greenroom.core.state.knowledge import Memory
from greenroom.core.state.origin import Labels
from greenroom.core.state.step import Step
from tests.gullible.gullible import Call
from tests.gullible.outside import Web
from tests.gullible.team import ANN, BOB, crowd, furnish
from tests.gullible.test_benign import Honest

READS = Call("read_code", {"file": "parser.py"})
FILE = "file:parser.py"


async def read_by_ann(tmp_path: Path, *, bob: list[Call], ann: list[Call]) -> list[tuple[str, Labels]]:
    """Bob does his part, then Ann hers, in a conversation of her own: what each of her calls has read."""
    with Web().open() as pages, Web().open() as thief:
        place = furnish(tmp_path / "place", pages, thief)
        (place.work / "long.txt").write_text("line\n" * 20_000)
        async with crowd(place, Honest({"bob": bob, "ann": ann}), answers="run") as team:
            await team.tell(BOB, "Do your part.")
            await team.tell(ANN, "Do yours.")
            steps = [one async for one in team.runtime.archive(team.team, "step") if isinstance(one, Step)]
    mine = [one for one in steps if one.agent_id == ANN and one.work.type == "tool"]
    return [(one.work.executor, one.origins) for one in sorted(mine, key=lambda one: one.ordinal)]


async def test_who_reads_a_memory_has_read_what_its_writer_had(tmp_path: Path) -> None:
    saved = Call("save_memory", {"memories": [{"content": "it is small", "tags": ["a"]}]})
    ann = [Call("retrieve_memory"), Call("retrieve_memory", {"tags": ["b"]}), Call("clear_memory", {"tags": ["b"]})]
    read = await read_by_ann(tmp_path, bob=[READS, saved], ann=ann)
    assert read == [("retrieve_memory", (FILE,)), ("retrieve_memory", (FILE,)), ("clear_memory", (FILE,))]


async def test_who_reads_an_artifact_has_read_what_its_writers_had(tmp_path: Path) -> None:
    def made(name: str) -> Call:
        return Call("create_artifact", {"id": name, "content": "x\n"})

    edits = [{"search": "x", "replace": "y"}]
    calls = [made("own"), Call("read_artifact", {"id": "own"}), READS, made("plan"), Call("read_artifact")]
    ann = [*calls, Call("read_artifact", {"id": "plan"}), Call("update_artifact", {"id": "plan", "edits": edits})]
    read = await read_by_ann(tmp_path, bob=[], ann=ann)
    assert [origins for _, origins in read] == [
        (),
        (),  # what was written before anything was read has no label
        (FILE,),
        (),
        *[("artifact:plan", FILE)] * 3,
    ]


async def test_who_reads_on_in_a_long_result_has_read_what_it_is_from(tmp_path: Path) -> None:
    bob = [Call("read_code", {"file": "long.txt"})]
    read = await read_by_ann(tmp_path, bob=bob, ann=[Call("read_output", {"handle": "bob#2"})])
    assert read == [("read_output", ("file:long.txt",))]


def test_a_memory_has_the_origins_of_what_its_author_had_read() -> None:
    own = Memory(memory_id=MemoryId("1"), type="short_term", content="x", created_at=0)
    old = Memory(
        memory_id=MemoryId("2"), type="project_long_term", content="x", created_at=0, origins=("web:a", "file:b")
    )
    assert of_memories([own]) == ()
    assert of_memories([own, old]) == ("web:a", "file:b")
