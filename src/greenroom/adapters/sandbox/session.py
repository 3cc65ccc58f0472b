"""What every sandbox needs while it stands: what is protected, how much is used, and folders for commands.

The folders are ours for as long as we live: /tmp, /etc and home. A lock says so; leftovers are swept. Their /etc has
what programs need of the machine's, who they are themselves, and nothing of others.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.ground import ETC, NAME, Ground, Identity, checked, tools
from greenroom.adapters.sandbox.limits import Quota, Watching, over
from greenroom.adapters.sandbox.protection import Protection
from greenroom.core.ports.sandbox import Enclosed, Limits

ETC_FOLDER: Final = "/etc"
ENTERED: Final = stat.S_IROTH | stat.S_IXOTH
"""Others may list a folder, and reach what is in it."""


def furnish(folder: Path, who: Identity, home: Path, *, machine: str = ETC_FOLDER) -> tuple[str, ...]:
    """Make it in `folder`, for this one; returns which folders in it are empty, and to be seen as the machine has them.

    Of a folder all of which everybody may read, nothing is copied: a thousand links and certificates are a fifth of a
    second, for which every command would wait that is the first behind its walls.
    """
    folder.mkdir(mode=0o755)
    seen = [shown for name in ETC for shown in _take(Path(machine), folder, name)]
    name = NAME if who.changes else _name(who.uid)
    people = f"{name}:x:{who.uid}:{who.gid}::{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    (folder / "passwd").write_text(people, encoding="utf-8")
    (folder / "group").write_text(f"{name}:x:{who.gid}:\nnogroup:x:65534:\n", encoding="utf-8")
    (folder / "hosts").write_text("127.0.0.1 localhost greenroom\n::1 localhost\n", encoding="utf-8")
    return tuple(seen)


def _name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return NAME


def _take(machine: Path, folder: Path, name: str) -> Iterator[str]:
    """What everybody may read. Links stay links: what they lead to is seen, or nobody's business."""
    source, target = machine / name, folder / name
    with suppress(OSError):
        kind = source.lstat().st_mode
        if stat.S_ISLNK(kind):
            target.symlink_to(source.readlink())
        elif stat.S_ISDIR(kind) and _others(kind, ENTERED):
            target.mkdir()
            if _is_everybodys(source):
                yield name
                return
            for child in source.iterdir():
                yield from _take(machine, folder, f"{name}/{child.name}")
        elif stat.S_ISREG(kind) and _others(kind, stat.S_IROTH):
            shutil.copyfile(source, target)


def _is_everybodys(folder: Path) -> bool:
    """Whether others may read it, and all that is in it."""
    for place in (folder, *folder.rglob("*")):
        kind = place.lstat().st_mode
        if not stat.S_ISLNK(kind) and not _others(kind, ENTERED if stat.S_ISDIR(kind) else stat.S_IROTH):
            return False
    return True


def _others(mode: int, rights: int) -> bool:
    return mode & rights == rights


def readable_by_all(place: Path) -> Iterator[Path]:
    """What of a file or folder everybody may read, as few paths as possible."""
    with suppress(OSError):
        kind = place.stat().st_mode
        if stat.S_ISDIR(kind) and _others(kind, ENTERED):
            whole = _is_everybodys(place)
            for one in [place] if whole else sorted(place.iterdir()):
                yield from [one] if whole else readable_by_all(one)
        elif stat.S_ISREG(kind) and _others(kind, stat.S_IROTH):
            yield place


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


class Scratch(OwnFolder):
    """What commands have for themselves: a home, a /tmp and an /etc."""

    def __init__(self, folder: Path, *, name: str = "Greenroom agent", email: str = "agent@greenroom.invalid") -> None:
        super().__init__(folder)
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


class SandboxSession(ABC):
    """What every tier has of one workspace. With `weak` nothing is mounted, so what is protected is remembered and put
    back."""

    def __init__(self, ground: Ground, limits: Limits, who: Identity, *, weak: bool = False) -> None:
        self.ground = checked(ground)
        self.limits = limits
        self.who = who
        self.scratch = Scratch(ground.scratch)
        self.protection = Protection(ground, weak=weak)
        self._tools: list[Path] | None = None
        self._alone = threading.Lock()
        """Commands begin and end in threads."""

        layers = [] if weak else [Path(one.layer) for one in ground.lent if one.layer]
        for layer in layers:
            layer.mkdir(parents=True, exist_ok=True)
        self._quota = Quota((ground.root, self.scratch.place, *layers), limits)
        self._watching = Watching(limits)

    def around(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], door: str = "") -> Enclosed:
        """The command in its sandbox, with limits."""
        token = self.begin()
        try:
            return self.enclosed(token, words, folder, env, door)
        except BaseException:
            self.end(token)
            raise

    @abstractmethod
    def enclosed(self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], door: str) -> Enclosed:
        """A command that has begun, as this tier runs it."""

    def tidy(self, enclosed: Enclosed) -> None:
        """Take away its mount points, and put back what it changed that governs."""
        self.end(enclosed.token)

    @property
    def rlimits(self) -> dict[str, int]:
        """Those that hold for each process."""
        limits = self.limits
        return {
            "file_size": limits.file_size,
            "open_files": limits.open_files,
            "cpu_seconds": limits.cpu_seconds,
        }

    def begin(self) -> str:
        """A command is about to run; its name."""
        with self._alone:
            self.protection.begin()
        return secrets.token_hex(8)

    def end(self, token: str) -> None:
        """It has ended, or was not begun."""
        self._watching.forget(token)
        with self._alone:
            self.protection.end()

    def tools(self, env: Mapping[str, str]) -> list[Path]:
        """They are looked for once: a Python installed in the middle of a run is seen in the next one."""
        if self._tools is None:
            self._tools = tools(env, self.ground)
        return self._tools

    def overrun(self, enclosed: Enclosed, guard: int) -> str:
        """Why it has used too much: what all its processes have together, or room in the workspace."""
        with self._alone:
            self.protection.beat()
        usage = self._watching.usage(enclosed.token, guard)
        return over(usage, self.limits) or self._quota.overrun()

    def close(self) -> None:
        """What commands had for themselves goes with it."""
        self.scratch.close()
