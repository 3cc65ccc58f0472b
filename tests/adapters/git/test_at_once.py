"""Two who do the same at once: one has done it, and the other one hears that it is done."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from greenroom.adapters.git import apply as applying
from greenroom.adapters.git import undo as undoing
from greenroom.adapters.git import workspace as workspaces
from greenroom.adapters.git.files import lock
from greenroom.adapters.git.journal import Paper, save
from greenroom.adapters.git.repository import Repository
from greenroom.core.ports.workspace import Applied, Clashes, Undone
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import edit
from tests.adapters.git.test_committing import brought


async def test_of_two_who_apply_at_once_one_has_brought_it_and_one_has_committed_it(person: Person) -> None:
    both = await person.workspace(), await person.workspace()
    worktree = await opened(both[0])
    edit(Path(worktree.folder))
    done = (await worked(worktree)).commit
    brought = await asyncio.gather(*(one.apply("r1", worktree.base, done) for one in both))
    assert sorted(one.fresh for one in brought if isinstance(one, Applied)) == [False, True]
    (applied,) = await both[0].applied("r1")
    made = await asyncio.gather(*(one.commit(applied.id, "Do it") for one in both))
    assert (sorted(one.fresh for one in made), len({one.commit for one in made})) == ([False, True], 1)


async def test_who_wants_to_undo_while_another_one_does_has_undone_nothing(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, applied = await brought(person)
    second, waits, real, held = await person.workspace(), asyncio.Event(), undoing.take_back, lock
    other = list[asyncio.Task[object]]()

    def waited(place: Path) -> AbstractAsyncContextManager[None]:
        waits.set()
        return held(place)

    async def slowly(repository: Repository, paper: Paper) -> Undone | Clashes:
        """The other one comes when it is written down that this is being undone, and is in the middle of it."""
        monkeypatch.setattr(workspaces, "lock", waited)
        other.append(asyncio.create_task(second.undo(applied.id)))
        await waits.wait()
        return await real(repository, paper)

    monkeypatch.setattr(undoing, "take_back", slowly)
    assert await first.undo(applied.id) == Undone(paths=applied.paths)
    assert await other[0] == Undone(paths=())


async def test_who_ends_what_a_kill_left_has_done_it(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Exception):
        """A life ends when the files are as they are to be, and that is not written down yet."""

    async def dying(repository: Repository, paper: Paper) -> None:
        if paper.state in ("applied", "undone"):
            raise Killed
        await save(repository, paper)

    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    pair = (worktree.base, (await worked(worktree)).commit)
    monkeypatch.setattr(applying, "save", dying)
    with pytest.raises(Killed):
        await workspace.apply("r1", *pair)
    monkeypatch.undo()
    applied = await (await person.workspace()).apply("r1", *pair)
    assert isinstance(applied, Applied)
    assert applied.fresh
    monkeypatch.setattr(undoing, "save", dying)
    with pytest.raises(Killed):
        await workspace.undo(applied.id)
    monkeypatch.undo()
    again = await person.workspace()
    assert await again.undo(applied.id) == Undone(paths=applied.paths)
    assert await again.undo(applied.id) == Undone(paths=()), "it is undone once"
