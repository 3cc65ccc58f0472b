"""The folders outside of a workspace in which git keeps what belongs to it: a worktree has only a file that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Final

LINK: Final = "gitdir:"


def outer_git(root: Path) -> list[Path]:
    """To be read: with them git tells what happened in the workspace. Commits there are the house's own."""
    try:
        text = (root / ".git").read_text(encoding="utf-8") if (root / ".git").is_file() else ""
        if not text.startswith(LINK):
            return []
        own = (root / text.removeprefix(LINK).strip()).resolve(strict=True)
        shared = own / "commondir"
        common = (own / shared.read_text(encoding="utf-8").strip()).resolve(strict=True) if shared.is_file() else own
    except (OSError, ValueError):
        return []
    outside = [one for one in dict.fromkeys((common, own)) if not one.is_relative_to(root) and (one / "HEAD").is_file()]
    return [one for one in outside if not any(one != other and one.is_relative_to(other) for other in outside)]
