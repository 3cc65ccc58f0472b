"""What a hook, or a person in another window, does after the commit is made and before we are told: nothing of the work
is taken back by it, and the commit that is named is the work's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git import hooked, running
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Applied, Buried, Undone, WorkspaceFault
from greenroom.testing.conformance.workspace_case import tree_of
from tests.adapters.git.killed import copied, live
from tests.adapters.git.person import Person, status
from tests.adapters.git.shapes import TEXT, dirty, plain
from tests.adapters.git.test_committing import brought, hook
from tests.adapters.git.test_parting import MINE, applied_to, texts, with_work

QUIETLY = "git -c core.hooksPath=/dev/null"
"""Git in a hook that is not to call itself."""

IN_ANOTHER_WINDOW = f"unset GIT_INDEX_FILE; echo mine >mine; git add mine; {QUIETLY} commit --quiet -m mine"
BUMP = f"echo 2 >version; git add version; {QUIETLY} commit --quiet -m bump"
KILL_PYTHON = """p=$$
until grep -q python /proc/$p/comm; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done
kill -9 $p"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person


def subjects(person: Person) -> list[str]:
    return person.git("log", "--format=%s").splitlines()


@pytest.mark.req("G-2")
@pytest.mark.parametrize("own", [False, True], ids=["whole files", "apart"])
@pytest.mark.parametrize("what", [IN_ANOTHER_WINDOW, BUMP], ids=["a person commits", "the hook commits"])
async def test_a_commit_that_is_made_while_hooks_run_after_ours_takes_nothing_back(
    person: Person, what: str, own: bool
) -> None:
    hook(person, "post-commit", what)
    if own:
        person.write("a.txt", MINE)
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it")
    last = subjects(person)[0]
    assert subjects(person) == [last, "Do it", "first"]
    assert made.commit == person.git("rev-parse", "HEAD^").strip()
    assert texts(person)[:2] == (with_work(TEXT), with_work(TEXT))
    assert status(person) == (" M a.txt\n" if own else "")
    assert await workspace.commit(applied.id, "Again") == evolve(made, fresh=False)
    (person.root / ".git/hooks/post-commit").unlink()
    said = await workspace.undo(applied.id)
    assert isinstance(said, Buried)
    assert said.why.startswith("Other commits came after it")
    assert isinstance(await workspace.undo(applied.id, revert=True), Undone)
    assert subjects(person) == ['Revert "Do it"', last, "Do it", "first"]
    assert texts(person) == (TEXT, TEXT, MINE if own else TEXT)
    assert (person.root / {"mine": "mine", "bump": "version"}[last]).exists()
    assert status(person) == (" M a.txt\n" if own else "")


async def test_a_commit_that_is_made_while_hooks_run_after_one_on_top_brings_nothing_back(person: Person) -> None:
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    hook(person, "post-commit", IN_ANOTHER_WINDOW)
    undone = await workspace.undo(applied.id, revert=True)
    assert isinstance(undone, Undone)
    assert undone.revert == person.git("rev-parse", "HEAD^").strip()
    assert subjects(person) == ["mine", 'Revert "Do it"', "another", "Do it", "first"]
    assert (texts(person), status(person)) == ((TEXT, TEXT, TEXT), "")


@pytest.mark.parametrize("message", ["--no-edit", "-m amended"])
@pytest.mark.parametrize("more", ["", "tr a-z A-Z <a.txt >x && mv x a.txt && git add a.txt;"], ids=["", "formatted"])
async def test_a_commit_that_a_hook_amends_is_the_one_that_is_named_and_taken_back(
    person: Person, message: str, more: str
) -> None:
    before = tree_of(person.root)
    hook(person, "post-commit", f"{more} {QUIETLY} commit --quiet --amend {message}")
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it")
    assert (made.commit, status(person)) == (person.git("rev-parse", "HEAD").strip(), "")
    blamed = await workspace.blame("a.txt", 20)
    assert blamed is not None
    assert blamed.commit == made.commit
    assert more or (blamed.step is not None and blamed.step.step == "ann#1")
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert (tree_of(person.root), status(person), subjects(person)) == (before, "", ["first"])


async def test_a_commit_that_a_hook_takes_away_with_its_files_is_not_said_to_be_applied(person: Person) -> None:
    before = tree_of(person.root)
    hook(person, "post-commit", "git reset --quiet --hard HEAD^")
    workspace, worktree, applied = await brought(person)
    with pytest.raises(WorkspaceFault, match=r"Nothing is applied.*taken away.*post-commit") as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "hook"
    assert (tree_of(person.root), status(person), subjects(person)) == (before, "", ["first"])
    assert [(one.state, one.commit) for one in await workspace.applied("r1")] == [("dropped", "")]
    (person.root / ".git/hooks/post-commit").unlink()
    again = await workspace.apply("r1", worktree.base, applied.tip)
    assert isinstance(again, Applied)
    assert (await workspace.commit(again.id, "Do it")).fresh


