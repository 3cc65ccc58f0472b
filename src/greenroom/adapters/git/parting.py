"""Work committed apart from what a person has changed in the same files and not committed: that stays theirs.

The commit is made from an index of its own, which is HEAD with the work on it. The files keep both, and what the person
had staged is staged afterwards, with the work in it too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from greenroom.adapters.git.blobs import contents_of
from greenroom.adapters.git.comparing import Delta
from greenroom.adapters.git.fitting import clean, fitted, lines_of, mode_of
from greenroom.adapters.git.hooked import committed
from greenroom.adapters.git.house import House
from greenroom.adapters.git.indexing import indexed_of, put_back, state_of, states_in
from greenroom.adapters.git.journal import Indexed
from greenroom.adapters.git.planning import Planned
from greenroom.adapters.git.refs import value_of
from greenroom.adapters.git.seeding import joined, listing
from greenroom.adapters.git.states import NOTHING, State, same, state_in_tree
from greenroom.core.ports.workspace import Clashes, WorkspaceFault

NAMED = 5
"""Files that are named; of more, how many there are."""


async def own_edits(house: House, head: str, then: Mapping[str, State], indexed: Sequence[Indexed]) -> tuple[str, ...]:
    """Of these files as they were `then`, those in which a person had something that was in no commit."""
    if not head:
        return ()
    known, found = await states_in(house, head), list[str]()
    for one in indexed:
        last = known.get(one.path, NOTHING)
        if not same(state_of(one), last) or not await _is_committed(house, one.path, then[one.path], last):
            found.append(one.path)
    return tuple(sorted(found))


async def commit_apart(house: House, deltas: Sequence[Delta], message: str, indexed: Sequence[Indexed]) -> str:
    """A new HEAD that has these changes and nothing else; nothing is done where they do not go on HEAD alone."""
    head = await value_of(house, "HEAD")
    plan = await fitted(house, await states_in(house, head), deltas)
    staged = await _staged(house, head, deltas, indexed)
    if isinstance(plan, Clashes) or isinstance(staged, Clashes):
        raise _inseparable([one.path for both in (plan, staged) if isinstance(both, Clashes) for one in both.clashes])
    with house.temporary() as folder:
        index = folder / "index"
        await asyncio.to_thread(_copied, house.repository.git / "index", index)
        git = house.as_person().also(env={"GIT_INDEX_FILE": str(index)})
        await git.ask("read-tree", "--reset", head)
        await git.ask("update-index", "-z", "--index-info", stdin=joined(lines_of(plan, house)))
        await committed(git, message)
    made = await value_of(house, "HEAD")
    await settle(house, head, made, deltas, indexed)
    return made


async def settle(house: House, head: str, made: str, deltas: Sequence[Delta], indexed: Sequence[Indexed]) -> None:
    """Give the person's index what was committed too; done again after a kill, nothing is done."""
    old, new = await states_in(house, head) if head else {}, await states_in(house, made)
    staged = await _staged(house, head, deltas, indexed)
    planned = {} if isinstance(staged, Clashes) else {one.path: one.after for one in staged.changes}
    wanted = []
    for was, now in zip(indexed, await indexed_of(house, [one.path for one in indexed]), strict=True):
        clear = same(state_of(was), old.get(was.path, NOTHING))
        after = new.get(was.path, NOTHING) if clear else planned.get(was.path)
        if was == now and after is not None:
            wanted.append(Indexed(path=was.path, mode=mode_of(after) if after.blob else "", blob=after.blob))
    await put_back(house, wanted)


async def _staged(house: House, head: str, deltas: Sequence[Delta], indexed: Sequence[Indexed]) -> Planned | Clashes:
    """What the work makes of files that the person has staged something of."""
    known = await states_in(house, head) if head else {}
    own = {one.path: state_of(one) for one in indexed if not same(state_of(one), known.get(one.path, NOTHING))}
    theirs = {one.path: state_in_tree(one.mode, one.blob) for one in await listing(house.refs)}
    return await fitted(house, {**theirs, **own}, [one for one in deltas if one.path in own])


async def _is_committed(house: House, path: str, then: State, last: State) -> bool:
    """Whether a file lay there as its commit has it, but for what git itself changes when it keeps it."""
    if then.kind in ("folder", "blocked"):
        return last.kind == "none"
    if not then.kind == last.kind == "file":
        return same(then, last)
    if then.runs != last.runs and house.habits.file_mode:
        return False
    if then.blob == last.blob:
        return True
    texts = await contents_of(house, (then.blob, last.blob))
    mine, kept = texts[then.blob], texts[last.blob]
    return mine.replace(b"\r\n", b"\n") == kept.replace(b"\r\n", b"\n") or await clean(house, path, mine) == last.blob


def _copied(own: Path, index: Path) -> None:
    """With its date: git looks again at files that are as young as the index."""
    with suppress(FileNotFoundError):
        shutil.copy2(os.fspath(own), index)


def _inseparable(paths: Sequence[str]) -> WorkspaceFault:
    every = list(dict.fromkeys(paths))
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    named = ", ".join(repr(one) for one in every[:NAMED]) + more
    return WorkspaceFault(
        "mixed",
        f"What you have not committed yourself in {named} cannot be told apart from the work. The files are applied: "
        "commit them yourself with 'git commit', or take them back with `greenroom undo`.",
    )
