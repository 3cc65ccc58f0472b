"""The port's workspace: a person's folder, in a repository of git or with one of our own beside it."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from greenroom.adapters.git import (
    adopting,
    applying,
    blaming,
    branching,
    committing,
    comparing,
    forgetting,
    hook_files,
    hooked,
    lending,
    mixing,
    opening,
    readiness,
    snapshots,
    undoing,
)
from greenroom.adapters.git.files import told
from greenroom.adapters.git.finding import Repository, repository_of
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import load, papers
from greenroom.adapters.git.locks import PATIENCE, alone
from greenroom.adapters.git.staging import LARGEST, Named, nothing
from greenroom.adapters.git.worktrees import GitWorktree
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
BESIDE_HOOKS: Final = 3.0
"""Seconds to wait for one that commits: its hooks may take minutes, and nobody would know why nothing happens."""


class GitWorkspace:
    """One workspace. What it keeps lies in a folder of the user's cache, and in the repository below refs/greenroom."""

    def __init__(self, house: House, *, largest: int = LARGEST, secret: Named = nothing) -> None:
        self._house = house
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
        repository = await asyncio.to_thread(_found, folder, cache, own or cache, around.get("HOME", ""))
        return cls(await House.open(repository, cache / repository.key, around), largest=largest, secret=secret)

    @property
    def root(self) -> str:
        """The repository's folder."""
        return str(self._house.repository.root)

    @property
    def within(self) -> str:
        """The workspace's path in it."""
        return self._house.repository.within

    def recovered(self) -> Sequence[Applied]:
        """What a kill had left half done, and was brought to an end here; each is told once."""
        told, self._recovered = self._recovered, []
        return told

    async def recover(self) -> None:
        """Bring to an end what a kill left half done, unless a commit of it still goes on."""
        if not hooked.at_work(self._house):
            await self._whole(asyncio.sleep(0))

    async def snapshot(self, run: str) -> Snapshot:
        """What is there now; half of some work is not taken for a person's. Who looks at what there was changes none
        of that."""
        if not await snapshots.is_taken(self._house, run):
            await self.recover()
        return await snapshots.snapshot(self._house, run, largest=self._largest, secret=self._secret)

    async def lent(self, names: Sequence[str] = ()) -> Sequence[Lent]:
        """What no snapshot has and work needs."""
        return await lending.lent(self._house, names)

    async def open(self, run: str, thread: str, base: str) -> GitWorktree:
        """A worktree for a thread."""
        return await opening.open_worktree(self._house, run, thread, base)

    async def tip(self, run: str, thread: str) -> str:
        """A thread's newest commit."""
        return await opening.tip_of(self._house, run, thread)

    async def close(self, run: str, thread: str) -> None:
        """Take a thread's worktree away."""
        await opening.close_worktree(self._house, run, thread)

    async def adopt(self, run: str, thread: str, origin: str, tip: str) -> None:
        """Let a run begin as another one was."""
        await adopting.adopt(self._house, run, thread, origin, tip)

    async def put_back(self, tip: str, base: str, paths: Sequence[str]) -> str:
        """A commit with some files as they were."""
        return await mixing.put_back(self._house, tip, base, paths)

    async def kept(self) -> Sequence[Kept]:
        """What is kept of each run."""
        return await forgetting.every(self._house)

    async def forget(self, run: str, *, discard: bool = False) -> Kept | Clashes:
        """Delete what is kept of a run."""
        return await self._whole(forgetting.forget(self._house, run, discard=discard))

    async def diff(self, base: str, tip: str, *, limit: int = UNIFIED) -> Diff:
        """What changed from one commit to another."""
        return await comparing.diff(self._house, base, tip, limit=limit)

    async def patch(self, base: str, tip: str) -> bytes:
        """All of it, for `git apply`."""
        return await comparing.patch(self._house, base, tip)

    async def paths(self, commit: str) -> Sequence[str]:
        """All files in a commit."""
        return await comparing.paths(self._house, commit)

    async def contents(self, commit: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """What is in these files in a commit."""
        return await comparing.contents(self._house, commit, paths)

    async def apply(self, run: str, base: str, tip: str) -> Applied | Clashes:
        """Bring what changed to the person's tree."""

        async def brought() -> Applied | Clashes:
            done = await applying.apply(self._house, run, base, tip)
            return evolve(done, fresh=True) if isinstance(done, Applied) and done.id in self._ended else done

        return await self._whole(brought())

    async def applied(self, run: str) -> Sequence[Applied]:
        """What was applied of a run."""
        return [one.told() for one in await papers(self._house, run)]

    async def hooks(self, base: str, tip: str) -> Sequence[str]:
        """What of the work their hooks would run."""
        return await hook_files.hook_files(self._house, base, tip)

    async def commit(self, applied: str, message: str, *, hooks: bool = True) -> Committed:
        """Make what was applied one commit in the person's name."""

        async def made() -> Committed:
            return await committing.commit(self._house, await load(self._house, applied), message, hooks=hooks)

        return await self._whole(made())

    async def expect(self, *, branch: str = "") -> None:
        """What a commit or a branch would be refused for."""
        if branch:
            await branching.refuse_name(self._house, branch)
        else:
            await readiness.expect_commit(self._house)

    async def branch(self, name: str, base: str, tip: str, message: str) -> Branched:
        """A new branch with the work on it."""
        return await branching.branch(self._house, name, base, tip, message)

    async def undo(self, applied: str, *, revert: bool = False) -> Undone | Clashes | Buried:
        """Make the tree what it was before."""

        async def undone() -> Undone | Clashes | Buried:
            now = await load(self._house, applied)
            if now.state == "undone" and now.id in self._ended:  # a kill had left the rest of it
                return Undone(paths=now.paths, commit=now.commit)
            return await undoing.undo(self._house, now, revert=revert)

        return await self._whole(undone())

    async def blame(self, path: str, line: int) -> Blamed | None:
        """Who wrote a line."""
        return await blaming.blame(self._house, path, line)

    async def _whole(self, work: Coroutine[None, None, T]) -> T:
        """Done to its end, also if whoever asked goes away; and after whatever a kill left is brought to an end. What
        that was (`_ended`) is this call's own deed: how it stood before the lock was had may be another one's."""

        async def alone_with_it() -> T:
            hooks_run = hooked.at_work(self._house)
            async with alone(self._house.folder / "apply.lock", BESIDE_HOOKS if hooks_run else PATIENCE):
                await hooked.refuse_beside(self._house)
                found = await undoing.recover(self._house)
                self._recovered += found
                self._ended = frozenset(one.id for one in found)
                return await work

        task = asyncio.create_task(alone_with_it())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as stopped:
            await asyncio.wait((task,))
            raise stopped from task.exception()
        finally:
            work.close()


def _found(folder: Path, cache: Path, own: Path, home: str) -> Repository:
    found = repository_of(folder, home=Path(home).resolve() if home else None)
    if found is not None:
        return found
    root = folder.resolve()
    if not root.is_dir():
        back = f"If it was moved, put it back, or a link in its place: ln -s WHERE-IT-IS {shlex.quote(str(folder))}"
        raise WorkspaceFault("name", f"There is no folder {str(folder)!r}. {back}")
    there = _beside(root, cache, own)
    with told(str(there)):
        there.mkdir(parents=True, exist_ok=True, mode=0o700)
    return own_repository(root, there)


def is_known(folder: Path, cache: Path, own: Path, *, home: Path | None = None) -> bool:
    """Whether a folder is in a repository, or has one of ours; nothing is made by asking."""
    return repository_of(folder, home=home) is not None or (_beside(folder.resolve(), cache, own) / OWN).is_dir()


def _beside(root: Path, cache: Path, own: Path) -> Path:
    """Where what we keep of a folder in no repository is, or will be."""
    key = own_repository(root, cache).key
    return cache / key if (cache / key / OWN).is_dir() else own / key


def own_repository(root: Path, folder: Path) -> Repository:
    """Ours, for a folder that is in none."""
    return Repository(root=root, git=folder / OWN, common=folder / OWN, own=True)
