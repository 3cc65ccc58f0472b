"""Submodules in a worktree: the folders of other repositories. They are empty there, and no commit of ours can have
what somebody puts into one: git looks away from it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path

from greenroom.adapters.git.states import NO_WAY, Ground


def full(root: Path, submodules: Iterable[str]) -> list[str]:
    """Those of them that have something in them."""
    return [one for one in submodules if has_something(root / one)]


def has_something(place: Path) -> bool:
    """Whether it is a folder with something in it. What is a link is not followed: nobody has said where to."""
    return place.is_dir() and not place.is_symlink() and any(place.iterdir())


def files_in(ground: Ground, submodules: Iterable[str]) -> list[str]:
    """What lies in them, file by file; no link is followed on the way."""
    return [path for one in submodules for path in _files(ground, one)]


def _files(ground: Ground, submodule: str) -> Iterator[str]:
    try:
        with ground.folder_of(f"{submodule}/.") as (inside, _):
            for folder, _, names, _ in os.fwalk(".", dir_fd=inside):
                yield from (posixpath.normpath(posixpath.join(submodule, folder, one)) for one in sorted(names))
    except OSError as error:
        if error.errno not in NO_WAY:
            raise
