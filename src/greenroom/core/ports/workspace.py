"""Workspaces: a person's tree, the copies of it in which agents work, and how work comes back. Nothing is done here.

A person's files stay as they are while agents work: a snapshot says what there was, a worktree is a copy of it, every
step in there is a commit, and only `apply` brings what was changed to the person's tree, all of it or nothing.
Commits are named by their hash. Paths have slashes and are seen from the `root`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Shown

WorkspaceReason = Literal[
    "git",  # there is none, it is too old, or it says something that we do not understand
    "repository",  # it is broken, or not there any more
    "locked",  # somebody else's git is at work
    "disk",  # full, read-only, gone
    "name",  # no such branch, worktree, commit …
    "state",  # not now: a merge is going on, the work was undone …
    "hook",  # a person's hook said no
    "too_large",
    "slow",
]

SCRATCH: Final = "scratch"
"""The thread of a worktree in which nobody works: nothing that is left in it is anybody's."""

UNIFIED: Final = 4 * 1024 * 1024
"""Bytes of a diff that are told; who needs more asks for fewer files."""


class WorkspaceFault(WorldFault):
    """What cannot be done with a workspace; nothing is half done. `reason` is for programs, the sentence for people."""

    def __init__(self, reason: WorkspaceReason, why: str) -> None:
        super().__init__(why)
        self.reason: WorkspaceReason = reason


@record
class LeftOut:
    """Something that is in the tree and not in the snapshot or commit, which is never silent.

    *other* is a pipe, a socket or a device, *repository* one in the tree that is not ours, *submodule* such a one that
    is known here by its commit, or what lies in it, *secret* one that git does not know and whose name says that it may
    hold one, *environment* a virtual environment or node_modules that git does not ignore.
    """

    path: str
    why: Literal["too_large", "unreadable", "repository", "submodule", "other", "secret", "environment"]
    size: int = 0


@record
class Snapshot:
    """What a person's tree was: `commit` has it, on top of `head` (empty where there is no commit yet).

    `within` is the workspace's path in the repository, empty for all of it. Files of a merge that is going on
    (`conflicted`) are in it as they lie on the disk.
    """

    commit: str
    tree: str
    head: str = ""
    within: str = ""
    conflicted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


LentKind = Literal["ignored", "packages", "submodule", "repository"]


@record
class Lent:
    """A folder of the person's tree that no snapshot has and work needs: it is to be shown at `path`.

    *ignored* ones are ignored by git, or an environment; *submodule* and *repository* are the files of one. `hidden`
    are files in it, seen from it, whose names say that they may hold secrets.
    """

    path: str
    source: str
    kind: LentKind
    hidden: tuple[str, ...] = ()


@record
class Mark:
    """Who did what a commit has in it, and under which `key` it is found again."""

    run: str
    key: str
    task: str = ""
    agent: str = ""
    step: str = ""
    summary: str = ""


@record
class Recorded:
    """One step's changes, as a commit; that is empty where there were none. `tree` is what is there now, `left_out`
    what can be in no commit."""

    commit: str
    tree: str
    left_out: tuple[LeftOut, ...] = ()


@record
class Looked:
    """What lies in a worktree: the hash of what a commit of it has, and what can be in none."""

    tree: str
    left_out: tuple[LeftOut, ...] = ()


@record
class Change:
    """What happened to one file; lines are not counted in a *binary* one. `before` is the name it had. One that is a
    link now leads to `target`, wherever that is."""

    path: str
    kind: Literal["added", "changed", "deleted", "renamed", "mode", "submodule"]
    before: str = ""
    added: int = 0
    removed: int = 0
    binary: bool = False
    target: str = ""


@record
class Diff:
    """The difference of two commits: file by file, and as unified text, of which *cut* says that there is more."""

    changes: tuple[Change, ...]
    text: str
    cut: bool = False


@record
class Clash:
    """A file that is in the way, and why."""

    path: str
    why: str


@record
class Clashes:
    """It was not done, and nothing was changed: these files are in the way."""

    clashes: tuple[Clash, ...]


@record
class Applied:
    """Work that was brought to the person's tree. `id` names it for `commit` and `undo`; `merged` are files that the
    person had changed too. `paths` is empty where everything was there already. With `fresh` this very call has brought
    it, and nobody before."""

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
class Committed:
    """A commit in the person's name. With `fresh` this very call has made it."""

    commit: str
    fresh: bool = False


@record
class Branched:
    """A branch with the work on it."""

    name: str
    commit: str


@record
class Undone:
    """The tree is what it was. `commit` is the one that was taken back, `revert` one that was made on top instead."""

    paths: tuple[str, ...]
    commit: str = ""
    revert: str = ""


@record
class Buried:
    """Nothing was undone: others came after the commit, below it or into it, or have it already. It can be undone by
    one on top of it."""

    commit: str
    why: str


@record
class Blamed:
    """Who wrote a line: the commit that has it, and of which step it was, if one of ours wrote it."""

    commit: str
    text: str
    step: Mark | None = None
    recorded: str = ""


@record
class Kept:
    """What a repository keeps of a run, whether or not there is a worktree of it. `unapplied` are the first lines of
    commits that nobody has yet, `applied` names what can still be undone."""

    run: str
    base: str = ""
    unapplied: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()


