"""Submodules in a copy: they are empty, and what somebody puts into one is never lost in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import LeftOut, Snapshot, Worktree
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import SHAPES


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    SHAPES["submodule"](person)
    return person


async def left_out(worktree: Worktree) -> list[tuple[str, str]]:
    return [(one.path, one.why) for one in (await worktree.look()).left_out]


def fill(worktree: Worktree) -> None:
    """Files in the submodule, one of them in a folder of its own."""
    Path(worktree.folder, "sub/deep").mkdir()
    put(worktree, "sub/deep/b.txt", "b\n")
    put(worktree, "sub/a.txt", "a\n")


@pytest.mark.req("G-1")
async def test_what_is_written_into_a_submodule_is_said_to_be_in_no_commit(person: Person) -> None:
    worktree = await opened(await person.workspace())
    assert await left_out(worktree) == []
    fill(worktree)
    put(worktree, "a.txt", "other\n")
    made = await worked(worktree)
    assert person.git("diff", "--name-only", worktree.base, made.commit) == "a.txt\n"
    expected = [("sub/a.txt", "submodule"), ("sub/deep/b.txt", "submodule")]
    assert await left_out(worktree) == expected
    again = await (await person.workspace()).open("r1", "ann@t1", worktree.base)
    assert await left_out(again) == expected, "also whoever comes later knows"
    (standing,) = await GitWorktrees(person.root.parent / "cache", person.env).list()
    assert [(one.path, one.why) for one in standing.left_out] == expected


async def test_a_submodule_that_the_person_has_is_told_of_as_a_whole(person: Person) -> None:
    workspace = await person.workspace()
    first = await workspace.snapshot("r1")
    assert [one for one in first.left_out if one.path.startswith("sub")] == [LeftOut(path="sub", why="submodule")]
    assert (await workspace.snapshot("r1")).left_out == first.left_out
    person.git("submodule", "--quiet", "deinit", "--force", "sub")
    empty: Snapshot = await workspace.snapshot("r2")
    assert "sub" not in [one.path for one in empty.left_out], "there is nothing in it that the copy lacks"


async def test_a_submodule_is_known_though_no_file_speaks_of_it(person: Person) -> None:
    person.git("rm", "--quiet", "--force", ".gitmodules")
    worktree = await opened(await person.workspace())
    fill(worktree)
    assert len(await left_out(worktree)) == 2


async def test_a_submodule_that_the_person_has_given_up_since_is_one_in_a_copy_that_is_made_anew(
    person: Person,
) -> None:
    workspace = await person.workspace()
    snapshot = await workspace.snapshot("r1")
    person.git("rm", "--quiet", "--force", "sub")
    worktree = await workspace.open("r1", "ann@t1", snapshot.commit)
    fill(worktree)
    assert len(await left_out(worktree)) == 2


def replace(folder: Path, what: str, elsewhere: Path) -> None:
    """Put something else in the place of a submodule, or of the folder above it."""
    (folder / "sub").rmdir()
    if what == "link":
        (folder / "sub").symlink_to(elsewhere / "sub")
    elif what == "link above":
        (folder / "x").unlink()
        folder.rmdir()
        folder.symlink_to(elsewhere)
    elif what == "pipe":
        os.mkfifo(folder / "sub")


@pytest.mark.parametrize("what", ["link", "pipe", "gone"])
async def test_what_stands_in_the_place_of_a_submodule_is_not_looked_into(person: Person, what: str) -> None:
    person.write("below/x", "x\n")
    person.git("mv", "sub", "below/sub")
    worktree = await opened(await person.workspace())
    replace(Path(worktree.folder, "below"), what, person.root / "below")
    assert await left_out(worktree) == []
