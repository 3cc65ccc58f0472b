"""Work committed apart from what a person has changed in the same files and not committed: that stays theirs.

The commit is made from an index of its own, which is HEAD with the work on it. So nobody's index is held while hooks
run, and whoever is killed meanwhile leaves none half done. The files keep both, and what the person had staged is
staged afterwards, with the work in it too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from greenroom.adapters.git.applying import ground_of, some_of
from greenroom.adapters.git.blobs import contents_of
from greenroom.adapters.git.comparing import Delta
from greenroom.adapters.git.files import told
from greenroom.adapters.git.fitting import clean, entries_of, entry_of, fitted
from greenroom.adapters.git.hooked import KEPT, committed, free_index, looking_in
from greenroom.adapters.git.house import House
from greenroom.adapters.git.indexing import indexed_of, put_back, state_of, states_in
from greenroom.adapters.git.journal import Indexed
from greenroom.adapters.git.planning import Planned
from greenroom.adapters.git.refs import tree_of, value_of
from greenroom.adapters.git.running import Git
from greenroom.adapters.git.seeding import copied, joined, listing, look_again
from greenroom.adapters.git.states import NOTHING, State, same
from greenroom.adapters.git.trailers import trailers_of
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Clashes, WorkspaceFault


class NothingToCommit(WorkspaceFault):
    """The newest commit has it already."""


@record
class Wanted:
    """A commit that is to be made on `head`: what changes, of which files, and what the person's index has of them.
    Hooks lie where the person has them, or in the folder `hooks_in`."""

    head: str
    message: str
    paths: tuple[str, ...]
    deltas: tuple[Delta, ...]
    indexed: tuple[Indexed, ...]
    hooks: bool = True
    hooks_in: str = ""
    refused: str = KEPT


async def own_edits(house: House, head: str, then: Mapping[str, State], indexed: Sequence[Indexed]) -> tuple[str, ...]:
    """Of these files as they were `then`, those in which a person had something that was in no commit."""
    if not head:
        return ()
    known, found = await states_in(house, head), list[str]()
    for one in indexed:
        last = known.get(one.path, NOTHING)
        if not same(state_of(one), last) or not await is_committed(house, one.path, then[one.path], last):
            found.append(one.path)
    return tuple(sorted(found))


async def commit_apart(house: House, wanted: Wanted) -> str:
    """A commit on HEAD that has these changes and nothing else, as `_made` tells it; nothing is done where they do not
    go on HEAD alone."""
    plan = await fitted(house, await states_in(house, wanted.head), wanted.deltas)
    staged = await _staged(house, wanted)
    if isinstance(plan, Clashes) or isinstance(staged, Clashes):
        raise _inseparable([one.path for both in (plan, staged) if isinstance(both, Clashes) for one in both.clashes])
    async with _index(house, wanted) as git:
        await put_back(house, entries_of(plan), git)
        return await _made(house, wanted, git)


async def commit_paths(house: House, wanted: Wanted) -> str:
    """A commit on HEAD with these files as they lie there."""
    with told(str(house.repository.root)):
        there = await asyncio.to_thread(_there, house, wanted.paths)
    gone = [Indexed(path=one) for one in wanted.paths if one not in there]
    async with _index(house, wanted) as git:
        await look_again(git, house.repository.root, [one for one in await listing(git) if one.path in there])
        await put_back(house, gone, git)
        await git.ask("update-index", "-z", "--add", "--replace", "--stdin", stdin=joined(there))
        return await _made(house, wanted, git)


def _there(house: House, paths: Sequence[str]) -> dict[str, State]:
    """Those that are files or links, wherever a folder or another link may stand in the way."""
    looked = {one: ground_of(house).look(one)[0] for one in paths}
    return {path: state for path, state in looked.items() if state.kind in ("file", "link")}


@asynccontextmanager
async def _index(house: House, wanted: Wanted) -> AsyncIterator[Git]:
    """Git with an index that is HEAD, for what is to become a commit."""
    await free_index(house)
    with house.temporary() as folder:
        index = folder / "index"
        await asyncio.to_thread(copied, house.repository.git / "index", index)
        git = house.as_person(hooks=wanted.hooks).also(env={"GIT_INDEX_FILE": str(index)})
        await git.ask("read-tree", *(("--reset", wanted.head) if wanted.head else ("--empty",)))
        yield git


async def _made(house: House, wanted: Wanted, git: Git) -> str:
    """The commit of what this git has in its index. It is not whatever HEAD is by then: somebody may have built on it,
    or may have taken it away; then it is empty."""
    if wanted.head and await git.text("write-tree") == await tree_of(house, wanted.head):
        raise NothingToCommit("state", "There is nothing to commit: the files are as in the newest commit already.")
    await committed(house, git.also(env=looking_in(wanted.hooks_in)), wanted.message, wanted.refused)
    found = await first_after(house, wanted.head)
    if not found:
        return ""
    said = await house.refs.text("log", "-1", "--no-show-signature", "--format=%B", found)
    if trailers_of(said) == trailers_of(wanted.message):
        return found
    old, new = await states_in(house, wanted.head) if wanted.head else {}, await states_in(house, found)
    return found if any(old.get(one) != new.get(one) for one in wanted.paths) else ""


async def first_after(house: House, head: str) -> str:
    """The first commit that follows this one in what is checked out, without a name the very first; empty for none."""
    said = await house.refs.tried("rev-list", "--first-parent", f"{head}..HEAD" if head else "HEAD")
    found = os.fsdecode(said.out).split()[-1:] if said.code == 0 else []
    return found[0] if found and await value_of(house, f"{found[0]}^") == head else ""


async def settle(house: House, wanted: Wanted, made: str) -> None:
    """Give the person's index what was committed too; done again after a kill, nothing is done."""
    old, new = await states_in(house, wanted.head) if wanted.head else {}, await states_in(house, made)
    staged = await _staged(house, wanted)
    planned = {} if isinstance(staged, Clashes) else {one.path: one.after for one in staged.changes}
    entries = []
    for was, now in zip(wanted.indexed, await indexed_of(house, [one.path for one in wanted.indexed]), strict=True):
        clear = same(state_of(was), old.get(was.path, NOTHING))
        after = new.get(was.path, NOTHING) if clear else planned.get(was.path)
        if was == now and after is not None:
            entries.append(entry_of(was.path, after))
    await put_back(house, entries)


async def _staged(house: House, wanted: Wanted) -> Planned | Clashes:
    """What the work makes of files that the person has staged something of."""
    known = await states_in(house, wanted.head) if wanted.head else {}
    own = {one.path: state_of(one) for one in wanted.indexed if not same(state_of(one), known.get(one.path, NOTHING))}
    return await fitted(house, own, [one for one in wanted.deltas if one.path in own])


async def is_committed(house: House, path: str, then: State, last: State) -> bool:
    """Whether a file lay there as its commit has it, but for what git itself changes when it keeps it."""
    if not then.kind == last.kind == "file":
        return same(then, last)
    if then.runs != last.runs and house.habits.file_mode:
        return False
    if then.blob == last.blob:
        return True
    mine = (await contents_of(house, [then.blob]))[then.blob]
    return await clean(house, path, mine) == last.blob


def _inseparable(paths: Sequence[str]) -> WorkspaceFault:
    files = some_of([*dict.fromkeys(paths)])
    return WorkspaceFault(
        "mixed",
        f"What you have not committed yourself in {files} cannot be told apart from the work. The files are applied: "
        "commit them yourself with 'git commit', or take them back with `greenroom undo`.",
    )
