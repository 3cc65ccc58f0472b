"""A folder for /tmp, /etc and home of commands, for as long as the walls stand."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.ground import ETC
from greenroom.adapters.sandbox.identity import Identity
from greenroom.adapters.sandbox.own_folder import OwnFolder

NAME: Final = "greenroom"
"""How a command is called that is not the person."""

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

    def furnish(self, who: Identity, home: Path) -> None:
        """For this one: /etc says who it is and nothing of others, and what is for writing belongs to it."""
        self.etc.mkdir(mode=0o755)
        with _opened("/etc") as there, _opened(str(self.etc)) as here:
            for name in ETC:
                _copied(name, there, here)
        name = NAME if who.changes else _name(who.uid)
        people = f"{name}:x:{who.uid}:{who.gid}::{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
        (self.etc / "passwd").write_text(people, encoding="utf-8")
        (self.etc / "group").write_text(f"{name}:x:{who.gid}:\nnogroup:x:65534:\n", encoding="utf-8")
        (self.etc / "hosts").write_text("127.0.0.1 localhost greenroom\n::1 localhost\n", encoding="utf-8")
        if who.changes and not who.swapped:
            for one in (self.tmp, self.home, *self.home.rglob("*")):
                os.chown(one, who.uid, who.gid)

    def close(self) -> None:
        """Remove it, once."""
        self._folder.close()


def _name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return NAME


@contextmanager
def _opened(folder: str, within: int | None = None) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY, dir_fd=within)
    try:
        yield number
    finally:
        os.close(number)


def _copied(name: str, there: int, here: int) -> None:
    """What everybody may read. Links stay links: what they lead to is seen, or nobody's business.

    From one open folder into another: there are a thousand of them, and every command line waits for it.
    """
    with suppress(OSError):
        kind = os.stat(name, dir_fd=there, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(name, dir_fd=there), name, dir_fd=here)
        elif stat.S_ISDIR(kind) and kind & stat.S_IROTH:
            _copied_folder(name, there, here)
        elif stat.S_ISREG(kind) and kind & stat.S_IROTH:
            _copied_file(name, there, here)


def _copied_folder(name: str, there: int, here: int) -> None:
    os.mkdir(name, dir_fd=here)
    with _opened(name, there) as source, _opened(name, here) as target:
        for one in os.scandir(source):
            _copied(one.name, source, target)


def _copied_file(name: str, there: int, here: int) -> None:
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=there)
    with os.fdopen(source, "rb") as content:
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=here)
        with os.fdopen(target, "wb") as copy:
            shutil.copyfileobj(content, copy)
