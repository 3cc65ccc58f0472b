"""Undo an applied change byte for byte; finish or roll back what a kill interrupted.

If the commit is still HEAD, it is removed with its changes. If other commits follow it, a new commit reverts it.
"""

from __future__ import annotations

from greenroom.adapters.git.apply import (
    EDITED_SINCE,
    HalfwayFault,
    TreeMove,
    explain_conflicts,
    fill_index,
    find_conflicts,
    find_edited,
    finish,
    is_in_head,
    is_untouched,
    make_conflicts,
    make_move,
    merge,
    refuse_in_progress,
    set_entries,
    switch_tree,
)
from greenroom.adapters.git.commit import add_commit, check_can_commit, commit_paths, find_commit, list_chain
from greenroom.adapters.git.diff import list_deltas
from greenroom.adapters.git.journal import (
    JournalEntry,
    list_unfinished,
    load_entry,
    make_changes,
    save_entry,
    select_states,
)
from greenroom.adapters.git.refs import (
    find_commit_with_trailer,
    find_ref,
    list_branches_with,
    make_message,
    resolve_tree,
)
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import split_names
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import AppliedChange, Conflicts, UndoBlocked, UndoResult, WorkspaceFault


async def undo(repository: Repository, entry: JournalEntry, *, revert: bool) -> UndoResult | Conflicts | UndoBlocked:
    """Restore the tree to its state before the entry was applied."""
    if entry.state == "dropped" or (entry.state == "undone" and not await _is_still_in_head(repository, entry)):
        return UndoResult(paths=())
    commit = await find_commit(repository, entry)
    if not commit:
        return await _undo_files(repository, entry)
    if entry.commit not in ("", commit):
        raise _make_rewritten_fault(entry, commit)
    if revert:
        return await _revert(repository, evolve(entry, commit=commit))
    if blocker := await _find_undo_blocker(repository, entry, commit):
        return UndoBlocked(commit=commit, why=blocker)
    # A kill may have prevented saving what the commit really changed.
    return await _begin_undo(repository, await add_commit(repository, entry, commit))


def _make_rewritten_fault(entry: JournalEntry, commit: str) -> WorkspaceFault:
    """Return the fault for a rewritten commit: it may contain more than the change."""
    return WorkspaceFault("state", "git.rewritten", old=entry.commit[:10], commit=commit[:10])


async def _begin_undo(repository: Repository, entry: JournalEntry) -> UndoResult | Conflicts:
    edited = await find_edited(repository, (await make_move(repository, entry)).reverse())
    if edited:
        return make_conflicts(edited, EDITED_SINCE)
    if entry.commit:
        refuse_in_progress(repository)
    entry = evolve(entry, state="undoing", reverting=False)
    await save_entry(repository, entry)
    return await undo_entry(repository, entry)


async def _is_still_in_head(repository: Repository, entry: JournalEntry) -> bool:
    """Return whether an undone change is still in HEAD, because it was undone on another branch."""
    if not entry.commit or not await is_in_head(repository, entry.commit):
        return False
    return not entry.reverted or not await is_in_head(repository, entry.reverted)


async def _undo_files(repository: Repository, entry: JournalEntry) -> UndoResult | Conflicts:
    """Undo a change that HEAD does not contain. Raise a *state* fault if its commit is elsewhere or gone."""
    short = entry.commit[:10]
    if entry.commit and (names := await list_branches_with(repository, entry.commit)):
        raise WorkspaceFault("state", "git.commit_elsewhere", short=short, branch=names[0])
    if entry.commit and await is_untouched(repository, entry):
        raise WorkspaceFault("state", "git.nothing_to_undo", short=short)
    in_head = [await repository.objects.find(f"HEAD:{change.path}") == change.after.blob for change in entry.changes]
    if entry.commit and all(in_head):
        raise _make_rewritten_fault(entry, await find_ref(repository, "HEAD"))
    return await _begin_undo(repository, evolve(entry, commit=""))


async def _find_undo_blocker(repository: Repository, entry: JournalEntry, commit: str) -> str:
    """Return why the commits of an entry cannot be removed; empty if they can."""
    if await find_ref(repository, "HEAD") != commit:
        return translate("git.commits_follow")
    oldest = (await list_chain(repository, entry, commit))[-1].name
    remote = await repository.refs_git.read_line(
        "for-each-ref", "--count=1", "--format=%(refname)", "--contains", oldest, "refs/remotes"
    )
    return translate("git.on_remote", remote=remote) if remote else ""


