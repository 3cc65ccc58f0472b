"""Apply a change to the person's tree: merge it onto HEAD, record it in the journal, write all files or none.

A file with uncommitted edits is never overwritten. In that case nothing is written, and the files are named.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.git.diff import list_deltas
from greenroom.adapters.git.files import is_not_folder
from greenroom.adapters.git.journal import (
    FileChange,
    FileState,
    JournalEntry,
    find_next_id,
    list_entries,
    make_changes,
    save_entry,
    select_states,
)
from greenroom.adapters.git.objects import FileDelta
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import (
    find_ref,
    is_ancestor,
    list_branches_with,
    make_applied_ref,
    resolve_commit,
    resolve_tree,
    write_commit,
)
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import PathPredicate, join_names, read_tree, split_names
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.files import is_protected
from greenroom.core.ports.workspace import AppliedChange, Conflict, Conflicts, WorkspaceFault

UNCOMMITTED: Final = "you have uncommitted edits in it"
UNTRACKED: Final = "an untracked file is in its place"
SAME_LINES: Final = "you and the run changed the same lines"
PROTECTED: Final = "it belongs to git or Greenroom and is never written"
EDITED_SINCE: Final = "it was edited afterwards"
IN_PROGRESS: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}
REFUSED_FILE: Final = re.compile(
    r"(?:Entry|file|Updating|path) '([^']+)'|Updating the following directories[^\n]*\n\s+(\S.*)"
)
"""Matches the file that `read-tree` refuses to overwrite."""

MERGE_SUFFIX: Final = re.compile(r"~[0-9a-f]{40,64}(?:_\d+)?$")
"""Matches the suffix that `merge-tree` adds to a name when both sides use it for different things."""

INDEX_SETTINGS: Final = {
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "index.sparse": "false",
    "diff.autoRefreshIndex": "true",
    "submodule.recurse": "false",
}
CONVERTING_ATTRIBUTES: Final = ("text", "crlf", "eol", "filter", "ident", "working-tree-encoding")
MAX_FILES_NAMED: Final = 5
"""How many files a message names."""

FilledIndex: TypeAlias = tuple[Git, list[str]]
"""Git with an index that holds the state before a move, and the files that differ from it."""


class HalfwayFault(WorkspaceFault):
    """Writing failed and could not be rolled back. The journal entry stays unfinished."""


@record
class TreeMove:
    """A move from one tree to another that differs in `changes`. With `raw`, contents are the bytes on disk."""

    old: str
    new: str
    changes: tuple[FileChange, ...]
    raw: bool = False

    def reverse(self) -> TreeMove:
        """Return the move in the opposite direction."""
        reversed_changes = (
            FileChange(path=change.path, before=change.after, after=change.before) for change in self.changes
        )
        return TreeMove(old=self.new, new=self.old, changes=tuple(reversed_changes), raw=self.raw)


async def apply(
    repository: Repository, run: str, base: str, tip: str, *, secret: PathPredicate
) -> AppliedChange | Conflicts:
    """Apply the change between two commits to the person's tree."""
    base, tip = await resolve_commit(repository, base), await resolve_commit(repository, tip)
    applied_entries = [
        entry
        for entry in await list_entries(repository, run)
        if (entry.base, entry.tip, entry.state) == (base, tip, "applied")
    ]
    for entry in applied_entries:
        if entry.commit and not await is_in_head(repository, entry.commit):
            await _refuse_on_branch(repository, entry.commit)
        if not await is_untouched(repository, entry):
            return entry.as_applied_change
    refuse_in_progress(repository)
    head = await find_ref(repository, "HEAD")
    head_tree = await resolve_tree(repository, head) if head else (await read_tree(repository, is_secret=secret)).tree
    merged = await merge(repository, base, head_tree, await resolve_tree(repository, tip))
    if not isinstance(merged, str):
        return await explain_conflicts(repository, merged)
    changes = await list_deltas(repository, head_tree, merged)
    if not changes:
        return AppliedChange(id="", run=run, base=base, tip=tip, paths=())
    changed_by_both = {item.path for item in await list_deltas(repository, base, head_tree)} & {
        item.path for item in changes
    }
    entry = JournalEntry(
        id=await find_next_id(repository, run),
        run=run,
        base=base,
        tip=tip,
        changes=make_changes(changes),
        merged=tuple(sorted(changed_by_both)),
        old=head_tree,
        new=merged,
    )
    async with fill_index(repository, await make_move(repository, entry)) as filled:
        clashes = await find_conflicts(repository, changes, filled[1])
        if clashes:
            return Conflicts(clashes=clashes)
        for other in applied_entries:
            await save_entry(repository, evolve(other, state="dropped"))
        await save_entry(repository, entry)
        return await finish(repository, entry, filled=filled)


