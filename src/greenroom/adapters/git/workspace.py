"""The workspace port on git: a person's folder in a repository, or with Greenroom's own repository beside it."""

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
from greenroom.adapters.git.apply import apply, write_tree_with
from greenroom.adapters.git.blame import blame, blame_file, list_writers
from greenroom.adapters.git.commit import branch, check_branch_name, check_can_commit, commit, find_hook_files
from greenroom.adapters.git.files import lock, translate_disk_errors
from greenroom.adapters.git.ignored_files import IgnoredFiles
from greenroom.adapters.git.integrate import advance, find_fork, integrate, merge_thread
from greenroom.adapters.git.journal import (
    list_entries,
    list_unapplied,
    load_entry,
    make_changes,
    read_entries_of,
    select_states,
)
from greenroom.adapters.git.refs import (
    DISCARDED,
    REF_ROOT,
    escape_name,
    find_ref,
    is_ancestor,
    list_last_attempts,
    list_refs,
    make_base_ref,
    make_message,
    make_thread_ref,
    move_ref,
    resolve_commit,
    resolve_tree,
    update_refs,
    write_commit,
)
from greenroom.adapters.git.repository import OWN_REPOSITORY, Repository, RepositoryLayout, find_layout, make_own_layout
from greenroom.adapters.git.snapshot import MAX_FILE_BYTES, PathPredicate, matches_nothing, split_names, take_snapshot
from greenroom.adapters.git.undo import recover_entries, undo
from greenroom.adapters.git.worktree import (
    TREES_FOLDER,
    GitWorktree,
    find_worktree_folder,
    lock_thread,
    open_worktree,
    remove_worktree,
)
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import (
    MAX_DIFF_BYTES,
    NO_CONTENTS,
    AppliedChange,
    BlameLine,
    BranchResult,
    CommitInfo,
    CommitResult,
    Conflict,
    Conflicts,
    Diff,
    RetainedRun,
    SharedFolder,
    StepCommit,
    TreeSnapshot,
    UndoBlocked,
    UndoResult,
    WorkspaceFault,
)

T = TypeVar("T")
ALL_REFS: Final = "refs/greenroom/*"
RECOVERY_TTL_S: Final = 10.0
"""How long after a recovery the next one is skipped, in seconds."""


