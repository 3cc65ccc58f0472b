"""Snapshot the person's tree as a commit, without touching their index, refs or files.

It starts from a copy of their index, which knows the unchanged files, so few files are read. The index stores what a
filter or line-ending conversion made of a file. It may skip files, and has three versions of a conflicting file. All of
that is corrected here.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import find_ref, make_base_ref, make_message, move_ref, parse_trailers, write_commit
from greenroom.adapters.git.repository import Repository
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import SkippedPath, TreeSnapshot, WorkspaceFault, WorktreeContents

SNAPSHOT_SUBJECT: Final = "The workspace as it was"
MAX_FILES_NAMED: Final = 50
"""How many files a snapshot names as skipped or in conflict."""

MAX_FILE_BYTES: Final = 100 * 1024 * 1024
"""Largest size of an untracked file, in bytes."""

MAX_UNKNOWN_FILES: Final = 1_000_000
"""How many untracked files a project may have."""

MAX_ATTEMPTS: Final = 3
SUBMODULE_MODE: Final = "160000"
CONVERTING_ATTRIBUTES: Final = ("filter", "working-tree-encoding")
UNSET_VALUES: Final = frozenset({"unspecified", "unset", "set"})
VENV_MARKER: Final = "pyvenv.cfg"
"""A file that every virtual environment contains."""

NODE_MODULES: Final = "node_modules"

PathPredicate: TypeAlias = Callable[[str], bool]
"""Return whether a path belongs to a category, by its name."""


def matches_nothing(_: str) -> bool:
    """Match no path."""
    return False


@record
class IndexEntry:
    """One file in an index. `tag` is H for a normal file, S for a skipped one, M for a conflict; lower case means
    "assume unchanged"."""

    tag: str
    mode: str
    blob: str
    path: str

    @property
    def is_submodule(self) -> bool:
        """Whether the entry is another repository, of which only the commit is known."""
        return self.mode == SUBMODULE_MODE


async def take_snapshot(
    repository: Repository, run: str, *, max_bytes: int = MAX_FILE_BYTES, is_secret: PathPredicate = matches_nothing
) -> TreeSnapshot:
    """Return the snapshot of a run; take it now if there is none."""
    ref = make_base_ref(run)
    if existing := await repository.objects.read_commit(ref):
        trailers = parse_trailers(existing.message)
        return TreeSnapshot(
            commit=existing.name,
            tree=existing.tree,
            head=existing.parent,
            within=repository.layout.within,
            conflicted=tuple(json.loads(trailers.get("merging", "[]"))),
            left_out=tuple(
                SkippedPath(path=path, why=why, size=size) for path, why, size in json.loads(trailers.get("left", "[]"))
            ),
        )
    head = await find_ref(repository, "HEAD")
    contents = await read_tree(repository, max_bytes=max_bytes, is_secret=is_secret)
    skipped = [[item.path, item.why, item.size] for item in contents.left_out]
    trailers = {"run": run, "left": _render_rows(skipped), "merging": _render_rows(contents.conflicted)}
    commit = await write_commit(repository, contents.tree, head, make_message(SNAPSHOT_SUBJECT, trailers))
    await move_ref(repository, ref, commit, "")
    return TreeSnapshot(
        commit=commit,
        tree=contents.tree,
        head=head,
        within=repository.layout.within,
        conflicted=contents.conflicted,
        left_out=contents.left_out,
    )


def _render_rows(rows: Sequence[object]) -> str:
    return json.dumps(rows[:MAX_FILES_NAMED], separators=(",", ":")).replace(" ", r"\u0020") if rows else ""


async def read_tree(
    repository: Repository, *, max_bytes: int = MAX_FILE_BYTES, is_secret: PathPredicate = matches_nothing
) -> TreeSnapshot:
    """Write the person's current files as a tree, without a commit."""
    root = repository.root
    with repository.open_temporary() as folder:
        index = folder / "index"
        git = repository.git_for(root, index)
        entries = await _copy_index(repository, git, index)
        submodules = [item.path for item in entries if item.is_submodule]
        unfaithful = () if repository.layout.is_own else await _find_unfaithful(repository, entries)
        staged = await stage_files(
            git, root, unfaithful=unfaithful, max_bytes=max_bytes, is_secret=is_secret, submodules=submodules
        )
        if repository.layout.is_own:
            await asyncio.to_thread(index.replace, repository.layout.git / "index")  # speeds up the next snapshot
    filled_submodules = await asyncio.to_thread(lambda: [path for path in submodules if has_entries(root / path)])
    return TreeSnapshot(
        commit="",
        tree=staged.tree,
        conflicted=tuple(dict.fromkeys(item.path for item in entries if item.tag == "M")),
        left_out=(*staged.left_out, *(SkippedPath(path=path, why="submodule") for path in filled_submodules)),
    )


def has_entries(place: Path) -> bool:
    """Return whether a path is a non-empty folder. Links are not followed."""
    return place.is_dir() and not place.is_symlink() and any(place.iterdir())


