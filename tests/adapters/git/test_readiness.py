"""What a commit would be refused for is said before, and what refused it is said as it was."""

from __future__ import annotations

import asyncio

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import Applied, Undone, WorkspaceFault
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.test_committing import brought, hook
from tests.conformance.workspace_case import tree_of

NAMELESS = "[user]\n\tuseConfigOnly = true\n"
EMPTY = "[user]\n\tname =\n\temail = pat@x\n"


@pytest.mark.parametrize("missing", ["AUTHOR", "COMMITTER"])
async def test_both_names_are_needed(person: Person, missing: str) -> None:
    other = {"AUTHOR": "COMMITTER", "COMMITTER": "AUTHOR"}[missing]
    env = {**person.env, f"GIT_{other}_NAME": "Pat", f"GIT_{other}_EMAIL": "pat@x"}
    (person.home / ".gitconfig").write_text(NAMELESS)
    workspace = await GitWorkspace.find(person.root, person.root.parent / "cache", env=env)
    with pytest.raises(WorkspaceFault, match=r"does not know your name.*Nothing was changed"):
        await workspace.expect()


@pytest.mark.parametrize("settings", [NAMELESS, EMPTY], ids=["nameless", "empty"])
async def test_who_has_no_name_is_told_so_and_not_of_hooks(person: Person, settings: str) -> None:
    workspace, _, applied = await brought(person)
    (person.home / ".gitconfig").write_text(settings)
    with pytest.raises(WorkspaceFault, match="does not know your name") as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "state"


async def test_of_much_that_a_hook_says_the_end_is_told(person: Person) -> None:
    hook(person, "pre-commit", "echo first; seq 5000; echo 'the last word'; exit 1")
    workspace, _, applied = await brought(person)
    with pytest.raises(WorkspaceFault, match="the last word") as caught:
        await workspace.commit(applied.id, "Do it")
    assert "first" not in str(caught.value)


async def test_a_branch_that_another_git_holds_is_waited_for(person: Person) -> None:
    workspace, _, applied = await brought(person)
    lock = person.write(".git/refs/heads/main.lock", "")
    asyncio.get_running_loop().call_later(0.5, lock.unlink)
    assert (await workspace.commit(applied.id, "Do it")).commit == person.git("rev-parse", "HEAD").strip()


async def test_what_they_have_taken_back_themselves_needs_no_other_commit(person: Person) -> None:
    before = tree_of(person.root)
    workspace, _, applied = await brought(person)
    await workspace.commit(applied.id, "Do it")
    person.git("revert", "--no-edit", "HEAD")
    head = person.git("rev-parse", "HEAD").strip()
    assert await workspace.undo(applied.id, revert=True) == Undone(paths=applied.paths, revert=head)
    assert (tree_of(person.root), person.git("status", "--porcelain")) == (before, "")


async def test_what_was_dropped_has_nothing_to_undo(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(worktree, "a.txt", "work\n")
    tip = (await worked(worktree)).commit
    first = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(first, Applied)
    person.git("checkout", "--quiet", "a.txt")
    second = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(second, Applied)
    assert [one.state for one in await workspace.applied("r1")] == ["dropped", "applied"]
    assert await workspace.undo(first.id) == Undone(paths=())
    assert (person.root / "a.txt").read_text() == "work\n"


async def test_in_a_merge_no_commit_on_top_takes_it_back(person: Person) -> None:
    workspace, _, applied = await brought(person)
    await workspace.commit(applied.id, "Do it")
    before, head = tree_of(person.root), person.git("rev-parse", "HEAD")
    person.write(".git/MERGE_HEAD", head)
    with pytest.raises(WorkspaceFault, match=r"A merge is in progress. Nothing was changed"):
        await workspace.undo(applied.id, revert=True)
    assert (tree_of(person.root), person.git("rev-parse", "HEAD")) == (before, head)
    assert [one.state for one in await workspace.applied("r1")] == ["applied"]


async def test_a_commit_that_git_has_thrown_away_leaves_nothing_to_undo(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.git("reset", "--quiet", "--hard", "HEAD~1")
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("prune", "--expire=now")
    with pytest.raises(WorkspaceFault, match=f"nothing to undo: its commit {made.commit[:10]}"):
        await workspace.undo(applied.id)