async def undo_entry(repository: Repository, entry: JournalEntry, *, force: bool = False) -> UndoResult | Conflicts:
    """Carry out a recorded undo: first the files, then HEAD, then the index."""
    try:
        edited = await switch_tree(repository, (await make_move(repository, entry)).reverse(), entry, force=force)
    except HalfwayFault:
        raise
    except WorkspaceFault:
        await save_entry(repository, evolve(entry, state="applied"))
        raise
    if edited:
        await save_entry(repository, evolve(entry, state="applied"))
        return make_conflicts(edited, EDITED_SINCE)
    if entry.commit and await find_ref(repository, "HEAD") == entry.commit:
        await repository.refs_git.run(
            "update-ref", "-m", f"greenroom: undo {entry.id}", "HEAD", entry.head, entry.commit
        )
    if not repository.layout.is_own and await find_ref(repository, "HEAD"):
        staged = split_names(await repository.refs_git.run("diff-index", "--cached", "-z", "--name-only", "HEAD"))
        before = select_states(entry.changes, after=False)
        await set_entries(repository, repository.refs_git, {path: before[path] for path in staged if path in before})
    await save_entry(repository, evolve(entry, state="undone"))
    return UndoResult(paths=entry.paths, commit=entry.commit)


async def _revert(repository: Repository, entry: JournalEntry) -> UndoResult | Conflicts:
    """Add a commit that reverts the entry's commits, merged with later changes."""
    await check_can_commit(repository)
    chain = await list_chain(repository, entry, entry.commit)
    parent = chain[-1].parent
    head = await resolve_tree(repository, "HEAD")
    merged = await merge(repository, entry.commit, head, await resolve_tree(repository, parent), is_normalised=True)
    if not isinstance(merged, str):
        return await explain_conflicts(repository, merged)
    changes = await list_deltas(repository, head, merged)
    if not changes:  # it is already reverted
        head_commit = await find_ref(repository, "HEAD")
        await save_entry(repository, evolve(entry, state="undone", reverted=head_commit))
        return UndoResult(paths=entry.paths, revert=head_commit)
    head_commit = await find_ref(repository, "HEAD")
    entry = evolve(entry, state="undoing", reverting=True, revert_head=head_commit, revert_old=head, revert_new=merged)
    move = TreeMove(old=head, new=merged, changes=make_changes(changes))
    async with fill_index(repository, move) as filled:
        if clashes := await find_conflicts(repository, changes, filled[1]):
            return Conflicts(clashes=clashes)
        await save_entry(repository, entry)
        edited = await switch_tree(repository, move, entry, filled=filled)
    if edited:
        await save_entry(repository, evolve(entry, state="applied", reverting=False))
        return make_conflicts(edited, EDITED_SINCE)
    # The second paragraph of a chain's commits is the subject of the whole change.
    subject = chain[0].message.split("\n\n")[1 if len(chain) > 1 else 0].partition("\n")[0]
    reverted = f"commit {entry.commit}" if len(chain) == 1 else f"commits {chain[-1].name}^..{entry.commit}"
    trailers = {"run": entry.run, "undone": entry.id}
    message = make_message(f'Revert "{subject}"\n\nThis reverts {reverted}.', trailers)
    try:
        await commit_paths(
            repository,
            select_states(move.changes, after=False),
            message,
            git=repository.git_as_owner(),
            refusal="git.revert_refused",
        )
    except WorkspaceFault:
        await _roll_back_revert(repository, entry)
        raise
    return await _save_reverted(repository, entry)


async def _save_reverted(repository: Repository, entry: JournalEntry) -> UndoResult:
    commit = await find_commit_with_trailer(repository, "undone", entry.id) or await find_ref(repository, "HEAD")
    await save_entry(repository, evolve(entry, state="undone", reverted=commit))
    return UndoResult(paths=entry.paths, revert=commit)


async def _roll_back_revert(repository: Repository, entry: JournalEntry) -> None:
    """Restore the files after a failed revert."""
    changes = make_changes(await list_deltas(repository, entry.revert_old, entry.revert_new))
    move = TreeMove(old=entry.revert_old, new=entry.revert_new, changes=changes)
    await switch_tree(repository, move.reverse(), entry, force=True)
    await set_entries(repository, repository.refs_git, select_states(changes, after=False))
    await save_entry(repository, evolve(entry, state="applied", reverting=False))


async def recover_entries(repository: Repository) -> list[AppliedChange]:
    """Finish or roll back every interrupted entry. Return the entries whose files were changed."""
    recovered = list[AppliedChange]()
    for entry in await list_unfinished(repository):
        if entry.state == "applying" and await is_untouched(repository, entry):
            await save_entry(repository, evolve(entry, state="dropped"))
            continue
        if entry.state == "applying":
            await finish(repository, entry, force=True)
        elif not entry.reverting:
            await undo_entry(repository, entry, force=True)
        elif await find_commit_with_trailer(repository, "undone", entry.id):
            await _save_reverted(repository, entry)
        else:
            await _roll_back_revert(repository, entry)
        recovered.append((await load_entry(repository, entry.id)).as_applied_change)
    return recovered