async def _copy_index(repository: Repository, git: Git, index: Path) -> list[IndexEntry]:
    """Copy the person's index with its modification time: git checks files that are as new as the index again."""
    with suppress(FileNotFoundError):
        shutil.copy2(repository.layout.git / "index", index)
    try:
        entries = await list_index(git)
    except WorkspaceFault:  # a split or sparse index, which only its own repository can read
        await asyncio.to_thread(index.unlink)
        head = await find_ref(repository, "HEAD")
        await git.run("read-tree", *([head] if head else ["--empty"]))
        entries = await list_index(git)
    await unflag_files(git, repository.root, entries)
    return entries


async def list_index(git: Git) -> list[IndexEntry]:
    entries = []
    for line in split_names(await git.run("ls-files", "-z", "-v", "--stage")):
        facts, _, path = line.partition("\t")
        tag, mode, blob, _ = facts.split(" ")
        entries.append(IndexEntry(tag=tag, mode=mode, blob=blob, path=path))
    return entries


async def unflag_files(git: Git, root: Path, entries: Iterable[IndexEntry]) -> None:
    """Make git check files that were flagged to be skipped. Files that a sparse checkout leaves out stay skipped."""
    flagged = [item for item in entries if item.tag not in ("H", "M")]
    missing = set(list_absent(root, flagged))
    await _set_flag(git, "--no-assume-unchanged", [item.path for item in flagged if item.tag.islower()])
    skipped = [item.path for item in flagged if item.tag.upper() == "S" and item.path not in missing]
    await _set_flag(git, "--no-skip-worktree", skipped)


def list_absent(root: Path, entries: Iterable[IndexEntry]) -> list[str]:
    """Return skipped files that do not exist on disk."""
    return [item.path for item in entries if item.tag.upper() == "S" and not os.path.lexists(root / item.path)]


async def skip_worktree(git: Git, paths: Sequence[str]) -> None:
    """Flag these files as skipped, so that git does not report them as deleted."""
    await _set_flag(git, "--skip-worktree", paths)


async def _set_flag(git: Git, flag: str, paths: Sequence[str]) -> None:
    if paths:
        await git.run("update-index", flag, "-z", "--stdin", stdin=join_names(paths))


async def _find_unfaithful(repository: Repository, entries: Sequence[IndexEntry]) -> list[str]:
    """Return files whose content in git may differ from the disk: another size, or a filter applies."""
    files = [item for item in entries if item.mode.startswith("100") and item.tag not in ("S", "s", "M")]
    if not repository.config.converts and not _has_attributes(repository, files):
        return []
    blobs = "".join(f"{item.blob}\n" for item in files).encode()
    sizes = (await repository.plain_git.run("cat-file", "--batch-check=%(objectsize)", stdin=blobs)).split(b"\n")
    names = join_names(item.path for item in files)
    git = repository.refs_git.with_options("-c", f"core.attributesFile={repository.config.attributes or os.devnull}")
    attributes = split_names(await git.run("check-attr", "-z", "--stdin", *CONVERTING_ATTRIBUTES, stdin=names))
    repository.refuse_local_filters(attributes)
    filtered = [
        attributes[place] for place in range(0, len(attributes) - 2, 3) if attributes[place + 2] not in UNSET_VALUES
    ]
    resized = [
        item.path for item, size in zip(files, sizes, strict=False) if not _has_size(repository.root, item, size)
    ]
    return list(dict.fromkeys([*resized, *filtered]))


def _has_attributes(repository: Repository, files: Iterable[IndexEntry]) -> bool:
    info_attributes = repository.layout.common / "info" / "attributes"
    if repository.config.attributes or info_attributes.exists() or (repository.root / ".gitattributes").exists():
        return True
    return any(item.path.endswith(".gitattributes") for item in files)


def _has_size(root: Path, item: IndexEntry, size: bytes) -> bool:
    try:
        return (root / item.path).lstat().st_size == int(size)
    except (OSError, ValueError):
        return True  # gone, or unknown size: the check on disk decides


