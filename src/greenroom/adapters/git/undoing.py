"""What was applied taken back, byte for byte; and what a kill left half done finished or taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from greenroom.adapters.git.applying import MEANWHILE, Halfway, finish, ground_of, halfway, moved, refused, some_of
from greenroom.adapters.git.blobs import contents_of
from greenroom.adapters.git.committing import commit_here, commit_saying
from greenroom.adapters.git.comparing import delta
from greenroom.adapters.git.hooked import AFTER, free_index, held_back, run_owed
from greenroom.adapters.git.house import House
from greenroom.adapters.git.indexing import indexed_of, put_back, states_in
from greenroom.adapters.git.journal import Paper, load, save, unfinished
from greenroom.adapters.git.parting import (
    NothingToCommit,
    Wanted,
    commit_apart,
    commit_paths,
    first_after,
    own_edits,
    settle,
)
from greenroom.adapters.git.readiness import expect_commit
from greenroom.adapters.git.refs import branches_with, is_here, value_of
from greenroom.adapters.git.since import what_changed
from greenroom.adapters.git.trailers import message_of
from greenroom.adapters.git.writing import Interfered, edited, untouched
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Applied, Buried, Clash, Clashes, Undone, WorkspaceFault

PUSHED: Final = "It is on a remote branch already"
COVERED: Final = "Other commits came after it"
REFUSED: Final = "The commit that takes it back was refused, so nothing was undone: all is as it was."
TAKEN_AWAY: Final = (
    f"The commit that takes it back was made, and then taken away by your {AFTER} hook, or by somebody else at that "
    "moment."
)
AMENDED: Final = "Its commit was amended, or made anew elsewhere"
REBASED: Final = "Its commit was put on other commits since, as by a rebase"


async def undo(house: House, paper: Paper, *, revert: bool) -> Undone | Clashes | Buried:
    """Make the tree what it was before this was applied."""
    if paper.state == "undone":
        await run_owed(house, _back(paper))
    if paper.state == "dropped" or (paper.state == "undone" and not await _is_still_here(house, paper)):
        return Undone(paths=())
    made = paper.commit
    paper = await _as_it_stands(house, paper)
    blocked = await asyncio.to_thread(edited, ground_of(house), paper.changes)
    if paper.commit and not revert and (why := await _why_not(house, paper, amended=made not in ("", paper.commit))):
        return _buried(paper, why, blocked)
    if blocked:
        return Clashes(clashes=await _since(house, paper, blocked))
    if revert and paper.commit:
        await expect_commit(house)
    if paper.commit:
        await free_index(house)
    paper = evolve(paper, state="undoing", reverting=revert and bool(paper.commit))
    await save(house, paper)
    return await taken_back(house, paper)


async def _is_still_here(house: House, paper: Paper) -> bool:
    """Whether what was undone is in what is checked out all the same: it was undone on another branch than this."""
    if not await commit_here(house, paper) or (paper.reverted and await is_here(house, paper.reverted)):
        return False
    if await commit_saying(house, "undone", paper.id):
        return False
    return not await asyncio.to_thread(untouched, ground_of(house), paper.changes)


def _buried(paper: Paper, why: str, blocked: Sequence[str]) -> Buried:
    """Why it is not just taken back, and what does that. We put back whole files, so none that are other ones by now;
    git finds the lines of a commit in them."""
    if not blocked:
        return Buried(commit=paper.commit, why=f"{why}. It can be undone by a commit on top.")
    since = f"{why}, and {some_of(blocked)} {'is' if len(blocked) == 1 else 'are'} not as the work left it"
    how = f"'git revert {paper.commit[:10]}' takes back what it did and keeps the rest, once all else is committed."
    raise WorkspaceFault("state", f"{since}. Nothing was undone: {how}")


async def _since(house: House, paper: Paper, blocked: Collection[str]) -> tuple[Clash, ...]:
    """What was done to these files since they were applied."""
    then = {one.path: one.after for one in paper.changes if one.path in blocked}
    kept = await contents_of(house, (one.blob for one in then.values() if one.kind == "file"))
    now = await asyncio.to_thread(lambda: {path: ground_of(house).look(path) for path in then})
    return tuple(
        Clash(path=path, why=what_changed(state, kept.get(state.blob, b""), *now[path])) for path, state in then.items()
    )


async def _as_it_stands(house: House, paper: Paper) -> Paper:
    """With the commit that is checked out of it. One that is elsewhere is a fault: here it cannot be undone."""
    commit = await commit_here(house, paper)
    if commit or not paper.commit:
        return evolve(paper, commit=commit)
    short = paper.commit[:10]
    if names := await branches_with(house, paper.commit):
        why = f"Its commit {short} is on {names[0]!r}, which is not checked out here, so nothing was undone."
        raise WorkspaceFault("state", f"{why} Go there with 'git switch {names[0]}', and undo it.")
    if await _is_in_head(house, paper):
        return paper
    if await asyncio.to_thread(untouched, ground_of(house), paper.changes):
        why = f"There is nothing to undo: its commit {short} is on no branch any more, and your files are as before it."
        raise WorkspaceFault("state", why)
    return evolve(paper, commit="")


async def _is_in_head(house: House, paper: Paper) -> bool:
    """Whether the newest commit has these files as the one of the work had them."""
    head = await value_of(house, "HEAD")
    if not head or not await value_of(house, paper.commit):
        return False
    now, then = await states_in(house, head), await states_in(house, paper.commit)
    return all(now.get(one) == then.get(one) for one in paper.paths)


async def taken_back(house: House, paper: Paper) -> Undone | Clashes:
    """Do what is written down; where somebody interferes, it stays applied."""
    failed = await moved(house, paper.moves.back(), paper.token)
    if isinstance(failed, Halfway):
        raise halfway(paper, failed)
    if failed is not None:
        await save(house, evolve(paper, state="applied", reverting=False))
        if isinstance(failed, Interfered):
            return Clashes(clashes=(Clash(path=failed.path, why=MEANWHILE),))
        raise refused(failed)
    if paper.reverting:
        return await _reverted(house, paper)
    if paper.commit:
        await _commit_taken_back(house, paper)
    await save(house, evolve(paper, state="undone"))
    return Undone(paths=paper.paths, commit=paper.commit)


async def recover(house: House) -> list[Applied]:
    """Bring to an end whatever a kill left in the middle; returns what files were changed for, as it stands now. What a
    person has taken back by then themselves, because all files are as before, is not done again."""
    found = list[Applied]()
    for paper in await unfinished(house):
        if paper.state == "applying" and await asyncio.to_thread(untouched, ground_of(house), paper.changes):
            await moved(house, paper.moves.back(), paper.token)  # folders and drafts that were made for it
            await save(house, evolve(paper, state="dropped"))
            continue
        await (finish if paper.state == "applying" else taken_back)(house, paper)
        found.append((await load(house, paper.id)).told())
    return found


async def _commit_taken_back(house: House, paper: Paper) -> None:
    """Move the branch back and set the index; if that is refused, the files stay applied."""
    try:
        if await value_of(house, "HEAD") == paper.commit:
            words = ("HEAD", paper.head, paper.commit) if paper.head else ("-d", "HEAD", paper.commit)
            await house.refs.ask("update-ref", "-m", f"greenroom: undo {paper.id}", *words)
    except WorkspaceFault as fault:
        raise await _applied_again(house, paper, fault) from fault
    await put_back(house, paper.indexed)


async def _reverted(house: House, paper: Paper) -> Undone:
    """A commit on top that takes it back; one that was made before a kill is found again. If a hook says no, all is
    made what it was, also what the hook has changed."""
    made = await commit_saying(house, "undone", paper.id)
    if not made:
        indexed = await indexed_of(house, paper.paths)
        paper = evolve(paper, revert_head=await value_of(house, "HEAD"), revert_indexed=indexed)
        await save(house, paper)
        try:
            async with held_back(house, _back(paper)) as folder:
                made = await _revert(house, paper, folder)
        except NothingToCommit:  # somebody has taken it back already
            return await _over(house, paper, paper.revert_head)
    done = await _over(house, paper, made)
    remark = await run_owed(house, _back(paper))
    if not await is_here(house, made) and not await first_after(house, paper.revert_head):
        await save(house, evolve(paper, state="applied", reverting=False))
        raise WorkspaceFault("hook", f"{TAKEN_AWAY} Look how it stands with 'git status', and undo it again.")
    return evolve(done, remark=remark)


def _back(paper: Paper) -> str:
    """Whose hook it is that comes after the commit which takes this back."""
    return f"{paper.id} undone"


async def _over(house: House, paper: Paper, made: str) -> Undone:
    await settle(house, await _wanted(house, paper), made)
    await save(house, evolve(paper, state="undone", reverted=made))
    return Undone(paths=paper.paths, revert=made)


async def _wanted(house: House, paper: Paper) -> Wanted:
    subject = await house.refs.text("log", "-1", "--no-show-signature", "--format=%s", paper.commit)
    told = {"run": paper.run, "undone": paper.id}
    back = tuple(one for one in await delta(house, paper.tip, paper.base) if one.path in paper.paths)
    return Wanted(
        head=paper.revert_head,
        message=message_of(f'Revert "{subject}"\n\nThis reverts commit {paper.commit}.', told),
        paths=paper.paths,
        deltas=back,
        indexed=paper.revert_indexed,
        refused=REFUSED,
    )


async def _revert(house: House, paper: Paper, hooks_in: str) -> str:
    """The commit that takes it back."""
    wanted = evolve(await _wanted(house, paper), hooks_in=hooks_in)
    mixed = await own_edits(house, wanted.head, {one.path: one.after for one in paper.changes}, wanted.indexed)
    try:
        if made := await (commit_apart if mixed else commit_paths)(house, wanted):
            return made
        raise WorkspaceFault("hook", TAKEN_AWAY)
    except NothingToCommit:
        raise
    except WorkspaceFault as fault:
        raise await _applied_again(house, paper, fault) from fault


async def _applied_again(house: House, paper: Paper, why: WorkspaceFault) -> WorkspaceFault:
    """Make the files what they were before somebody tried to undo it, and say `why` that is over. What was changed
    meanwhile, by a hook or by a person, stays as it lies: nobody can tell who it was."""
    left = await asyncio.to_thread(edited, ground_of(house), paper.changes)
    rest = evolve(paper, changes=tuple(one for one in paper.changes if one.path not in left))
    failed = await moved(house, rest.moves, paper.token)
    if isinstance(failed, Halfway):
        raise halfway(evolve(paper, state="applying"), failed)
    await save(house, evolve(paper, state="applied", reverting=False))
    if failed is not None:
        what = repr(failed.path) if isinstance(failed, Interfered) else str(failed)
        told = f"The files are as before the work, and its commit is still there: the way back is closed ({what})."
        return WorkspaceFault("state", f"{told} Undo it again, and it goes on from there.")
    if not left:
        return why
    told = f"{why}\nBut {some_of(left)} stays as it lies: it was changed meanwhile, by a hook or by you."
    return WorkspaceFault(why.reason, f"{told} Look at it with 'git diff' before you do anything about it.")


async def _why_not(house: House, paper: Paper, *, amended: bool) -> str:
    """Why a commit cannot just be taken back: what others have built on, or a person has put into it, would go too."""
    commit = paper.commit
    if await value_of(house, "HEAD") != commit:
        return COVERED if await is_here(house, commit) else AMENDED
    if await value_of(house, f"{commit}^") != paper.head:
        return REBASED
    own = (
        {one.path for one in await delta(house, paper.head, commit)} - {*paper.paths} if amended and paper.head else ()
    )
    if own:
        return f"Its commit was amended, and has {some_of(sorted(own))} in it too"
    said = await house.refs.text(
        "for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit, "refs/remotes"
    )
    return f"{PUSHED} ({said})" if said else ""
