"""Files: one workspace, seen from its root. Nothing outside the root is read or written.

A path is relative to the root and uses slashes; an absolute path inside the root means the same. A path with `..` is
refused: through a link, it could mean one file to the policy and another when it is opened.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, Literal, Protocol

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

EntryKind = Literal["file", "folder", "link", "other"]
FileReason = Literal[
    "path",  # not a valid path of this workspace
    "outside",  # a link leads out of the workspace
    "protected",  # belongs to Greenroom or git: never written
    "missing",
    "exists",
    "kind",  # a folder, a pipe, a device …
    "changed",  # the content is not the expected one
    "too_large",
    "read_only",
    "disk",  # full, broken, gone
    "pattern",  # an unusable glob
]

PROTECTED_NAMES: Final = frozenset({".git", ".greenroom"})
"""Names of folders or files that are never written, at any depth, including their content."""

GOVERNING_FILES: Final = (
    *(".mcp.json", ".claude/**", ".greenroom/**", ".vscode/tasks.json", ".envrc", ".husky/**", ".github/workflows/**"),
    *("AGENTS.md", "CLAUDE.md"),
)
"""Files that configure an agent or a tool, in any folder. File tools write them in a worktree, and `apply` asks about
them. Elsewhere file tools ask. Commands cannot change them."""

GOVERNING_NAMES: Final = frozenset(name.removesuffix("/**").rpartition("/")[2].lower() for name in GOVERNING_FILES)
"""The names that such a file, or the folder that holds some, can have."""

PLACEHOLDER_NAMES: Final = (".greenroom", ".claude", ".mcp.json")
"""Those of them that the sandbox keeps from being created, with an empty placeholder."""

MAX_PATH_BYTES: Final = 4096
"""Maximum bytes of a path, more than any system accepts."""


class FileFault(WorldFault):
    """A file cannot be read or written. `reason` is for programs, the message for its reader."""

    def __init__(self, reason: FileReason, why: str) -> None:
        super().__init__(why)
        self.reason: FileReason = reason


@record
class FileEntry:
    """What is at a path. `digest` is the content's SHA-256: only `stat` sets it, and only for a file."""

    path: str
    kind: EntryKind
    size: int = 0
    mode: int = 0
    digest: str = ""


@record
class WalkResult:
    """What a walk found, by path. `whole` is false if there was more than requested. `cut` means that the walk was
    ended early because there are too many files."""

    entries: tuple[FileEntry, ...]
    whole: bool = True
    cut: bool = False


class Files(Protocol):
    """One workspace. An operation that fails raises `FileFault` and changes nothing.

    Links to places inside the root are followed; links that lead out are refused. Pipes, sockets and devices are
    refused without waiting.
    """

    @property
    def root(self) -> str:
        """The absolute path of the root."""

    def real(self, path: str) -> str:
        """Return the path with its links followed; the policy decides about this path. Fast."""

    async def read(self, path: str, limit: int) -> bytes:
        """Read a whole file. Raise `FileFault` (*too_large*) if it has more bytes than `limit`."""

    async def stat(self, path: str) -> FileEntry | None:
        """Return what is at the path, links followed; None if nothing is."""

    async def entries(self, path: str = "") -> Sequence[FileEntry]:
        """List a folder by name, links not followed."""

    async def walk(self, under: str = "", *, globs: Sequence[str] = (), limit: int) -> WalkResult:
        """List files and links below a folder that git does not ignore; never those in `.git` or `.greenroom`.

        `globs` are patterns as in a .gitignore: if given, only matching paths are listed.
        """

    async def write(self, path: str, content: bytes, *, expected: str | None) -> None:
        """Write a whole file atomically: a reader sees the old or the new content, even after a crash.

        `expected` is the digest of the current content, None if the file must not exist; else the fault is *changed* or
        *exists*. Missing folders are made, the file's mode is kept, a link to it stays a link.
        """

    async def delete(self, path: str, *, expected: str) -> None:
        """Delete a file that has this content. For a link, delete its target."""


def compute_digest(content: bytes) -> str:
    """Return the SHA-256 of a content, in hex."""
    return hashlib.sha256(content).hexdigest()


def make_relative(path: str, roots: Iterable[str]) -> str:
    """Return the path relative to the root, which may have several names; "" is the root itself."""
    if not path.isprintable() and any(unicodedata.category(character) in {"Cc", "Cs"} for character in path):
        raise FileFault("path", f"{path[:200]!r} is not a path: it has control characters in it.")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise FileFault("path", f"{path[:100]!r}… is not a path: it is longer than {MAX_PATH_BYTES} bytes.")
    parsed = PurePosixPath(path)
    if ".." in parsed.parts:
        raise FileFault("path", f"{path!r} has '..' in it. Name the file as seen from the workspace's root.")
    if not parsed.is_absolute():
        return "" if str(parsed) == "." else str(parsed)
    for root in roots:
        if parsed.is_relative_to(root):
            inside = str(parsed.relative_to(root))
            return "" if inside == "." else inside
    raise FileFault("path", f"{path!r} is outside the workspace. Paths are relative to its root: src/app.py.")


def is_protected(name: str) -> bool:
    """Return whether a name belongs to git or Greenroom, also on file systems that treat some names as equal.

    Some take `.GIT`, others `.g<zero-width joiner>it` or `git~1` for `.git`.
    """
    return fold_name(name) in PROTECTED_NAMES


def is_governing(path: str) -> bool:
    """Return whether a path is one of the `GOVERNING_FILES`, or the folder that holds them: `.claude`, `.husky` …

    Names with a dot count in any case. `docs/agents.md` is a page about agents.
    """
    exact = path.split("/")
    folded = [fold_name(part) for part in exact]
    return any(
        (folded if names[0].startswith(".") else exact)[start : start + len(names)] == names
        for names in _GOVERNING_PARTS
        for start in range(len(exact) - len(names) + 1)
    )


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Return a name as a lenient file system sees it: any case, without invisible characters and trailing dots."""
    if name.isascii():
        plain = name.casefold()
    else:
        seen = unicodedata.normalize("NFKC", name)
        plain = "".join(sign for sign in seen if unicodedata.category(sign) != "Cf").casefold()
    return {"git~1": ".git", "greenr~1": ".greenroom"}.get(plain, plain.rstrip(" .") or plain)


_GOVERNING_PARTS: Final = tuple(name.removesuffix("/**").split("/") for name in GOVERNING_FILES)
