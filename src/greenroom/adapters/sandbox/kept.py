"""Files as they were before commands ran, known to all processes that run commands in one workspace.

Two of them would otherwise take what the other's commands have just written for a person's own. One that is killed
cannot put anything back: the next one does, because it finds the record.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.core.base.records import evolve, record

MOST: Final = 16 * 1024 * 1024
"""Bytes that are remembered of one file."""

BEAT: Final = 1.0
LATE: Final = 5.0
"""Seconds after the last beat in which a command may still have been alive."""


@record
class Kept:
    """One file, link or folder as it was. A folder has what was in it, by name (its bytes as Latin-1)."""

    mode: int
    content: bytes = b""
    entries: Mapping[str, Kept] | None = None


@record
class Before:
    """What was there when no command ran, by the keys of paths: contents, or None for nothing.

    What was `absent` is removed if it is empty afterwards. Settings `led` git to files, and (True) folders, of the
    workspace. `git` is the inode of `.git`; in `stood_in` folders a `commondir` of ours stands for one that was not
    there.
    """

    kept: Mapping[str, Kept | None] = {}
    absent: tuple[str, ...] = ()
    led: Mapping[str, bool] = {}
    git: int = 0
    stood_in: tuple[str, ...] = ()


class SharedRecord:
    """A file in `folder`, locked by every process that runs commands in the workspace at `root`."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.before"
        self._file = -1

    def enter(self, look: Callable[[], Before], mend: Callable[[Before], None]) -> Before:
        """What all go by. Who is alone looks, after having mended what a killed process left."""
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            alone = self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not alone:
                self._lock(fcntl.LOCK_SH)
            if self._is_current():
                known = self._read()
                if alone:
                    return self._begin(known and self._of_the_dead(known), look, mend)
                if known is not None:
                    return known
            self._close()  # another one is just leaving, or just coming

    def beat(self) -> None:
        """Commands still run: who finds the record later knows until when."""
        if self._file >= 0 and time.time() - os.fstat(self._file).st_mtime > BEAT:
            os.utime(self._file)

    def leave(self, mend: Callable[[Before], None], before: Before) -> None:
        """Our last command has ended: if no other process's runs, everything is mended."""
        try:
            if self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB):
                mend(before)
                self._path.unlink(missing_ok=True)
        finally:
            self._close()

    def _begin(self, left: Before | None, look: Callable[[], Before], mend: Callable[[Before], None]) -> Before:
        try:
            if left is not None:
                mend(left)
            before = look()
            content = msgspec.msgpack.encode(before)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, content, 0)
        except BaseException:
            self._path.unlink(missing_ok=True)
            self._close()
            raise
        self._lock(fcntl.LOCK_SH)
        return before

    def _of_the_dead(self, left: Before) -> Before:
        """What they left, without what was changed when they were dead."""
        died = os.fstat(self._file).st_mtime + LATE
        return evolve(left, kept={path: one for path, one in left.kept.items() if _changed(path_of(path)) <= died})

    def _lock(self, how: int) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self._file, how)
            return True
        return False

    def _is_current(self) -> bool:
        """Whether the file was not taken away while we waited for it."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        return False

    def _read(self) -> Before | None:
        with suppress(msgspec.DecodeError, ValueError):
            return msgspec.msgpack.decode(os.pread(self._file, os.fstat(self._file).st_size, 0), type=Before)
        return None

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1


def remember(place: Path) -> Kept | None:
    """What is there now; None where nothing is."""
    try:
        mode = os.lstat(place).st_mode
        if stat.S_ISLNK(mode):
            return Kept(mode=mode, content=os.fsencode(place.readlink()))
        if stat.S_ISDIR(mode):
            inner = {key_of(one.name): remember(one) for one in place.iterdir()}
            return Kept(mode=mode, entries={name: kept for name, kept in inner.items() if kept is not None})
        if not stat.S_ISREG(mode):
            return Kept(mode=mode)
        with place.open("rb") as file:
            return Kept(mode=mode, content=file.read(MOST))
    except OSError:
        return None


def put_back(before: Mapping[str, Kept | None]) -> None:
    """Make it what it was, while no command runs. Where the folder is a link by now there is nothing to put it into."""
    places = {path_of(path): kept for path, kept in before.items()}
    for place, kept in places.items():
        if kept is not None and not os.path.lexists(place.parent) and _is_real(place.parent.parent):
            place.parent.mkdir()
    for place, kept in places.items():
        if _is_real(place.parent) and remember(place) != kept:
            _remove(place)
            if kept is not None:
                _restore(place, kept)


def _is_real(folder: Path) -> bool:
    return folder.is_dir() and folder.resolve() == folder


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(place).st_mode):
            shutil.rmtree(place)
        else:
            place.unlink()


def _restore(place: Path, kept: Kept) -> None:
    if stat.S_ISLNK(kept.mode):
        place.symlink_to(os.fsdecode(kept.content))
    elif kept.entries is not None:
        place.mkdir()
        for name, one in kept.entries.items():
            _restore(place / path_of(name), one)
        place.chmod(stat.S_IMODE(kept.mode))
    elif stat.S_ISREG(kept.mode):
        place.write_bytes(kept.content)
        place.chmod(stat.S_IMODE(kept.mode))


def key_of(path: Path | str) -> str:
    """A path, or name, as text that can be stored: names need not be UTF-8."""
    return os.fsencode(path).decode("latin-1")


def path_of(key: str) -> Path:
    """The path of a key."""
    return Path(os.fsdecode(key.encode("latin-1")))


def _changed(place: Path) -> float:
    """When it, or something in it, was changed; of what is gone, when it may have gone. The kernel dates that."""
    with suppress(OSError):
        inner = place.iterdir() if place.is_dir() and not place.is_symlink() else ()
        return max(os.lstat(one).st_ctime for one in (place, *inner))
    with suppress(OSError):
        return os.lstat(place.parent).st_ctime
    return 0.0
