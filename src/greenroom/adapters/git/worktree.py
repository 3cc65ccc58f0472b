"""Worktrees of a run: copies of the person's tree in the cache folder. Each step is a commit.

A worktree without a record (`about.json`) was interrupted while it was created, so it is created again. The worktree's
own `.git` file is for commands that run in it. Greenroom never reads that file, nor anything else a command could
plant.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import stat
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.git.diff import list_deltas
from greenroom.adapters.git.files import (
    lock,
    measure_folder,
    read_json,
    remove_tree,
    translate_disk_errors,
    write_atomic,
    write_json,
)
from greenroom.adapters.git.ignored_files import IgnoredFiles, render_excludes
from greenroom.adapters.git.journal import list_entries, list_unapplied
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import (
    escape_name,
    find_ref,
    find_step,
    make_step_message,
    make_thread_ref,
    move_ref,
    resolve_commit,
    resolve_tree,
    write_commit,
)
from greenroom.adapters.git.repository import OWN_REPOSITORY, Repository, RepositoryLayout, find_layout, make_own_layout
from greenroom.adapters.git.snapshot import (
    SUBMODULE_MODE,
    list_absent,
    list_index,
    skip_worktree,
    stage_files,
    unflag_files,
)
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve, record, to_full_dict
from greenroom.core.ports.files import PLACEHOLDER_NAMES
from greenroom.core.ports.sandbox import SandboxMount
from greenroom.core.ports.workspace import (
    CommitInfo,
    Conflict,
    Conflicts,
    SkippedPath,
    StepCommit,
    WorkspaceFault,
    WorktreeContents,
    WorktreeStatus,
    is_scratch,
)

RECORD_NAME: Final = "about.json"
TREES_FOLDER: Final = "trees"
EXCLUDES_NAME: Final = "exclude"
CHECKOUT_WORKERS: Final = max(2, min(8, os.cpu_count() or 2))
GITDIR_PREFIX: Final = "gitdir: "

MOVE_NAME: Final = "move.json"
"""The file that names the commit to which a worktree's files are being brought."""

OPEN_LOCKS: Final = 64
"""How many lock files the threads of a repository share."""

OPEN_TIMEOUT_S: Final = 600.0
"""How long to wait while another process opens, closes or integrates the same thread, in seconds."""

GIT_MOUNT: Final = "/greenroom/git"
OBJECTS_MOUNT: Final = "/greenroom/objects"
PLACEHOLDER_EXCLUDES: Final = b"\n.mcp.json\n"
"""Exclude patterns for the placeholders that the sandbox creates."""


@record
class WorktreeRecord:
    """The stored record of a worktree. Its `submodules` are empty folders."""

    run: str
    thread: str
    base: str
    root: str
    git: str
    sparse: bool = False
    submodules: tuple[str, ...] = ()


def read_record(place: Path) -> WorktreeRecord | None:
    """Return the record of the worktree in a folder; None if it is missing or unfinished."""
    data = read_json(place / RECORD_NAME)
    try:
        return None if data is None else msgspec.convert(data, WorktreeRecord)
    except msgspec.ValidationError:
        return None


