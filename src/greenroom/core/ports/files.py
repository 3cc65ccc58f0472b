"""Files: one workspace, seen from its root. Whatever a path says, nothing outside of the root is read or written.

A path is relative to the root and has slashes; an absolute one inside the root means the same. A path with `..` names
nothing: it would mean one thing to who decides about it and, through a link, another to who opens it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal, Protocol

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

Kind = Literal["file", "folder", "link", "other"]
FileReason = Literal[
    "path",  # this is no path of this workspace
    "outside",  # a link leads out of it
    "protected",  # ours or git's own: never written
    "missing",
    "exists",
    "kind",  # a folder, a pipe, a device …
    "changed",  # not what was expected to be there
    "too_large",
    "read_only",
    "disk",  # full, broken, gone
    "pattern",  # a glob that cannot be used
]

PROTECTED: Final = frozenset({".git", ".greenroom"})
"""Folders (or files) of these names are never written, wherever they stand, nor what is in them."""

LONGEST: Final = 4096
"""Bytes of a path; more than any system takes."""


class FileFault(WorldFault):
    """A file that cannot be had or written. `reason` is for programs, the sentence for who reads it."""

    def __init__(self, reason: FileReason, why: str) -> None:
        super().__init__(why)
        self.reason: FileReason = reason


@record
class Entry:
    """What lies at a path. `digest` is the content's SHA-256: only `stat` says it, and only of a file."""

    path: str
    kind: Kind
    size: int = 0
    mode: int = 0
    digest: str = ""


@record
class Walk:
    """What a walk has found, by path. `whole` is false when there was more than was asked for, `cut` says that it was
    ended before it had seen everything: there is too much."""

    entries: tuple[Entry, ...]
    whole: bool = True
    cut: bool = False


class Files(Protocol):
    """One workspace. What cannot be done is a `FileFault`, and leaves everything as it was.

    A link that leads to a place inside the root is followed; one that leads out of it is refused. Pipes, sockets and
    devices are refused, and never waited for.
    """

    @property
    def root(self) -> str:
        """The absolute path of the root."""

    def real(self, path: str) -> str:
        """The path with its links followed: who decides about a path decides about this one. Quick."""

    async def read(self, path: str, limit: int) -> bytes:
        """A whole file; *too_large* for one with more bytes than `limit`."""

    async def stat(self, path: str) -> Entry | None:
        """What is there, links followed; None if nothing is."""

    async def entries(self, path: str = "") -> Sequence[Entry]:
        """All that is in a folder, by name, links not followed."""

    async def walk(self, under: str = "", *, globs: Sequence[str] = (), limit: int) -> Walk:
        """Files and links below a folder that git would not ignore; never those in `.git` or `.greenroom`.

        `globs` are patterns as in a .gitignore: with any, only what one of them matches.
        """

    async def write(self, path: str, content: bytes, *, expected: str | None) -> None:
        """Write a whole file at once: whoever looks, also after a crash, sees the old one or the new one.

        `expected` is the digest of what is there, None when nothing may be there; else it is *changed* or *exists*.
        Missing folders are made, the file's mode is kept, a link to it stays one.
        """

    async def delete(self, path: str, *, expected: str) -> None:
        """Delete a file that has this content. Of a link, what it leads to."""


def digest_of(content: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(content).hexdigest()


def within(path: str, roots: Iterable[str]) -> str:
    """The path as seen from the root (which may have several names): "" is the root itself."""
    if not path.isprintable() and any(unicodedata.category(one) in {"Cc", "Cs"} for one in path):
        raise FileFault("path", f"{path[:200]!r} is no path: it has control characters in it.")
    if len(path.encode()) > LONGEST:
        raise FileFault("path", f"{path[:100]!r}… is no path: it is longer than {LONGEST} bytes.")
    found = PurePosixPath(path)
    if ".." in found.parts:
        raise FileFault("path", f"{path!r} has '..' in it. Name the file as seen from the workspace's root.")
    if not found.is_absolute():
        return "" if str(found) == "." else str(found)
    for root in roots:
        if found.is_relative_to(root):
            inside = str(found.relative_to(root))
            return "" if inside == "." else inside
    raise FileFault("path", f"{path!r} is outside the workspace. Paths are relative to its root: src/app.py.")


def is_protected(name: str) -> bool:
    """Whether a folder or file of this name is git's or ours, also to file systems that do not tell some names apart.

    Some take `.GIT`, others `.g<zero-width joiner>it` or `git~1` for `.git`.
    """
    plain = unicodedata.normalize("NFKC", name).casefold()
    plain = "".join(one for one in plain if unicodedata.category(one) != "Cf").rstrip(". ")
    return plain in PROTECTED or plain in {"git~1", "greenr~1"}