async def test_a_commit_that_a_hook_takes_away_and_leaves_its_files_is_said_to_be_none(person: Person) -> None:
    taking_away = hook(person, "post-commit", "git reset --quiet HEAD^")
    workspace, _, applied = await brought(person)
    with pytest.raises(WorkspaceFault, match=r"taken away.*The files are applied"):
        await workspace.commit(applied.id, "Do it")
    assert [(one.state, one.commit) for one in await workspace.applied("r1")] == [("applied", "")]
    taking_away.unlink()
    assert (await workspace.commit(applied.id, "Do it")).commit == person.git("rev-parse", "HEAD").strip()
    assert status(person) == ""


async def test_a_hook_that_leaves_the_branch_of_the_commit_is_told_about(person: Person) -> None:
    person.git("branch", "old")
    hook(person, "post-commit", "git checkout --quiet old")
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault, match=r"is made, but it is on 'main', which is not checked out any more"):
        await workspace.commit(applied.id, "Do it")
    (told,) = await workspace.applied("r1")
    assert told.commit == person.git("rev-parse", "main").strip()
    person.git("checkout", "--quiet", "main")
    assert isinstance(await workspace.undo(applied.id), Undone)


async def test_hooks_see_themselves_where_they_lie_and_run_once(person: Person) -> None:
    note = 'echo "$0 $GIT_INDEX_FILE" >>.git/ran'
    for name in ("pre-commit", "commit-msg", "post-commit"):
        person.write(f".hooks/it's/{name}", f"#!/bin/sh\n{note}\n").chmod(0o755)
    person.git("config", "core.hooksPath", ".hooks/it's")
    person.commit_all("hooks")
    person.write(".git/ran", "")
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    ran = [line.rpartition(" ") for line in (person.root / ".git/ran").read_text().splitlines()]
    folder = person.root / ".hooks/it's"
    assert [name for name, _, _ in ran] == [str(folder / one) for one in ("pre-commit", "commit-msg", "post-commit")]
    own = str(person.root / ".git/index")
    assert [index == own for _, _, index in ran] == [False, False, True]
    assert not (workspace._house.folder / hooked.PAPER).exists()


async def test_a_hook_after_a_commit_that_fails_or_is_gone_by_then_changes_nothing_about_it(person: Person) -> None:
    hook(person, "pre-commit", "rm .git/hooks/post-commit")
    hook(person, "post-commit", "exit 1")
    workspace, applied = await applied_to(person)
    assert (await workspace.commit(applied.id, "Do it")).commit == person.git("rev-parse", "HEAD").strip()


@pytest.mark.req("G-2")
async def test_a_kill_while_hooks_run_after_a_commit_leaves_it_whole(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    dirty(person)
    before = status(person)
    _, worktree, applied = await brought(person)
    one = copied(person.root, tmp_path / "killed")
    hook(one, "post-commit", KILL_PYTHON)
    assert live(one, "commit", (worktree.base, applied.tip), 10**6), "it was killed"
    assert (status(one), subjects(one)[0]) == (before, "Do it"), "the index has it already"
    (one.root / ".git/hooks/post-commit").unlink()
    again = await one.workspace()
    assert not (await again.commit(applied.id, "Do it")).fresh
    assert subjects(one).count("Do it") == 1
    assert isinstance(await again.undo(applied.id), Undone)
    assert status(one) == before


async def test_a_commit_on_top_that_a_hook_takes_away_is_not_said_to_be_there(person: Person) -> None:
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    taking_away = hook(person, "post-commit", "git reset --quiet --hard HEAD^")
    with pytest.raises(WorkspaceFault, match="takes it back was made, and then taken away") as caught:
        await workspace.undo(applied.id, revert=True)
    assert (caught.value.reason, texts(person)) == ("hook", (with_work(TEXT),) * 3)
    taking_away.unlink()
    assert isinstance(await workspace.undo(applied.id, revert=True), Undone)
    assert texts(person) == (TEXT,) * 3


@pytest.mark.parametrize("then", ["", IN_ANOTHER_WINDOW, BUMP], ids=["none", "another", "one of the hook"])
async def test_a_commit_that_is_gone_as_soon_as_it_is_made_is_not_taken_for_the_one_in_its_place(
    person: Person, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    hook(person, "post-commit", f"git reset --quiet --hard HEAD^; {then}")
    monkeypatch.setattr(hooked, "_passed_on", lambda hooks, folder: False)
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault, match=r"Nothing is applied. The commit was made and then taken away"):
        await workspace.commit(applied.id, "Do it")
    (person.root / ".git/hooks/post-commit").unlink()
    assert [one.state for one in await workspace.applied("r1")] == ["dropped"]


async def test_a_commit_is_written_down_though_the_index_cannot_be_set(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(person, "pre-commit", "touch .git/index.lock")
    monkeypatch.setattr(running, "PATIENCE", 0.2)
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault, match=r"index\.lock"):
        await workspace.commit(applied.id, "Do it")
    assert [one.commit for one in await workspace.applied("r1")] == [person.git("rev-parse", "HEAD").strip()]
    (person.root / ".git/index.lock").unlink()
    assert not (await workspace.commit(applied.id, "Do it")).fresh
    assert status(person) == ""
