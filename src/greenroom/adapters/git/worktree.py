"""Worktrees: copies of a person's tree in our folder and never in the repository, each step in one a commit.

A worktree that was not finished because we were killed has no record (`about.json`) and is made anew: nobody has worked
in it. Its own `.git` file is for whoever works in it; we never read that, nor anything else that a command could plant.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.git.diff import delta
from greenroom.adapters.git.files import disk_faults, lock, read_data, remove_tree, write_data, write_whole
from greenroom.adapters.git.ignored import IgnoredFiles, exclude_lines
from greenroom.adapters.git.journal import list_unapplied, papers
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import (
    commit_of,
    commit_tree,
    escape_name,
    mark_of,
    move,
    step_message,
    thread_ref,
    tree_of,
    value_of,
)
from greenroom.adapters.git.repository import OWN, Layout, Repository, locate, own_layout
from greenroom.adapters.git.snapshot import SUBMODULE, absent, list_index, look_again, skip, stage
from greenroom.core.base.records import evolve, record, whole
from greenroom.core.ports.sandbox import Shown
from greenroom.core.ports.workspace import (
    SCRATCH,
    Clash,
    Clashes,
    LeftOut,
    Looked,
    Mark,
    Recorded,
    Standing,
    WorkspaceFault,
)

RECORD: Final = "about.json"
TREES: Final = "trees"
EXCLUDES: Final = "exclude"
WORKERS: Final = max(2, min(8, os.cpu_count() or 2))
LINK: Final = "gitdir: "

STAND_INS: Final = frozenset({".greenroom", ".claude", ".mcp.json"})
"""What commands must not make: where there is none, the sandbox puts an empty one."""

RECENT: Final = 200
"""Commits among which that of a step is looked for: far more than can be going on at once."""

SEEN_AT: Final = "/greenroom/git"
OBJECTS: Final = "/greenroom/objects"
VIEW: Final = "view"
MASKS: Final = b"\n.mcp.json\n"
"""What the sandbox puts in the place of a file that nobody may make there."""


@record
class WorktreeRecord:
    """What is written down about a worktree. Its `submodules` are empty folders."""

    run: str
    thread: str
    base: str
    root: str
    git: str
    sparse: bool = False
    submodules: tuple[str, ...] = ()


def read_record(place: Path) -> WorktreeRecord | None:
    """What is written down about the worktree in a folder; None for what is none, or was not finished."""
    found = read_data(place / RECORD)
    try:
        return None if found is None else msgspec.convert(found, WorktreeRecord)
    except msgspec.ValidationError:
        return None


class GitWorktree:
    """A worktree in `place`, a folder of ours: the files lie in its `tree`, what we know of them in its `index`.

    The port `Worktree` says what each method does.
    """

    def __init__(self, repository: Repository, place: Path, about: WorktreeRecord) -> None:
        self._repository = repository
        self._place = place
        self._about = about
        self._ref = thread_ref(about.run, about.thread)
        self._staged_tree = ((0, 0), "")

    @property
    def folder(self) -> str:
        return str(self._place / "tree")

    @property
    def base(self) -> str:
        return self._about.base

    async def tip(self) -> str:
        return await value_of(self._repository, self._ref) or self.base

    async def tree(self) -> str:
        return (await self.look()).tree

    async def look(self) -> Looked:
        async with self._looking() as git:
            return await self._stage(git)

    async def uncommitted(self) -> tuple[list[str], Sequence[LeftOut]]:
        """The files that lie there as in no commit, and what can be in none."""
        looked = await self.look()
        changes = await delta(self._repository, await self.tip(), looked.tree)
        return sorted(item.path for item in changes), looked.left_out

    async def commit(self, mark: Mark) -> Recorded:
        async with self._looking() as git:
            old = await value_of(self._repository, self._ref)
            tip = old or self.base
            found = await self._find_step(mark.key, tip)
            staged = await self._stage(git)
            if found:
                return Recorded(commit=found, tree=await tree_of(self._repository, found), left_out=staged.left_out)
            if staged.tree == await tree_of(self._repository, tip):
                return Recorded(commit="", tree=staged.tree, left_out=staged.left_out)
            commit = await commit_tree(self._repository, staged.tree, tip, step_message(mark), name=mark.agent)
            await move(self._repository, self._ref, commit, old)
        return Recorded(commit=commit, tree=staged.tree, left_out=staged.left_out)

    async def _find_step(self, key: str, tip: str) -> str:
        """The commit with this key, if it is among the newest since the base."""
        for commit in await self._repository.objects.history(tip, most=RECENT, until=self.base):
            mark = mark_of(commit.message)
            if mark is not None and mark.key == " ".join(key.split()) and mark.run == self._about.run:
                return commit.name
        return ""

    async def _stage(self, git: Git) -> Looked:
        """Bring our index in line with the files. Git looks away from submodules, so we look there."""
        looked = await self._stage_files(git)
        others = await asyncio.to_thread(lambda: [*self._files_in_submodules()]) if self._about.submodules else []
        left = [LeftOut(path=path, why="submodule") for path in others if not self._is_stand_in(path)]
        return evolve(looked, left_out=(*looked.left_out, *left)) if left else looked

    async def _stage_files(self, git: Git) -> Looked:
        tree, sparse = Path(self.folder), self._about.sparse
        if sparse:
            await look_again(git, tree, await list_index(git))

        async def staged(last: str) -> Looked:
            return await stage(
                git,
                tree,
                whole=not sparse,
                ignored=self._is_stand_in,
                submodules=self._about.submodules,
                excludes=self._excludes,
                last=last,
            )

        before, last = self._staged_tree
        try:
            looked = await staged(last if before == self._index_state() else "")
        except WorkspaceFault as fault:
            if sparse or fault.reason not in ("git", "repository"):
                raise
            # The index was broken, or git has thrown away objects that nothing led to any more.
            (self._place / "index").unlink(missing_ok=True)
            await git.ask("read-tree", await self.tip())
            looked = await staged("")
        self._staged_tree = (self._index_state(), looked.tree)
        return looked

    @property
    def _excludes(self) -> Path | None:
        """Patterns of what is lent; a worktree of an older version has none."""
        place = self._place / EXCLUDES
        return place if place.exists() else None

    def _index_state(self) -> tuple[int, int]:
        try:
            status = (self._place / "index").stat()
        except FileNotFoundError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)

    def _files_in_submodules(self) -> Iterator[str]:
        top = Path(self.folder)
        for path in self._about.submodules:
            if any(place.is_symlink() for place in (top / path, *(top / above for above in Path(path).parents))):
                continue
            for here, _, names in os.walk(top / path):
                yield from (str((Path(here) / name).relative_to(top)) for name in sorted(names))

    def _is_stand_in(self, path: str) -> bool:
        """Whether it is an empty file of the sandbox, which a kill leaves there: it is not work, and it must not be
        removed while a command may still run."""
        if posixpath.basename(path) not in STAND_INS:
            return False
        try:
            kind = os.lstat(Path(self.folder, path))
        except OSError:
            return True
        return stat.S_ISREG(kind.st_mode) and kind.st_size == 0

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[Git]:
        """Git alone with the index; a lock on it that a killed git has left is removed."""
        if not (self._place / "tree").is_dir():
            why = f"The worktree {self.folder!r} is gone. Open it again; its commits are in the repository."
            raise WorkspaceFault("repository", why)
        async with lock(self._place / "lock"):
            (self._place / "index.lock").unlink(missing_ok=True)
            yield self._repository.on(Path(self.folder), self._place / "index")

    async def view(self) -> tuple[Shown, ...]:
        """What commands in it see of git: a repository of their own on top of the person's commits, made once.

        They look at history, compare and commit there as they like; nothing of it is the person's, and we never read
        it.
        """
        folder, repository = self._place / VIEW, self._repository
        if not (folder / "HEAD").exists():
            words = ("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
            await asyncio.to_thread(self._make_view, folder, await repository.refs.ask(*words))
            if within := repository.layout.within:  # git is not to miss what commands in a part of it do not see
                git = repository.on(Path(self.folder), folder / "index")
                await skip(git, [item.path for item in await list_index(git) if not item.path.startswith(f"{within}/")])
            write_whole(folder / "HEAD", f"{await self.tip()}\n".encode())
        return (
            Shown(source=str(folder / "link"), at=".git"),
            Shown(source=str(folder), at=SEEN_AT, writable=True),
            Shown(source=str(repository.layout.common / "objects"), at=OBJECTS),
        )

    def _make_view(self, folder: Path, refs: bytes) -> None:
        """All but `HEAD`, which is written last: without it there is none."""
        lent = self._excludes.read_bytes() if self._excludes else b""
        with disk_faults(str(folder)):
            for name in ("objects/info", "refs/heads", "info"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._place / "index", folder / "index")
        write_whole(folder / "info" / "exclude", self._repository.excludes() + MASKS + lent)
        write_whole(folder / "config", self._repository.settings().encode())
        write_whole(folder / "objects" / "info" / "alternates", f"{OBJECTS}\n".encode())
        write_whole(folder / "packed-refs", b"# pack-refs with: peeled fully-peeled sorted\n" + refs)
        write_whole(folder / "link", f"gitdir: {SEEN_AT}\n".encode())


def worktree_folder(repository: Repository, run: str, thread: str) -> Path:
    """Where the worktree of a thread is, or would be."""
    return repository.folder / TREES / f"{escape_name(run)}+{escape_name(thread)}"


async def open_worktree(repository: Repository, ignored: IgnoredFiles, run: str, thread: str, base: str) -> GitWorktree:
    """The worktree of a thread; made if there is none."""
    base = await commit_of(repository, base)
    place = worktree_folder(repository, run, thread)
    with disk_faults(str(place)):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with lock(repository.folder / "open.lock"):
        about = read_record(place)
        if about is not None and about.base != base:
            why = f"The worktree of {thread!r} was opened from {about.base[:12]}, not from {base[:12]}. Clean it first."
            raise WorkspaceFault("state", why)
        if about is None or not (place / "tree").is_dir():
            root, git = str(repository.root), str(repository.layout.common)
            new = WorktreeRecord(run=run, thread=thread, base=base, root=root, git=git)
            about = await _make(repository, ignored, place, new)
    return GitWorktree(repository, place, about)


async def _make(repository: Repository, ignored: IgnoredFiles, place: Path, about: WorktreeRecord) -> WorktreeRecord:
    await asyncio.to_thread(_clear, place, repository)
    tree = place / "tree"
    begin = await value_of(repository, thread_ref(about.run, about.thread)) or about.base
    lock_words = ("--lock", "--reason", f"greenroom run {about.run}")  # git does not forget it when its files are gone
    await repository.shared.ask("worktree", "add", "--detach", "--no-checkout", *lock_words, str(tree), begin)
    admin = (tree / ".git").read_text(encoding="utf-8", errors="surrogateescape").removeprefix(LINK).strip()
    sparse, submodules = await _fill(repository, place, begin)
    await asyncio.to_thread(shutil.copy2, place / "index", Path(admin) / "index")
    await ignored.copy_files(tree)
    found = await ignored.list()
    write_whole(place / EXCLUDES, exclude_lines((*found.files, *found.folders, *found.repositories)))
    about = evolve(about, sparse=sparse, submodules=submodules)
    await asyncio.to_thread(write_data, place / RECORD, whole(about))
    return about


async def _fill(repository: Repository, place: Path, commit: str) -> tuple[bool, tuple[str, ...]]:
    """Check the files out, but for those that the person's own sparse checkout leaves out; whether there are such, and
    the submodules."""
    git, skipped = repository.on(place / "tree", place / "index"), list[str]()
    quick = git.also("-c", f"checkout.workers={WORKERS}", "-c", "checkout.thresholdForParallelism=200")
    if repository.config.sparse and (repository.layout.git / "index").exists():
        skipped = absent(repository.root, await list_index(repository.refs))
    if skipped:
        await git.ask("read-tree", commit)
        known = {item.path for item in await list_index(git)}
        await skip(git, [path for path in skipped if path in known])
        await quick.ask("checkout-index", "--all", "--force", "--index", seconds=600)
    else:
        await quick.ask("read-tree", "--reset", "-u", commit, seconds=600)
    rows = (await git.ask("ls-files", "-z", "--stage")).split(b"\0")
    submodules = (row.partition(b"\t")[2] for row in rows if row.startswith(SUBMODULE.encode()))
    return bool(skipped), tuple(map(os.fsdecode, submodules))


def _clear(place: Path, repository: Repository) -> None:
    """Make room for a worktree; and have git forget those beside it whose files somebody has deleted: they are locked,
    so it never would."""
    git = repository.layout.common
    take_down(place, git)
    for admin, tree in _known_worktrees(git):
        if tree.parent.parent == repository.folder / TREES and not tree.parent.exists():
            shutil.rmtree(admin, ignore_errors=True)
    with disk_faults(str(place)):
        place.mkdir(mode=0o700)


def take_down(place: Path, git: Path) -> None:
    """Remove a worktree with all that is beside it, and what git keeps about it: only if that says it is this one."""
    for admin, tree in _known_worktrees(git):
        if tree == place / "tree":
            shutil.rmtree(admin, ignore_errors=True)
    if place.is_symlink() or not place.is_dir():
        return
    with disk_faults(str(place)), suppress(FileNotFoundError):
        (place / RECORD).unlink(missing_ok=True)
        remove_tree(place)


def _known_worktrees(git: Path) -> list[tuple[Path, Path]]:
    """What git keeps about each worktree, with the folder that it says it is about."""
    found = []
    for link in (git / "worktrees").glob("*/gitdir"):
        with suppress(OSError):
            named = link.read_text(encoding="utf-8", errors="surrogateescape").strip()
            found.append((link.parent, Path(named).parent))
    return found


NAMED: Final = 200
"""Files of one worktree that are named."""


class GitWorktrees:
    """All worktrees in one folder of the user's cache, of any repository; see the port `Worktrees`."""

    def __init__(self, cache: Path, env: Mapping[str, str] | None = None) -> None:
        self._cache = cache
        self._env = dict(os.environ if env is None else env)

    async def list(self) -> Sequence[Standing]:
        return [await self._standing(place) for place in sorted(self._cache.glob(f"*/{TREES}/*")) if place.is_dir()]

    async def clean(self, name: str, *, discard: bool = False) -> Standing | Clashes:
        place = self._place(name)
        standing = await self._standing(place)
        if standing.precious and not discard:
            commits = [Clash(path="", why=f"not applied: {line}") for line in standing.unapplied]
            files = [Clash(path=path, why="in no commit") for path in standing.dirty]
            nowhere = [Clash(path=item.path, why="can be in no commit") for item in standing.left_out]
            return Clashes(clashes=(*commits, *files, *nowhere))
        about = read_record(place)
        if about is not None and not standing.orphan and standing.dirty:
            worktree, _ = await self._opened(place, about)
            last = Mark(run=about.run, key=f"clean {name}", summary="What was there when it was cleaned")
            await worktree.commit(last)
        await asyncio.to_thread(take_down, place, Path(about.git) if about else place)
        return standing

    def _place(self, name: str) -> Path:
        repository, _, tree = name.partition("/")
        place = self._cache / repository / TREES / tree
        if not repository or not tree or {"..", "."} & {repository, tree} or "/" in tree or not place.is_dir():
            raise WorkspaceFault("name", f"There is no worktree {name!r}. Those there are can be listed.")
        return place

    async def _standing(self, place: Path) -> Standing:
        name, folder, about = f"{place.parent.parent.name}/{place.name}", str(place / "tree"), read_record(place)
        if about is None:
            why = "It was never finished: whoever made it was killed. Nobody has worked in it."
            return Standing(name=name, root="", folder=folder, orphan=why)
        told = Standing(name=name, root=about.root, folder=folder, base=about.base, run=about.run, thread=about.thread)
        try:
            worktree, repository = await self._opened(place, about)
            tip = await worktree.tip()
            if about.thread == SCRATCH:
                return evolve(told, tip=tip)
            applied = [paper for paper in await papers(repository, about.run) if paper.state == "applied"]
            unapplied = await list_unapplied(repository, applied, about.base, [tip])
            if not (place / "tree").is_dir():
                return evolve(told, tip=tip, orphan=_deleted(about.run, unapplied))
            lying, others = await worktree.uncommitted()
        except WorkspaceFault as fault:
            files = await asyncio.to_thread(_files, place / "tree")
            return evolve(told, dirty=files, orphan=f"Its repository cannot be used. {fault}")
        left_out = tuple(item for item in others if item.why != "environment")[:NAMED]
        return evolve(told, tip=tip, unapplied=unapplied, dirty=tuple(lying[:NAMED]), left_out=left_out)

    async def _opened(self, place: Path, about: WorktreeRecord) -> tuple[GitWorktree, Repository]:
        folder = place.parent.parent
        repository = await Repository.open(_layout(about, folder), folder, self._env)
        if not await value_of(repository, about.base):
            raise WorkspaceFault("repository", f"{about.root!r} does not have the commit {about.base[:12]} any more.")
        return GitWorktree(repository, place, about), repository


