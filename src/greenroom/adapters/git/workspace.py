"""The port's workspace: a person's folder, in a repository of git or with one of our own beside it."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Coroutine, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote

from greenroom.adapters.git import diff
from greenroom.adapters.git.apply import apply, tree_with
from greenroom.adapters.git.blame import blame
from greenroom.adapters.git.commit import branch, commit, expect_commit, hook_files, refuse_branch
from greenroom.adapters.git.files import disk_faults, lock
from greenroom.adapters.git.ignored import IgnoredFiles
from greenroom.adapters.git.journal import changes_of, entries, list_unapplied, load, papers, papers_among
from greenroom.adapters.git.refs import (
    OURS,
    base_ref,
    commit_of,
    commit_tree,
    escape_name,
    is_ancestor,
    list_refs,
    message_of,
    move,
    thread_ref,
    tree_of,
    update_refs,
    value_of,
)
from greenroom.adapters.git.repository import OWN, Layout, Repository, locate, own_layout
from greenroom.adapters.git.snapshot import LARGEST, Named, nothing, take_snapshot
from greenroom.adapters.git.undo import recover, undo
from greenroom.adapters.git.worktree import TREES, GitWorktree, open_worktree, take_down, worktree_folder
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import (
    UNIFIED,
    Applied,
    Blamed,
    Branched,
    Buried,
    Clash,
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
RECOVERED_S: Final = 10.0
"""How long nothing is taken to be half done after it was brought to an end."""


class GitWorkspace:
    """One workspace; the port `Workspace` says what each method does. What it keeps lies in a folder of the user's
    cache, and in the repository below refs/greenroom."""

    def __init__(self, repository: Repository, *, largest: int = LARGEST, secret: Named = nothing) -> None:
        self._repository = repository
        self._ignored = IgnoredFiles(repository, secret)
        self._largest = largest
        self._secret = secret
        self._recovered = list[Applied]()
        self._recovered_at = -inf
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
        return str(self._repository.layout.root)

    @property
    def within(self) -> str:
        return self._repository.layout.within

    def recovered(self) -> Sequence[Applied]:
        told, self._recovered = self._recovered, []
        return told

    async def recover(self) -> None:
        """Bring to an end what a kill left half done, unless a commit of it still goes on, or it was just done."""
        just = time.monotonic() - self._recovered_at < RECOVERED_S
        if not just and not (self._repository.layout.git / "index.lock").exists():
            await self._whole(asyncio.sleep(0))

    async def snapshot(self, run: str) -> Snapshot:
        if not await value_of(self._repository, base_ref(run)):  # half of some work is not taken for a person's
            await self.recover()
        return await take_snapshot(self._repository, run, largest=self._largest, secret=self._secret)

    async def lent(self) -> Sequence[Lent]:
        return await self._ignored.lent()

    async def open(self, run: str, thread: str, base: str) -> GitWorktree:
        return await open_worktree(self._repository, self._ignored, run, thread, base)

    async def tip(self, run: str, thread: str) -> str:
        repository = self._repository
        return await value_of(repository, thread_ref(run, thread)) or await value_of(repository, base_ref(run))

    async def close(self, run: str, thread: str) -> None:
        place = worktree_folder(self._repository, run, thread)
        if place.is_dir():
            async with lock(self._repository.folder / "open.lock"):
                await asyncio.to_thread(take_down, place, self._repository.layout.common)

    async def adopt(self, run: str, thread: str, origin: str, tip: str) -> None:
        repository = self._repository
        async with lock(repository.folder / "open.lock"):
            if await value_of(repository, base_ref(run)):
                return
            base = await value_of(repository, base_ref(origin))
            lost = "" if base else "what it began with"
            if base and tip and not await is_ancestor(repository, base, tip):
                lost = f"its commit {tip[:12]}"
            if lost:
                why = f"The files of {origin!r} as they were then cannot be had again: {self.root!r} does not keep"
                raise WorkspaceFault("name", f"{why} {lost} any more. Begin something new.")
            if tip and tip != base:
                ref = thread_ref(run, thread)
                await move(repository, ref, tip, await value_of(repository, ref))
            await move(repository, base_ref(run), base, "")

    async def tree(self, commit: str) -> str:
        return await tree_of(self._repository, commit)

    async def put_back(self, tip: str, base: str, paths: Sequence[str]) -> str:
        repository = self._repository
        tip, base = await commit_of(repository, tip), await commit_of(repository, base)
        changes = changes_of(item for item in await diff.delta(repository, tip, base) if item.path in frozenset(paths))
        tree = await tree_with(repository, tip, entries(changes, after=True))
        return await commit_tree(repository, tree, tip, message_of("Some files put back as they were", {"base": base}))

    async def kept(self) -> Sequence[Kept]:
        return await self._list_kept(f"{OURS}/")

    async def _list_kept(self, prefix: str) -> list[Kept]:
        """What is kept below a prefix of refs, run by run."""
        refs = await list_refs(self._repository, prefix)
        applied = [paper for paper in await papers_among(self._repository, refs) if paper.state == "applied"]
        found = list[Kept]()
        for run in dict.fromkeys(_run_of(name) for name, _, _ in refs):
            own = {name.split("/")[3]: commit for name, commit, _ in refs if _run_of(name) == run}
            tips = [commit for name, commit in own.items() if not name.startswith("@")]
            base, mine = own.get("@base", ""), [paper for paper in applied if paper.run == run]
            left = await list_unapplied(self._repository, mine, base, tips)
            found.append(Kept(run=run, base=base, unapplied=left, applied=tuple(paper.id for paper in mine)))
        return found

    async def forget(self, run: str, *, discard: bool = False) -> Kept | Clashes:
        return await self._whole(self._forget(run, discard=discard))

    async def _forget(self, run: str, *, discard: bool) -> Kept | Clashes:
        repository, prefix = self._repository, f"{OURS}/{escape_name(run)}/"
        standing = [place.name for place in (repository.folder / TREES).glob(f"{escape_name(run)}+*")]
        if standing:
            raise WorkspaceFault("state", f"There is still a worktree of {run!r} ({standing[0]}). Clean it first.")
        found = (*await self._list_kept(prefix), Kept(run=run))[0]
        if found.unapplied and not discard:
            return Clashes(clashes=tuple(Clash(path="", why=f"not applied: {line}") for line in found.unapplied))
        await update_refs(repository, {name: f"delete {name}" for name, _, _ in await list_refs(repository, prefix)})
        return found

    async def diff(self, base: str, tip: str, *, limit: int = UNIFIED) -> Diff:
        return await diff.diff(self._repository, base, tip, limit=limit)

    async def patch(self, base: str, tip: str) -> bytes:
        return await diff.patch(self._repository, base, tip)

    async def apply(self, run: str, base: str, tip: str) -> Applied | Clashes:
        async def bring() -> Applied | Clashes:
            done = await apply(self._repository, run, base, tip, secret=self._secret)
            return evolve(done, fresh=True) if isinstance(done, Applied) and done.id in self._ended else done

        return await self._whole(bring())

    async def applied(self, run: str) -> Sequence[Applied]:
        return [paper.applied for paper in await papers(self._repository, run)]

    async def hooks(self, base: str, tip: str) -> Sequence[str]:
        return await hook_files(self._repository, base, tip)

    async def commit(self, applied: str, message: str, *, hooks: bool = True) -> Committed:
        async def make() -> Committed:
            return await commit(self._repository, await load(self._repository, applied), message, hooks=hooks)

        return await self._whole(make())

    async def expect(self, *, branch: str = "") -> None:
        await (refuse_branch(self._repository, branch) if branch else expect_commit(self._repository))

    async def branch(self, name: str, base: str, tip: str, message: str) -> Branched | Clashes:
        return await branch(self._repository, name, base, tip, message)

    async def undo(self, applied: str, *, revert: bool = False) -> Undone | Clashes | Buried:
        async def take_back() -> Undone | Clashes | Buried:
            now = await load(self._repository, applied)
            if now.state == "undone" and now.id in self._ended:  # a kill had left the rest of it
                return Undone(paths=now.paths, commit=now.commit)
            return await undo(self._repository, now, revert=revert)

        return await self._whole(take_back())

    async def blame(self, path: str, line: int) -> Blamed | None:
        return await blame(self._repository, path, line)

    async def _whole(self, work: Coroutine[None, None, T]) -> T:
        """Done to its end, also if whoever asked goes away; and after whatever a kill left is brought to an end. What
        that was (`_ended`) is this call's own deed: how it stood before the lock was had may be another one's."""

        async def alone_with_it() -> T:
            async with lock(self._repository.folder / "apply.lock"):
                found = await recover(self._repository)
                self._recovered_at = time.monotonic()
                self._recovered += found
                self._ended = frozenset(applied.id for applied in found)
                return await work

        task = asyncio.create_task(alone_with_it())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as stopped:
            await asyncio.wait((task,))
            raise stopped from task.exception()
        finally:
            work.close()


def _run_of(ref: str) -> str:
    return unquote(ref.split("/")[2], errors="surrogateescape")


def _find_layout(folder: Path, cache: Path, own: Path, home: str) -> Layout:
    found = locate(folder, home=Path(home).resolve() if home else None)
    if found is not None:
        return found
    root = folder.resolve()
    if not root.is_dir():
        back = f"If it was moved, put it back, or a link in its place: ln -s WHERE-IT-IS {shlex.quote(str(folder))}"
        raise WorkspaceFault("name", f"There is no folder {str(folder)!r}. {back}")
    there = _folder_beside(root, cache, own)
    with disk_faults(str(there)):
        there.mkdir(parents=True, exist_ok=True, mode=0o700)
    return own_layout(root, there)


def is_known(folder: Path, cache: Path, own: Path, *, home: Path | None = None) -> bool:
    """Whether a folder is in a repository, or has one of ours; nothing is made by asking."""
    return locate(folder, home=home) is not None or (_folder_beside(folder.resolve(), cache, own) / OWN).is_dir()


def _folder_beside(root: Path, cache: Path, own: Path) -> Path:
    """Where what we keep of a folder in no repository is, or will be."""
    key = own_layout(root, cache).key
    return cache / key if (cache / key / OWN).is_dir() else own / key