async def finish(
    repository: Repository, entry: JournalEntry, *, force: bool = False, filled: FilledIndex | None = None
) -> AppliedChange | Conflicts:
    """Apply a journal entry. If a file was edited in the meantime, drop the entry and return the conflicts."""
    try:
        edited = await switch_tree(repository, await make_move(repository, entry), entry, force=force, filled=filled)
    except HalfwayFault:
        raise
    except WorkspaceFault:
        await save_entry(repository, evolve(entry, state="dropped"))
        raise
    if edited:
        await save_entry(repository, evolve(entry, state="dropped"))
        return make_conflicts(edited, UNCOMMITTED)
    done = evolve(entry, state="applied")
    await save_entry(repository, done)
    return evolve(done.as_applied_change, fresh=True)


async def _refuse_on_branch(repository: Repository, commit: str) -> None:
    """Raise a *state* fault if the commit is already on a local branch: it would be merged with itself."""
    if names := await list_branches_with(repository, commit):
        raise WorkspaceFault("state", "git.already_on_branch", short=commit[:10], branch=names[0])


def make_conflicts(paths: Iterable[str], why: str) -> Conflicts:
    """Return a conflict for each path, all with the same reason."""
    return Conflicts(clashes=tuple(Conflict(path=path, why=why) for path in paths))


async def is_in_head(repository: Repository, commit: str) -> bool:
    """Return whether HEAD contains a commit."""
    return await find_ref(repository, "HEAD") == commit or await is_ancestor(repository, commit, "HEAD")


def refuse_in_progress(repository: Repository) -> None:
    """Raise a *state* fault while a merge, rebase or similar is in progress."""
    git = repository.layout.git
    if what := next((what for name, what in IN_PROGRESS.items() if (git / name).exists()), ""):
        raise WorkspaceFault("state", "git.in_progress", what=what)


async def merge(
    repository: Repository, base: str, ours: str, theirs: str, *, is_normalised: bool = False
) -> str | tuple[str, ...]:
    """Merge the change from the commit `base` to the tree `theirs` into the tree `ours`.

    Return the merged tree, or the conflicting paths. `base` and `theirs` contain the bytes on disk, unless
    `is_normalised` is set.
    """
    if not is_normalised:
        base, theirs = await _normalise_sides(repository, base, theirs)
    if await resolve_tree(repository, base) == ours:
        return theirs
    left = await write_commit(repository, ours, base, "ours")
    return await merge_commits(repository, left, await write_commit(repository, theirs, base, "theirs"))


async def merge_commits(repository: Repository, left: str, right: str) -> str | tuple[str, ...]:
    """Return the merged tree of two commits, or the conflicting paths."""
    tree, conflicts = await merge_trees(repository, left, right)
    return tuple(dict.fromkeys(MERGE_SUFFIX.sub("", path) for path in conflicts)) or tree


async def merge_trees(repository: Repository, left: str, right: str) -> tuple[str, list[str]]:
    """Return the tree that git makes of two commits, and its files with conflicts by their names in that tree."""
    result = await repository.plain_git.run_unchecked(
        "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", left, right
    )
    if result.code not in (0, 1):
        raise WorkspaceFault("git", "git.merge_failed", err=result.err[-300:])
    tree, *conflicts = split_names(result.out)
    return tree, conflicts if result.code else []


