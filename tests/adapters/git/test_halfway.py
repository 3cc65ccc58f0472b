"""A disk that takes nothing while it is gone back: what is where is said, nothing is lost, and the next one ends it."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from greenroom.adapters.git import undoing, writing
from greenroom.adapters.git.workspaces import GitWorkspace
from greenroom.core.ports.workspace import Applied, Undone, WorkspaceFault, Worktree
from greenroom.testing.conformance.workspace_case import tree_of
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import edit, plain
from tests.adapters.git.test_committing import hook

Tree = dict[str, tuple[str, bytes]]


class Closed:
    """The module `os` for who writes, on a disk that takes nothing any more after a few files."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def fsync(self, number: int) -> None:
        """Make it durable, if there is room."""
        self.room -= 1
        if self.room <= 0:
            raise OSError(28, "No space left on device")
        os.fsync(number)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person


async def done(person: Person) -> tuple[GitWorkspace, Worktree, str]:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    return workspace, worktree, (await worked(worktree)).commit


def files(root: Path) -> Tree:
    return {name: what for name, what in tree_of(root).items() if not what[0].startswith("d")}


@pytest.mark.req("G-2")
@pytest.mark.parametrize("room", [2, 4, 6])
async def test_what_is_where_is_said_and_the_next_command_ends_it(person: Person, room: int) -> None:
    workspace, worktree, tip = await done(person)
    before, old, new = tree_of(person.root), files(person.root), files(Path(worktree.folder))
    with patch.object(writing, "os", Closed(room)), pytest.raises(WorkspaceFault, match="not be taken back") as caught:
        await workspace.apply("r1", worktree.base, tip)
    said, now = str(caught.value), files(person.root)
    done_by_then = {name for name in {*old, *new} if now.get(name) != old.get(name)}
    assert (bool(done_by_then), caught.value.reason) == (True, "disk")
    assert {name for name in {*old, *new} if repr(name) in said} >= done_by_then
    assert all(now.get(name) == new.get(name) for name in done_by_then)
    assert "refs/greenroom/r1/@applied/1" in said
    with patch.object(writing, "os", Closed(1)), pytest.raises(WorkspaceFault, match="could not be taken back"):
        await (await person.workspace()).recover()
    again = await person.workspace()
    await again.recover()
    assert files(person.root) == new
    (applied,) = await again.applied("r1")
    assert (applied.state, isinstance(await again.undo(applied.id), Undone)) == ("applied", True)
    assert tree_of(person.root) == before


@pytest.mark.parametrize("room", [2, 5])
async def test_the_same_on_the_way_back(person: Person, room: int) -> None:
    workspace, worktree, tip = await done(person)
    before = tree_of(person.root)
    applied = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(applied, Applied)
    with patch.object(writing, "os", Closed(room)), pytest.raises(WorkspaceFault, match="as before the work already"):
        await workspace.undo(applied.id)
    again = await person.workspace()
    await again.recover()
    assert tree_of(person.root) == before
    assert [one.state for one in await again.applied("r1")] == ["undone"]


async def test_a_way_back_from_a_refused_commit_that_is_closed_is_said(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, worktree, tip = await done(person)
    before = tree_of(person.root)
    applied = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(applied, Applied)
    await workspace.commit(applied.id, "Do it")
    after = tree_of(person.root)
    refusing = hook(person, "pre-commit", "rm a.txt; mkdir a.txt; exit 1")
    monkeypatch.setattr(undoing, "edited", lambda *_: [])  # it is changed after that look, and before the files are
    with pytest.raises(WorkspaceFault, match=r"its commit is still there.*'a.txt'.*Undo it again"):
        await workspace.undo(applied.id, revert=True)
    refusing.unlink()
    (person.root / "a.txt").rmdir()
    person.write("a.txt", after["a.txt"][1])
    assert isinstance(await workspace.undo(applied.id, revert=True), Undone)
    assert tree_of(person.root) == before
