"""What a snapshot has not and work needs: what git ignores, environments, and the files of other repositories.

Ignored files are copied into a worktree, ignored folders are lent. Neither is ever in a commit.
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

from greenroom.adapters.git.files import is_no_folder
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import MODULES, VENV, Named, find_environments, has_entries, list_index, split
from greenroom.core.base.records import record
from greenroom.core.ports.files import is_protected
from greenroom.core.ports.workspace import Lent, LentKind

MOST_FILES: Final = 5_000
MOST_BYTES: Final = 256 * 1024 * 1024
"""How many ignored files are copied into a worktree, and how large they may be together."""

SEARCHED: Final = 200_000
"""Entries of an ignored folder among which secrets are looked for; one with more is not lent."""

FRESH_S: Final = 30.0
"""How long what is ignored is taken to be the same."""

SPECIAL: Final = str.maketrans({letter: f"\\{letter}" for letter in "\\*?[ "})


@record
class Ignored:
    """What lies in the person's folder and in no snapshot: single `files`, and `folders` with all that is in them."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()


class IgnoredFiles:
    """What is ignored in one repository; it is listed again after a while."""

    def __init__(self, repository: Repository, secret: Named) -> None:
        self._repository = repository
        self._secret = secret
        self._found = Ignored()
        self._until = 0.0

    async def list(self) -> Ignored:
        """What there is now."""
        if time.monotonic() > self._until:
            self._found = await self._list()
            self._until = time.monotonic() + FRESH_S
        return self._found

    async def _list(self) -> Ignored:
        git = self._git()
        every = ("ls-files", "-z", "--others", "--exclude-standard")
        said, others = await asyncio.gather(git.ask(*every, "--ignored", "--directory"), git.ask(*every))
        ignored, unknown = split(said), split(others)
        seen = [path for path in ignored if not any(map(is_protected, path.split("/")))]
        usable = [path for path in seen if not self._secret(path.rstrip("/"))]
        folders = [path.rstrip("/") for path in usable if path.endswith("/")]
        above = {parent.as_posix() for path in folders for parent in Path(path).parents}
        folders = [path for path in folders if path not in above]  # git lists a folder of ignored folders too
        folders = [*folders, *await find_environments(git, unknown)]
        return Ignored(
            files=tuple(path for path in usable if not path.endswith("/")),
            folders=tuple(dict.fromkeys(path for path in folders if self._is_lendable(path))),
            repositories=tuple(path.rstrip("/") for path in unknown if path.endswith("/")),
        )

    def _git(self) -> Git:
        layout = self._repository.layout
        if layout.own:
            return self._repository.on(layout.root, layout.git / "index")
        excludes = self._repository.config.excludes or os.devnull
        return self._repository.refs.also("-c", f"core.excludesFile={excludes}")

    def _is_lendable(self, path: str) -> bool:
        """Not a repository of its own, nor a link: no one has said where that leads."""
        place = self._repository.root / path
        return has_entries(place) and not os.path.lexists(place / ".git")

    async def lent(self) -> tuple[Lent, ...]:
        """Folders that are to be shown where a worktree has nothing."""
        found, root = await self.list(), self._repository.root
        modules = [] if not (root / ".gitmodules").exists() else await list_index(self._git())
        submodules = [item.path for item in modules if item.is_submodule]
        # What a submodule has in its commits is no more a secret than what the repository has in its own.
        tracked = split(await self._git().ask("ls-files", "-z", "--recurse-submodules")) if submodules else []
        public = frozenset(tracked)

        def listed() -> Iterator[Lent]:
            every: dict[LentKind, Sequence[str]] = {
                "ignored": found.folders,
                "submodule": [path for path in submodules if has_entries(root / path)],
                "repository": [path for path in found.repositories if has_entries(root / path)],
            }
            for kind, paths in every.items():
                for path in paths:
                    hidden = self._find_secrets(path, public)
                    if hidden is not None:
                        yield Lent(path=path, source=str(root / path), kind=kind, hidden=hidden)

        return tuple(await asyncio.to_thread(lambda: [*listed()]))

    def _find_secrets(self, folder: str, public: frozenset[str]) -> tuple[str, ...] | None:
        """Files below a folder whose name may hold a secret, seen from it; None if there are too many to look at.
        Environments are not searched: their `cacert.pem` is public. Of a repository its settings may hold a token."""
        top, found, count = self._repository.root / folder, list[str](), 0
        for here, folders, names in os.walk(top):
            place = Path(here)
            if VENV in names or place.name == MODULES:
                folders.clear()
                continue
            if place.name == ".git":
                folders.clear()
                found += [str((place / "config").relative_to(top))] if "config" in names else []
                continue
            count += len(names) + len(folders)
            if count > SEARCHED:
                return None
            within = place.relative_to(self._repository.root).as_posix()
            hides = [name for name in names if self._secret(path := f"{within}/{name}") and path not in public]
            found += [str((place / name).relative_to(top)) for name in hides]
        return tuple(sorted(found))

    async def copy_files(self, tree: Path) -> None:
        """Copy ignored files into a worktree, but for those that are too many or too large."""
        files = (await self.list()).files
        if files:
            await asyncio.to_thread(_copy_files, self._repository.root, tree, files)


def _copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    size = 0
    for path in files[:MOST_FILES]:
        with suppress(OSError):  # it went away, or may not be read
            status = (root / path).lstat()
            blocked = any(is_no_folder(tree / parent) for parent in Path(path).parents if parent.name)
            if blocked or not stat.S_ISREG(status.st_mode) or os.path.lexists(tree / path):
                continue
            if size + status.st_size <= MOST_BYTES:
                size += status.st_size
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / path, tree / path)


CACHES: Final = b"__pycache__/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n.hypothesis/\n.tox/\n.nox/\n"


def exclude_lines(paths: Iterable[str]) -> bytes:
    """Patterns of git that match just these paths, also where a link stands in the place of a folder, and caches that
    tools make wherever they run: a repository may have no .gitignore."""
    return CACHES + b"".join(os.fsencode(f"/{path.translate(SPECIAL)}\n") for path in paths if "\n" not in path)
