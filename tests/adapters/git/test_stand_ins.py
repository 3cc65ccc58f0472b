"""What walls stand on in a worktree, and a kill leaves there, is no work."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import CommitInfo
from tests.adapters.git.person import Person


@pytest.fixture(name="person")
def _person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "repo")
    person.write("a.py", "A = 1\n")
    person.write("sub/a.py", "A = 1\n")
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")
    return person


async def test_empty_stand_ins_are_in_no_tree_and_no_commit(person: Person, tmp_path: Path) -> None:
    theirs = await GitWorkspace.find(person.root, tmp_path / "cache", env=person.env)
    snapshot = await theirs.snapshot("run")
    worktree = await theirs.open("run", "main", snapshot.commit)
    before = await worktree.tree()
    for name in (".mcp.json", "sub/.mcp.json", ".claude"):
        (Path(worktree.folder) / name).touch()
    (Path(worktree.folder) / ".greenroom").mkdir()
    assert await worktree.tree() == before
    assert (await worktree.list_uncommitted())[0] == []
    assert not (await worktree.commit(CommitInfo(run="run", key="1"))).commit


async def test_one_that_says_something_is_work(person: Person, tmp_path: Path) -> None:
    theirs = await GitWorkspace.find(person.root, tmp_path / "cache", env=person.env)
    snapshot = await theirs.snapshot("run")
    worktree = await theirs.open("run", "main", snapshot.commit)
    (Path(worktree.folder) / ".mcp.json").write_text("{}\n")
    (Path(worktree.folder) / "empty.json").touch()
    assert (await worktree.list_uncommitted())[0] == [".mcp.json", "empty.json"]


async def test_one_of_the_person_s_own_stays_known(person: Person, tmp_path: Path) -> None:
    person.write(".mcp.json", "")
    person.commit_all("an empty one")
    theirs = await GitWorkspace.find(person.root, tmp_path / "cache", env=person.env)
    snapshot = await theirs.snapshot("run")
    worktree = await theirs.open("run", "main", snapshot.commit)
    assert (await worktree.list_uncommitted())[0] == []
    (Path(worktree.folder) / ".mcp.json").unlink()
    assert (await worktree.list_uncommitted())[0] == [".mcp.json"]
