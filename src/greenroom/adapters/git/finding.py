"""Which repository a folder is in, found by looking and not by asking git: that would read settings first."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record
from greenroom.core.ports.workspace import WorkspaceFault

LINK: Final = "gitdir:"
LONGEST: Final = 4096
PARTS: Final = ("objects", "refs")


@record
class Repository:
    """Its files lie in `root`, what git knows of this tree in `git`, of all its trees in `common`.

    `within` is the workspace's path in it. An `own` one is ours: the folder is in none.
    """

    root: Path
    git: Path
    common: Path
    within: str = ""
    own: bool = False

    @property
    def key(self) -> str:
        """A name for what we keep about it."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", self.root.name).strip("-")[:32] or "root"
        return f"{plain}-{hashlib.sha256(str(self.root).encode(errors='surrogateescape')).hexdigest()[:12]}"


def repository_of(folder: Path, *, home: Path | None = None) -> Repository | None:
    """The nearest one from here up, and not that of the person's whole home; None if there is none."""
    here = folder.resolve()
    for place in (here, *here.parents):
        if place != here and place == home:
            return None
        if (place / ".git").exists() or (place / ".git").is_symlink():
            return _read(place, str(here.relative_to(place)))
    return None


def _read(root: Path, within: str) -> Repository:
    git = _git(root / ".git")
    common = _common(git)
    if not (git / "HEAD").is_file() or not all((common / name).is_dir() for name in PARTS):
        why = f"{str(root / '.git')!r} is no repository that can be used. Look at it with 'git status'."
        raise WorkspaceFault("repository", why)
    return Repository(root=root, git=git, common=common, within="" if within == "." else within)


def _git(named: Path) -> Path:
    """The folder that a `.git` is, or names."""
    if not named.is_file():
        return named.resolve()
    text = _first(named)
    if not text.startswith(LINK):
        raise WorkspaceFault("repository", f"{str(named)!r} names no repository.")
    return (named.parent / text.removeprefix(LINK).strip()).resolve()


def _common(git: Path) -> Path:
    named = git / "commondir"
    return (git / _first(named).strip()).resolve() if named.is_file() else git


def _first(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST).decode(errors="surrogateescape")
    except OSError as error:
        raise WorkspaceFault("repository", f"{str(file)!r} cannot be read ({error.strerror}).") from error
