"""What lies at a path of a tree, looked at without following any link on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from greenroom.core.base.records import record

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NO_WAY: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
EXECUTABLE: Final = 0o111


@record
class State:
    """A file or link with its content's hash, or why there is none; *blocked*: a part of the way is no folder.

    `mode` are the permissions of a file on the disk; of one in a tree only whether it can be run.
    """

    kind: Literal["none", "file", "link", "folder", "other", "blocked"] = "none"
    blob: str = ""
    mode: int = 0

    @property
    def runs(self) -> bool:
        """Whether it is a program."""
        return self.kind == "file" and bool(self.mode & 0o100)


NOTHING: Final = State()


def same(one: State, other: State) -> bool:
    """Whether git would see no difference."""
    return (one.kind, one.blob, one.runs) == (other.kind, other.blob, other.runs)


def state_in_tree(mode: str, blob: str) -> State:
    """A file as a tree has it."""
    if mode == "000000":
        return NOTHING
    if mode == "120000":
        return State(kind="link", blob=blob)
    return State(kind="file", blob=blob, mode=int(mode[-3:], 8)) if mode.startswith("100") else State(kind="other")


class Ground:
    """The files below one root."""

    def __init__(self, root: Path, hashes: str) -> None:
        self.root = root
        self._hashes = hashes

    def look(self, path: str) -> tuple[State, bytes]:
        """What is there, and its content."""
        try:
            with self.folder_of(path) as (folder, name):
                return self._looked(folder, name)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return NOTHING, b""
            if error.errno in NO_WAY:
                return State(kind="blocked"), b""
            raise

    @contextmanager
    def folder_of(self, path: str) -> Iterator[tuple[int, str]]:
        """The open folder in which a path lies, and its name there."""
        *above, name = path.split("/")
        number = os.open(self.root, FOLDER)
        try:
            for part in above:
                number, last = os.open(part, FOLDER, dir_fd=number), number
                os.close(last)
            yield number, name
        finally:
            os.close(number)

    def hashed(self, content: bytes) -> str:
        """The name of a content to git."""
        return hashlib.new(self._hashes, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()

    def _looked(self, folder: int, name: str) -> tuple[State, bytes]:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=folder))
            return State(kind="link", blob=self.hashed(target)), target
        if stat.S_ISREG(status.st_mode):
            content = _read(folder, name)
            return State(kind="file", blob=self.hashed(content), mode=stat.S_IMODE(status.st_mode)), content
        return State(kind="folder" if stat.S_ISDIR(status.st_mode) else "other"), b""


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, READ, dir_fd=folder), "rb") as file:
        return file.read()
