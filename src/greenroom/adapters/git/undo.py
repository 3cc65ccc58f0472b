"""Take back what was applied, byte for byte; and finish or take back what a kill left half done.

A commit that is still HEAD is taken away with its files. One that others came after is taken back by a commit on top.
"""

from __future__ import annotations

from typing import Final

from greenroom.adapters.git.apply import (
    SINCE,
    HalfwayFault,
    Move,
    clashes_at,
    explain_conflicts,
    fill_index,
    find_clashes,
    find_edited,
    finish,
    is_here,
    is_untouched,
    merge,
    move_of,
    refuse_in_between,
    set_entries,
    switch,
)
from greenroom.adapters.git.commit import commit_paths, expect_commit, find_commit, with_commit
from greenroom.adapters.git.diff import delta
from greenroom.adapters.git.journal import Paper, changes_of, entries, load, save, unfinished
from greenroom.adapters.git.refs import branches_with, commit_saying, message_of, tree_of, value_of
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import split
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Applied, Buried, Clashes, Undone, WorkspaceFault

REFUSED: Final = "The commit that takes it back was refused, so nothing was undone: all is as it was."
ON_TOP: Final = "It can be undone by a commit on top."


async def undo(repository: Repository, paper: Paper, *, revert: bool) -> Undone | Clashes | Buried:
    """Make the tree what it was before this was applied."""
    if paper.state == "dropped" or (paper.state == "undone" and not await _is_still_here(repository, paper)):
        return Undone(paths=())
    commit = await find_commit(repository, paper)
    if not commit:
        return await _undo_files(repository, paper)
    if paper.commit not in ("", commit):
        raise _made_anew(paper, commit)
    if revert:
        return await _revert(repository, evolve(paper, commit=commit))
    if why := await _why_buried(repository, commit):
        return Buried(commit=commit, why=f"{why}. {ON_TOP}")
    # A kill may have come before what the commit really changed was written down.
    return await _begin(repository, await with_commit(repository, paper, commit))


def _made_anew(paper: Paper, commit: str) -> WorkspaceFault:
    """A commit that was amended, rebased, squashed … may have more in it than the work."""
    why = f"Its commit {paper.commit[:10]} was amended, rebased or copied, so nothing was undone."
    return WorkspaceFault("state", f"{why} Take it back with 'git revert {commit[:10]}'.")


async def _begin(repository: Repository, paper: Paper) -> Undone | Clashes:
    edited = await find_edited(repository, (await move_of(repository, paper)).back())
    if edited:
        return clashes_at(edited, SINCE)
    if paper.commit:
        refuse_in_between(repository)
    paper = evolve(paper, state="undoing", reverting=False)
    await save(repository, paper)
    return await take_back(repository, paper)


async def _is_still_here(repository: Repository, paper: Paper) -> bool:
    """Whether what was undone is in HEAD all the same: it was undone on another branch."""
    if not paper.commit or not await is_here(repository, paper.commit):
        return False
    return not paper.reverted or not await is_here(repository, paper.reverted)


async def _undo_files(repository: Repository, paper: Paper) -> Undone | Clashes:
    """Take back what is in no commit of HEAD; a *state* fault where it is in one elsewhere, or in none any more."""
    short = paper.commit[:10]
    if paper.commit and (names := await branches_with(repository, paper.commit)):
        why = f"Its commit {short} is on {names[0]!r}, which is not checked out here, so nothing was undone."
        raise WorkspaceFault("state", f"{why} Go there with 'git switch {names[0]}', and undo it.")
    if paper.commit and await is_untouched(repository, paper):
        why = f"There is nothing to undo: its commit {short} is on no branch any more, and your files are as before it."
        raise WorkspaceFault("state", why)
    in_head = [await repository.objects.find(f"HEAD:{change.path}") == change.after.blob for change in paper.changes]
    if paper.commit and all(in_head):
        raise _made_anew(paper, await value_of(repository, "HEAD"))
    return await _begin(repository, evolve(paper, commit=""))


async def _why_buried(repository: Repository, commit: str) -> str:
    """Why a commit cannot just be taken away: what others have built on would go too."""
    if await value_of(repository, "HEAD") != commit:
        return "Other commits came after it"
    said = await repository.refs.text(
        "for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit, "refs/remotes"
    )
    return f"It is on a remote branch already ({said})" if said else ""


