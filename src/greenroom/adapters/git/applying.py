"""Work brought to a person's tree: planned, written down, done. All of it or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from greenroom.adapters.git.blobs import contents_of, keep, merged
from greenroom.adapters.git.comparing import Delta, delta
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import Paper, next_id, papers, save
from greenroom.adapters.git.names import applied_ref
from greenroom.adapters.git.planning import Change, planned
from greenroom.adapters.git.refs import branches_with, commit_of, is_here
from greenroom.adapters.git.states import Ground, State
from greenroom.adapters.git.writing import Interfered, Moves, changed, folders, perform, roll_back, untouched
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.workspace import Applied, Clash, Clashes, WorkspaceFault

MEANWHILE: Final = "it was changed at this moment"
NAMED: Final = 5
"""Files that are named; of more, how many there are."""


@record
class Halfway:
    """It could not be done, and neither could what was done by then be taken back: that is so in these files."""

    failed: OSError
    back: OSError
    done: tuple[str, ...]


def ground_of(house: House) -> Ground:
    """The person's tree."""
    return Ground(house.repository.root, house.habits.hashes)


async def apply(house: House, run: str, base: str, tip: str) -> Applied | Clashes:
    """Bring what changed from one commit to another to the person's tree."""
    pair = (await commit_of(house, base), await commit_of(house, tip))
    before = [one for one in await papers(house, run) if (one.base, one.tip) == pair and one.state == "applied"]
    for one in before:
        if await _stands(house, one):
            return one.told()
    made = await _planned(house, await delta(house, *pair))
    if not isinstance(made, Clashes) and not made.changes:
        return Applied(id="", run=run, base=pair[0], tip=pair[1], paths=())
    for one in before:
        await _refuse_elsewhere(house, one)
    if isinstance(made, Clashes):
        return made
    for one in before:
        await save(house, evolve(one, state="dropped"))
    paper = evolve(made, id=await next_id(house, run), run=run, base=pair[0], tip=pair[1])
    await save(house, paper)
    return await finish(house, paper)


async def _stands(house: House, paper: Paper) -> bool:
    """Whether what was applied once is still there: somebody may have gone back before it, or to another branch."""
    if paper.commit and not await is_here(house, paper.commit) and await branches_with(house, paper.commit):
        return False
    return not await asyncio.to_thread(untouched, ground_of(house), paper.changes)


async def _refuse_elsewhere(house: House, paper: Paper) -> None:
    """Work that is on a branch of the person's is not brought a second time: they would merge it with itself."""
    if not paper.commit or await is_here(house, paper.commit):
        return
    if names := await branches_with(house, paper.commit):
        short = paper.commit[:10]
        why = f"It is applied already, as commit {short} on {names[0]!r}, which is not checked out here."
        raise WorkspaceFault("state", f"{why} Nothing was changed; 'git cherry-pick {short}' brings it here too.")


async def finish(house: House, paper: Paper) -> Applied | Clashes:
    """Do what is written down; where somebody interferes, or the disk refuses, nothing is done."""
    failed = await moved(house, paper.moves, paper.token)
    if failed is None:
        done = evolve(paper, state="applied")
        await save(house, done)
        return evolve(done.told(), fresh=True)
    if isinstance(failed, Halfway):
        raise halfway(paper, failed)
    await save(house, evolve(paper, state="dropped"))
    if isinstance(failed, Interfered):
        return Clashes(clashes=(Clash(path=failed.path, why=MEANWHILE),))
    raise refused(failed)


async def moved(house: House, moves: Moves, token: str) -> Interfered | OSError | Halfway | None:
    """Do it, or go back and say why."""
    states = [state for one in moves.changes for state in (one.before, one.after)]
    contents = await contents_of(house, (one.blob for one in states if one.blob))
    return await asyncio.to_thread(_performed, ground_of(house), moves, contents.__getitem__, token)


def refused(error: OSError) -> WorkspaceFault:
    """What the system said, for a person."""
    now = "Nothing was changed; make room or give the right, and try again."
    return WorkspaceFault("disk", f"{_named(error)} cannot be written ({error.strerror}). {now}")


def halfway(paper: Paper, found: Halfway) -> WorkspaceFault:
    """What is where, when there is no way on and none back. It stays written down as begun, so that it is ended."""
    how = "as before the work" if paper.state == "undoing" else "as the work has them"
    where = f"{some_of(found.done)} {'is' if len(found.done) == 1 else 'are'} {how} already"
    return WorkspaceFault(
        "disk",
        f"{_named(found.failed)} cannot be written ({found.failed.strerror}), and what was done by then could not be "
        f"taken back ({_named(found.back)}: {found.back.strerror}): {where}, all others are as they were. Nothing is "
        f"lost, both versions are kept in the repository ({applied_ref(paper.id)}). Make room or give the right: the "
        "next `apply`, `undo` or `run` here brings it to an end.",
    )


def some_of(paths: Sequence[str]) -> str:
    """Files in a sentence."""
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(map(repr, paths[:NAMED])) + more


def _named(error: OSError) -> str:
    return repr(error.filename) if isinstance(error.filename, str) else "your tree"


def _performed(
    ground: Ground, moves: Moves, content: Callable[[str], bytes], token: str
) -> Interfered | OSError | Halfway | None:
    try:
        perform(ground, moves, content, token)
    except (Interfered, OSError) as failed:
        return _gone_back(ground, moves, content, token, failed)
    return None


def _gone_back(
    ground: Ground, moves: Moves, content: Callable[[str], bytes], token: str, failed: Interfered | OSError
) -> Interfered | OSError | Halfway:
    """Why it failed, after all was made what it was; that may fail too."""
    try:
        roll_back(ground, moves, content, token)
    except OSError as back:
        first = failed if isinstance(failed, OSError) else back
        return Halfway(failed=first, back=back, done=tuple(_done(ground, moves.changes)))
    return failed


def _done(ground: Ground, changes: Sequence[Change]) -> Iterator[str]:
    """The files that are not as they were, as far as anybody may look."""
    for one in changes:
        with suppress(OSError):
            yield from changed(ground, [one])


async def _planned(house: House, deltas: Sequence[Delta]) -> Paper | Clashes:
    ground = ground_of(house)
    now, there = await asyncio.to_thread(_looked, ground, deltas)
    await keep(house, list(there.values()))
    plan = await planned(deltas, now, partial(merged, house))
    if isinstance(plan, Clashes):
        return plan
    leave, come = await asyncio.to_thread(folders, ground, plan.changes)
    gone = {one.path for one in leave}
    standing = [one.path for one in plan.changes if now[one.path].kind == "folder" and one.path not in gone]
    if standing:
        return Clashes(clashes=tuple(Clash(path=one, why="a folder with more in it stands there") for one in standing))
    return Paper(id="", run="", base="", tip="", changes=plan.changes, leave=leave, come=come, merged=plan.merged)


def _looked(ground: Ground, deltas: Sequence[Delta]) -> tuple[dict[str, State], dict[str, bytes]]:
    """What is there of each file, and the contents by their names."""
    now, there = {}, {}
    for one in deltas:
        state, content = ground.look(one.path)
        now[one.path] = state
        if state.blob:
            there[state.blob] = content
    return now, there
