"""The port's workspace: a person's folder, in a repository of git or with one of our own beside it."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from greenroom.adapters.git import diff, runs
from greenroom.adapters.git.apply import apply
from greenroom.adapters.git.blame import blame
from greenroom.adapters.git.commit import branch, commit, expect_commit, hook_files, refuse_branch
from greenroom.adapters.git.files import disk_faults, lock
from greenroom.adapters.git.ignored import IgnoredFiles
from greenroom.adapters.git.journal import load, papers
from greenroom.adapters.git.refs import tree_of
from greenroom.adapters.git.repository import Layout, Repository, locate
from greenroom.adapters.git.snapshot import LARGEST, Named, is_taken, nothing, take_snapshot
from greenroom.adapters.git.undo import recover, undo
from greenroom.adapters.git.worktree import GitWorktree, close_worktree, open_worktree, tip_of
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import (
    UNIFIED,
    Applied,
    Blamed,
    Branched,
    Buried,
    Clashes,
    Committed,
    Diff,
    Kept,
    Lent,
    Snapshot,
    Undone,
    WorkspaceFault,
)

T = TypeVar("T")
OWN: Final = "own.git"
RECOVERED_S: Final = 10.0
"""How long nothing is taken to be half done after it was brought to an end."""


class GitWorkspace:
    """One workspace. What it keeps lies in a folder of the user's cache, and in the repository below refs/greenroom."""

    def __init__(self, repository: Repository, *, largest: int = LARGEST, secret: Named = nothing) -> None:
        self._repository = repository
        self._ignored = IgnoredFiles(repository, secret)
        self._largest = largest
        self._secret = secret
        self._recovered = list[Applied]()
        self._ended = frozenset[str]()

    @classmethod
    async def find(
        cls,
        folder: Path,
        cache: Path,
        *,
        own: Path | None = None,
        env: Mapping[str, str] | None = None,
        largest: int = LARGEST,
        secret: Named = nothing,
    ) -> GitWorkspace:
        """The workspace that a folder is, or is in. Nothing in it is touched: who only looks must not change files, not
        even to bring to an end what a kill left half done.

        A file that git does not know and that is `secret` by its name stays where it is, and only there. Of a folder
        that is in no repository all that was is kept in `own`, or in the cache: who empties that loses it.
        """
        around = dict(os.environ if env is None else env)
        layout = await asyncio.to_thread(_find_layout, folder, cache, own or cache, around.get("HOME", ""))
        return cls(await Repository.open(layout, cache / layout.key, around), largest=largest, secret=secret)

    @property
    def root(self) -> str:
        """The repository's folder."""
        return str(self._repository.layout.root)

    @property
    def within(self) -> str:
        """The workspace's path in it."""
        return self._repository.layout.within

    def recovered(self) -> Sequence[Applied]:
        """What a kill had left half done, and was brought to an end here; each is told once."""
        told, self._recovered = self._recovered, []
        return told

    async def recover(self) -> None:
        """Bring to an end what a kill left half done, unless a commit of it still goes on, or it was just done."""
        just = time.monotonic() - self._repository.memory.recovered < RECOVERED_S
        if not just and not (self._repository.layout.git / "index.lock").exists():
            await self._whole(asyncio.sleep(0))

    async def snapshot(self, run: str) -> Snapshot:
        """What is there now; half of some work is not taken for a person's. Who looks at what there was changes none
        of that."""
        if not await is_taken(self._repository, run):
            await self.recover()
        return await take_snapshot(self._repository, run, largest=self._largest, secret=self._secret)

    async def lent(self) -> Sequence[Lent]:
        """What no snapshot has and work needs."""
        return await self._ignored.lent()

    async def open(self, run: str, thread: str, base: str) -> GitWorktree:
        """A worktree for a thread."""
        return await open_worktree(self._repository, self._ignored, run, thread, base)

    async def tip(self, run: str, thread: str) -> str:
        """A thread's newest commit."""
        return await tip_of(self._repository, run, thread)

    async def close(self, run: str, thread: str) -> None:
        """Take a thread's worktree away."""
        await close_worktree(self._repository, run, thread)

    async def adopt(self, run: str, thread: str, origin: str, tip: str) -> None:
        """Let a run begin as another one was."""
        await runs.adopt(self._repository, run, thread, origin, tip)

    async def tree(self, commit: str) -> str:
        """The hash of what is in a commit."""
        return await tree_of(self._repository, commit)

    async def put_back(self, tip: str, base: str, paths: Sequence[str]) -> str:
        """A commit with some files as they were."""
        return await runs.put_back(self._repository, tip, base, paths)

    async def kept(self) -> Sequence[Kept]:
        """What is kept of each run."""
        return await runs.every(self._repository)

    async def forget(self, run: str, *, discard: bool = False) -> Kept | Clashes:
        """Delete what is kept of a run."""
        return await self._whole(runs.forget(self._repository, run, discard=discard))

    async def diff(self, base: str, tip: str, *, limit: int = UNIFIED) -> Diff:
        """What changed from one commit to another."""
        return await diff.diff(self._repository, base, tip, limit=limit)

    async def patch(self, base: str, tip: str) -> bytes:
        """All of it, for `git apply`."""
        return await diff.patch(self._repository, base, tip)

    async def apply(self, run: str, base: str, tip: str) -> Applied | Clashes:
        """Bring what changed to the person's tree."""

        async def brought() -> Applied | Clashes:
            done = await apply(self._repository, run, base, tip, secret=self._secret)
            return evolve(done, fresh=True) if isinstance(done, Applied) and done.id in self._ended else done

        return await self._whole(brought())

    async def applied(self, run: str) -> Sequence[Applied]:
        """What was applied of a run."""
        return [paper.applied for paper in await papers(self._repository, run)]

    async def hooks(self, base: str, tip: str) -> Sequence[str]:
        """What of the work their hooks would run."""
        return await hook_files(self._repository, base, tip)

    async def commit(self, applied: str, message: str, *, hooks: bool = True) -> Committed:
        """Make what was applied one commit in the person's name."""

        async def made() -> Committed:
            return await commit(self._repository, await load(self._repository, applied), message, hooks=hooks)

        return await self._whole(made())

    async def expect(self, *, branch: str = "") -> None:
        """What a commit or a branch would be refused for."""
        if branch:
            await refuse_branch(self._repository, branch)
        else:
            await expect_commit(self._repository)

    async def branch(self, name: str, base: str, tip: str, message: str) -> Branched | Clashes:
        """A new branch with the work on it."""
        return await branch(self._repository, name, base, tip, message)

    async def undo(self, applied: str, *, revert: bool = False) -> Undone | Clashes | Buried:
        """Make the tree what it was before."""

        async def undone() -> Undone | Clashes | Buried:
            now = await load(self._repository, applied)
            if now.state == "undone" and now.id in self._ended:  # a kill had left the rest of it
                return Undone(paths=now.paths, commit=now.commit)
            return await undo(self._repository, now, revert=revert)

        return await self._whole(undone())

    async def blame(self, path: str, line: int) -> Blamed | None:
        """Who wrote a line."""
        return await blame(self._repository, path, line)

    async def _whole(self, work: Coroutine[None, None, T]) -> T:
        """Done to its end, also if whoever asked goes away; and after whatever a kill left is brought to an end. What
        that was (`_ended`) is this call's own deed: how it stood before the lock was had may be another one's."""

        async def alone_with_it() -> T:
            async with lock(self._repository.folder / "apply.lock"):
                found = await recover(self._repository)
                self._repository.memory.recovered = time.monotonic()
                self._recovered += found
                self._ended = frozenset(one.id for one in found)
                try:
                    return await work
                finally:
                    self._repository.memory.refs = None

        task = asyncio.create_task(alone_with_it())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as stopped:
            await asyncio.wait((task,))
            raise stopped from task.exception()
        finally:
            work.close()


