"""Random trees, random work, random edits of a person: apply and undo are the identity, and nothing else is touched."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Literal, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.core.ports.workspace import AppliedChange, CommitInfo, Conflicts, UndoResult
from tests.adapters.git.person import Person, opened
from tests.conformance.workspace_case import tree_of

NAMES = ("a", "b", "d/a", "d/b", "d/e/a", "f/中", "g h/i", "x.bin")
Kind = Literal["text", "binary", "program", "link", "gone"]
KINDS: st.SearchStrategy[Kind] = st.sampled_from(get_args(Kind))
EDITS = st.dictionaries(st.sampled_from(NAMES), st.tuples(KINDS, st.integers(0, 3)), max_size=5)
TREES = st.dictionaries(st.sampled_from(NAMES), st.tuples(KINDS, st.integers(0, 3)), min_size=1, max_size=8)
Edits = dict[str, tuple[Kind, int]]
LINES = [f"line {number}" for number in range(12)]


def put(root: Path, edits: Edits) -> None:
    """Make these files what is said. A folder or a file that is in the way goes."""
    for name, (kind, number) in edits.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        lines = [*LINES[: number * 4], f"changed {number}", *LINES[number * 4 + 1 :]]
        if kind == "link":
            place.symlink_to(f"to-{number}")
        elif kind == "binary":
            place.write_bytes(b"\0\r\n\xff" * (number + 1))
        elif kind != "gone":
            place.write_text("\n".join(lines))
            place.chmod(0o755 if kind == "program" else 0o644)


def files_in(root: Path) -> dict[str, tuple[str, bytes]]:
    """All files and links: folders that have none come and go, as git has it."""
    return {name: what for name, what in tree_of(root).items() if not what[0].startswith("d")}


async def _one(root: Path, tracked: Edits, work: Edits, edits: Edits) -> Literal["nothing", "clashed", "done"]:
    """How it ended, when nothing was wrong."""
    person = Person(root / "tree")
    person.root.mkdir()
    put(person.root, tracked)
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(Path(worktree.folder), work)
    put(person.root, edits)
    before = files_in(person.root)
    tip = await worktree.commit(CommitInfo(run="r1", key="k1"))
    if not tip.commit:
        return "nothing"
    said = await workspace.apply("r1", worktree.base, tip.commit)
    if isinstance(said, Conflicts):
        assert said.clashes
        assert files_in(person.root) == before
        return "clashed"
    after = files_in(person.root)
    apart = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    folders = {str(above) for path in said.paths for above in Path(path).parents}
    assert apart <= {*said.paths, *folders}, "only what the work changed is touched"
    assert _has(after, tree_of(Path(worktree.folder)), said)
    if said.paths:
        assert isinstance(await workspace.undo(said.id), UndoResult)
    assert files_in(person.root) == before
    return "done"


def _has(after: dict[str, tuple[str, bytes]], work: dict[str, tuple[str, bytes]], said: AppliedChange) -> bool:
    """Whether every file is as in the work, but for those that both have changed."""
    alone = [one for one in said.paths if one not in said.merged]
    return all(
        (one in after) == (one in work) and after.get(one, ("", b""))[1] == work.get(one, ("", b""))[1] for one in alone
    )


def tried(examples: int) -> dict[str, int]:
    """So many of them, and how they ended."""
    ends = {"nothing": 0, "clashed": 0, "done": 0}

    @given(TREES, EDITS, EDITS)
    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def one(tracked: Edits, work: Edits, edits: Edits) -> None:
        with tempfile.TemporaryDirectory(prefix="greenroom-random-") as name:
            ends[asyncio.run(_one(Path(name), tracked, work, edits))] += 1

    one()
    return ends


@pytest.mark.req("G-8")
def test_apply_then_undo_is_nothing() -> None:
    ends = tried(6)
    assert ends["done"]


@pytest.mark.prove
@pytest.mark.timeout(3000)
def test_apply_then_undo_is_nothing_for_many() -> None:
    ends = tried(1000)
    assert min(ends.values()) > 10
    print(f"\nrandom trees and edits: {ends}")
