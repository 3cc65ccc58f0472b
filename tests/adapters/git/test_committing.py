"""A change as a commit of the person, undone, on a branch, and by two at once."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from greenroom.adapters.git import apply as applying
from greenroom.adapters.git import undo as undoing
from greenroom.adapters.git import workspace as workspaces
from greenroom.adapters.git.files import lock
from greenroom.adapters.git.journal import JournalEntry, save_entry
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import (
    AppliedChange,
    BranchResult,
    Conflict,
    Conflicts,
    UndoBlocked,
    UndoResult,
    WorkspaceFault,
    Worktree,
)
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import SHAPES, TEXT, dirty, edit, edited
from tests.conformance.workspace_case import tree_of


def hook(person: Person, name: str, script: str) -> Path:
    place = person.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


async def brought(person: Person) -> tuple[GitWorkspace, Worktree, AppliedChange]:
    """Edits, applied to their tree."""
    workspace, worktree, done = await edited(person)
    applied = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(applied, AppliedChange)
    return workspace, worktree, applied


async def test_the_commit_is_theirs_with_these_files_only(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    dirty(person)
    before = person.git("status", "--porcelain", "--untracked-files=all")
    tree = tree_of(person.root)
    workspace, worktree, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it\n\nAt last.")
    assert person.git("log", "-1", "--format=%an <%ae>%n%s").split("\n")[:2] == ["Pat <pat@x>", "Do it"]
    assert person.git("show", "--format=", "--name-only", "--no-renames", "-z", "HEAD").split("\0")[:-1] == sorted(
        applied.paths
    )
    body = person.git("log", "-1", "--format=%B")
    assert f"Greenroom-Run: r1\nGreenroom-Applied: {applied.id}\n" in body
    assert person.git("status", "--porcelain", "--untracked-files=all") == before, "staged is still staged"
    assert (made.fresh, await workspace.commit(applied.id, "Again")) == (True, evolve(made, fresh=False))
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert (tree_of(person.root), person.git("status", "--porcelain", "--untracked-files=all")) == (tree, before)
    assert person.git("log", "-1", "--format=%s") == "second\n"
    assert (await worktree.tip()) == applied.tip
    assert person.git("fsck", "--strict", "--no-dangling") == "", "what is written down is written as git writes it"


async def test_their_hooks_run_and_what_those_change_is_no_edit(person: Person) -> None:
    hook(person, "pre-commit", "tr a-z A-Z <a.txt >x && mv x a.txt && git add a.txt && touch .git/hook-ran")
    tree = tree_of(person.root)
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    assert (person.root / ".git/hook-ran").exists()
    assert "LINE TWENTY" in person.git("show", f"{made.commit}:a.txt")
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert tree_of(person.root) == tree


async def test_a_hook_that_says_no_leaves_the_files_and_the_index(person: Person) -> None:
    hook(person, "pre-commit", "echo not on my watch >&2; exit 1")
    workspace, _, applied = await brought(person)
    before, tree = person.git("status", "--porcelain"), tree_of(person.root)
    with pytest.raises(WorkspaceFault, match=r"stay applied.*not on my watch") as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "hook"
    assert (person.git("status", "--porcelain"), tree_of(person.root)) == (before, tree)
    (person.root / ".git/hooks/pre-commit").unlink()
    assert (await workspace.commit(applied.id, "Do it")).commit == person.git("rev-parse", "HEAD").strip()


async def test_without_git_there_is_nothing_to_commit_to(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    SHAPES["no git"](person)
    workspace, _, applied = await brought(person)
    with pytest.raises(WorkspaceFault, match="not in a git repository"):
        await workspace.commit(applied.id, "Do it")


async def test_a_commit_that_others_came_after_is_undone_by_one_on_top(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.write("other", "other\n")
    person.commit_all("another")
    tree = tree_of(person.root)
    said = await workspace.undo(applied.id)
    assert isinstance(said, UndoBlocked)
    assert (said.commit, tree_of(person.root)) == (made.commit, tree)
    undone = await workspace.undo(applied.id, revert=True)
    assert isinstance(undone, UndoResult)
    assert undone.revert == person.git("rev-parse", "HEAD").strip()
    assert person.git("log", "--format=%s").splitlines() == ['Revert "Do it"', "another", "Do it", "first"]
    assert (person.root / "a.txt").read_text() == TEXT
    assert person.git("status", "--porcelain") == ""


async def test_a_commit_that_others_have_already_is_not_taken_back(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.git("update-ref", "refs/remotes/origin/main", made.commit)
    said = await workspace.undo(applied.id)
    assert isinstance(said, UndoBlocked)
    assert "refs/remotes/origin/main" in said.why


@pytest.mark.parametrize("shape", ["plain", "dirty", "crlf", "sha256", "detached"])
async def test_a_branch_has_only_what_the_work_changed(tmp_path: Path, shape: str) -> None:
    person = Person(tmp_path / "tree")
    SHAPES[shape](person)
    head = person.git("rev-parse", "HEAD").strip()
    theirs = person.theirs()
    workspace, worktree, done = await edited(person)
    made = await workspace.branch("agents/work", worktree.base, done.commit, "On a branch")
    assert isinstance(made, BranchResult)
    assert made.name == "agents/work"
    assert person.git("rev-parse", "agents/work^").strip() == head
    assert len(person.git("show", "--format=", "--name-only", "--no-renames", "-z", "agents/work").split("\0")) == 8
    assert person.git("show", "--format=", "agents/work", "--", "a.txt").count("\n-") == 2, "one line, and its name"
    person.git("branch", "--delete", "--force", "agents/work")
    assert person.theirs() == theirs


async def test_a_line_leads_to_the_step_that_wrote_it(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    text = Path(worktree.folder) / "a.txt"
    text.write_text(text.read_text().replace("line 20\n", "one\n"))
    one = await worked(worktree, "k1", "ann#1", "The first")
    text.write_text(text.read_text().replace("line 25\n", "two\n"))
    two = await worked(worktree, "k2", "ann#7", "The second")
    person.write("a.txt", "on top\n" + (person.root / "a.txt").read_text())
    person.commit_all("mine")
    applied = await workspace.apply("r1", worktree.base, two.commit)
    assert isinstance(applied, AppliedChange)
    assert applied.merged == ("a.txt",)
    for message in ("", "Do it"):
        committed = (await workspace.commit(applied.id, message)).commit if message else ""
        first, second = await workspace.blame("a.txt", 21), await workspace.blame("a.txt", 26)
        assert first is not None
        assert second is not None
        assert first.step is not None
        assert second.step is not None
        assert (first.commit, first.text, first.step.step, first.recorded) == (committed, "one", "ann#1", one.commit)
        assert (second.step.step, second.step.summary, second.recorded) == ("ann#7", "The second", two.commit)
        old = await workspace.blame("a.txt", 5)
        assert old is not None
        assert (old.step, old.commit) == (None, person.git("rev-list", "--max-parents=0", "HEAD").strip())
    with pytest.raises(WorkspaceFault, match="no line 99"):
        await workspace.blame("a.txt", 99)


async def test_undo_of_a_commit_refuses_what_was_edited_since(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.write("keep/c.py", "edited\n")
    assert isinstance(await workspace.undo(applied.id), Conflicts)
    assert person.git("rev-parse", "HEAD").strip() == made.commit


@pytest.mark.req("G-2")
@pytest.mark.parametrize(
    "kind", ["edited", "staged", "staged and put back", "unknown", "unknown on the way", "ignored"]
)
async def test_a_file_with_edits_that_are_in_no_commit_is_never_written(person: Person, kind: str) -> None:
    workspace, worktree, done = await edited(person)
    where = {"unknown": "new-link", "unknown on the way": "新 folder", "ignored": "new-link"}.get(kind, "a.txt")
    if kind == "ignored":
        person.write(".git/info/exclude", "new-link\n")
    before = (person.root / where).read_text() if where == "a.txt" else ""
    person.write(where, f"{before}mine\n")
    if kind.startswith("staged"):
        person.git("add", where)
    if kind.endswith("back"):
        person.write(where, before)
    theirs = person.theirs()
    said = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(said, Conflicts)
    assert [clash.path.partition("/")[0] for clash in said.clashes] == [where]
    assert (person.theirs(), await workspace.list_applied("r1")) == (theirs, [])
    made = await workspace.branch("work", worktree.base, done.commit, "On a branch")
    assert isinstance(made, BranchResult), "which the person is offered instead"


@pytest.mark.parametrize("state", ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "BISECT_LOG"])
async def test_in_the_middle_of_something_nothing_is_changed(person: Person, state: str) -> None:
    workspace, worktree, done = await edited(person)
    person.write(f".git/{state}", person.git("rev-parse", "HEAD"))
    theirs = person.theirs()
    with pytest.raises(WorkspaceFault, match=r"in progress\. Nothing was changed"):
        await workspace.apply("r1", worktree.base, done.commit)
    assert person.theirs() == theirs


@pytest.mark.parametrize("committed", [True, False])
async def test_a_branch_that_does_not_fit_on_head_begins_where_the_run_began_or_is_refused(
    person: Person, committed: bool
) -> None:
    first = person.git("rev-parse", "HEAD").strip()
    if not committed:
        person.write("a.txt", TEXT.replace("line 20\n", "mine, line 20\n"))
    workspace, worktree, done = await edited(person)
    if committed:
        person.write("a.txt", TEXT.replace("line 20\n", "mine, line 20\n"))
        person.commit_all("mine")
    said = await workspace.branch("work", worktree.base, done.commit, "On a branch")
    if committed:
        assert isinstance(said, BranchResult)
        assert person.git("rev-parse", "work^").strip() == first
    else:
        assert said == Conflicts(clashes=(Conflict(path="a.txt", why="you have uncommitted edits in it"),))
        assert "work" not in person.git("branch", "--list")
    for wrong in ("main", "a..b", "-d", "a b"):
        with pytest.raises(WorkspaceFault) as caught:
            await workspace.branch(wrong, worktree.base, done.commit, "x")
        assert caught.value.reason == "name"


@pytest.mark.parametrize(
    "name", [".husky/pre-commit", ".pre-commit-config.yaml", "lefthook.yml", "githooks/x", "src/a.py"]
)
async def test_files_that_set_up_hooks_are_known(person: Person, name: str) -> None:
    person.git("config", "core.hooksPath", "githooks")
    workspace = await person.workspace()
    worktree = await opened(workspace)
    Person(Path(worktree.folder)).write(name, "x\n")
    done = await worked(worktree)
    assert await workspace.list_changed_hooks(worktree.base, done.commit) == (() if name.startswith("src") else (name,))


async def test_what_is_committed_without_hooks_runs_none(person: Person) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"):
        hook(person, name, "touch .git/ran; exit 1")
    workspace, _, applied = await brought(person)
    assert (await workspace.commit(applied.id, "Do it", hooks=False)).fresh
    assert not (person.root / ".git/ran").exists()


NAMELESS = "[user]\n\tuseConfigOnly = true\n"
EMPTY = "[user]\n\tname =\n\temail = pat@x\n"


@pytest.mark.parametrize("missing", ["AUTHOR", "COMMITTER"])
async def test_both_names_are_needed(person: Person, missing: str) -> None:
    other = {"AUTHOR": "COMMITTER", "COMMITTER": "AUTHOR"}[missing]
    env = {**person.env, f"GIT_{other}_NAME": "Pat", f"GIT_{other}_EMAIL": "pat@x"}
    (person.home / ".gitconfig").write_text(NAMELESS)
    workspace = await GitWorkspace.find(person.root, person.root.parent / "cache", env=env)
    with pytest.raises(WorkspaceFault, match=r"has no name for your commits.*Nothing was changed"):
        await workspace.check_can_commit()


@pytest.mark.parametrize("settings", [NAMELESS, EMPTY], ids=["nameless", "empty"])
async def test_who_has_no_name_is_told_so_and_not_of_hooks(person: Person, settings: str) -> None:
    workspace, _, applied = await brought(person)
    (person.home / ".gitconfig").write_text(settings)
    with pytest.raises(WorkspaceFault, match="has no name for your commits") as caught:
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
    assert await workspace.undo(applied.id, revert=True) == UndoResult(paths=applied.paths, revert=head)
    assert (tree_of(person.root), person.git("status", "--porcelain")) == (before, "")


async def test_what_was_dropped_has_nothing_to_undo(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(worktree, "a.txt", "work\n")
    tip = (await worked(worktree)).commit
    first = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(first, AppliedChange)
    person.git("checkout", "--quiet", "a.txt")
    second = await workspace.apply("r1", worktree.base, tip)
    assert isinstance(second, AppliedChange)
    assert [one.state for one in await workspace.list_applied("r1")] == ["dropped", "applied"]
    assert await workspace.undo(first.id) == UndoResult(paths=())
    assert (person.root / "a.txt").read_text() == "work\n"


async def test_in_a_merge_no_commit_on_top_takes_it_back(person: Person) -> None:
    workspace, _, applied = await brought(person)
    await workspace.commit(applied.id, "Do it")
    before, head = tree_of(person.root), person.git("rev-parse", "HEAD")
    person.write(".git/MERGE_HEAD", head)
    with pytest.raises(WorkspaceFault, match=r"A merge is in progress. Nothing was changed"):
        await workspace.undo(applied.id, revert=True)
    assert (tree_of(person.root), person.git("rev-parse", "HEAD")) == (before, head)
    assert [one.state for one in await workspace.list_applied("r1")] == ["applied"]


async def test_a_commit_that_git_has_thrown_away_leaves_nothing_to_undo(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.git("reset", "--quiet", "--hard", "HEAD~1")
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("prune", "--expire=now")
    with pytest.raises(WorkspaceFault, match=f"nothing to undo: its commit {made.commit[:10]}"):
        await workspace.undo(applied.id)


async def test_of_two_who_apply_at_once_one_has_brought_it_and_one_has_committed_it(person: Person) -> None:
    both = await person.workspace(), await person.workspace()
    worktree = await opened(both[0])
    edit(Path(worktree.folder))
    done = (await worked(worktree)).commit
    brought = await asyncio.gather(*(one.apply("r1", worktree.base, done) for one in both))
    assert sorted(one.fresh for one in brought if isinstance(one, AppliedChange)) == [False, True]
    (applied,) = await both[0].list_applied("r1")
    made = await asyncio.gather(*(one.commit(applied.id, "Do it") for one in both))
    assert (sorted(one.fresh for one in made), len({one.commit for one in made})) == ([False, True], 1)


async def test_who_wants_to_undo_while_another_one_does_has_undone_nothing(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, applied = await brought(person)
    second, waits, real, held = await person.workspace(), asyncio.Event(), undoing.undo_entry, lock
    other = list[asyncio.Task[object]]()

    def waited(place: Path) -> AbstractAsyncContextManager[None]:
        waits.set()
        return held(place)

    async def slowly(repository: Repository, paper: JournalEntry) -> UndoResult | Conflicts:
        """The other one comes when it is written down that this is being undone, and is in the middle of it."""
        monkeypatch.setattr(workspaces, "lock", waited)
        other.append(asyncio.create_task(second.undo(applied.id)))
        await waits.wait()
        return await real(repository, paper)

    monkeypatch.setattr(undoing, "undo_entry", slowly)
    assert await first.undo(applied.id) == UndoResult(paths=applied.paths)
    assert await other[0] == UndoResult(paths=())


async def test_who_ends_what_a_kill_left_has_done_it(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Exception):
        """A life ends when the files are as they are to be, and that is not written down yet."""

    async def dying(repository: Repository, paper: JournalEntry) -> None:
        if paper.state in ("applied", "undone"):
            raise Killed
        await save_entry(repository, paper)

    workspace, worktree, done = await edited(person)
    pair = (worktree.base, done.commit)
    monkeypatch.setattr(applying, "save_entry", dying)
    with pytest.raises(Killed):
        await workspace.apply("r1", *pair)
    monkeypatch.undo()
    applied = await (await person.workspace()).apply("r1", *pair)
    assert isinstance(applied, AppliedChange)
    assert applied.fresh
    monkeypatch.setattr(undoing, "save_entry", dying)
    with pytest.raises(Killed):
        await workspace.undo(applied.id)
    monkeypatch.undo()
    again = await person.workspace()
    assert await again.undo(applied.id) == UndoResult(paths=applied.paths)
    assert await again.undo(applied.id) == UndoResult(paths=()), "it is undone once"
