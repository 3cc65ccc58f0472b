"""Folders of ours for as long as we live: /tmp, /etc and home of commands. A lock says so; leftovers are swept."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.ground import Identity

LOCK: Final = "in-use"


class OwnFolder:
    """Made below `folder`, which is nobody else's. Others may go through it, and see nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        with _alone_in(folder):  # or another house takes a folder for a dead one's before it is locked
            _sweep(folder)
            self.place = folder / secrets.token_hex(8)
            self.place.mkdir(mode=0o711)
            self._lock = os.open(self.place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove it, once."""
        if self._lock >= 0:
            shutil.rmtree(self.place, onerror=_open_and_again)
            os.close(self._lock)
            self._lock = -1


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _sweep(folder: Path) -> None:
    for place in folder.iterdir():
        with suppress(OSError):
            lock = os.open(place / LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, onerror=_open_and_again)
            finally:
                os.close(lock)


def _open_and_again(_: object, path: str, __: object) -> None:
    """Somebody took the right away to remove what is in a folder of theirs."""
    with suppress(OSError):
        place = Path(path)
        place.parent.chmod(0o700)
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o700)
            shutil.rmtree(place)
        else:
            place.unlink()


IDENTITY: Final = """\
[user]
\tname = {name}
\temail = {email}
[init]
\tdefaultBranch = main
"""
IGNORED: Final = "/.mcp.json\n"
"""What walls put there so that nobody can, and nobody should commit."""


class Scratch:
    """Made below `folder`, which is nobody else's."""

    def __init__(self, folder: Path, *, name: str = "Greenroom agent", email: str = "agent@greenroom.invalid") -> None:
        self._folder = OwnFolder(folder)
        self.place = self._folder.place
        self.home = self.place / "home"
        self.tmp = self.place / "tmp"
        self.etc = self.place / "etc"
        self.nothing = self.place / "nothing"
        for one in (self.home, self.tmp):
            one.mkdir(mode=0o700)
        self.nothing.touch(mode=0o444)
        ignored = self.home / ".config" / "git"
        ignored.mkdir(parents=True)
        (ignored / "ignore").write_text(IGNORED, encoding="utf-8")
        clean = {"name": name.replace("\n", " "), "email": email.replace("\n", " ")}
        (self.home / ".gitconfig").write_text(IDENTITY.format(**clean), encoding="utf-8")

    def give(self, who: Identity) -> None:
        """What is for writing belongs to this one."""
        if who.changes and not who.swapped:
            for one in (self.tmp, self.home, *self.home.rglob("*")):
                os.chown(one, who.uid, who.gid)

    def close(self) -> None:
        """Remove it, once."""
        self._folder.close()
