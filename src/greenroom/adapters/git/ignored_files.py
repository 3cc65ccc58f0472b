"""Files that a run needs but no snapshot contains: ignored files, environments, and other repositories.

Ignored files are copied into a worktree, ignored folders are shared with it. Neither is ever committed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.git.files import is_not_folder
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import (
    NODE_MODULES,
    VENV_MARKER,
    PathPredicate,
    find_environments,
    has_entries,
    list_index,
    split_names,
)
from greenroom.core.base.records import record
from greenroom.core.ports.files import is_protected
from greenroom.core.ports.workspace import SharedFolder, SharedFolderKind

MAX_COPIED_FILES: Final = 5_000
MAX_COPIED_BYTES: Final = 256 * 1024 * 1024
"""How many ignored files are copied into a worktree, and their total size in bytes."""

MAX_SEARCHED_ENTRIES: Final = 200_000
"""How many entries of an ignored folder are searched for secrets. A larger folder is not shared."""

LISTING_TTL_S: Final = 30.0
"""How long a listing of ignored paths is reused, in seconds."""

GLOB_ESCAPES: Final = str.maketrans({letter: f"\\{letter}" for letter in "\\*?[ "})


@record
class IgnoredPaths:
    """Paths in the person's folder that no snapshot contains: single `files`, whole `folders`, other `repositories`."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()


class IgnoredFiles:
    """The ignored paths of one repository, listed again after `LISTING_TTL_S`."""

    def __init__(self, repository: Repository, secret: PathPredicate) -> None:
        self._repository = repository
        self._secret = secret
        self._listing = IgnoredPaths()
        self._until = 0.0

    async def list(self) -> IgnoredPaths:
        if time.monotonic() > self._until:
            self._listing = await self._read_listing()
            self._until = time.monotonic() + LISTING_TTL_S
        return self._listing

    async def _read_listing(self) -> IgnoredPaths:
        git = self._git()
        options = ("ls-files", "-z", "--others", "--exclude-standard")
        ignored_output, unknown_output = await asyncio.gather(
            git.run(*options, "--ignored", "--directory"), git.run(*options)
        )
        ignored, unknown = split_names(ignored_output), split_names(unknown_output)
        unprotected = [path for path in ignored if not any(map(is_protected, path.split("/")))]
        usable = [path for path in unprotected if not self._secret(path.rstrip("/"))]
        folders = [path.rstrip("/") for path in usable if path.endswith("/")]
        above = {parent.as_posix() for path in folders for parent in Path(path).parents}
        folders = [path for path in folders if path not in above]  # git also lists the parent of ignored folders
        folders = [*folders, *await find_environments(git, unknown)]
        return IgnoredPaths(
            files=tuple(path for path in usable if not path.endswith("/")),
            folders=tuple(dict.fromkeys(path for path in folders if self._is_shareable(path))),
            repositories=tuple(path.rstrip("/") for path in unknown if path.endswith("/")),
        )

    def _git(self) -> Git:
        layout = self._repository.layout
        if layout.is_own:
            return self._repository.git_for(layout.root, layout.git / "index")
        excludes = self._repository.config.excludes or os.devnull
        return self._repository.refs_git.with_options("-c", f"core.excludesFile={excludes}")

    def _is_shareable(self, path: str) -> bool:
        """Return whether a folder can be shared: neither a repository nor a link, whose target is unknown."""
        place = self._repository.root / path
        return has_entries(place) and not os.path.lexists(place / ".git")

    async def list_shared_folders(self) -> tuple[SharedFolder, ...]:
        """Return the folders to mount where a worktree has nothing."""
        listing, root = await self.list(), self._repository.root
        modules = [] if not (root / ".gitmodules").exists() else await list_index(self._git())
        submodules = [item.path for item in modules if item.is_submodule]
        # Files committed in a submodule are as public as files committed in the repository.
        tracked = split_names(await self._git().run("ls-files", "-z", "--recurse-submodules")) if submodules else []
        public = frozenset(tracked)

        def list_folders() -> Iterator[SharedFolder]:
            every: dict[SharedFolderKind, Sequence[str]] = {
                "ignored": listing.folders,
                "submodule": [path for path in submodules if has_entries(root / path)],
                "repository": [path for path in listing.repositories if has_entries(root / path)],
            }
            for kind, paths in every.items():
                for path in paths:
                    hidden = self._find_secrets(path, public)
                    if hidden is not None:
                        yield SharedFolder(path=path, source=str(root / path), kind=kind, hidden=hidden)

        return tuple(await asyncio.to_thread(lambda: [*list_folders()]))

    def _find_secrets(self, folder: str, public: frozenset[str]) -> tuple[str, ...] | None:
        """Return files below a folder whose name suggests a secret; None if there are too many to search.

        Environments are not searched: their `cacert.pem` is public. The `config` of a repository may hold a token.
        """
        top, secrets, count = self._repository.root / folder, list[str](), 0
        for here, folders, names in os.walk(top):
            place = Path(here)
            if VENV_MARKER in names or place.name == NODE_MODULES:
                folders.clear()
                continue
            if place.name == ".git":
                folders.clear()
                secrets += [str((place / "config").relative_to(top))] if "config" in names else []
                continue
            count += len(names) + len(folders)
            if count > MAX_SEARCHED_ENTRIES:
                return None
            within = place.relative_to(self._repository.root).as_posix()
            hidden = [name for name in names if self._secret(path := f"{within}/{name}") and path not in public]
            secrets += [str((place / name).relative_to(top)) for name in hidden]
        return tuple(sorted(secrets))

    async def copy_files(self, tree: Path) -> None:
        """Copy ignored files into a worktree, up to the limits in number and size."""
        files = (await self.list()).files
        if files:
            await asyncio.to_thread(_copy_files, self._repository.root, tree, files)


def _copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    size = 0
    for path in files[:MAX_COPIED_FILES]:
        with suppress(OSError):  # the file is gone or unreadable
            status = (root / path).lstat()
            blocked = any(is_not_folder(tree / parent) for parent in Path(path).parents if parent.name)
            if blocked or not stat.S_ISREG(status.st_mode) or os.path.lexists(tree / path):
                continue
            if size + status.st_size <= MAX_COPIED_BYTES:
                size += status.st_size
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / path, tree / path)


CACHE_PATTERNS: Final = b"__pycache__/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n.hypothesis/\n.tox/\n.nox/\n"


def render_excludes(paths: Iterable[str]) -> bytes:
    """Return git patterns that match exactly these paths, whether they are folders or links, and tool caches. A
    repository may have no `.gitignore`."""
    return CACHE_PATTERNS + b"".join(
        os.fsencode(f"/{path.translate(GLOB_ESCAPES)}\n") for path in paths if "\n" not in path
    )
