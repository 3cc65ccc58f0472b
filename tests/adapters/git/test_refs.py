"""Where refs and hashes lead: what never changes is asked once, and the rest is what git itself says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from greenroom.adapters.git.diff import read_diff
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import REF_ROOT, find_ref, move_ref, resolve_commit, resolve_tree
from greenroom.adapters.git.repository import Repository, find_layout
from greenroom.core.ports.workspace import WorkspaceFault
from tests.adapters.git.person import Person, put, worked

REF = f"{REF_ROOT}/r1/main"


async def opened(tmp_path: Path) -> tuple[Person, Repository, str, str]:
    """A repository with two commits."""
    person = Person(tmp_path / "repo")
    person.root.mkdir()
    person.git("init", "--quiet", "--initial-branch=main")
    first, second = person.commit_all("first"), person.commit_all("second")
    found = find_layout(person.root)
    assert found is not None
    return person, await Repository.open(found, tmp_path / "cache", person.env), first, second


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What git is asked from now on."""
    asked: list[str] = []
    tried = Git.run_unchecked

    async def counting(self: Git, *words: str, **more: Any) -> object:
        asked.append(" ".join(words))
        return await tried(self, *words, **more)

    monkeypatch.setattr(Git, "run_unchecked", counting)
    return asked


async def test_a_step_and_a_throw_away_worktree_start_git_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, *_ = await opened(tmp_path)
    workspace = await person.workspace()
    worktree = await workspace.open("r1", "ann", (await workspace.snapshot("r1")).commit)
    await worktree.make_view()
    asked = counted(monkeypatch)
    put(worktree, "a.txt", "a\n")
    made = await worked(worktree)
    scratch = await workspace.open("r1", "scratch", made.commit)
    await scratch.make_view()
    assert [words.split()[0] for words in asked] == [
        *("ls-files", "update-index", "write-tree", "update-ref"),
        *("worktree", "read-tree", "ls-files", "for-each-ref"),
    ]
    assert person.git("worktree", "list", "--porcelain").count("\nlocked greenroom run r1\n") == 2


async def test_the_text_of_a_difference_is_only_made_for_who_wants_some_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, repository, _, second = await opened(tmp_path)
    person.write(":a.txt", "1\n2\n")
    third = person.commit_all("third")
    asked = counted(monkeypatch)
    short, whole = await read_diff(repository, second, third, limit=0), await read_diff(repository, second, third)
    assert [(one.path, one.kind, one.added) for one in short.changes] == [(":a.txt", "added", 2)]
    assert (short.changes, short.text, short.cut, whole.cut) == (whole.changes, "", True, False)
    assert "+2" in whole.text
    assert len([one for one in asked if " -p " in one]) == 1


async def test_one_of_our_refs_is_read_where_git_keeps_it_and_wherever_it_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, repository, first, second = await opened(tmp_path)
    assert await find_ref(repository, REF) == ""
    await move_ref(repository, REF, first, "")
    assert (await find_ref(repository, REF), await resolve_commit(repository, second)) == (first, second)
    person.git("update-ref", REF, second)
    asked = counted(monkeypatch)
    assert (await find_ref(repository, REF), asked) == (second, [])
    person.git("pack-refs", "--all")
    assert await find_ref(repository, REF) == second
    person.git("update-ref", REF, first)
    assert await find_ref(repository, REF) == first
    person.git("update-ref", "-d", REF)
    assert await find_ref(repository, REF) == ""


async def test_a_hash_that_is_not_there_yet_is_asked_about_again(tmp_path: Path) -> None:
    person, repository, _, second = await opened(tmp_path)
    other = Person(tmp_path / "other", person.home)
    other.git("clone", "--quiet", str(person.root), str(other.root), folder=tmp_path)
    later = other.commit_all("later")
    for asking in (resolve_commit, resolve_tree):
        with pytest.raises(WorkspaceFault, match=f"There is no commit '{later}'"):
            await asking(repository, later)
    person.git("fetch", "--quiet", str(other.root), "main")
    assert (await resolve_commit(repository, later), await find_ref(repository, f"{later}^")) == (later, second)
