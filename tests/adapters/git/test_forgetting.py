"""What is kept of runs and copies: listed, deleted when that is meant, and explained where somebody deleted it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import (
    SCRATCH_THREAD,
    AppliedChange,
    Conflicts,
    RetainedRun,
    WorkspaceFault,
    WorktreeStatus,
)
from tests.adapters.git.person import Person, got, opened, put, worked
from tests.adapters.git.shapes import plain


@pytest.fixture(name="person")
def _person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    person.write("a.py", "A = 1\n")
    person.write("test_a.py", "old\n")
    person.write("test_b.py", "b\n")
    person.git("init", "--quiet")
    person.commit_all("first")
    return person


def ours(person: Person) -> list[str]:
    return [one.split()[-1] for one in person.git("for-each-ref", "refs/greenroom").splitlines()]


def all_copies(person: Person) -> GitWorktrees:
    return GitWorktrees(person.root.parent / "cache", person.env)


async def test_work_that_nobody_has_is_only_deleted_when_that_is_meant(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(worktree, "a.py", "A = 2\n")
    await worked(worktree, summary="Two it is")
    with pytest.raises(WorkspaceFault, match="Clean it first") as caught:
        await workspace.forget("r1", discard=True)
    assert caught.value.reason == "state", "somebody may be at work in it"
    (copy,) = await all_copies(person).list()
    await all_copies(person).clean(copy.name, discard=True)
    (kept,) = await workspace.list_kept_runs()
    assert (kept.run, kept.unapplied, kept.applied) == ("r1", ("Two it is",), ())
    said = await workspace.forget("r1")
    assert isinstance(said, Conflicts)
    assert said.clashes[0].why == "not applied: Two it is"
    assert ours(person), "nothing was deleted"
    assert await workspace.forget("r1", discard=True) == kept
    assert ours(person) == []
    assert await workspace.list_kept_runs() == []
    assert isinstance(await workspace.forget("r1"), RetainedRun), "asked again, nothing is done"


async def test_applied_work_is_somebody_s_and_others_keep_what_is_theirs(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(worktree, "a.py", "A = 2\n")
    tip = (await worked(worktree)).commit
    await workspace.adopt("r2", "ann@t1", "r1", tip)
    applied = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(applied, AppliedChange)
    await workspace.close("r1", "ann@t1")
    known = {one.run: one for one in await workspace.list_kept_runs()}
    assert known["r1"].applied == ("r1/1",)
    assert known["r1"].unapplied == ()
    await workspace.forget("r1")
    assert [one.split("/")[2] for one in ours(person)] == ["r2", "r2"]
    again = await workspace.open("r2", "ann@t1", worktree.base)
    assert got(again)["a.py"] == "A = 2\n"
    assert (person.root / "a.py").read_text() == "A = 2\n"


async def test_what_is_kept_of_each_run_is_told(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    tips = list[str]()
    for number in range(1, 4):
        put(worktree, "a.py", f"A = {number + 1}\n")
        tips.append((await worked(worktree, key=f"k{number}", summary=f"Step {number}")).commit)
    assert isinstance(await workspace.apply("r1", worktree.base, tips[1]), AppliedChange)
    for number, tip in enumerate(tips, 2):
        await workspace.adopt(f"r{number}: a fork", "main", "r1", tip)
    other = await opened(workspace, "apart")
    put(other, "test_a.py", "apart\n")
    await worked(other, summary="Apart")
    assert {one.run: (one.unapplied, one.applied) for one in await workspace.list_kept_runs()} == {
        "apart": (("Apart",), ()),
        "r1": (("Step 3",), ("r1/1",)),
        "r2: a fork": (("Step 1",), ()),
        "r3: a fork": (("Step 2", "Step 1"), ()),
        "r4: a fork": (("Step 3", "Step 2", "Step 1"), ()),
    }


async def test_some_files_are_put_back_and_the_rest_is_as_it_became(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    (folder / "a.py").write_text("A = 2\n")
    (folder / "test_a.py").write_text("new\n")
    (folder / "test_b.py").unlink()
    (folder / "test_b.py").mkdir()
    (folder / "test_b.py" / "inside").write_text("in the place of a file\n")
    (folder / "test_c.py").write_text("c\n")
    tip = (await worked(worktree)).commit
    names = ["test_a.py", "test_b.py", "test_b.py/inside", "test_c.py", "never.py"]
    mixed = await workspace.restore_paths(tip, worktree.base, names)
    scratch = await workspace.open("r1", SCRATCH_THREAD, mixed)
    assert got(scratch) == {"a.py": "A = 2\n", "test_a.py": "old\n", "test_b.py": "b\n"}
    put(scratch, "left.txt", "by a check\n")
    copies = {one.thread: one for one in await all_copies(person).list()}
    assert copies["ann@t1"].has_unsaved_work
    assert not copies[SCRATCH_THREAD].has_unsaved_work, "what a check leaves is no work"
    assert isinstance(await all_copies(person).clean(copies[SCRATCH_THREAD].name), WorktreeStatus)
    await workspace.open("r1", SCRATCH_THREAD, worktree.base)
    for _ in range(2):
        await workspace.close("r1", SCRATCH_THREAD)
    assert [one.thread for one in await all_copies(person).list()] == ["ann@t1"]
    assert person.git("worktree", "list").count("scratch") == 0


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
    work = "all its commits are applied"
    work = work if applied else "1 commit is not applied: run `greenroom apply r1`"
    left = "`greenroom workspaces clean` removes what is left"
    assert found.orphan == f"Its folder was deleted; {work}. {left}"
    assert isinstance(await copies.clean(found.name), WorktreeStatus), "nothing is lost with it"
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
