"""Workspaces: a person's tree, the worktrees in which agents work, and how changes come back. Nothing is done here.

A person's files stay unchanged while agents work. A snapshot records the tree, a worktree is a copy, and each step in
it is a commit. Only `apply` brings the change to the person's tree, all or nothing. Commits are named by hash. Paths
use slashes and are relative to the `root`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import SandboxMount

WorkspaceReason = Literal[
    "git",  # git is missing, too old, or prints something unexpected
    "repository",  # the repository is broken or gone
    "locked",  # another git process holds the lock
    "disk",  # full, read-only, gone
    "name",  # the branch, worktree or commit does not exist
    "state",  # not possible now: a merge is in progress, the change was undone …
    "hook",  # a person's hook refused
    "too_large",
    "slow",
]

MAIN_THREAD: Final = "main"
"""The thread that holds the change of a run. In a team run, other threads are integrated into it."""

SCRATCH_THREAD: Final = "scratch"
"""The thread of a worktree in which no agent works. Files left in it are worthless."""

NO_CONTENTS: Final[Mapping[str, bytes | None]] = {}
MAX_DIFF_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of a diff that are shown. Request fewer files to see more."""


def scratch_thread(thread: str) -> str:
    """Return the thread of the scratch worktree that belongs to a thread."""
    return SCRATCH_THREAD if thread == MAIN_THREAD else f"{SCRATCH_THREAD}@{thread}"


def is_scratch(thread: str) -> bool:
    """Return whether a thread is that of a scratch worktree."""
    return thread == SCRATCH_THREAD or thread.startswith(f"{SCRATCH_THREAD}@")


class WorkspaceFault(WorldFault):
    """A workspace operation failed and left nothing half done. `reason` is for programs, the message for people."""

    def __init__(self, reason: WorkspaceReason, why: str, /, **values: object) -> None:
        super().__init__(why, spent=None, **values)
        self.reason: WorkspaceReason = reason


@record
class SkippedPath:
    """A path in the tree that a snapshot or commit leaves out. It is always reported.

    *other* is a pipe, socket or device. *repository* is a foreign repository in the tree. *submodule* is a repository
    that git knows here by its commit, or a path in it. *secret* is an untracked file whose name suggests a secret.
    *environment* is a virtual environment or node_modules that git does not ignore.
    """

    path: str
    why: Literal["too_large", "unreadable", "repository", "submodule", "other", "secret", "environment"]
    size: int = 0


@record
class TreeSnapshot:
    """A snapshot of a person's tree: `commit` holds it, on top of `head` (empty if there is no commit yet).

    `within` is the workspace's path in the repository, empty for all of it. Files of a merge in progress (`conflicted`)
    are in it as they are on disk.
    """

    commit: str
    tree: str
    head: str = ""
    within: str = ""
    conflicted: tuple[str, ...] = ()
    left_out: tuple[SkippedPath, ...] = ()


SharedFolderKind = Literal["ignored", "packages", "submodule", "repository"]


@record
class SharedFolder:
    """A folder of the person's tree that snapshots leave out but work needs. Worktrees show it at `path`.

    *ignored* folders are ignored by git, or an environment; *submodule* and *repository* are the files of a repository.
    `hidden` are files in it, by relative path, whose names suggest secrets.
    """

    path: str
    source: str
    kind: SharedFolderKind
    hidden: tuple[str, ...] = ()


@record
class CommitInfo:
    """The author of a step commit: run, task, agent and step. `key` finds the commit again."""

    run: str
    key: str
    task: str = ""
    agent: str = ""
    step: str = ""
    summary: str = ""


@record
class StepCommit:
    """The commit of a step's changes; empty if there were none. `tree` is the current content, `left_out` what no
    commit holds."""

    commit: str
    tree: str
    left_out: tuple[SkippedPath, ...] = ()