def _deleted(run: str, unapplied: Sequence[str]) -> str:
    """What is so where somebody has deleted the files of a copy themselves."""
    kept = "all that was committed there is applied"
    if unapplied:
        some = "1 commit that is" if len(unapplied) == 1 else f"{len(unapplied)} commits that are"
        kept = f"{some} not applied can still be taken over with `greenroom apply {run}`"
    return f"Its folder was deleted; {kept}. `greenroom workspaces clean` clears away what is left of it"


def _layout(about: WorktreeRecord, folder: Path) -> Layout:
    """The repository that a worktree is of, if it is still that one."""
    root = Path(about.root)
    if not root.is_dir():
        raise WorkspaceFault("repository", f"{about.root!r} is gone.")
    git = Path(about.git)
    is_ours = git.name == OWN and git.parent.name == folder.name and git.is_dir()  # of a folder in no repository
    layout = own_layout(root, git.parent) if is_ours else locate(root)
    if layout is None or str(layout.common) != about.git:
        raise WorkspaceFault("repository", f"{about.root!r} is another repository than it was.")
    return layout


def _files(tree: Path) -> tuple[str, ...]:
    """Some of the files that lie there, where nobody can say which are anybody's work."""
    found = []
    for folder, below, names in os.walk(tree):
        below.sort()
        found += [str(Path(folder, name).relative_to(tree)) for name in sorted(names) if name != ".git"]
        if len(found) >= NAMED:
            break
    return tuple(found[:NAMED])
