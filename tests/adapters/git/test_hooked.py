"""Hooks that take their time, say no, change files, or see whoever waits for them killed: nothing is left half done."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import pytest

from greenroom.adapters.git import hooked, running, undoing, writing
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import Paper
from greenroom.core.ports.workspace import Applied, Clash, Clashes, Undone, WorkspaceFault
from greenroom.testing.conformance.workspace_case import tree_of
from tests.adapters.git.killed import copied, live
from tests.adapters.git.person import Person, opened, status, worked
from tests.adapters.git.shapes import edit, plain
from tests.adapters.git.test_committing import brought, hook
from tests.adapters.git.test_halfway import Closed

ABOVE = "$(cut -d ' ' -f 4 /proc/$PPID/stat)"
"""The process that runs git."""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person


async def test_their_index_is_free_while_hooks_run(person: Person) -> None:
    hook(person, "pre-commit", "env -u GIT_INDEX_FILE git -C .. -C $PWD add other || exit 1")
    workspace, _, applied = await brought(person)
    person.write("other", "theirs\n")
    await workspace.commit(applied.id, "Do it")
    assert not (workspace._house.folder / hooked.PAPER).exists()
    assert status(person) == "A  other\n", "what they staged meanwhile is staged, and in no commit"
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert (person.root / "other").read_text() == "theirs\n"


@pytest.mark.parametrize("ends", [0, 1], ids=["committed", "refused"])
async def test_what_is_saved_while_hooks_run_and_not_committed_is_an_edit_of_theirs(person: Person, ends: int) -> None:
    hook(person, "pre-commit", f"echo my own line >>a.txt; exit {ends}")
    workspace, _, applied = await brought(person)
    if ends:
        with pytest.raises(WorkspaceFault, match="The commit was refused"):
            await workspace.commit(applied.id, "Do it")
    else:
        made = await workspace.commit(applied.id, "Do it")
        assert "my own line" not in person.git("show", f"{made.commit}:a.txt")
    before = tree_of(person.root), person.git("log", "--format=%H")
    undone = await workspace.undo(applied.id)
    assert undone == Clashes(clashes=(Clash(path="a.txt", why="it was edited since, first in line 31"),))
    assert (tree_of(person.root), person.git("log", "--format=%H")) == before
    assert (person.root / "a.txt").read_text().endswith("my own line\n")


async def test_a_hook_that_changes_files_and_says_no_to_the_way_back_has_changed_those_and_nothing_else(
    person: Person,
) -> None:
    workspace, _, applied = await brought(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    refusing = hook(person, "pre-commit", "echo nothing to commit; echo changed >>a.txt; rm -f go/old.txt; exit 1")
    before, log = tree_of(person.root), person.git("log", "--format=%H")
    with pytest.raises(WorkspaceFault, match=r"(?s)takes it back was refused.*But 'a.txt' stays as it lies") as caught:
        await workspace.undo(applied.id, revert=True)
    assert caught.value.reason == "hook"
    assert (person.root / "a.txt").read_text().endswith("changed\n"), "that may be what a person has saved"
    assert (status(person), person.git("log", "--format=%H")) == (" M a.txt\n", log)
    assert not [one.name for one in (person.root / ".git").iterdir() if one.name.endswith((".lock", "REVERT_HEAD"))]
    refusing.unlink()
    assert isinstance(await workspace.undo(applied.id, revert=True), Clashes)
    person.git("checkout", "a.txt")
    assert tree_of(person.root) == before
    assert isinstance(await (await person.workspace()).undo(applied.id, revert=True), Undone)
    assert status(person) == ""


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
async def test_a_hook_that_says_no_without_a_word_is_named(person: Person, name: str) -> None:
    place = hook(person, name, "exit 3")
    workspace, _, applied = await brought(person)
    who = rf"A hook of yours \({name} in '{place.parent}'\) said no without a word \(git ended with code 1\)"
    with pytest.raises(WorkspaceFault, match=who) as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "hook"


async def test_a_hook_that_talks_of_names_is_not_taken_for_git(person: Person) -> None:
    hook(person, "pre-commit", "echo 'your identity is fine, nothing to commit' >&2; exit 1")
    workspace, _, applied = await brought(person)
    with pytest.raises(WorkspaceFault, match="your identity is fine") as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "hook"


@pytest.mark.req("G-2")
@pytest.mark.parametrize("who", ["house", "both"])
@pytest.mark.parametrize("act", ["commit", "revert"])
async def test_a_kill_while_hooks_run_is_mended_by_whoever_comes_next(
    person: Person, tmp_path: Path, who: str, act: Literal["commit", "revert"]
) -> None:
    workspace, worktree, applied = await brought(person)
    if act == "revert":
        await workspace.commit(applied.id, "Do it")
        person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    pair, before = (worktree.base, applied.tip), tree_of(person.root)
    one = copied(person.root, tmp_path / "killed")
    hook(one, "pre-commit", f"kill -9 {ABOVE} {'$PPID' if who == 'both' else ''}")
    assert live(one, act, pair, 10**6), "it was killed"
    (one.root / ".git/hooks/pre-commit").unlink()
    again = await one.workspace()
    assert not (one.root / ".git/index.lock").exists()
    if act == "commit":
        made = await again.commit(applied.id, "Do it")
        assert (tree_of(one.root), status(one)) == (before, "")
        assert one.git("log", "--format=%s").splitlines() == ["Do it", "first"]
        assert await again.undo(applied.id) == Undone(paths=applied.paths, commit=made.commit)
    else:
        assert isinstance(await again.undo(applied.id, revert=True), Undone)
        assert [one.state for one in await again.applied("r1")] == ["undone"]
        assert one.git("log", "--format=%s").splitlines() == ['Revert "Do it"', "another", "Do it", "first"]
    assert status(one) == ""


async def test_nobody_moves_files_below_a_commit_that_still_goes_on(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, _, applied = await brought(person)
    tree, paper = tree_of(person.root), workspace._house.folder / hooked.PAPER
    paper.write_text(f'{{"pid": {os.getpid()}}}')
    monkeypatch.setattr(hooked, "PATIENCE", 0.2)
    again = await person.workspace()
    for wrong in (again.undo(applied.id), again.commit(applied.id, "x")):
        with pytest.raises(WorkspaceFault, match=f"its hooks still run .process {os.getpid()}.") as caught:
            await wrong
        assert caught.value.reason == "locked"
    assert tree_of(person.root) == tree
    old = paper.stat().st_mtime - hooked.HOOKS - 1
    os.utime(paper, (old, old))
    assert isinstance(await again.undo(applied.id), Undone), "no hook runs as long as that"
    assert not paper.exists()


async def test_a_paper_of_a_process_that_has_ended_is_in_nobodys_way(person: Person) -> None:
    workspace, _, applied = await brought(person)
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    (workspace._house.folder / hooked.PAPER).write_text(f'{{"pid": {ended.pid}}}')
    assert isinstance(await workspace.undo(applied.id), Undone)


async def test_a_commit_whose_index_is_held_is_said_before_anything_is_undone(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    tree = tree_of(person.root)
    lock = person.write(".git/index.lock", "")
    monkeypatch.setattr(hooked, "PATIENCE", 0.2)
    with pytest.raises(WorkspaceFault, match=r"index\.lock"):
        await workspace.undo(applied.id)
    assert (tree_of(person.root), person.git("rev-parse", "HEAD").strip()) == (tree, made.commit)
    lock.unlink()
    assert await workspace.undo(applied.id) == Undone(paths=applied.paths, commit=made.commit)


@pytest.mark.parametrize("room", [0, 3])
async def test_a_branch_that_cannot_be_moved_back_leaves_all_as_it_was(
    person: Person, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    before = tree_of(person.root)
    workspace, _, applied = await brought(person)
    await workspace.commit(applied.id, "Do it")
    tree, said = tree_of(person.root), r"holds '.*main\.lock'"
    lock = person.write(".git/refs/heads/main.lock", "")
    monkeypatch.setattr(running, "PATIENCE", 0.2)
    if room:
        closing(monkeypatch, room)
        said = "as the work has them already"
    with pytest.raises(WorkspaceFault, match=said):
        await workspace.undo(applied.id)
    lock.unlink()
    monkeypatch.undo()
    assert room or tree_of(person.root) == tree
    again = await person.workspace()
    assert isinstance(await again.undo(applied.id), Undone)
    assert (tree_of(person.root), status(person)) == (before, "")


def closing(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """The disk is full when what was undone is to be done again."""
    again = undoing._applied_again

    async def closed(house: House, paper: Paper, why: WorkspaceFault) -> WorkspaceFault:
        with patch.object(writing, "os", Closed(room)):
            return await again(house, paper, why)

    monkeypatch.setattr(undoing, "_applied_again", closed)


async def test_what_they_mended_after_a_no_is_in_the_commit(person: Person) -> None:
    refusing = hook(person, "pre-commit", "exit 1")
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
    with pytest.raises(WorkspaceFault):
        await workspace.commit(applied.id, "Do it")
    person.write("a.txt", (person.root / "a.txt").read_text() + "mended\n")
    refusing.unlink()
    await workspace.commit(applied.id, "Do it")
    assert person.git("show", "HEAD:a.txt").endswith("mended\n")
