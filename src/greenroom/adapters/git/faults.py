"""What git says when it refuses, as a sentence for a person that says what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from greenroom.core.ports.workspace import WorkspaceFault, WorkspaceReason

HELD: Final = re.compile(r"Unable to create '([^']+\.lock)': File exists")
LOCK: Final = re.compile(HELD.pattern + r"|cannot lock ref(?!.*(?:but expected|already exists|exists; cannot create))")
KNOWN: Final[Sequence[tuple[str, WorkspaceReason, str]]] = (
    ("but expected", "state", "Somebody else has moved it at this moment. Look how it stands, and try again."),
    ("exists; cannot create", "name", "Another name is in the way: git has no name below a name. Give another one."),
    ("already exists", "state", "Somebody else has made it at this moment. Look how it stands, and try again."),
    ("No space left on device", "disk", "The disk is full. Nothing was changed; make room and try again."),
    ("Disk quota exceeded", "disk", "The disk quota is used up. Nothing was changed; make room and try again."),
    ("Read-only file system", "disk", "The repository is on a read-only file system, so nothing can be kept in it."),
    ("insufficient permission", "disk", "This process may not write to the repository. Look who owns its files."),
    ("Permission denied", "disk", "This process may not write there, or not read it. Look who owns the files."),
    ("not a git repository", "repository", "The repository is broken or gone. Look at it with 'git status'."),
    ("bad config", "repository", "The repository's settings cannot be read. Look at them with 'git config --list'."),
    ("unknown repository extension", "git", "This git is too old for the repository. Update it."),
    (
        "index file",
        "repository",
        "The repository's index is broken. Remove it and run 'git reset' to have it made anew.",
    ),
    ("corrupt", "repository", "The repository is damaged. Look at it with 'git fsck'."),
    ("bad object", "repository", "The repository misses something. Look at it with 'git fsck'."),
    ("unable to read", "repository", "The repository misses something. Look at it with 'git fsck'."),
    ("missing", "repository", "The repository misses something. Look at it with 'git fsck'."),
)


def is_locked(said: str) -> bool:
    """Whether another git is in the way."""
    return LOCK.search(said) is not None


def fault_of(said: str, code: int, words: Sequence[str]) -> WorkspaceFault:
    """The fault that this answer is."""
    if is_locked(said):
        held = HELD.search(said)
        return _locked(held[1] if held else "")
    last = said.splitlines()[-1][:300] if said else f"code {code}"
    for part, reason, why in KNOWN:
        if part in said:
            return WorkspaceFault(reason, f"{why} (git {words[0]}: {last})")
    return WorkspaceFault("git", f"git {words[0]} failed: {last}")


def _locked(name: str) -> WorkspaceFault:
    what = f"holds {name!r}" if name else "holds a lock"
    then = "Let it end, or remove that file if nothing runs, and try again."
    return WorkspaceFault("locked", f"Another git is at work in this repository ({what}). {then}")