class GitWorktree:
    """A worktree in the folder `place`: the files are in `tree`, their state in `index`.

    The port `Worktree` documents each method.
    """

    def __init__(self, repository: Repository, place: Path, record: WorktreeRecord, *, staged_tree: str = "") -> None:
        self._repository = repository
        self._place = place
        self._record = record
        self._ref = make_thread_ref(record.run, record.thread)
        self._staged_tree = (self._read_index_state(), staged_tree)

    @property
    def folder(self) -> str:
        return str(self._place / "tree")

    @property
    def base(self) -> str:
        return self._record.base

    async def tip(self) -> str:
        return await find_ref(self._repository, self._ref) or self.base

    async def tree(self) -> str:
        return (await self.inspect()).tree

    async def inspect(self) -> WorktreeContents:
        async with self._lock_index() as git:
            return await self._stage(git)

    async def list_uncommitted(self) -> tuple[list[str], Sequence[SkippedPath]]:
        """Return the files that differ from the last commit, and the paths that cannot be committed."""
        contents = await self.inspect()
        changes = await list_deltas(self._repository, await self.tip(), contents.tree)
        return sorted(item.path for item in changes), contents.left_out

    async def commit(self, info: CommitInfo) -> StepCommit:
        async with self._lock_index() as git:
            old = await find_ref(self._repository, self._ref)
            tip = old or self.base
            existing = await find_step(self._repository, self._record.run, info.key, tip, self.base)
            staged = await self._stage(git)
            if existing:
                return StepCommit(
                    commit=existing, tree=await resolve_tree(self._repository, existing), left_out=staged.left_out
                )
            if staged.tree == await resolve_tree(self._repository, tip):
                return StepCommit(commit="", tree=staged.tree, left_out=staged.left_out)
            commit = await write_commit(self._repository, staged.tree, tip, make_step_message(info), name=info.agent)
            await move_ref(self._repository, self._ref, commit, old)
        return StepCommit(commit=commit, tree=staged.tree, left_out=staged.left_out)

    async def move(self, commit: str, old: str) -> None:
        """Move the thread from `old` to a commit that is not of this worktree, and its files with it.

        If a kill interrupts it, the next use of the worktree finishes it. Raise a *state* fault if there are
        uncommitted changes: they would be lost.
        """
        async with self._lock_index() as git:
            tree = await resolve_tree(self._repository, old or self.base)
            if (await self._stage(git)).tree != tree:
                raise WorkspaceFault("state", "git.uncommitted_in_worktree", thread=self._record.thread)
            write_json(self._place / MOVE_NAME, {"commit": commit})
            await move_ref(self._repository, self._ref, commit, old)
            await self._finish_move(git)

    async def recover(self) -> None:
        """Finish a move that a kill interrupted."""
        if (self._place / MOVE_NAME).exists():
            async with self._lock_index():
                pass

    async def _finish_move(self, git: Git) -> None:
        commit = str((read_json(self._place / MOVE_NAME) or {}).get("commit"))
        if await find_ref(self._repository, self._ref) == commit:
            await git.run("read-tree", "--reset", "-u", commit, seconds=600)
        (self._place / MOVE_NAME).unlink()

    async def _stage(self, git: Git) -> WorktreeContents:
        """Update the index from the files. Git skips submodules, so their files are listed here."""
        contents = await self._stage_files(git)
        submodule_files = (
            await asyncio.to_thread(lambda: [*self._list_files_in_submodules()]) if self._record.submodules else []
        )
        skipped = [
            SkippedPath(path=path, why="submodule") for path in submodule_files if not self._is_placeholder(path)
        ]
        return evolve(contents, left_out=(*contents.left_out, *skipped)) if skipped else contents

    async def _stage_files(self, git: Git) -> WorktreeContents:
        tree, sparse = Path(self.folder), self._record.sparse
        if sparse:
            await unflag_files(git, tree, await list_index(git))

        async def stage_tree(last: str) -> WorktreeContents:
            return await stage_files(
                git,
                tree,
                is_complete=not sparse,
                is_ignored=self._is_placeholder,
                submodules=self._record.submodules,
                excludes=self._excludes,
                last_tree=last,
            )

        before, last = self._staged_tree
        try:
            contents = await stage_tree(last if before == self._read_index_state() else "")
        except WorkspaceFault as fault:
            if sparse or fault.reason not in ("git", "repository"):
                raise
            # The index is broken, or git has pruned unreachable objects.
            (self._place / "index").unlink(missing_ok=True)
            await git.run("read-tree", await self.tip())
            contents = await stage_tree("")
        self._staged_tree = (self._read_index_state(), contents.tree)
        return contents

    @property
    def _excludes(self) -> Path | None:
        """Return the file with exclude patterns for shared folders; None in a worktree of an older version."""
        place = self._place / EXCLUDES_NAME
        return place if place.exists() else None

    def _read_index_state(self) -> tuple[int, int]:
        try:
            status = (self._place / "index").stat()
        except FileNotFoundError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)

    def _list_files_in_submodules(self) -> Iterator[str]:
        top = Path(self.folder)
        for path in self._record.submodules:
            if any(place.is_symlink() for place in (top / path, *(top / above for above in Path(path).parents))):
                continue
            for here, _, names in os.walk(top / path):
                yield from (str((Path(here) / name).relative_to(top)) for name in sorted(names))

    def _is_placeholder(self, path: str) -> bool:
        """Return whether a path is an empty placeholder of the sandbox that a kill left behind. It is not part of the
        change. It must not be removed while a command may still run."""
        if posixpath.basename(path) not in PLACEHOLDER_NAMES:
            return False
        try:
            kind = os.lstat(Path(self.folder, path))
        except OSError:
            return True
        return stat.S_ISREG(kind.st_mode) and kind.st_size == 0

    @asynccontextmanager
    async def _lock_index(self) -> AsyncIterator[Git]:
        """Hold the index lock and yield git for it; remove a lock that a killed git left behind."""
        if not (self._place / "tree").is_dir():
            raise WorkspaceFault("repository", "git.worktree_gone", folder=self.folder)
        async with lock(self._place / "lock"):
            (self._place / "index.lock").unlink(missing_ok=True)
            git = self._repository.git_for(Path(self.folder), self._place / "index")
            if (self._place / MOVE_NAME).exists():
                await self._finish_move(git)
            yield git

    async def make_view(self) -> tuple[SandboxMount, ...]:
        """Return the mounts through which commands see git: a separate repository on top of the person's commits.

        Commands can read history, compare and commit there. None of it reaches the person's repository, and Greenroom
        never reads it.
        """
        folder, repository = self._place / "view", self._repository
        if not (folder / "HEAD").exists():
            words = ("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
            await asyncio.to_thread(self._make_view, folder, await repository.refs_git.run(*words))
            if within := repository.layout.within:  # git must not report files outside this part as deleted
                git = repository.git_for(Path(self.folder), folder / "index")
                await skip_worktree(
                    git, [item.path for item in await list_index(git) if not item.path.startswith(f"{within}/")]
                )
            write_atomic(folder / "HEAD", f"{await self.tip()}\n".encode())
        return (
            SandboxMount(source=str(folder / "link"), at=".git"),
            SandboxMount(source=str(folder), at=GIT_MOUNT, writable=True),
            SandboxMount(source=str(repository.layout.common / "objects"), at=OBJECTS_MOUNT),
        )

    def _make_view(self, folder: Path, refs: bytes) -> None:
        """Write everything except `HEAD`. The caller writes `HEAD` last, so its presence marks a finished view."""
        excludes = self._excludes.read_bytes() if self._excludes else b""
        with translate_disk_errors(str(folder)):
            for name in ("objects/info", "refs/heads", "info"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._place / "index", folder / "index")
        write_atomic(folder / "info" / "exclude", self._repository.read_excludes() + PLACEHOLDER_EXCLUDES + excludes)
        write_atomic(folder / "config", self._repository.render_settings().encode())
        write_atomic(folder / "objects" / "info" / "alternates", f"{OBJECTS_MOUNT}\n".encode())
        write_atomic(folder / "packed-refs", b"# pack-refs with: peeled fully-peeled sorted\n" + refs)
        write_atomic(folder / "link", f"gitdir: {GIT_MOUNT}\n".encode())


def find_worktree_folder(repository: Repository, run: str, thread: str) -> Path:
    """Return the folder for the worktree of a thread, whether it exists or not."""
    return repository.folder / TREES_FOLDER / f"{escape_name(run)}+{escape_name(thread)}"


def lock_thread(repository: Repository, run: str, thread: str) -> AbstractAsyncContextManager[None]:
    """Hold the lock under which the worktree of a thread is created or removed, or its commits come from elsewhere."""
    name = find_worktree_folder(repository, run, thread).name
    return lock(repository.folder / f"open-{zlib.crc32(name.encode()) % OPEN_LOCKS}.lock", OPEN_TIMEOUT_S)


def find_worktree(repository: Repository, run: str, thread: str) -> GitWorktree | None:
    place = find_worktree_folder(repository, run, thread)
    record = read_record(place) if (place / "tree").is_dir() else None
    return None if record is None else GitWorktree(repository, place, record)


async def open_worktree(repository: Repository, ignored: IgnoredFiles, run: str, thread: str, base: str) -> GitWorktree:
    """Open the worktree of a thread; create it if there is none."""
    base = await resolve_commit(repository, base)
    place = find_worktree_folder(repository, run, thread)
    with translate_disk_errors(str(place)):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    staged_tree = ""
    async with lock_thread(repository, run, thread):
        record = read_record(place)
        if record is not None and record.base != base:
            raise WorkspaceFault("state", "git.other_base", thread=thread, base=record.base[:12], wanted=base[:12])
        if record is None or not (place / "tree").is_dir():
            root, git = str(repository.root), str(repository.layout.common)
            new_record = WorktreeRecord(run=run, thread=thread, base=base, root=root, git=git)
            start = await find_ref(repository, make_thread_ref(run, thread)) or base
            record = await _make_worktree(repository, ignored, place, new_record, start)
            staged_tree = await resolve_tree(repository, start)
    worktree = GitWorktree(repository, place, record, staged_tree=staged_tree)
    await worktree.recover()
    return worktree


async def _make_worktree(
    repository: Repository, ignored: IgnoredFiles, place: Path, record: WorktreeRecord, start: str
) -> WorktreeRecord:
    tree = place / "tree"
    lock_words = ("--lock", "--reason", f"greenroom run {record.run}")  # keeps the entry when its files are gone
    async with lock(repository.folder / "open.lock"):  # git may reuse the name of an entry that is being removed
        await asyncio.to_thread(_clear_place, place, repository)
        await repository.common_git.run("worktree", "add", "--detach", "--no-checkout", *lock_words, str(tree), start)
    admin = (tree / ".git").read_text(encoding="utf-8", errors="surrogateescape").removeprefix(GITDIR_PREFIX).strip()
    sparse, submodules = await _check_out(repository, place, start)
    await asyncio.to_thread(shutil.copy2, place / "index", Path(admin) / "index")
    await ignored.copy_files(tree)
    ignored_paths = await ignored.list()
    write_atomic(
        place / EXCLUDES_NAME,
        render_excludes((*ignored_paths.files, *ignored_paths.folders, *ignored_paths.repositories)),
    )
    record = evolve(record, sparse=sparse, submodules=submodules)
    await asyncio.to_thread(write_json, place / RECORD_NAME, to_full_dict(record))
    return record


async def _check_out(repository: Repository, place: Path, commit: str) -> tuple[bool, tuple[str, ...]]:
    """Check out the files, except those that the person's sparse checkout leaves out.

    Return whether files were left out, and the submodules.
    """
    git, skipped = repository.git_for(place / "tree", place / "index"), list[str]()
    parallel_git = git.with_options(
        "-c", f"checkout.workers={CHECKOUT_WORKERS}", "-c", "checkout.thresholdForParallelism=200"
    )
    if repository.config.sparse and (repository.layout.git / "index").exists():
        skipped = list_absent(repository.root, await list_index(repository.refs_git))
    if skipped:
        await git.run("read-tree", commit)
        indexed = {item.path for item in await list_index(git)}
        await skip_worktree(git, [path for path in skipped if path in indexed])
        await parallel_git.run("checkout-index", "--all", "--force", "--index", seconds=600)
    else:
        await parallel_git.run("read-tree", "--reset", "-u", commit, seconds=600)
    rows = (await git.run("ls-files", "-z", "--stage")).split(b"\0")
    submodules = (row.partition(b"\t")[2] for row in rows if row.startswith(SUBMODULE_MODE.encode()))
    return bool(skipped), tuple(map(os.fsdecode, submodules))


def _clear_place(place: Path, repository: Repository) -> None:
    """Remove what is in the place of a new worktree. Also remove git's entries of deleted worktrees beside it: they are
    locked, so `git worktree prune` keeps them."""
    git = repository.layout.common
    remove_worktree(place, git)
    for admin, tree in _list_known_worktrees(git):
        if tree.parent.parent == repository.folder / TREES_FOLDER and not tree.parent.exists():
            shutil.rmtree(admin, ignore_errors=True)
    with translate_disk_errors(str(place)):
        place.mkdir(mode=0o700)


def remove_worktree(place: Path, git: Path) -> None:
    """Remove a worktree, its folder, and git's entry for it if that entry names this folder."""
    for admin, tree in _list_known_worktrees(git):
        if tree == place / "tree":
            shutil.rmtree(admin, ignore_errors=True)
    if place.is_symlink() or not place.is_dir():
        return
    with translate_disk_errors(str(place)), suppress(FileNotFoundError):
        (place / RECORD_NAME).unlink(missing_ok=True)
        remove_tree(place)


def _list_known_worktrees(git: Path) -> list[tuple[Path, Path]]:
    """Return git's entry for each worktree with the folder that it names."""
    worktrees = []
    for link in (git / "worktrees").glob("*/gitdir"):
        with suppress(OSError):
            text = link.read_text(encoding="utf-8", errors="surrogateescape").strip()
            worktrees.append((link.parent, Path(text).parent))
    return worktrees


MAX_FILES_NAMED: Final = 200
"""How many files of one worktree are named."""


class GitWorktrees:
    """All worktrees in one cache folder, of any repository; see the port `Worktrees`."""

    def __init__(self, cache: Path, env: Mapping[str, str] | None = None) -> None:
        self._cache = cache
        self._env = dict(os.environ if env is None else env)

    async def list(self) -> Sequence[WorktreeStatus]:
        return [
            await self._read_status(place)
            for place in sorted(self._cache.glob(f"*/{TREES_FOLDER}/*"))
            if place.is_dir()
        ]

    async def measure(self) -> Mapping[str, int]:
        return await asyncio.to_thread(self._measure)

    def _measure(self) -> dict[str, int]:
        sizes = dict[str, int]()
        for place in filter(Path.is_dir, self._cache.glob(f"*/{TREES_FOLDER}/*")):
            record = read_record(place)
            run = record.run if record is not None else ""
            sizes[run] = sizes.get(run, 0) + measure_folder(place)
        return sizes

    async def clean(self, name: str, *, discard: bool = False) -> WorktreeStatus | Conflicts:
        place = self._find_place(name)
        status = await self._read_status(place)
        if status.has_unsaved_work and not discard:
            commits = [Conflict(path="", why=f"not applied: {line}") for line in status.unapplied]
            files = [Conflict(path=path, why="in no commit") for path in status.dirty]
            uncommittable = [Conflict(path=item.path, why="can be in no commit") for item in status.left_out]
            return Conflicts(clashes=(*commits, *files, *uncommittable))
        record = read_record(place)
        if record is not None and not status.orphan and status.dirty:
            worktree, _ = await self._open(place, record)
            info = CommitInfo(run=record.run, key=f"clean {name}", summary="Uncommitted files when it was cleaned")
            await worktree.commit(info)
        await asyncio.to_thread(remove_worktree, place, Path(record.git) if record else place)
        return status

    def _find_place(self, name: str) -> Path:
        repository, _, tree = name.partition("/")
        place = self._cache / repository / TREES_FOLDER / tree
        if not repository or not tree or {"..", "."} & {repository, tree} or "/" in tree or not place.is_dir():
            raise WorkspaceFault("name", "git.no_worktree", name=name)
        return place

    async def _read_status(self, place: Path) -> WorktreeStatus:
        name, folder, record = f"{place.parent.parent.name}/{place.name}", str(place / "tree"), read_record(place)
        if record is None:
            return WorktreeStatus(name=name, root="", folder=folder, orphan=translate("git.never_finished"))
        status = WorktreeStatus(
            name=name, root=record.root, folder=folder, base=record.base, run=record.run, thread=record.thread
        )
        try:
            worktree, repository = await self._open(place, record)
            tip = await worktree.tip()
            if is_scratch(record.thread):
                return evolve(status, tip=tip)
            applied = [paper for paper in await list_entries(repository, record.run) if paper.state == "applied"]
            unapplied = await list_unapplied(repository, applied, (record.base,), [tip])
            if not (place / "tree").is_dir():
                rest = translate("git.all_applied")
                if unapplied:
                    code = "git.one_unapplied_left" if len(unapplied) == 1 else "git.unapplied_left"
                    rest = translate(code, count=len(unapplied), run=record.run)
                return evolve(status, tip=tip, orphan=translate("git.folder_deleted", rest=rest))
            uncommitted, skipped = await worktree.list_uncommitted()
        except WorkspaceFault as fault:
            files = await asyncio.to_thread(_list_some_files, place / "tree")
            return evolve(status, dirty=files, orphan=translate("git.repository_unusable", fault=fault))
        left_out = tuple(item for item in skipped if item.why != "environment")[:MAX_FILES_NAMED]
        return evolve(
            status, tip=tip, unapplied=unapplied, dirty=tuple(uncommitted[:MAX_FILES_NAMED]), left_out=left_out
        )

    async def _open(self, place: Path, about: WorktreeRecord) -> tuple[GitWorktree, Repository]:
        folder = place.parent.parent
        repository = await Repository.open(_find_layout(about, folder), folder, self._env)
        if not await find_ref(repository, about.base):
            raise WorkspaceFault("repository", "git.base_gone", root=about.root, base=about.base[:12])
        return GitWorktree(repository, place, about), repository


def _find_layout(record: WorktreeRecord, folder: Path) -> RepositoryLayout:
    """Return the layout of a worktree's repository. Raise `WorkspaceFault` if it is gone or another one."""
    root = Path(record.root)
    if not root.is_dir():
        raise WorkspaceFault("repository", "git.root_gone", root=record.root)
    git = Path(record.git)
    is_ours = (
        git.name == OWN_REPOSITORY and git.parent.name == folder.name and git.is_dir()
    )  # for a folder without a repository
    layout = make_own_layout(root, git.parent) if is_ours else find_layout(root)
    if layout is None or str(layout.common) != record.git:
        raise WorkspaceFault("repository", "git.other_repository", root=record.root)
    return layout


def _list_some_files(tree: Path) -> tuple[str, ...]:
    """List some files of a worktree whose repository cannot be used."""
    files = []
    for folder, below, names in os.walk(tree):
        below.sort()
        files += [str(Path(folder, name).relative_to(tree)) for name in sorted(names) if name != ".git"]
        if len(files) >= MAX_FILES_NAMED:
            break
    return tuple(files[:MAX_FILES_NAMED])
