"""What goes wrong is said, and nothing is half done."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import pytest

from greenroom.adapters.git import apply as applying
from greenroom.adapters.git import commit as committing
from greenroom.adapters.git import files
from greenroom.adapters.git import snapshot as staging
from greenroom.adapters.git.apply import FilledIndex
from greenroom.adapters.git.journal import JournalEntry
from greenroom.adapters.git.process import DEFAULT_PATH, Git, GitResult, make_fault
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import AppliedChange, Conflicts, SkippedPath, WorkspaceFault, WorktreeContents
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import edit, edited, plain
from tests.adapters.git.test_committing import brought
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
        await git.run("version", seconds=0.2)
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
    workspace, _, applied = await brought(person)
    lock = person.write(".git/index.lock", "")
    monkeypatch.setattr(committing, "LOCK_TIMEOUT_S", 0.2)
    with pytest.raises(WorkspaceFault, match="index\\.lock") as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "locked"
    monkeypatch.setattr(committing, "LOCK_TIMEOUT_S", 30.0)
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
            async with files.lock(tmp_path / "lock", timeout=0.1):
                pass


class FullDisk:
    """Git that writes some files and then says that there is no room, the first time."""

    def __init__(self, gone: Path) -> None:
        tried, left = Git.run_unchecked, [gone]

        async def answer(git: Git, *words: str, stdin: bytes = b"", seconds: float = 60.0) -> GitResult:
            said = await tried(git, *words, stdin=stdin, seconds=seconds)
            if words[:3] != ("read-tree", "-m", "-u") or not left:
                return said
            await asyncio.to_thread(left.pop().unlink)
            return GitResult(code=128, out=b"", err="error: unable to write file a.txt: No space left on device")

        self.answer = answer


@pytest.mark.parametrize("left", ["keep/c.py", "new-link"])
async def test_a_full_disk_in_the_middle_leaves_nothing(person: Person, left: str) -> None:
    workspace, worktree, done = await edited(person)
    before = tree_of(person.root)
    full = FullDisk(person.root / left)
    with (
        patch.object(Git, "run_unchecked", full.answer),
        pytest.raises(WorkspaceFault, match="Nothing was changed") as said,
    ):
        await workspace.apply("r1", worktree.base, done.commit)
    assert (said.value.reason, tree_of(person.root)) == ("disk", before)
    assert [one.state for one in await workspace.list_applied("r1")] == ["dropped"], "nobody goes on with it"
    assert isinstance(await workspace.apply("r1", worktree.base, done.commit), AppliedChange), "with room it works"


async def test_somebody_who_writes_at_this_moment_stops_it(person: Person) -> None:
    workspace, worktree, done = await edited(person)
    before = tree_of(person.root)
    finish = applying.finish

    async def meddling(
        repository: Repository, paper: JournalEntry, *, filled: FilledIndex
    ) -> AppliedChange | Conflicts:
        person.write("a.txt", "mine\n")
        return await finish(repository, paper, filled=filled)

    with patch.object(applying, "finish", meddling):
        said = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(said, Conflicts)
    assert [one.path for one in said.clashes] == ["a.txt"]
    assert tree_of(person.root) == {**before, "a.txt": ("-rw-r--r--", b"mine\n")}


async def test_whoever_asks_may_go_away(person: Person) -> None:
    workspace, worktree, done = await edited(person)
    task = asyncio.create_task(workspace.apply("r1", worktree.base, done.commit))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.state for one in await workspace.list_applied("r1")] == ["applied"], "it is done to its end, once"


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
    assert "no longer has the commit" in standing.orphan


def test_what_git_says_becomes_a_sentence() -> None:
    assert make_fault("error: No space left on device", 128, ("add",)).reason == "disk"
    assert make_fault("fatal: loose object is corrupt", 128, ("log",)).reason == "repository"
    assert str(make_fault("", 3, ("add",))) == "git add failed: exit code 3"
    assert make_fault("fatal: cannot lock ref 'x': Unable to create", 1, ("update-ref",)).reason == "locked"
    assert make_fault("fatal: cannot lock ref 'x': is at 1 but expected 2", 1, ("update-ref",)).reason == "state"


async def test_who_changes_their_mind_ends_git_with_all_that_it_began() -> None:
    began = time.monotonic()
    asking = asyncio.ensure_future(
        Git("/bin/sh", words=("-c", "sleep 60; true"), env={"PATH": DEFAULT_PATH}).run_unchecked()
    )
    await asyncio.sleep(0.1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert time.monotonic() - began < 30


async def test_what_a_hook_leaves_running_is_not_waited_for_and_its_words_are_heard() -> None:
    script = "echo said; echo why >&2; sleep 60 & echo $!"
    git = Git("/bin/sh", words=("-c", script), env={"PATH": DEFAULT_PATH})
    began = time.monotonic()
    said = await git.run_unchecked()
    first, pid = said.out.split()
    try:
        assert (said.code, first, said.err) == (0, b"said", "why")
        assert time.monotonic() - began < 30
    finally:
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_file_that_vanishes_while_it_is_looked_at_is_looked_for_again(person: Person, times: int) -> None:
    look, left = staging._inspect_files, [times]

    def too_late(
        root: Path, limits: Iterable[tuple[str, int | None]]
    ) -> tuple[list[str], list[str], list[SkippedPath]]:
        gone, there, left_out = look(root, limits)
        left[0] -= 1
        return (gone, [*there, "vanished"] if left[0] >= 0 else there, left_out)

    workspace = await person.workspace()
    person.write("new", "new\n")
    with patch.object(staging, "_inspect_files", too_late):
        if times == staging.MAX_ATTEMPTS:
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
    assert await worktree.inspect() == WorktreeContents(
        tree=done.tree, left_out=(SkippedPath(path="a.txt", why="other"),)
    )
    assert person.git("diff", "--name-only", worktree.base, done.commit) == "new\n", "the file is what it was"


async def test_a_file_that_nobody_may_read_is_left_out(person: Person) -> None:
    person.write("secret", "secret\n")
    workspace = await person.workspace()
    with patch.object(os, "access", lambda place, _: Path(place).name != "secret"):
        snapshot = await workspace.snapshot("r1")
    assert snapshot.left_out == (SkippedPath(path="secret", why="unreadable", size=7),)


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
    monkeypatch.setattr(staging, "MAX_UNKNOWN_FILES", 2)
    for name in ("x", "y", "z"):
        person.write(name, "")
    workspace = await person.workspace()
    with pytest.raises(WorkspaceFault, match="gitignore") as caught:
        await workspace.snapshot("r1")
    assert caught.value.reason == "too_large"


async def test_a_full_disk_in_the_middle_of_an_undo_leaves_it_applied(person: Person) -> None:
    workspace, _, applied = await brought(person)
    after, full = tree_of(person.root), FullDisk(person.root / "keep/b.py")
    with (
        patch.object(Git, "run_unchecked", full.answer),
        pytest.raises(WorkspaceFault, match="Nothing was changed"),
    ):
        await workspace.undo(applied.id)
    assert (tree_of(person.root), [one.state for one in await workspace.list_applied("r1")]) == (after, ["applied"])


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
