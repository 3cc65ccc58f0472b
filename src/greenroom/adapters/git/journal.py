"""The journal of applied changes, kept in the repository. An entry is saved before its files are written, so that it
can be finished, undone or found later.

Each entry is a commit under its own ref. Its tree holds the entry and all contents before and after, so that git keeps
them. The subject of the commit is the state of the entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from greenroom.adapters.git.diff import LINK_MODE
from greenroom.adapters.git.objects import FileDelta
from greenroom.adapters.git.refs import (
    REF_ROOT,
    Ref,
    find_ref,
    list_refs,
    make_applied_prefix,
    make_applied_ref,
    make_message,
    move_ref,
    write_commit,
)
from greenroom.adapters.git.repository import Repository
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import AppliedChange, WorkspaceFault

ENTRY_NAME: Final = "paper"
OPEN_STATES: Final = ("applying", "undoing")
APPLIED_PART: Final = "/@applied/"
"""Part of the name of every ref to a journal entry."""


@record
class FileState:
    """The state of a path: a file or link with the hash of its content, or why there is none. Only the executable bit
    of `mode` counts."""

    kind: Literal["none", "file", "link", "folder", "other", "blocked"] = "none"
    blob: str = ""
    mode: int = 0

    @property
    def entry(self) -> str:
        """The mode in an index; empty if there is no file."""
        if self.kind == "link":
            return LINK_MODE
        return ("100755" if self.mode & 0o100 else "100644") if self.kind == "file" else ""


@record
class FileChange:
    """One file: its state before and after."""

    path: str
    before: FileState
    after: FileState


@record
class JournalEntry:
    """One applied change. `old` and `new` are whole trees that differ in `changes`. `head` is the commit before its own
    `commit`. With `reverting`, the commit `reverted` undoes it and turns `revert_old` into `revert_new`."""

    id: str
    run: str
    base: str
    tip: str
    changes: tuple[FileChange, ...]
    merged: tuple[str, ...] = ()
    state: Literal["applying", "applied", "undoing", "undone", "dropped"] = "applying"
    old: str = ""
    new: str = ""
    commit: str = ""
    head: str = ""
    reverting: bool = False
    revert_head: str = ""
    revert_old: str = ""
    revert_new: str = ""
    reverted: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the changed files."""
        return tuple(change.path for change in self.changes)

    @property
    def as_applied_change(self) -> AppliedChange:
        """The entry as the port's record."""
        return AppliedChange(
            id=self.id,
            run=self.run,
            base=self.base,
            tip=self.tip,
            paths=self.paths,
            merged=self.merged,
            state=self.state,
            commit=self.commit,
        )


def make_changes(deltas: Iterable[FileDelta]) -> tuple[FileChange, ...]:
    """Convert the difference of two trees to the changes of an entry."""
    return tuple(
        FileChange(
            path=item.path, before=_make_state(item.old_mode, item.old), after=_make_state(item.new_mode, item.new)
        )
        for item in deltas
    )


def _make_state(mode: str, blob: str) -> FileState:
    if mode == "000000":
        return FileState()
    if mode == LINK_MODE:
        return FileState(kind="link", blob=blob)
    return (
        FileState(kind="file", blob=blob, mode=int(mode[-3:], 8)) if mode.startswith("100") else FileState(kind="other")
    )


def select_states(changes: Iterable[FileChange], *, after: bool) -> Mapping[str, FileState]:
    """Return the state of each file before or after the changes."""
    return {change.path: change.after if after else change.before for change in changes}


async def save_entry(repository: Repository, journal_entry: JournalEntry) -> None:
    """Save an entry with its current state."""
    blob_name = await repository.write_object("blob", json.dumps(msgspec.to_builtins(journal_entry)).encode())
    states = [state for change in journal_entry.changes for state in (change.before, change.after)]
    blobs = {state.blob for state in states if state.blob and state.kind in ("file", "link")}
    trees = {
        tree
        for tree in (journal_entry.old, journal_entry.new, journal_entry.revert_old, journal_entry.revert_new)
        if tree
    }
    files = {ENTRY_NAME: blob_name, **{blob: blob for blob in blobs}}
    rows = [(name, f"100644 {name}", blob) for name, blob in files.items()]
    rows += [(f"{tree}/", f"40000 {tree}", tree) for tree in trees]  # git sorts folders as if a slash followed
    lines = [f"{entry}\0".encode() + bytes.fromhex(name) for _, entry, name in sorted(rows)]
    tree = await repository.write_object("tree", b"".join(lines))
    ref = make_applied_ref(journal_entry.id)
    old = await find_ref(repository, ref)
    message = make_message(f"{journal_entry.state} {journal_entry.id}", {"run": journal_entry.run})
    await move_ref(repository, ref, await write_commit(repository, tree, old, message), old)


async def load_entry(repository: Repository, applied: str) -> JournalEntry:
    """Load an entry. Raise a *name* fault if there is none."""
    commit = await find_ref(repository, make_applied_ref(applied))
    if not commit:
        raise WorkspaceFault("name", "git.nothing_applied_in", applied=applied, root=str(repository.root))
    (entry,) = await _read_entries(repository, [commit])
    return entry


async def _read_entries(repository: Repository, commits: Sequence[str]) -> list[JournalEntry]:
    names = [f"{commit}:{ENTRY_NAME}" for commit in commits]
    contents = await repository.objects.read_contents(names)
    return [msgspec.convert(json.loads(contents[name]), JournalEntry) for name in names]


async def find_next_id(repository: Repository, run: str) -> str:
    numbers = [_parse_number(name) for name, _, _ in await list_refs(repository, make_applied_prefix(run))]
    return f"{run}/{1 + max(numbers, default=0)}"


async def list_entries(repository: Repository, run: str = "") -> list[JournalEntry]:
    """Return all entries of a run, oldest first; of all runs without a name."""
    return await read_entries_of(
        repository, await list_refs(repository, make_applied_prefix(run) if run else f"{REF_ROOT}/")
    )


async def read_entries_of(repository: Repository, refs: Iterable[Ref]) -> list[JournalEntry]:
    """Return the journal entries among these refs, run by run."""
    numbered = sorted(
        (name.split("/")[2], _parse_number(name), commit) for name, commit, _ in refs if APPLIED_PART in name
    )
    return await _read_entries(repository, [commit for _, _, commit in numbered])


async def list_unfinished(repository: Repository) -> list[JournalEntry]:
    """Return the entries that a kill interrupted."""
    refs = await list_refs(repository, f"{REF_ROOT}/")
    return await _read_entries(
        repository,
        [commit for name, commit, subject in refs if APPLIED_PART in name and subject.partition(" ")[0] in OPEN_STATES],
    )


async def list_unapplied(
    repository: Repository, applied: Iterable[JournalEntry], known: Iterable[str], tips: Sequence[str]
) -> tuple[str, ...]:
    """Return the subjects of commits that lead to these tips, but neither to a known commit nor to an applied tip.
    Missing commits are skipped."""
    excluded = [f"^{name}" for name in (*known, *(paper.tip for paper in applied)) if name]
    revisions = "".join(f"{name}\n" for name in (*tips, *excluded))
    words = ("log", "--no-show-signature", "--format=%s", "--ignore-missing", "--stdin")
    output = await repository.plain_git.run(*words, stdin=revisions.encode()) if tips else b""
    return tuple(output.decode(errors="replace").split("\n")[:-1])


def _parse_number(ref: str) -> int:
    return int(ref.rpartition("/")[2])