class GitWorkspace:
    """One workspace; the port `Workspace` documents each method. Its data is in a folder of the user's cache, and in
    the repository below `refs/greenroom`."""

    def __init__(
        self, repository: Repository, *, max_bytes: int = MAX_FILE_BYTES, is_secret: PathPredicate = matches_nothing
    ) -> None:
        self._repository = repository
        self._ignored = IgnoredFiles(repository, is_secret)
        self._max_bytes = max_bytes
        self._is_secret = is_secret
        self._recovered = list[AppliedChange]()
        self._recovered_at = -inf
        self._finished_ids = frozenset[str]()

    @classmethod
    async def find(
        cls,
        folder: Path,
        cache: Path,
        *,
        own_folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        max_bytes: int = MAX_FILE_BYTES,
        is_secret: PathPredicate = matches_nothing,
    ) -> GitWorkspace:
        """Find the workspace that is or contains a folder. This changes no file, so it does not recover interrupted
        work either.

        Untracked files that `is_secret` matches by name are never copied. For a folder without a repository, history is
        kept in `own_folder`, or in the cache. Deleting that folder loses it.
        """
        environ, own_folder = dict(os.environ if env is None else env), own_folder or cache
        layout = await asyncio.to_thread(_find_or_make_layout, folder, cache, own_folder, environ.get("HOME", ""))
        repository = await Repository.open(layout, cache / layout.key, environ)
        own = _find_folder_beside(layout.root, cache, own_folder) / OWN_REPOSITORY
        if not layout.is_own and own.is_dir():  # the person ran `git init` after runs without it
            git = repository.common_git.with_options(env={"GIT_ALLOW_PROTOCOL": "file"})
            await git.run_unchecked("fetch", "--quiet", str(own), f"{ALL_REFS}:{ALL_REFS}")
        return cls(repository, max_bytes=max_bytes, is_secret=is_secret)

    @property
    def root(self) -> str:
        return str(self._repository.layout.root)

    @property
    def within(self) -> str:
        return self._repository.layout.within

    def take_recovered(self) -> Sequence[AppliedChange]:
        told, self._recovered = self._recovered, []
        return told

    async def recover(self) -> None:
        """Finish or roll back what a kill interrupted, unless git is still committing or this was just done."""
        is_recent = time.monotonic() - self._recovered_at < RECOVERY_TTL_S
        if not is_recent and not (self._repository.layout.git / "index.lock").exists():
            await self._run_exclusively(asyncio.sleep(0))

    async def snapshot(self, run: str) -> TreeSnapshot:
        if not await find_ref(self._repository, make_base_ref(run)):  # do not snapshot a half-applied change
            await self.recover()
        return await take_snapshot(self._repository, run, max_bytes=self._max_bytes, is_secret=self._is_secret)

    async def list_shared_folders(self) -> Sequence[SharedFolder]:
        return await self._ignored.list_shared_folders()

    async def list_tracked(self, paths: Sequence[str], *, is_pattern: bool = False) -> Sequence[str]:
        """Return the tracked files at these paths and in these folders, or that match these patterns.

        In a folder without a repository, every file that is not ignored counts.
        """
        layout, git = self._repository.layout, self._repository.refs_git
        if layout.is_own:
            git = self._repository.git_for(layout.root, layout.git / "index")
        if is_pattern:
            git = git.with_options(env={"GIT_LITERAL_PATHSPECS": "0", "GIT_GLOB_PATHSPECS": "1"})
        others = ("--others", "--exclude-standard") if layout.is_own else ()
        listed = await git.run("ls-files", "-z", "--cached", *others, "--", *paths)
        return sorted(set(split_names(listed)))

    async def open(self, run: str, thread: str, base: str) -> GitWorktree:
        return await open_worktree(self._repository, self._ignored, run, thread, base)

    async def tip(self, run: str, thread: str) -> str:
        repository = self._repository
        return await find_ref(repository, make_thread_ref(run, thread)) or await find_ref(
            repository, make_base_ref(run)
        )

    async def close(self, run: str, thread: str) -> None:
        place = find_worktree_folder(self._repository, run, thread)
        if place.is_dir():
            async with lock_thread(self._repository, run, thread):
                await asyncio.to_thread(remove_worktree, place, self._repository.layout.common)

    async def adopt(self, run: str, thread: str, origin: str, tip: str) -> None:
        repository = self._repository
        async with lock(repository.folder / "open.lock"):
            own_base, ref = await find_ref(repository, make_base_ref(run)), make_thread_ref(run, thread)
            if own_base and (not tip or await find_ref(repository, ref)):
                return
            base = own_base or await find_ref(repository, make_base_ref(origin))
            missing = "" if base else translate("git.base_commit")
            if base and tip and not await is_ancestor(repository, base, tip):
                missing = translate("git.its_commit", tip=tip[:12])
            if missing:
                raise WorkspaceFault("name", "git.cannot_restore", origin=origin, root=self.root, missing=missing)
            if tip and tip != base:
                await move_ref(repository, ref, tip, await find_ref(repository, ref))
            if not own_base:
                await move_ref(repository, make_base_ref(run), base, "")

    async def integrate(self, run: str, thread: str, into: str, info: CommitInfo) -> StepCommit | Conflicts:
        return await integrate(self._repository, run, thread, into, info)

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
        return await merge_thread(self._repository, run, thread, onto, info, contents, tip=tip)

    async def advance(self, run: str, thread: str, commit: str) -> None:
        await advance(self._repository, run, thread, commit)

    async def find_fork(self, run: str, tip: str, other: str) -> str:
        return await find_fork(self._repository, run, tip, other)

    async def list_paths(self, commit: str) -> Sequence[str]:
        words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", await resolve_commit(self._repository, commit))
        return split_names(await self._repository.refs_git.run(*words))

    async def read(self, commit: str, path: str) -> bytes | None:
        return await self._repository.objects.read_file(commit, path)

    async def tree(self, commit: str) -> str:
        return await resolve_tree(self._repository, commit)

    async def restore_paths(self, tip: str, base: str, paths: Sequence[str]) -> str:
        repository = self._repository
        tip, base = await resolve_commit(repository, tip), await resolve_commit(repository, base)
        changes = make_changes(
            item for item in await diff.list_deltas(repository, tip, base) if item.path in frozenset(paths)
        )
        tree = await write_tree_with(repository, tip, select_states(changes, after=True))
        return await write_commit(repository, tree, tip, make_message("Restore some files", {"base": base}))

    async def list_kept_runs(self, run: str = "") -> Sequence[RetainedRun]:
        return await self._list_kept(f"{REF_ROOT}/{escape_name(run)}/" if run else f"{REF_ROOT}/")

    async def _list_kept(self, prefix: str) -> list[RetainedRun]:
        """Return what is kept for each run below a prefix of refs."""
        refs = await list_refs(self._repository, prefix)
        entries = await read_entries_of(self._repository, refs)
        kept_runs = list[RetainedRun]()
        for run in dict.fromkeys(_parse_run(name) for name, _, _ in refs):
            refs_of_run = {name.split("/")[3]: commit for name, commit, _ in refs if _parse_run(name) == run}
            tips = list_last_attempts({name: tip for name, tip in refs_of_run.items() if not name.startswith("@")})
            gone = [tip for name, tip, _ in refs if _parse_run(name) == run and name.split("/")[3] == DISCARDED]
            base, decided = refs_of_run.get("@base", ""), [paper for paper in entries if paper.run == run]
            applied = [paper for paper in decided if paper.state == "applied"]
            decided = [paper for paper in decided if paper.state in ("applied", "undone")]
            unapplied = await list_unapplied(self._repository, applied, (base, *gone), tips)
            was_undone = bool(unapplied) and not await list_unapplied(self._repository, decided, (base, *gone), tips)
            ids = tuple(paper.id for paper in applied)
            kept_runs.append(RetainedRun(run=run, base=base, unapplied=unapplied, applied=ids, undone=was_undone))
        return kept_runs

    async def measure(self, run: str) -> int:
        git, prefix = self._repository.refs_git, f"{REF_ROOT}/{escape_name(run)}/"
        if not await list_refs(self._repository, prefix):
            return 0
        head = ("HEAD",) if await find_ref(self._repository, "HEAD") else ()
        words = ("rev-list", "--objects", "--disk-usage", f"--glob={prefix}*", "--not", "--branches", "--tags")
        return int(await git.read_line(*words, "--remotes", *head))

    async def discard(self, run: str) -> None:
        prefix = f"{REF_ROOT}/{escape_name(run)}/"
        names = {name: tip for name, tip, _ in await list_refs(self._repository, prefix)}
        tips = {name.removeprefix(prefix): tip for name, tip in names.items() if not name.startswith(f"{prefix}@")}
        marks = {f"{prefix}{DISCARDED}/{thread}": tip for thread, tip in tips.items()}
        await update_refs(self._repository, {mark: f"update {mark} {tip}" for mark, tip in marks.items()})

    async def forget(self, run: str, *, discard: bool = False) -> RetainedRun | Conflicts:
        return await self._run_exclusively(self._forget(run, discard=discard))

    async def _forget(self, run: str, *, discard: bool) -> RetainedRun | Conflicts:
        repository, prefix = self._repository, f"{REF_ROOT}/{escape_name(run)}/"
        worktrees = [place.name for place in (repository.folder / TREES_FOLDER).glob(f"{escape_name(run)}+*")]
        if worktrees:
            raise WorkspaceFault("state", "git.worktree_left", run=run, worktree=worktrees[0])
        kept_run = (*await self._list_kept(prefix), RetainedRun(run=run))[0]
        if kept_run.unapplied and not discard:
            return Conflicts(
                clashes=tuple(Conflict(path="", why=f"not applied: {line}") for line in kept_run.unapplied)
            )
        await update_refs(repository, {name: f"delete {name}" for name, _, _ in await list_refs(repository, prefix)})
        return kept_run

    async def diff(self, base: str, tip: str, *, limit: int = MAX_DIFF_BYTES, paths: Sequence[str] = ()) -> Diff:
        return await diff.read_diff(self._repository, base, tip, limit=limit, paths=paths)

    async def patch(self, base: str, tip: str) -> bytes:
        return await diff.read_patch(self._repository, base, tip)

    async def apply(self, run: str, base: str, tip: str) -> AppliedChange | Conflicts:
        async def apply_locked() -> AppliedChange | Conflicts:
            applied = await apply(self._repository, run, base, tip, secret=self._is_secret)
            if isinstance(applied, AppliedChange) and applied.id in self._finished_ids:
                return evolve(applied, fresh=True)
            return applied

        return await self._run_exclusively(apply_locked())

    async def list_applied(self, run: str) -> Sequence[AppliedChange]:
        return [paper.as_applied_change for paper in await list_entries(self._repository, run)]

    async def list_changed_hooks(self, base: str, tip: str) -> Sequence[str]:
        return await find_hook_files(self._repository, base, tip)

    @property
    def local_hooks(self) -> str:
        return self._repository.config.local_hooks

    async def commit(
        self, applied: str, message: str, *, hooks: bool = True, local_hooks: bool = False, squash: bool = False
    ) -> CommitResult:
        async def commit_locked() -> CommitResult:
            entry = await load_entry(self._repository, applied)
            return await commit(self._repository, entry, message, hooks=hooks, local_hooks=local_hooks, squash=squash)

        return await self._run_exclusively(commit_locked())

    async def check_can_commit(self, *, branch: str = "") -> None:
        await (check_branch_name(self._repository, branch) if branch else check_can_commit(self._repository))

    async def branch(self, name: str, base: str, tip: str, message: str) -> BranchResult | Conflicts:
        return await branch(self._repository, name, base, tip, message)

    async def undo(self, applied: str, *, revert: bool = False) -> UndoResult | Conflicts | UndoBlocked:
        async def undo_locked() -> UndoResult | Conflicts | UndoBlocked:
            entry = await load_entry(self._repository, applied)
            if entry.state == "undone" and entry.id in self._finished_ids:  # recovery just finished an interrupted undo
                return UndoResult(paths=entry.paths, commit=entry.commit)
            return await undo(self._repository, entry, revert=revert)

        return await self._run_exclusively(undo_locked())

    async def blame(self, path: str, line: int) -> BlameLine | None:
        return await blame(self._repository, path, line)

    async def blame_file(self, base: str, tip: str, path: str) -> Sequence[BlameLine]:
        base, tip = await resolve_commit(self._repository, base), await resolve_commit(self._repository, tip)
        return await blame_file(self._repository, base, tip, path)

    async def list_writers(self, base: str, tip: str) -> Mapping[str, Sequence[CommitInfo]]:
        base, tip = await resolve_commit(self._repository, base), await resolve_commit(self._repository, tip)
        return await list_writers(self._repository, base, tip)

    async def _run_exclusively(self, work: Coroutine[None, None, T]) -> T:
        """Run `work` under the lock, after recovering interrupted entries. Finish it even if the caller is cancelled.

        `_finished_ids` are the entries that this call recovered. Their state before the lock may come from another
        process.
        """

        async def run_locked() -> T:
            async with lock(self._repository.folder / "apply.lock"):
                recovered = await recover_entries(self._repository)
                self._recovered_at = time.monotonic()
                self._recovered += recovered
                self._finished_ids = frozenset(applied.id for applied in recovered)
                return await work

        task = asyncio.create_task(run_locked())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as stopped:
            await asyncio.wait((task,))
            raise stopped from task.exception()
        finally:
            work.close()


