"""The folders outside of a workspace in which git keeps what belongs to it: a worktree has only a file that says so."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

LINK: Final = "gitdir:"
WORKTREE: Final = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


def outer_git(root: Path) -> list[Path]:
    """To be read: with them git tells what happened in the workspace. Commits there are the house's own.

    A file of the workspace can say anything, so the repository has to say the same: that this is a worktree of its own.
    """
    try:
        text = (root / ".git").read_text(encoding="utf-8") if (root / ".git").is_file() else ""
        if not text.startswith(LINK):
            return []
        own = (root / text.removeprefix(LINK).strip()).resolve(strict=True)
        if not _says_so(own, root):
            return []
        shared = own / "commondir"
        common = (own / shared.read_text(encoding="utf-8").strip()).resolve(strict=True) if shared.is_file() else own
    except (OSError, ValueError, RuntimeError):
        return []
    outside = [one for one in dict.fromkeys((common, own)) if not one.is_relative_to(root) and (one / "HEAD").is_file()]
    return [one for one in outside if not any(one != other and one.is_relative_to(other) for other in outside)]


def _says_so(own: Path, root: Path) -> bool:
    """Whether the repository knows this workspace: as a worktree, or as the place of a submodule."""
    with suppress(OSError, ValueError, RuntimeError):
        if (own / "gitdir").is_file():
            return (own / (own / "gitdir").read_text(encoding="utf-8").strip()).resolve() == root.resolve() / ".git"
        found = WORKTREE.search((own / "config").read_text(encoding="utf-8"))
        return found is not None and (own / found[1].strip('"')).resolve() == root.resolve()
    return False