class Worktree(Protocol):
    """A copy of a person's tree, in which one thread writes."""

    @property
    def folder(self) -> str:
        """Where it lies: the whole of it, whatever part of the repository the workspace is."""

    @property
    def base(self) -> str:
        """The commit that it began as."""

    async def view(self) -> tuple[Shown, ...]:
        """What commands in it are to see of git: a repository of their own. Nothing where there is none to see."""

    async def tip(self) -> str:
        """Its newest commit; the base while there is none."""

    async def tree(self) -> str:
        """The hash of what is there now. Cheap where little has changed."""

    async def look(self) -> Looked:
        """The same, with what is there and has no part in it."""

    async def commit(self, mark: Mark) -> Recorded:
        """Make all that changed a commit; none is made if nothing did. Asked again with the same key, it is found
        again."""


class Workspace(Protocol):
    """A person's tree. What cannot be done is a `WorkspaceFault`, and leaves everything as it was."""

    @property
    def root(self) -> str:
        """The repository's folder; the workspace itself where there is no repository."""

    @property
    def within(self) -> str:
        """The workspace's path in the root; empty for all of it."""

    def recovered(self) -> Sequence[Applied]:
        """What a kill had left half done and was brought to an end since this was asked last, as it stood then. It
        happens before anything else is done with the tree, so whoever it belongs to has to be told."""

    async def snapshot(self, run: str) -> Snapshot:
        """What is there now, for one run; asked again for the same run, the first one."""

    async def lent(self) -> Sequence[Lent]:
        """What no snapshot has and work needs. `names` are not needed any more."""

    async def open(self, run: str, thread: str, base: str) -> Worktree:
        """A worktree for a thread, as the commit `base`; the one there is, if it was opened before."""

    async def tip(self, run: str, thread: str) -> str:
        """A thread's newest commit, whether or not it has a worktree; what the run began with while there is none, and
        empty for a run of which nothing is kept."""

    async def close(self, run: str, thread: str) -> None:
        """Take a thread's worktree away with all that lies in it; its commits stay. Nothing is done where none is."""

    async def adopt(self, run: str, thread: str, origin: str, tip: str) -> None:
        """Let a run begin with what another one began with, and its thread at `tip`; empty is the very beginning.

        It is done before the run's first `snapshot`, which then is that of the other one. Asked again, nothing is done.
        """

    async def tree(self, commit: str) -> str:
        """The hash of what is in a commit."""

    async def put_back(self, tip: str, base: str, paths: Sequence[str]) -> str:
        """A commit that is `tip`, but for these files: they are as `base` has them, or gone where it has none."""

    async def kept(self) -> Sequence[Kept]:
        """What is kept of each run."""

    async def forget(self, run: str, *, discard: bool = False) -> Kept | Clashes:
        """Delete all that is kept of a run: nothing of it can be undone any more, nor can anybody go on with it.

        One with work that nobody has only with `discard`; one that still has a worktree is a *state* fault.
        """

    async def diff(self, base: str, tip: str, *, limit: int = UNIFIED) -> Diff:
        """What changed from one commit to another."""

    async def patch(self, base: str, tip: str) -> bytes:
        """The same, whole and byte for byte, as `git apply` takes it."""

    async def apply(self, run: str, base: str, tip: str) -> Applied | Clashes:
        """Bring what changed from `base` to `tip` to the person's tree: all of it or nothing.

        It is merged with HEAD. A file that the person has changed and not committed, or that git does not know, is in
        the way. Their index stays as it is. Asked again, nothing is done; it is, if they have gone back before it. A
        *state* fault where it is on a branch that is not checked out, or a merge, rebase … is in progress.
        """

    async def applied(self, run: str) -> Sequence[Applied]:
        """What was applied of a run, the first first."""

    async def hooks(self, base: str, tip: str) -> Sequence[str]:
        """Files that changed from `base` to `tip` and that set up hooks: those run as the person, in no sandbox."""

    async def commit(self, applied: str, message: str, *, hooks: bool = True) -> Committed:
        """Make what was applied one commit in the person's name: their hooks run, but for one without `hooks`.

        It has the work and nothing else: what is staged in other files stays staged. When a hook says no, it is a
        *hook* fault, and the files stay applied. Asked again, it is found again.
        """

    async def expect(self, *, branch: str = "") -> None:
        """Nothing but the fault that a commit, or a new branch of this name, would be refused with now."""

    async def branch(self, name: str, base: str, tip: str, message: str) -> Branched | Clashes:
        """A new branch with the work on it, beginning at the person's HEAD, or where it does not fit there at the
        commit that the run began with; their tree stays as it is. If it fits on neither, files are in the way."""

    async def undo(self, applied: str, *, revert: bool = False) -> Undone | Clashes | Buried:
        """Make the tree what it was before, byte for byte; refused where a person edited since.

        A commit that is still the newest is taken back; with `revert`, one on top is made instead. A *state* fault
        where it is on a branch that is not checked out.
        """

    async def blame(self, path: str, line: int) -> Blamed | None:
        """Who wrote a line of a file as it lies there; None where nobody has it."""


@record
class Standing:
    """A worktree and what is in it. `unapplied` are the first lines of commits that nobody has yet, `dirty` files that
    are in no commit, `left_out` what can be in none: that is nowhere else. `orphan` says why nobody can have made use
    of it any more; then the files are all there is."""

    name: str
    root: str
    folder: str
    run: str = ""
    thread: str = ""
    base: str = ""
    tip: str = ""
    unapplied: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    orphan: str = ""

    @property
    def precious(self) -> bool:
        """Whether something is lost when it goes."""
        return bool(self.unapplied or self.dirty or self.left_out)


class Worktrees(Protocol):
    """All worktrees of one person on this machine."""

    async def list(self) -> Sequence[Standing]:
        """Those there are, and what is in each."""

    async def clean(self, name: str, *, discard: bool = False) -> Standing | Clashes:
        """Take one away. One with work in it only with `discard`, and its commits stay in the repository; what is
        `left_out` goes for good."""