def _parse_run(ref: str) -> str:
    return unquote(ref.split("/")[2], errors="surrogateescape")


def _find_or_make_layout(folder: Path, cache: Path, own_folder: Path, home: str) -> RepositoryLayout:
    layout = find_layout(folder, home=Path(home).resolve() if home else None)
    if layout is not None:
        return layout
    root = folder.resolve()
    if not root.is_dir():
        raise WorkspaceFault("name", "git.no_folder", folder=str(folder), link=shlex.quote(str(folder)))
    folder_beside = _find_folder_beside(root, cache, own_folder)
    with translate_disk_errors(str(folder_beside)):
        folder_beside.mkdir(parents=True, exist_ok=True, mode=0o700)
    return make_own_layout(root, folder_beside)


def is_known(folder: Path, cache: Path, own_folder: Path, *, home: Path | None = None) -> bool:
    """Return whether a folder is in a repository or has one of Greenroom's. Nothing is created."""
    return (
        find_layout(folder, home=home) is not None
        or (_find_folder_beside(folder.resolve(), cache, own_folder) / OWN_REPOSITORY).is_dir()
    )


def _find_folder_beside(root: Path, cache: Path, own_folder: Path) -> Path:
    """Return the folder for Greenroom's own repository of `root`, whether it exists or not."""
    key = make_own_layout(root, cache).key
    return cache / key if (cache / key / OWN_REPOSITORY).is_dir() else own_folder / key