def _find_layout(folder: Path, cache: Path, own: Path, home: str) -> Layout:
    found = locate(folder, home=Path(home).resolve() if home else None)
    if found is not None:
        return found
    root = folder.resolve()
    if not root.is_dir():
        back = f"If it was moved, put it back, or a link in its place: ln -s WHERE-IT-IS {shlex.quote(str(folder))}"
        raise WorkspaceFault("name", f"There is no folder {str(folder)!r}. {back}")
    there = _beside(root, cache, own)
    with disk_faults(str(there)):
        there.mkdir(parents=True, exist_ok=True, mode=0o700)
    return own_layout(root, there)


def is_known(folder: Path, cache: Path, own: Path, *, home: Path | None = None) -> bool:
    """Whether a folder is in a repository, or has one of ours; nothing is made by asking."""
    return locate(folder, home=home) is not None or (_beside(folder.resolve(), cache, own) / OWN).is_dir()


def _beside(root: Path, cache: Path, own: Path) -> Path:
    """Where what we keep of a folder in no repository is, or will be."""
    key = own_layout(root, cache).key
    return cache / key if (cache / key / OWN).is_dir() else own / key


def own_layout(root: Path, folder: Path) -> Layout:
    """Ours, for a folder that is in none."""
    return Layout(root=root, git=folder / OWN, common=folder / OWN, own=True)
