"""Work whose commit is not where it was: on another branch, gone, amended. And what is refused before it is done."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from greenroom.adapters.git.refs import MAX_COMMITS_SEARCHED
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import AppliedChange, UndoResult, WorkspaceFault, Worktree
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import TEXT
from tests.adapters.git.test_committing import brought
from tests.conformance.workspace_case import tree_of

ODD = ("tab\there", "line\nend", 'quote"s', "back\\slash", "中 文")


async def committed(person: Person) -> tuple[GitWorkspace, Worktree, AppliedChange, str]:
    workspace, worktree, applied = await brought(person)
    return workspace, worktree, applied, (await workspace.commit(applied.id, "Do it")).commit


@pytest.mark.parametrize("revert", [False, True])
async def test_on_another_branch_nothing_is_undone_and_it_says_where_it_is(person: Person, revert: bool) -> None:
    workspace, _, applied, made = await committed(person)
    person.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    before = person.theirs()
    with pytest.raises(WorkspaceFault, match=rf"{made[:10]} is on 'main', which is not checked out"):
        await workspace.undo(applied.id, revert=revert)
    assert person.theirs() == before
    person.git("checkout", "--quiet", "main")
    assert isinstance(await workspace.undo(applied.id), UndoResult), "it can still be undone there"
    assert (person.root / "a.txt").read_text() == TEXT


async def test_on_another_branch_it_is_not_brought_again_but_said_where_it_is(person: Person) -> None:
    workspace, worktree, applied, made = await committed(person)
    person.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    before = person.theirs()
    with pytest.raises(WorkspaceFault, match=rf"as commit {made[:10]} on 'main', which is not checked out"):
        await workspace.apply("r1", worktree.base, applied.tip)
    assert person.theirs() == before


async def test_after_a_reset_it_is_brought_again(person: Person) -> None:
    workspace, worktree, applied, made = await committed(person)
    after = tree_of(person.root)
    person.git("reset", "--quiet", "--hard", "HEAD~1")
    with pytest.raises(WorkspaceFault, match="nothing to undo"):
        await workspace.undo(applied.id)
    again = await workspace.apply("r1", worktree.base, applied.tip)
    assert isinstance(again, AppliedChange)
    assert (again.id != applied.id, tree_of(person.root)) == (True, after)
    assert [one.state for one in await workspace.list_applied("r1")] == ["dropped", "applied"]
    assert (await workspace.commit(again.id, "Do it")).commit not in ("", made)
    assert person.git("status", "--porcelain") == ""


async def test_a_commit_that_was_taken_off_with_its_files_left_is_made_again_or_undone(person: Person) -> None:
    before = tree_of(person.root)
    workspace, worktree, applied, made = await committed(person)
    person.git("reset", "--quiet", "--soft", "HEAD~1")
    assert (await workspace.apply("r1", worktree.base, applied.tip)) == (await workspace.list_applied("r1"))[0]
    again = await workspace.commit(applied.id, "Do it again")
    assert (again.commit != made, person.git("log", "-1", "--format=%s")) == (True, "Do it again\n")
    person.git("reset", "--quiet", "--soft", "HEAD~1")
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert tree_of(person.root) == before


@pytest.mark.parametrize(
    "command",
    [
        ("commit", "--amend", "--message", "In my own words"),
        ("commit", "--amend", "--no-edit", "--author", "Somebody <else@x>"),
        ("rebase", "other"),
    ],
    ids=["with other words", "with its message kept", "rebased"],
)
@pytest.mark.parametrize("revert", [False, True])
async def test_a_commit_that_was_made_anew_is_taken_back_with_git(
    person: Person, command: tuple[str, ...], revert: bool
) -> None:
    person.git("checkout", "--quiet", "-b", "other")
    person.write("other", "other\n")
    person.commit_all("other")
    person.git("checkout", "--quiet", "main")
    workspace, worktree, applied, made = await committed(person)
    person.git(*command)
    before, head = person.theirs(), person.git("rev-parse", "HEAD").strip()
    with pytest.raises(WorkspaceFault, match=f"{made[:10]} was amended.* 'git revert {head[:10]}'"):
        await workspace.undo(applied.id, revert=revert)
    assert person.theirs() == before
    found = await workspace.blame("a.txt", 20)
    assert found is not None
    assert found.step is not None
    assert (found.commit != made, found.step.step) == (True, "ann#1")
    again = await workspace.apply("r1", worktree.base, applied.tip)
    assert isinstance(again, AppliedChange)
    assert not again.fresh


@pytest.mark.parametrize("revert", [False, True])
async def test_what_is_undone_on_one_branch_can_be_undone_on_another_that_has_it_too(
    person: Person, revert: bool
) -> None:
    workspace, _, applied, _ = await committed(person)
    person.git("checkout", "--quiet", "-b", "other")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    assert isinstance(await workspace.undo(applied.id, revert=True), UndoResult)
    assert await workspace.undo(applied.id, revert=True) == UndoResult(paths=()), "here it is"
    person.git("checkout", "--quiet", "main")
    done = await workspace.undo(applied.id, revert=revert)
    assert isinstance(done, UndoResult)
    assert (done.paths, bool(done.revert)) == (applied.paths, revert)
    assert ((person.root / "a.txt").read_text(), person.git("status", "--porcelain")) == (TEXT, "")
    assert await workspace.undo(applied.id, revert=revert) == UndoResult(paths=())


async def test_what_is_undone_stays_so_though_files_and_commits_came_since(person: Person) -> None:
    workspace, _, applied, _ = await committed(person)
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    assert isinstance(await workspace.undo(applied.id, revert=True), UndoResult)
    person.write("a.txt", "mine\n")
    for number in range(MAX_COMMITS_SEARCHED + 1):
        person.git("commit", "--quiet", "--all", "--allow-empty", "--message", str(number))
    assert await workspace.undo(applied.id) == UndoResult(paths=())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("HEAD", "not a valid branch name"),
        ("-d", "not a valid branch name"),
        ("@{-1}", "not a valid branch name"),
        ("a..b", "not a valid branch name"),
        ("refs/heads/x", "Give only the branch name: 'x'"),
        ("main", "The branch 'main' already exists"),
        ("main/x", "The branch 'main' exists, so git cannot create 'main/x'"),
        ("deep", "The branch 'deep/er' exists, so git cannot create 'deep'"),
    ],
)
async def test_a_name_that_no_branch_can_have_is_refused_at_once(person: Person, name: str, why: str) -> None:
    person.git("branch", "deep/er")
    workspace = await person.workspace()
    with pytest.raises(WorkspaceFault, match=why) as caught:
        await workspace.check_can_commit(branch=name)
    assert caught.value.reason == "name"
    await workspace.check_can_commit(branch="main-x")


async def test_outside_git_there_is_no_branch_and_a_folder_that_was_moved_can_be_put_back(tmp_path: Path) -> None:
    nobody = Person(tmp_path / "tree")
    nobody.root.mkdir(parents=True)
    (nobody.root / "a.txt").write_text("a\n")
    workspace = await nobody.workspace()
    with pytest.raises(WorkspaceFault, match="not in a git repository") as caught:
        await workspace.check_can_commit(branch="work")
    assert caught.value.reason == "repository"
    nobody.root.rename(tmp_path / "moved")
    with pytest.raises(WorkspaceFault, match=r"ln -s NEW-PATH .*/tree"):
        await nobody.workspace()


async def test_names_with_signs_in_them_go_all_the_way(person: Person) -> None:
    before = tree_of(person.root)
    workspace = await person.workspace()
    worktree = await opened(workspace)
    for name in ODD:
        put(worktree, name, "one\n")
    done = await worked(worktree)
    found = await workspace.diff(worktree.base, done.commit)
    assert {one.path: one.added for one in found.changes} == dict.fromkeys(ODD, 1)
    applied = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(applied, AppliedChange)
    await workspace.commit(applied.id, "Do it")
    for name in ODD:
        blamed = await workspace.blame(name, 1)
        assert blamed is not None
        assert blamed.step is not None, name
        assert blamed.recorded == done.commit
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert tree_of(person.root) == before


async def test_outside_git_what_undo_needs_outlives_the_cache(tmp_path: Path) -> None:
    root, cache, own = tmp_path / "tree", tmp_path / "cache", tmp_path / "data"
    root.mkdir()
    (root / "a.txt").write_text("mine\n")
    workspace = await GitWorkspace.find(root, cache, own_folder=own)
    worktree = await opened(workspace)
    put(worktree, "a.txt", "work\n")
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, AppliedChange)
    (standing,) = await GitWorktrees(cache).list()
    assert (standing.orphan, standing.has_unsaved_work) == ("", False)
    shutil.rmtree(cache)
    assert isinstance(await (await GitWorkspace.find(root, cache, own_folder=own)).undo(applied.id), UndoResult)
    assert (root / "a.txt").read_text() == "mine\n"
