"""Copies that somebody has deleted by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import Standing
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import plain


@pytest.mark.parametrize("applied", [False, True])
async def test_of_a_copy_whose_folder_was_deleted_it_is_said_what_is_left(tmp_path: Path, applied: bool) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    workspace, copies = await person.workspace(), GitWorktrees(tmp_path / "cache", person.env)
    worktree = await opened(workspace)
    put(worktree, "a.txt", "work\n")
    done = await worked(worktree)
    if applied:
        await workspace.apply("r1", worktree.base, done.commit)
    shutil.rmtree(worktree.folder)
    (found,) = await copies.list()
    work = "all that was committed there is applied"
    work = work if applied else "1 commit that is not applied can still be taken over with `greenroom apply r1`"
    left = "`greenroom workspaces clean` clears away what is left of it"
    assert found.orphan == f"Its folder was deleted; {work}. {left}"
    assert isinstance(await copies.clean(found.name), Standing), "nothing is lost with it"
    assert (await copies.list(), await workspace.tip("r1", "ann@t1")) == ([], done.commit)


async def test_git_forgets_copies_that_were_deleted_with_all_that_was_known_of_them_and_no_others(
    tmp_path: Path,
) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    workspace = await person.workspace()
    snapshot = await workspace.snapshot("r1")
    gone, kept = [await workspace.open("r1", name, snapshot.commit) for name in ("ann@t1", "ben@t1")]
    person.git("worktree", "add", "--quiet", "--lock", "--detach", str(tmp_path / "theirs"))
    shutil.rmtree(Path(gone.folder).parent)
    shutil.rmtree(tmp_path / "theirs")
    made = await workspace.open("r1", "cay@t1", snapshot.commit)
    told = person.git("worktree", "list", "--porcelain")
    assert gone.folder not in told
    assert all(one in told for one in (kept.folder, made.folder, str(tmp_path / "theirs")))