async def _normalise_sides(repository: Repository, base: str, theirs: str) -> tuple[str, str]:
    """Return the commit and tree with contents as git stores them.

    Snapshots contain the bytes on disk, which line endings and filters may change. The person's filters run, as for any
    commit.
    """
    changes = await list_deltas(repository, base, theirs)
    files = {item.path for item in changes if "100" in (item.old_mode[:3], item.new_mode[:3])}
    if repository.layout.is_own or not files or not await find_ref(repository, "HEAD"):
        return base, theirs
    git = repository.git_as_owner(hooks=False)
    attributes = split_names(
        await git.run("check-attr", "-z", "--stdin", *CONVERTING_ATTRIBUTES, stdin=join_names(sorted(files)))
    )
    repository.refuse_local_filters(attributes)
    if not repository.config.converts:
        rows = (attributes[place : place + 3] for place in range(0, len(attributes) - 2, 3))
        files = {path for path, _, value in rows if value not in ("unspecified", "unset")}
    if not files:
        return base, theirs
    trees = []
    for tree, side in (
        (base, [(item.path, item.old_mode, item.old) for item in changes]),
        (theirs, [(item.path, item.new_mode, item.new) for item in changes]),
    ):
        file_rows = [row for row in side if row[0] in files and row[1].startswith("100")]
        texts = await repository.objects.read_contents(blob for _, _, blob in file_rows)
        cleaned = dict[str, FileState]()
        for path, mode, blob in file_rows:
            words = ("hash-object", "-w", "--stdin", f"--path={path}")
            name = (await git.run(*words, stdin=texts[blob])).decode().strip()
            cleaned[path] = FileState(kind="file", blob=name, mode=int(mode[-3:], 8))
        trees.append(await write_tree_with(repository, tree, cleaned))
    return await write_commit(repository, trees[0], "", "base"), trees[1]


async def write_tree_with(repository: Repository, tree: str, states: Mapping[str, FileState]) -> str:
    """Return a tree with these files changed or removed."""
    with repository.open_temporary() as folder:
        git = repository.git_for(repository.root, folder / "index")
        await git.run("read-tree", tree)
        await set_entries(repository, git, states)
        return await git.read_line("write-tree", "--missing-ok")


async def set_entries(repository: Repository, git: Git, states: Mapping[str, FileState]) -> None:
    """Set these files in the index of `git`; leave all other entries unchanged."""
    zero_hash = "0" * (64 if repository.config.hashes == "sha256" else 40)
    removed = [f"0 {zero_hash}\t{path}" for path, state in states.items() if not state.entry]
    present = [f"{state.entry} {state.blob}\t{path}" for path, state in states.items() if state.entry]
    if states:
        await git.run("update-index", "-z", "--index-info", stdin=join_names((*removed, *present)))


async def explain_conflicts(repository: Repository, paths: Sequence[str]) -> Conflicts:
    """Return a conflict with its reason for each path. Most often, the change builds on uncommitted edits."""
    head = await find_ref(repository, "HEAD")
    status = await repository.git_as_owner(hooks=False).run_unchecked(
        "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"
    )
    dirty = (
        {line[3:] for line in split_names(status.out)}
        if head and not repository.layout.is_own and not status.code
        else set()
    )
    return Conflicts(
        clashes=tuple(Conflict(path=path, why=UNCOMMITTED if path in dirty else SAME_LINES) for path in paths)
    )


async def find_conflicts(
    repository: Repository, changes: Sequence[FileDelta], edited: Sequence[str]
) -> tuple[Conflict, ...]:
    """Return the files that must not be written, with reasons: protected, occupied, staged or edited."""
    paths = {item.path for item in changes}
    conflicts = [Conflict(path=path, why=PROTECTED) for path in sorted(paths) if _is_protected_path(path)]
    conflicts += [
        Conflict(path=path, why=UNTRACKED) for path in await asyncio.to_thread(_find_blocked, repository.root, changes)
    ]
    if not repository.layout.is_own and await find_ref(repository, "HEAD"):
        staged = split_names(
            await repository.refs_git.run("diff-index", "--cached", "--raw", "-z", "--no-renames", "HEAD")
        )
        rows = [(staged[place].split(" ")[4], staged[place + 1]) for place in range(0, len(staged) - 1, 2)]
        if any(letter == "U" for letter, _ in rows):
            raise WorkspaceFault("state", "git.files_in_conflict")
        conflicts += [Conflict(path=path, why=UNCOMMITTED) for _, path in rows if path in paths]
    known_paths = {clash.path for clash in conflicts}
    conflicts += [Conflict(path=path, why=UNCOMMITTED) for path in edited if path not in known_paths]
    return tuple(sorted(conflicts, key=lambda clash: clash.path))


def _is_protected_path(path: str) -> bool:
    return any(is_protected(part) or part in ("", "..", ".") for part in path.split("/"))


def _find_blocked(root: Path, changes: Sequence[FileDelta]) -> list[str]:
    """Return new files whose place is occupied by something that the change does not remove."""
    removed = {item.path for item in changes if item.new_mode == "000000"}
    blocked_paths = []
    for path in (item.path for item in changes if item.old_mode == "000000"):
        above = [parent.as_posix() for parent in Path(path).parents if parent.name]
        blocked = [place for place in above if place not in removed and is_not_folder(root / place)]
        is_occupied = _is_occupied(root, path, removed)
        if blocked or (is_occupied and not any(place in removed for place in above)):
            blocked_paths.append(path)
    return blocked_paths