@record
class WorktreeContents:
    """The content of a worktree: the tree hash that a commit would have, and what no commit holds."""

    tree: str
    left_out: tuple[SkippedPath, ...] = ()


@record
class PathChange:
    """The change of one file. Lines are not counted for a *binary* file. `before` is the old name. If the file is a
    link now, `target` is where it leads."""

    path: str
    kind: Literal["added", "changed", "deleted", "renamed", "mode", "submodule"]
    before: str = ""
    added: int = 0
    removed: int = 0
    binary: bool = False
    target: str = ""


@record
class Diff:
    """The difference of two commits: per file, and as unified text. *cut* means that the text is truncated."""

    changes: tuple[PathChange, ...]
    text: str
    cut: bool = False


@record
class Conflict:
    """A conflicting file, and why it conflicts. Of an integration, `why` names the two sides, and `thread` is the one
    that changed the file before."""

    path: str
    why: str
    thread: str = ""


@record
class Conflicts:
    """The operation changed nothing because these files conflict. Of threads, the three commits have the versions."""

    clashes: tuple[Conflict, ...]
    base: str = ""
    left: str = ""
    right: str = ""


@record
class AppliedChange:
    """A change that was applied to the person's tree. `id` names it for `commit` and `undo`. `merged` are files that
    the person had changed too. `paths` is empty if everything was already there. `fresh` means that this call
    applied it, not an earlier one."""

    id: str
    run: str
    base: str
    tip: str
    paths: tuple[str, ...]
    merged: tuple[str, ...] = ()
    state: Literal["applying", "applied", "undoing", "undone", "dropped"] = "applied"
    commit: str = ""
    fresh: bool = False


@record
class CommitResult:
    """A commit in the person's name. `fresh` means that this call made it. `commits` is how many commits hold the
    change; `commit` is the newest."""

    commit: str
    commits: int = 1
    fresh: bool = False


@record
class BranchResult:
    """A branch that holds the change."""

    name: str
    commit: str


@record
class UndoResult:
    """The tree is restored. `commit` is the removed commit, `revert` the commit made on top instead."""

    paths: tuple[str, ...]
    commit: str = ""
    revert: str = ""


@record
class UndoBlocked:
    """Nothing was undone: the commit has successors, was changed, or was shared. A revert commit on top can undo it."""

    commit: str
    why: str


@record
class BlameLine:
    """The origin of a line: the commit that holds it and, if Greenroom wrote it, the step."""

    commit: str
    text: str
    step: CommitInfo | None = None
    recorded: str = ""


@record
class RetainedRun:
    """What a repository keeps of a run, with or without a worktree. `unapplied` are the subjects of commits that are
    neither applied nor discarded; `applied` names what can still be undone. `undone` means that all of `unapplied` was
    applied once."""

    run: str
    base: str = ""
    unapplied: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    undone: bool = False


class Worktree(Protocol):
    """A copy of a person's tree in which one thread writes."""

    @property
    def folder(self) -> str:
        """The folder of the whole worktree, even if the workspace is a part of the repository."""

    @property
    def base(self) -> str:
        """The commit that it started from."""

    async def make_view(self) -> tuple[SandboxMount, ...]:
        """Return the mounts that show commands their own git repository; empty if there is none."""

    async def tip(self) -> str:
        """Return the newest commit, or the base if there is none."""

    async def tree(self) -> str:
        """Return the tree hash of the current content. Cheap if little changed."""

    async def inspect(self) -> WorktreeContents:
        """Return the tree hash and the paths that it leaves out."""

    async def commit(self, info: CommitInfo) -> StepCommit:
        """Commit all changes, if there are any. A repeated call with the same key returns the existing commit."""


