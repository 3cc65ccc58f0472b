"""A run can begin as another one was: with its base and at one of its commits, whatever a person did since."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git import workspace as workspaces
from greenroom.adapters.git.refs import move_ref
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import AppliedChange, UndoResult, WorkspaceFault
from tests.adapters.git.person import Person, got, opened, put, worked
from tests.conformance.workspace_case import tree_of

THREAD = "ann@t1"


@pytest.fixture(name="person", params=["repository", "folder"])
def _person(tmp_path: Path, request: pytest.FixtureRequest) -> Person:
    person = Person(tmp_path / "tree")
    person.write("a.txt", "1\n")
    person.write("mine.txt", "mine\n")
    if request.param == "repository":
        person.git("init", "--quiet")
        person.commit_all("first")
        person.write("mine.txt", "mine, and in no commit\n")
    return person


async def two_steps(workspace: GitWorkspace) -> tuple[str, str]:
    """The commits of a run that has changed one file twice."""
    worktree = await opened(workspace)
    made = []
    for number in ("2", "3"):
        put(worktree, "a.txt", f"{number}\n")
        made.append((await worked(worktree, key=number)).commit)
    return made[0], made[1]


def moved_on(person: Person) -> None:
    """What a person did in the meantime."""
    person.write("mine.txt", "changed since\n")
    person.write("later.txt", "new\n")


async def test_it_has_the_files_of_then_and_the_base_of_the_other(person: Person) -> None:
    workspace = await person.workspace()
    first, second = await two_steps(workspace)
    before = (await workspace.snapshot("r1")).commit
    moved_on(person)
    await workspace.adopt("r2", THREAD, "r1", first)
    snapshot = await workspace.snapshot("r2")
    worktree = await workspace.open("r2", THREAD, snapshot.commit)
    assert snapshot.commit == before
    assert await worktree.tip() == first
    assert got(worktree)["a.txt"] == "2\n"
    assert "later.txt" not in got(worktree)
    assert [one.path for one in (await workspace.diff(snapshot.commit, first)).changes] == ["a.txt"]
    there = tree_of(person.root)
    applied = await workspace.apply("r2", snapshot.commit, await worktree.tip())
    assert isinstance(applied, AppliedChange)
    assert (person.root / "a.txt").read_text() == "2\n"
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert tree_of(person.root) == there, "what the person did since is still there"
    origin = await workspace.open("r1", THREAD, before)
    assert await origin.tip() == second
    assert got(origin)["a.txt"] == "3\n", "the other one stays as it is"


async def test_asked_again_nothing_is_done_however_far_it_has_come(person: Person) -> None:
    workspace = await person.workspace()
    first, second = await two_steps(workspace)
    for tip in (first, second, ""):
        await workspace.adopt("r2", THREAD, "r1", tip)
        worktree = await workspace.open("r2", THREAD, (await workspace.snapshot("r2")).commit)
        assert await worktree.tip() == first


async def test_without_a_commit_it_begins_where_the_other_began(person: Person) -> None:
    workspace = await person.workspace()
    base = (await opened(workspace)).base
    moved_on(person)
    await workspace.adopt("r2", THREAD, "r1", "")
    worktree = await workspace.open("r2", THREAD, (await workspace.snapshot("r2")).commit)
    assert (worktree.base, await worktree.tip()) == (base, base)


async def test_what_is_not_kept_is_refused_and_nothing_is_made(person: Person) -> None:
    workspace = await person.workspace()
    await two_steps(workspace)
    moved_on(person)
    alien = (await workspace.snapshot("r9")).commit
    for origin, tip in (("nobody", ""), ("r1", "0123" * 10), ("r1", alien), ("r9", "--all")):
        with pytest.raises(WorkspaceFault, match="cannot be restored") as caught:
            await workspace.adopt("r2", THREAD, origin, tip)
        assert caught.value.reason == "name"
    assert "r2" not in [one.run for one in await workspace.list_kept_runs()]


async def test_killed_in_between_it_is_done_by_whoever_asks_next(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await person.workspace()
    first, _ = await two_steps(workspace)

    async def dying(house: Repository, ref: str, new: str, old: str) -> None:
        if ref.endswith("@base"):
            raise KeyboardInterrupt
        await move_ref(house, ref, new, old)

    with monkeypatch.context() as killed:
        killed.setattr(workspaces, "move_ref", dying)
        with pytest.raises(KeyboardInterrupt):
            await workspace.adopt("r2", THREAD, "r1", first)
    moved_on(person)
    await workspace.adopt("r2", THREAD, "r1", first)
    worktree = await workspace.open("r2", THREAD, (await workspace.snapshot("r2")).commit)
    assert await worktree.tip() == first
    assert worktree.base == (await workspace.snapshot("r1")).commit