async def stage_files(
    git: Git,
    root: Path,
    *,
    unfaithful: Sequence[str] = (),
    max_bytes: int = MAX_FILE_BYTES,
    is_complete: bool = False,
    is_secret: PathPredicate = matches_nothing,
    is_ignored: PathPredicate = matches_nothing,
    submodules: Collection[str] = (),
    excludes: Path | None = None,
    last_tree: str = "",
) -> WorktreeContents:
    """Update an index from the files below `root`, and write it as a tree.

    Files may change meanwhile; then it tries again. `unfaithful` files differ between index and disk, so they are read.
    A `is_complete` tree requires every content in the repository, which a partial clone does not have. Untracked files
    that `is_secret` matches are skipped. Files that `is_ignored` or the patterns in `excludes` match are treated as
    missing. `last_tree` is the tree of the index, if known.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            changed, unknown = await _list_changes(git, excludes)
            changed = [path for path in changed if path not in submodules]
            inside = tuple(f"{path}/" for path in submodules)
            known = [path for path in unknown if not path.startswith(inside) and not is_ignored(path)]
            sorting = _sort_files(git, root, changed, known, unfaithful, max_bytes=max_bytes, is_secret=is_secret)
            removed, present, left_out = await sorting
            if removed:
                await git.run("update-index", "-z", "--force-remove", "--stdin", stdin=join_names(removed))
            if present:
                await git.run("update-index", "-z", "--add", "--replace", "--stdin", stdin=join_names(present))
            if removed or present or not last_tree:
                last_tree = await git.read_line("write-tree", *(() if is_complete else ("--missing-ok",)))
            return WorktreeContents(tree=last_tree, left_out=tuple(left_out))
        except WorkspaceFault as fault:
            last_tree = ""
            if attempt == MAX_ATTEMPTS or fault.reason not in ("git", "repository"):
                raise
    raise AssertionError("the last try returns or raises")


async def _list_changes(git: Git, excludes: Path | None) -> tuple[list[str], list[str]]:
    """Return tracked files that changed or are gone, and untracked files that are not ignored."""
    exclude_options = () if excludes is None else (f"--exclude-from={excludes}",)
    words = ("ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard", *exclude_options)
    lines = split_names(await git.run(*words))
    unknown = [line[2:] for line in lines if line.startswith("? ")]
    if len(unknown) > MAX_UNKNOWN_FILES:
        raise WorkspaceFault("too_large", "git.too_many_files", count=len(unknown))
    return list(dict.fromkeys(line[2:] for line in lines if not line.startswith("? "))), unknown


async def _sort_files(
    git: Git,
    root: Path,
    changed: Sequence[str],
    unknown: Sequence[str],
    unfaithful: Sequence[str],
    *,
    max_bytes: int,
    is_secret: PathPredicate,
) -> tuple[list[str], list[str], list[SkippedPath]]:
    """Sort files into gone, present and skipped. The size limit applies to untracked and `unfaithful` files only."""
    environments = await find_environments(git, unknown)
    visible = [path for path in unknown if not any(path.startswith(f"{folder}/") for folder in environments)]
    hidden = [path for path in visible if is_secret(path)]
    visible = [path for path in visible if path not in hidden] if hidden else visible
    reread = dict.fromkeys(unfaithful)
    left_out = [SkippedPath(path=path, why="secret") for path in hidden]
    left_out += [SkippedPath(path=folder, why="environment") for folder in environments]
    limits = [
        *((path, None) for path in changed if path not in reread),
        *((path, max_bytes) for path in (*reread, *visible)),
    ]
    removed, present, skipped = await asyncio.to_thread(_inspect_files, root, limits)
    return [*removed, *(path for path in present if path in reread)], present, [*skipped, *left_out]


async def find_environments(git: Git, unknown: Iterable[str]) -> list[str]:
    """Return untracked folders that are a virtual environment or `node_modules`. They do not belong in a commit."""
    folders = dict[str, None]()
    for path in unknown:
        parts = path.split("/")
        if parts[-1] == VENV_MARKER and len(parts) > 1:
            folders["/".join(parts[:-1])] = None
        elif NODE_MODULES in parts[:-1]:
            folders["/".join(parts[: parts.index(NODE_MODULES) + 1])] = None
    vendored = [
        folder for folder in folders if folder.endswith(NODE_MODULES) and await git.run("ls-files", "--", folder)
    ]
    return [folder for folder in folders if folder not in vendored]


def _inspect_files(
    root: Path, limits: Iterable[tuple[str, int | None]]
) -> tuple[list[str], list[str], list[SkippedPath]]:
    removed, present, left_out = list[str](), list[str](), list[SkippedPath]()
    links = dict[str, bool]()
    for path, max_bytes in dict(limits).items():
        outcome = not _is_behind_link(root, path, links) and _inspect_file(root / path, path, max_bytes)
        if isinstance(outcome, SkippedPath):
            left_out.append(outcome)
        else:
            (present if outcome else removed).append(path)
    return removed, present, left_out


def _is_behind_link(root: Path, path: str, links: dict[str, bool]) -> bool:
    """Return whether a parent of the path is a link: what is behind it is not part of this tree."""
    above = path.rstrip("/").rpartition("/")[0]
    if above and above not in links:
        links[above] = (root / above).is_symlink() or _is_behind_link(root, above, links)
    return bool(above) and links[above]


def _inspect_file(place: Path, path: str, max_bytes: int | None) -> SkippedPath | bool:
    """Return whether a file exists, or why it is skipped."""
    if path.endswith("/"):
        return SkippedPath(path=path.rstrip("/"), why="repository")
    try:
        status = os.lstat(place)
    except OSError:
        return False
    if stat.S_ISDIR(status.st_mode):
        return False
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
        return SkippedPath(path=path, why="other")
    if max_bytes is not None and status.st_size > max_bytes:
        return SkippedPath(path=path, why="too_large", size=status.st_size)
    if stat.S_ISREG(status.st_mode) and not os.access(place, os.R_OK):
        return SkippedPath(path=path, why="unreadable", size=status.st_size)
    return True


def split_names(data: bytes) -> list[str]:
    """Split a NUL-separated list of names."""
    return [os.fsdecode(item) for item in data.split(b"\0") if item]


def join_names(names: Iterable[str]) -> bytes:
    """Join names to a NUL-terminated list."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)
