"""Files that come, go and change while they are looked at, and what is broken and can be made anew."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import pytest

from greenroom.adapters.git import snapshot as staging
from greenroom.adapters.git.process import Git
from greenroom.core.ports.workspace import Applied, LeftOut, Looked, WorkspaceFault
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import edit
from tests.adapters.git.test_faults import FullDisk
from tests.conformance.workspace_case import tree_of


@pytest.mark.parametrize("times", [1, 3])
async def test_a_file_that_vanishes_while_it_is_looked_at_is_looked_for_again(person: Person, times: int) -> None:
    look, left = staging._look_at_files, [times]

    def too_late(root: Path, limits: Iterable[tuple[str, int | None]]) -> tuple[list[str], list[str], list[LeftOut]]:
        gone, there, left_out = look(root, limits)
        left[0] -= 1
        return (gone, [*there, "vanished"] if left[0] >= 0 else there, left_out)

    workspace = await person.workspace()
    person.write("new", "new\n")
    with patch.object(staging, "_look_at_files", too_late):
        if times == staging.TRIES:
            with pytest.raises(WorkspaceFault, match="vanished"):
                await workspace.snapshot("r1")
            return
        snapshot = await workspace.snapshot("r1")
    assert "new" in person.git("ls-tree", "--name-only", snapshot.commit).split()


async def test_a_pipe_in_place_of_a_file_is_said_and_not_waited_for(person: Person) -> None:
    worktree = await opened(await person.workspace())
    folder = Path(worktree.folder)
    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    (folder / "new").write_text("new\n")
    done = await worked(worktree)
    assert await worktree.look() == Looked(tree=done.tree, left_out=(LeftOut(path="a.txt", why="other"),))
    assert person.git("diff", "--name-only", worktree.base, done.commit) == "new\n", "the file is what it was"


async def test_a_file_that_nobody_may_read_is_left_out(person: Person) -> None:
    person.write("secret", "secret\n")
    workspace = await person.workspace()
    with patch.object(os, "access", lambda place, _: Path(place).name != "secret"):
        snapshot = await workspace.snapshot("r1")
    assert snapshot.left_out == (LeftOut(path="secret", why="unreadable", size=7),)


async def test_an_index_of_ours_that_is_broken_is_made_anew(person: Person) -> None:
    worktree = await opened(await person.workspace())
    edit(Path(worktree.folder))
    expected = await worktree.tree()
    (Path(worktree.folder).parent / "index").write_bytes(b"")
    assert await worktree.tree() == expected
    index = Path(worktree.folder).parent / "index"
    (Path(worktree.folder) / "lost").write_text("lost\n")
    whole = await worktree.tree()
    blob = person.git("rev-parse", f"{whole}:lost").strip()
    place = person.root / ".git/objects" / blob[:2] / blob[2:]
    place.chmod(0o644)
    place.unlink()  # as `git gc` does it with what nothing leads to
    (Path(worktree.folder) / "more").write_text("more\n")
    done = await worked(worktree)
    assert person.git("show", f"{done.commit}:lost") == "lost\n"
    assert index.exists()


async def test_more_files_than_anybody_works_on_are_refused(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MOST", 2)
    for name in ("x", "y", "z"):
        person.write(name, "")
    workspace = await person.workspace()
    with pytest.raises(WorkspaceFault, match="gitignore") as caught:
        await workspace.snapshot("r1")
    assert caught.value.reason == "too_large"


async def test_a_full_disk_in_the_middle_of_an_undo_leaves_it_applied(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
    after, full = tree_of(person.root), FullDisk(person.root / "keep/b.py")
    with (
        patch.object(Git, "tried", full.answer),
        pytest.raises(WorkspaceFault, match="Nothing was changed"),
    ):
        await workspace.undo(applied.id)
    assert (tree_of(person.root), [one.state for one in await workspace.applied("r1")]) == (after, ["applied"])


async def test_what_a_killed_one_left_in_the_cache_goes_after_a_day(person: Person) -> None:
    await person.workspace()
    (place,) = (person.root.parent / "cache").glob("*/temporary")
    for name in ("old", "young"):
        (place / name).mkdir()
        (place / name / "index").touch()
    os.utime(place / "old", (0, 0))
    await person.workspace()
    assert [one.name for one in place.iterdir()] == ["young"]


async def test_a_cache_that_cannot_be_written_is_said(person: Person) -> None:
    (person.root.parent / "cache").write_text("a file")
    with pytest.raises(WorkspaceFault, match="cannot be written") as caught:
        await person.workspace()
    assert caught.value.reason == "disk"