async def make_move(repository: Repository, entry: JournalEntry) -> TreeMove:
    """Return the move of a journal entry, from its old to its new tree."""
    if not entry.old:
        raise WorkspaceFault("state", "git.applied_by_older", id=entry.id)
    raw = repository.layout.is_own or (not entry.commit and not await find_ref(repository, "HEAD"))
    return TreeMove(old=entry.old, new=entry.new, changes=entry.changes, raw=raw)


async def is_untouched(repository: Repository, entry: JournalEntry) -> bool:
    """Return whether every file is as it was before the entry was applied."""
    return not await find_edited(repository, await make_move(repository, entry))


async def find_edited(repository: Repository, move: TreeMove) -> list[str]:
    """Return the files that differ from the state before the move."""
    async with fill_index(repository, move) as (_, edited):
        return edited


async def switch_tree(
    repository: Repository,
    move: TreeMove,
    entry: JournalEntry,
    *,
    force: bool = False,
    filled: FilledIndex | None = None,
) -> list[str]:
    """Switch the person's tree to `move.new`: all files or none. Return the edited files that prevent it.

    With `force` (after a kill), skip files that are already written or were edited since. A `filled` index is reused:
    git itself refuses to overwrite later edits.
    """
    async with fill_index(repository, move) if filled is None else nullcontext(filled) as (git, edited):
        if edited and not force:
            return edited
        after = select_states(move.changes, after=True)
        await set_entries(repository, git, {path: after[path] for path in edited})
        result = await git.run_unchecked(
            "read-tree", "-m", "-u", "--no-sparse-checkout", move.old, move.new, seconds=600
        )
    removed = [path for path, state in after.items() if not state.entry and path not in edited]
    remaining = [path for path in removed if _is_occupied(repository.root, path, after)]
    if result.code == 0 and not remaining:
        return []
    refused = REFUSED_FILE.search(result.err)
    if refused and not force and "unable to" not in result.err:
        return [refused[1] or refused[2]]
    if force:
        raise _make_halfway_fault(entry, result.err)
    why = result.err.splitlines()[0] if result.err else translate("git.cannot_remove", path=remaining[0])
    await switch_tree(repository, move.reverse(), entry, force=True)
    raise WorkspaceFault("disk", "git.files_not_written", why=why)


def _make_halfway_fault(entry: JournalEntry, stderr: str) -> HalfwayFault:
    names, hidden = ", ".join(map(repr, entry.paths[:MAX_FILES_NAMED])), len(entry.paths) - MAX_FILES_NAMED
    names = translate("hints.names_and_more", names=names, count=hidden) if hidden > 0 else names
    return HalfwayFault("disk", "git.halfway", names=names, ref=make_applied_ref(entry.id), stderr=stderr[-300:])


@asynccontextmanager
async def fill_index(repository: Repository, move: TreeMove) -> AsyncIterator[FilledIndex]:
    """Yield git with an index of the state before a move, and the files that differ from it. Hooks are off."""
    with repository.open_temporary() as folder:
        if move.raw:
            git = repository.git_for(repository.root, folder / "index")
        else:
            git = repository.git_as_owner(hooks=False).with_options(env={"GIT_INDEX_FILE": str(folder / "index")})
        git = git.with_options(*(word for name, value in INDEX_SETTINGS.items() for word in ("-c", f"{name}={value}")))
        before = select_states(move.changes, after=False)
        # With an empty index, git would check out all files as for a new clone. So the index gets one dummy entry. Its
        # object is written: git would ask the remote of a partial clone for it.
        empty = await repository.write_object("blob", b"")
        await set_entries(repository, git, {**before, ".greenroom-none": FileState(kind="file", blob=empty)})
        words = ("diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=all")
        differ, root = {*split_names(await git.run(*words))}, repository.root
        differ |= {path for path, state in before.items() if not state.entry and _is_occupied(root, path, before)}
        yield git, sorted(differ & before.keys())


def _is_occupied(root: Path, path: str, expected: Collection[str]) -> bool:
    """Return whether something occupies the path. A folder whose files are all in `expected` does not count."""
    place = root / path
    if not os.path.lexists(place):
        return False
    if place.is_symlink() or not place.is_dir():
        return True
    files = (Path(here, name) for here, _, names in os.walk(place) for name in names)
    return any(file.relative_to(root).as_posix() not in expected for file in files)
