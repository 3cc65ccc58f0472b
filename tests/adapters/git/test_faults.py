"""What goes wrong is said, and nothing is half done."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from greenroom.adapters.git import apply as applying
from greenroom.adapters.git import commit as committing
from greenroom.adapters.git import files
from greenroom.adapters.git.apply import Filled
from greenroom.adapters.git.journal import Paper
from greenroom.adapters.git.process import Answer, Git, fault_of
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import Applied, Clashes, WorkspaceFault
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import edit, plain
from tests.conformance.workspace_case import tree_of


def program(folder: Path, script: str) -> str:
    """A git of another kind; returns a PATH with it."""
    folder.mkdir()
    place = folder / "git"
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return str(folder)


async def fault(person: Person, **env: str) -> WorkspaceFault:
    with pytest.raises(WorkspaceFault) as caught:
        await GitWorkspace.find(person.root, person.root.parent / "cache", env={**person.env, **env})
    return caught.value


async def looked(person: Person, folder: Path | None) -> None:
    await (await person.workspace(folder)).snapshot("r1")


async def test_without_git_it_says_how_to_get_it(person: Person) -> None:
    said = await fault(person, PATH="/nowhere")
    assert (said.reason, "Install it" in str(said)) == ("git", True)


async def test_an_old_git_is_refused(person: Person, tmp_path: Path) -> None:
    said = await fault(person, PATH=program(tmp_path / "bin", "echo git version 2.17.1"))
    assert (said.reason, "2.38" in str(said), "2.17.1" in str(said)) == ("git", True, True)


async def test_a_git_that_hangs_is_stopped(person: Person, tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "sleep 600 & sleep 600")
    git = Git(f"{path}/git", words=(), env={"PATH": os.environ["PATH"]})
    with pytest.raises(WorkspaceFault, match="was stopped") as caught:
        await git.ask("version", seconds=0.2)
    assert caught.value.reason == "slow"


@pytest.mark.parametrize("broken", ["HEAD", "objects", "a file", "settings", "gone"])
async def test_a_broken_repository_is_said(person: Person, broken: str) -> None:
    git = person.root / ".git"
    if broken == "HEAD":
        (git / "HEAD").unlink()
    elif broken == "objects":
        shutil.rmtree(git / "objects")
    elif broken == "a file":
        shutil.rmtree(git)
        git.write_text("nonsense")
    elif broken == "settings":
        (git / "config").write_text("[core\n")
    with pytest.raises(WorkspaceFault) as caught:
        await looked(person, Path("/nowhere/at/all") if broken == "gone" else None)
    assert caught.value.reason == ("name" if broken == "gone" else "repository")


async def test_a_lock_of_another_git_is_waited_for_and_named(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
    lock = person.write(".git/index.lock", "")
    monkeypatch.setattr(committing, "PATIENCE", 0.2)
    with pytest.raises(WorkspaceFault, match="index\\.lock") as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "locked"
    monkeypatch.setattr(committing, "PATIENCE", 30.0)
    asyncio.get_running_loop().call_later(0.3, lock.unlink)
    assert (await workspace.commit(applied.id, "Do it")).commit == person.git("rev-parse", "HEAD").strip()


async def test_a_lock_that_a_killed_git_left_on_ours_is_cleared(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    person.write(".git/refs/greenroom/r1/ann@t1.lock", "")
    (Path(worktree.folder).parent / "index.lock").touch()
    edit(Path(worktree.folder))
    assert (await worked(worktree)).commit == await worktree.tip()


async def test_two_at_once_wait_for_each_other(tmp_path: Path) -> None:
    order = list[str]()

    async def one(name: str) -> None:
        async with files.lock(tmp_path / "lock"):
            order.append(f"{name} in")
            await asyncio.sleep(0.05)
            order.append(f"{name} out")

    await asyncio.gather(one("a"), one("b"))
    assert order in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])
    async with files.lock(tmp_path / "lock"):
        with pytest.raises(WorkspaceFault, match="Another greenroom"):
            async with files.lock(tmp_path / "lock", patience=0.1):
                pass


class FullDisk:
    """Git that writes some files and then says that there is no room, the first time."""

    def __init__(self, gone: Path) -> None:
        tried, left = Git.tried, [gone]

        async def answer(git: Git, *words: str, stdin: bytes = b"", seconds: float = 60.0) -> Answer:
            said = await tried(git, *words, stdin=stdin, seconds=seconds)
            if words[:3] != ("read-tree", "-m", "-u") or not left:
                return said
            await asyncio.to_thread(left.pop().unlink)
            return Answer(code=128, out=b"", err="error: unable to write file a.txt: No space left on device")

        self.answer = answer


@pytest.mark.parametrize("left", ["keep/c.py", "new-link"])
async def test_a_full_disk_in_the_middle_leaves_nothing(person: Person, left: str) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done, before = await worked(worktree), tree_of(person.root)
    full = FullDisk(person.root / left)
    with (
        patch.object(Git, "tried", full.answer),
        pytest.raises(WorkspaceFault, match="Nothing was changed") as said,
    ):
        await workspace.apply("r1", worktree.base, done.commit)
    assert (said.value.reason, tree_of(person.root)) == ("disk", before)
    assert [one.state for one in await workspace.applied("r1")] == ["dropped"], "nobody goes on with it"
    assert isinstance(await workspace.apply("r1", worktree.base, done.commit), Applied), "with room it works"


async def test_somebody_who_writes_at_this_moment_stops_it(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done, before = await worked(worktree), tree_of(person.root)
    finish = applying.finish

    async def meddling(repository: Repository, paper: Paper, *, filled: Filled) -> Applied | Clashes:
        person.write("a.txt", "mine\n")
        return await finish(repository, paper, filled=filled)

    with patch.object(applying, "finish", meddling):
        said = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(said, Clashes)
    assert [one.path for one in said.clashes] == ["a.txt"]
    assert tree_of(person.root) == {**before, "a.txt": ("-rw-r--r--", b"mine\n")}


async def test_whoever_asks_may_go_away(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
    task = asyncio.create_task(workspace.apply("r1", worktree.base, done.commit))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.state for one in await workspace.applied("r1")] == ["applied"], "it is done to its end, once"


async def test_a_worktree_that_was_never_finished_is_made_anew(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    place = Path(worktree.folder).parent
    (place / "about.json").unlink()
    (Path(worktree.folder) / "half").touch()
    (standing,) = await GitWorktrees(place.parents[2], person.env).list()
    assert "never finished" in standing.orphan
    assert not (Path((await opened(workspace)).folder) / "half").exists()
    assert len(list((person.root / ".git/worktrees").iterdir())) == 1
    shutil.rmtree(worktree.folder)
    with pytest.raises(WorkspaceFault, match="is gone"):
        await worktree.tree()
    assert await (await opened(workspace)).tree()
    with pytest.raises(WorkspaceFault, match="Clean it first"):
        await workspace.open("r1", "ann@t1", "HEAD")


async def test_a_worktree_of_another_repository_is_explained(person: Person) -> None:
    workspace = await person.workspace()
    await opened(workspace)
    person.root.rename(person.root.parent / "elsewhere")
    plain(person)
    (standing,) = await GitWorktrees(person.root.parent / "cache", person.env).list()
    assert "does not have the commit" in standing.orphan


def test_what_git_says_becomes_a_sentence() -> None:
    assert fault_of("error: No space left on device", 128, ("add",)).reason == "disk"
    assert fault_of("fatal: loose object is corrupt", 128, ("log",)).reason == "repository"
    assert str(fault_of("", 3, ("add",))) == "git add failed: code 3"
    assert fault_of("fatal: cannot lock ref 'x': Unable to create", 1, ("update-ref",)).reason == "locked"
    assert fault_of("fatal: cannot lock ref 'x': is at 1 but expected 2", 1, ("update-ref",)).reason == "state"
