"""What was applied, written down in the repository before it is done: with it, it is finished, undone or found again.

Each entry is a commit under a ref of its own. Its tree has the paper and every content that there was and will be, so
that git keeps them; its first line says how it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from greenroom.adapters.git.diff import LINK
from greenroom.adapters.git.objects import Delta
from greenroom.adapters.git.refs import (
    OURS,
    Ref,
    applied_ref,
    applied_refs,
    commit_tree,
    list_refs,
    message_of,
    move,
    value_of,
)
from greenroom.adapters.git.repository import Repository
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Applied, WorkspaceFault

PAPER: Final = "paper"
OPEN: Final = ("applying", "undoing")
APPLIED: Final = "/@applied/"
"""In the names of refs to papers."""


@record
class State:
    """A file or link with its content's hash, or why there is none. Of `mode` only the right to run it counts."""

    kind: Literal["none", "file", "link", "folder", "other", "blocked"] = "none"
    blob: str = ""
    mode: int = 0

    @property
    def entry(self) -> str:
        """Its mode in an index; empty for none."""
        if self.kind == "link":
            return LINK
        return ("100755" if self.mode & 0o100 else "100644") if self.kind == "file" else ""


@record
class FileChange:
    """One file: what it was, and what it is to be."""

    path: str
    before: State
    after: State


@record
class Paper:
    """One thing that was applied. `old` and `new` are whole trees that differ in what changes. `head` is the commit
    that there was before its commit. With `reverting` it is taken back by a commit on top, `reverted`, which makes
    `revert_new` of `revert_old`."""

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
        """The files that it is about."""
        return tuple(change.path for change in self.changes)

    @property
    def applied(self) -> Applied:
        """As the port tells it."""
        return Applied(
            id=self.id,
            run=self.run,
            base=self.base,
            tip=self.tip,
            paths=self.paths,
            merged=self.merged,
            state=self.state,
            commit=self.commit,
        )


def changes_of(deltas: Iterable[Delta]) -> tuple[FileChange, ...]:
    """What a paper keeps of the difference of two trees."""
    return tuple(
        FileChange(path=item.path, before=_state(item.old_mode, item.old), after=_state(item.new_mode, item.new))
        for item in deltas
    )


def _state(mode: str, blob: str) -> State:
    if mode == "000000":
        return State()
    if mode == LINK:
        return State(kind="link", blob=blob)
    return State(kind="file", blob=blob, mode=int(mode[-3:], 8)) if mode.startswith("100") else State(kind="other")


def entries(changes: Iterable[FileChange], *, after: bool) -> Mapping[str, State]:
    """What each file was before, or is after."""
    return {change.path: change.after if after else change.before for change in changes}


async def save(repository: Repository, paper: Paper) -> None:
    """Write down how it stands."""
    named = await repository.write("blob", json.dumps(msgspec.to_builtins(paper)).encode())
    states = [state for change in paper.changes for state in (change.before, change.after)]
    blobs = {state.blob for state in states if state.blob and state.kind in ("file", "link")}
    trees = {tree for tree in (paper.old, paper.new, paper.revert_old, paper.revert_new) if tree}
    files = {PAPER: named, **{blob: blob for blob in blobs}}
    rows = [(name, f"100644 {name}", blob) for name, blob in files.items()]
    rows += [(f"{tree}/", f"40000 {tree}", tree) for tree in trees]  # git sorts folders as if a slash followed
    lines = [f"{entry}\0".encode() + bytes.fromhex(name) for _, entry, name in sorted(rows)]
    tree = await repository.write("tree", b"".join(lines))
    ref = applied_ref(paper.id)
    old = await value_of(repository, ref)
    message = message_of(f"{paper.state} {paper.id}", {"run": paper.run})
    await move(repository, ref, await commit_tree(repository, tree, old, message), old)


async def load(repository: Repository, applied: str) -> Paper:
    """What is written down about it."""
    commit = await value_of(repository, applied_ref(applied))
    if not commit:
        raise WorkspaceFault("name", f"Nothing was applied under the name {applied!r} in {str(repository.root)!r}.")
    (paper,) = await _read(repository, [commit])
    return paper


async def _read(repository: Repository, commits: Sequence[str]) -> list[Paper]:
    names = [f"{commit}:{PAPER}" for commit in commits]
    found = await repository.objects.contents(names)
    return [msgspec.convert(json.loads(found[name]), Paper) for name in names]


async def next_id(repository: Repository, run: str) -> str:
    """The name of what is applied next of a run."""
    taken = [_number(name) for name, _, _ in await list_refs(repository, applied_refs(run))]
    return f"{run}/{1 + max(taken, default=0)}"


async def papers(repository: Repository, run: str = "") -> list[Paper]:
    """All that was applied of a run, the first first; without a name of all runs."""
    return await papers_among(repository, await list_refs(repository, applied_refs(run) if run else f"{OURS}/"))


async def papers_among(repository: Repository, refs: Iterable[Ref]) -> list[Paper]:
    """What those of these refs lead to that are of something applied, run by run."""
    some = sorted((name.split("/")[2], _number(name), commit) for name, commit, _ in refs if APPLIED in name)
    return await _read(repository, [commit for _, _, commit in some])


async def unfinished(repository: Repository) -> list[Paper]:
    """Those in the middle of which somebody was killed."""
    found = await list_refs(repository, f"{OURS}/")
    return await _read(
        repository,
        [commit for name, commit, subject in found if APPLIED in name and subject.partition(" ")[0] in OPEN],
    )


async def list_unapplied(
    repository: Repository, applied: Iterable[Paper], base: str, tips: Sequence[str]
) -> tuple[str, ...]:
    """The first lines of the commits that lead to these tips, and neither to the base nor to what is applied. A commit
    that git has cleared away leads nowhere."""
    known = [f"^{name}" for name in (base, *(paper.tip for paper in applied)) if name]
    wanted = "".join(f"{name}\n" for name in (*tips, *known))
    words = ("log", "--no-show-signature", "--format=%s", "--ignore-missing", "--stdin")
    said = await repository.plain.ask(*words, stdin=wanted.encode()) if tips else b""
    return tuple(said.decode(errors="replace").split("\n")[:-1])


def _number(ref: str) -> int:
    return int(ref.rpartition("/")[2])