class Workspace(Protocol):
    """A person's tree. An operation that fails raises `WorkspaceFault` and changes nothing."""

    @property
    def root(self) -> str:
        """The repository's folder, or the workspace itself if there is no repository."""

    @property
    def within(self) -> str:
        """The workspace's path in the root; empty for all of it."""

    def take_recovered(self) -> Sequence[AppliedChange]:
        """Return operations that a crash interrupted and that were completed since the last call, in their state
        before. Recovery runs before any other operation on the tree, so the owner has to be told."""

    async def snapshot(self, run: str) -> TreeSnapshot:
        """Take a snapshot for a run. A repeated call for the same run returns the first one."""

    async def list_shared_folders(self) -> Sequence[SharedFolder]:
        """Return the folders that snapshots leave out but work needs."""

    async def open(self, run: str, thread: str, base: str) -> Worktree:
        """Open a worktree for a thread at the commit `base`, or return the existing one."""

    async def tip(self, run: str, thread: str) -> str:
        """Return a thread's newest commit, with or without a worktree; else the run's base; empty if unknown."""

    async def close(self, run: str, thread: str) -> None:
        """Remove a thread's worktree with its files, if there is one. Its commits stay."""

    async def adopt(self, run: str, thread: str, origin: str, tip: str) -> None:
        """Start a run from another run's base, with its thread at `tip`; an empty `tip` means the base itself.

        Call it for each thread, the first time before the run's first `snapshot`, which then returns the other run's.
        A thread that has commits stays as it is, so a repeated call has no effect.
        """

    async def integrate(self, run: str, thread: str, into: str, info: CommitInfo) -> StepCommit | Conflicts:
        """Merge the commits of `thread` into the thread `into`, as one commit with both as parents.

        The commit is empty if there is nothing to merge. A repeated call with the same key returns the existing
        commit. The files of a worktree of `into` follow; it is a *state* fault if they have uncommitted changes.
        """

    async def merge(
        self,
        run: str,
        thread: str,
        onto: str,
        info: CommitInfo,
        contents: Mapping[str, bytes | None] = NO_CONTENTS,
        *,
        tip: str = "",
    ) -> StepCommit | Conflicts:
        """Merge the commits of `thread` onto the commit `onto` as `integrate` does, but move no thread.

        `tip` is the last of these commits, by default the newest. `contents` are the files that would conflict; None
        removes a file. Other files are merged by git.
        """

    async def advance(self, run: str, thread: str, commit: str) -> None:
        """Move a thread from its newest commit to one that `merge` made on top of it. Its worktree follows.

        If the thread has the commit, nothing happens. If it moved elsewhere, it is a *state* fault.
        """

    async def find_fork(self, run: str, tip: str, other: str) -> str:
        """Return the newest commit that two commits of a run have in their histories."""

    async def list_paths(self, commit: str) -> Sequence[str]:
        """Return the files of a commit."""

    async def read(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file in a commit, or None if there is no such file."""

    async def tree(self, commit: str) -> str:
        """Return the tree hash of a commit."""

    async def restore_paths(self, tip: str, base: str, paths: Sequence[str]) -> str:
        """Return a commit like `tip` with these files as in `base`, or removed if `base` lacks them."""

    async def list_kept_runs(self, run: str = "") -> Sequence[RetainedRun]:
        """Return what is kept of each run, or of one."""

    async def measure(self, run: str) -> int:
        """Return the bytes in the repository that only Greenroom's refs of this run keep."""

    async def discard(self, run: str) -> None:
        """Note that a person wants nothing of what the run has committed so far. It stays until it is forgotten."""

    async def forget(self, run: str, *, discard: bool = False) -> RetainedRun | Conflicts:
        """Delete everything kept of a run. Afterwards it cannot be undone or resumed.

        A run with unapplied work needs `discard`; a run that still has a worktree is a *state* fault.
        """

    async def diff(self, base: str, tip: str, *, limit: int = MAX_DIFF_BYTES, paths: Sequence[str] = ()) -> Diff:
        """Return the changes between two commits, or only those of these paths."""

    async def patch(self, base: str, tip: str) -> bytes:
        """Return the changes as a complete patch for `git apply`."""

    async def apply(self, run: str, base: str, tip: str) -> AppliedChange | Conflicts:
        """Apply the changes from `base` to `tip` to the person's tree, all or nothing.

        They are merged with HEAD. A file with uncommitted changes, or one that git does not track, is a conflict. The
        index stays unchanged. A repeated call has no effect, unless the person went back before it. It is a *state*
        fault if a merge or rebase is in progress, or if the change is on a branch that is not checked out.
        """

    async def list_applied(self, run: str) -> Sequence[AppliedChange]:
        """Return what was applied of a run, oldest first."""

    async def list_changed_hooks(self, base: str, tip: str) -> Sequence[str]:
        """Return the changed files that configure hooks. Hooks run as the person, without a sandbox."""

    @property
    def local_hooks(self) -> str:
        """The folder of hooks that only the repository's own settings name; empty if there is none."""

    async def commit(
        self, applied: str, message: str, *, hooks: bool = True, local_hooks: bool = False, squash: bool = False
    ) -> CommitResult:
        """Commit an applied change in the person's name. Their hooks run unless `hooks` is false. Those in
        `self.local_hooks` run only with `local_hooks`.

        If several threads were integrated, there is one commit for each, unless `squash` is set. Hooks run once.

        The commit holds only this change: staged changes of other files stay staged. If a hook refuses, it is a *hook*
        fault and the files stay applied. A repeated call returns the existing commit.
        """

    async def check_can_commit(self, *, branch: str = "") -> None:
        """Raise the fault that a commit, or a new branch of this name, would raise now."""

    async def branch(self, name: str, base: str, tip: str, message: str) -> BranchResult | Conflicts:
        """Create a branch with the change, on HEAD, or on the run's base commit if it conflicts with HEAD. The tree
        stays unchanged. Return the conflicts if it fits on neither. It has the same commits as `commit` makes."""

    async def undo(self, applied: str, *, revert: bool = False) -> UndoResult | Conflicts | UndoBlocked:
        """Restore the tree as it was before, byte for byte. Refused if a person edited it since.

        A commit that is still the newest is removed; with `revert`, a revert commit is made on top instead. It is a
        *state* fault if the commit is on a branch that is not checked out.
        """

    async def blame(self, path: str, line: int) -> BlameLine | None:
        """Return the origin of a line of the current file, or None if there is none."""

    async def blame_file(self, base: str, tip: str, path: str) -> Sequence[BlameLine]:
        """Return the origin of each line of a file in the commit `tip`. Older lines than `base` have no step."""

    async def list_writers(self, base: str, tip: str) -> Mapping[str, Sequence[CommitInfo]]:
        """Return the steps that changed each file from `base` to `tip`, newest first."""


@record
class WorktreeStatus:
    """A worktree and its content. `unapplied` are the subjects of commits that were not applied, `dirty` the
    uncommitted files. `left_out` is what no commit holds and exists only here. `orphan` says why the worktree can no
    longer be used; then only the files remain."""

    name: str
    root: str
    folder: str
    run: str = ""
    thread: str = ""
    base: str = ""
    tip: str = ""
    unapplied: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    left_out: tuple[SkippedPath, ...] = ()
    orphan: str = ""

    @property
    def has_unsaved_work(self) -> bool:
        """Whether removing it would lose work."""
        return bool(self.unapplied or self.dirty or self.left_out)


class Worktrees(Protocol):
    """All worktrees of one person on this machine."""

    async def list(self) -> Sequence[WorktreeStatus]:
        """List the worktrees and their content."""

    async def measure(self) -> Mapping[str, int]:
        """Return the bytes on disk of all worktrees, by run; without a record, by an empty name."""

    async def clean(self, name: str, *, discard: bool = False) -> WorktreeStatus | Conflicts:
        """Remove a worktree. One with work needs `discard`: its commits stay in the repository, its `left_out` files
        are lost."""
