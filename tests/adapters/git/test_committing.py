"""Work as a commit in a person's name, on a branch, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Applied, Branched, Buried, Clash, Clashes, Undone, WorkspaceFault, Worktree
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import SHAPES, TEXT, dirty, edit
from tests.conformance.workspace_case import tree_of


def hook(person: Person, name: str, script: str) -> Path:
    place = person.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


async def brought(person: Person) -> tuple[GitWorkspace, Worktree, Applied]:
    """Edits, applied to their tree."""
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
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
    assert isinstance(await workspace.undo(applied.id), Undone)
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
    assert isinstance(await workspace.undo(applied.id), Undone)
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
    with pytest.raises(WorkspaceFault, match="in no git repository"):
        await workspace.commit(applied.id, "Do it")


async def test_nobody_without_a_name_commits(person: Person) -> None:
    workspace, _, applied = await brought(person)
    (person.home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(WorkspaceFault, match="does not know your name"):
        await workspace.commit(applied.id, "Do it")


async def test_a_commit_that_others_came_after_is_undone_by_one_on_top(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.write("other", "other\n")
    person.commit_all("another")
    tree = tree_of(person.root)
    said = await workspace.undo(applied.id)
    assert isinstance(said, Buried)
    assert (said.commit, tree_of(person.root)) == (made.commit, tree)
    undone = await workspace.undo(applied.id, revert=True)
    assert isinstance(undone, Undone)
    assert undone.revert == person.git("rev-parse", "HEAD").strip()
    assert person.git("log", "--format=%s").splitlines() == ['Revert "Do it"', "another", "Do it", "first"]
    assert (person.root / "a.txt").read_text() == TEXT
    assert person.git("status", "--porcelain") == ""


async def test_a_commit_that_others_have_already_is_not_taken_back(person: Person) -> None:
    workspace, _, applied = await brought(person)
    made = await workspace.commit(applied.id, "Do it")
    person.git("update-ref", "refs/remotes/origin/main", made.commit)
    said = await workspace.undo(applied.id)
    assert isinstance(said, Buried)
    assert "refs/remotes/origin/main" in said.why


@pytest.mark.parametrize("shape", ["plain", "dirty", "crlf", "sha256", "detached"])
async def test_a_branch_has_only_what_the_work_changed(tmp_path: Path, shape: str) -> None:
    person = Person(tmp_path / "tree")
    SHAPES[shape](person)
    head = person.git("rev-parse", "HEAD").strip()
    theirs = person.theirs()
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
    made = await workspace.branch("agents/work", worktree.base, done.commit, "On a branch")
    assert isinstance(made, Branched)
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
    assert isinstance(applied, Applied)
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
    assert isinstance(await workspace.undo(applied.id), Clashes)
    assert person.git("rev-parse", "HEAD").strip() == made.commit


@pytest.mark.req("G-2")
@pytest.mark.parametrize(
    "kind", ["edited", "staged", "staged and put back", "unknown", "unknown on the way", "ignored"]
)
async def test_a_file_with_edits_that_are_in_no_commit_is_never_written(person: Person, kind: str) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
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
    assert isinstance(said, Clashes)
    assert [clash.path.partition("/")[0] for clash in said.clashes] == [where]
    assert (person.theirs(), await workspace.applied("r1")) == (theirs, [])
    made = await workspace.branch("work", worktree.base, done.commit, "On a branch")
    assert isinstance(made, Branched), "which the person is offered instead"


@pytest.mark.parametrize("state", ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "BISECT_LOG"])
async def test_in_the_middle_of_something_nothing_is_changed(person: Person, state: str) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
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
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
    if committed:
        person.write("a.txt", TEXT.replace("line 20\n", "mine, line 20\n"))
        person.commit_all("mine")
    said = await workspace.branch("work", worktree.base, done.commit, "On a branch")
    if committed:
        assert isinstance(said, Branched)
        assert person.git("rev-parse", "work^").strip() == first
    else:
        assert said == Clashes(clashes=(Clash(path="a.txt", why="you have changed it and not committed that"),))
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
    assert await workspace.hooks(worktree.base, done.commit) == (() if name.startswith("src") else (name,))


async def test_what_is_committed_without_hooks_runs_none(person: Person) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"):
        hook(person, name, "touch .git/ran; exit 1")
    workspace, _, applied = await brought(person)
    assert (await workspace.commit(applied.id, "Do it", hooks=False)).fresh
    assert not (person.root / ".git/ran").exists()