async def take_back(repository: Repository, paper: Paper, *, force: bool = False) -> Undone | Clashes:
    """Do what is written down: the files, then HEAD, then the index."""
    try:
        edited = await switch(repository, (await move_of(repository, paper)).back(), paper, force=force)
    except HalfwayFault:
        raise
    except WorkspaceFault:
        await save(repository, evolve(paper, state="applied"))
        raise
    if edited:
        await save(repository, evolve(paper, state="applied"))
        return clashes_at(edited, SINCE)
    if paper.commit and await value_of(repository, "HEAD") == paper.commit:
        await repository.refs.ask("update-ref", "-m", f"greenroom: undo {paper.id}", "HEAD", paper.head, paper.commit)
    if not repository.layout.own and await value_of(repository, "HEAD"):
        staged = split(await repository.refs.ask("diff-index", "--cached", "-z", "--name-only", "HEAD"))
        before = entries(paper.changes, after=False)
        await set_entries(repository, repository.refs, {path: before[path] for path in staged if path in before})
    await save(repository, evolve(paper, state="undone"))
    return Undone(paths=paper.paths, commit=paper.commit)


async def _revert(repository: Repository, paper: Paper) -> Undone | Clashes:
    """Make a commit on top that takes this one back, merged by git with what came after it."""
    await expect_commit(repository)
    made = await repository.objects.commit(paper.commit)
    parent = made.parent if made is not None else ""
    head = await tree_of(repository, "HEAD")
    merged = await merge(repository, paper.commit, head, await tree_of(repository, parent), kept=True)
    if not isinstance(merged, str):
        return await explain_conflicts(repository, merged)
    changes = await delta(repository, head, merged)
    if not changes:  # somebody has taken it back already
        last = await value_of(repository, "HEAD")
        await save(repository, evolve(paper, state="undone", reverted=last))
        return Undone(paths=paper.paths, revert=last)
    last = await value_of(repository, "HEAD")
    paper = evolve(paper, state="undoing", reverting=True, revert_head=last, revert_old=head, revert_new=merged)
    move = Move(old=head, new=merged, changes=changes_of(changes))
    async with fill_index(repository, move) as filled:
        if clashes := await find_clashes(repository, changes, filled[1]):
            return Clashes(clashes=clashes)
        await save(repository, paper)
        edited = await switch(repository, move, paper, filled=filled)
    if edited:
        await save(repository, evolve(paper, state="applied", reverting=False))
        return clashes_at(edited, SINCE)
    subject = made.message.partition("\n")[0] if made is not None else ""
    told = {"run": paper.run, "undone": paper.id}
    message = message_of(f'Revert "{subject}"\n\nThis reverts commit {paper.commit}.', told)
    try:
        await commit_paths(repository, entries(move.changes, after=False), message, hooks=True, refused=REFUSED)
    except WorkspaceFault:
        await _roll_revert_back(repository, paper)
        raise
    return await _reverted(repository, paper)


async def _reverted(repository: Repository, paper: Paper) -> Undone:
    made = await commit_saying(repository, "undone", paper.id) or await value_of(repository, "HEAD")
    await save(repository, evolve(paper, state="undone", reverted=made))
    return Undone(paths=paper.paths, revert=made)


async def _roll_revert_back(repository: Repository, paper: Paper) -> None:
    """Make the files what they were before a commit on top was tried."""
    changes = changes_of(await delta(repository, paper.revert_old, paper.revert_new))
    move = Move(old=paper.revert_old, new=paper.revert_new, changes=changes)
    await switch(repository, move.back(), paper, force=True)
    await set_entries(repository, repository.refs, entries(changes, after=False))
    await save(repository, evolve(paper, state="applied", reverting=False))


async def recover(repository: Repository) -> list[Applied]:
    """Bring to an end what a kill left in the middle; what files were changed for, as it stands now."""
    found = list[Applied]()
    for paper in await unfinished(repository):
        if paper.state == "applying" and await is_untouched(repository, paper):
            await save(repository, evolve(paper, state="dropped"))
            continue
        if paper.state == "applying":
            await finish(repository, paper, force=True)
        elif not paper.reverting:
            await take_back(repository, paper, force=True)
        elif await commit_saying(repository, "undone", paper.id):
            await _reverted(repository, paper)
        else:
            await _roll_revert_back(repository, paper)
        found.append((await load(repository, paper.id)).applied)
    return found
