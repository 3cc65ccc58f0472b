"""Changes done to a tree, one file after the other, so that whoever is killed in between can go on or go back.

Each change looks first: what is done already is left, what is neither as it was nor as it will be is somebody's edit,
and nothing of it is touched.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from greenroom.adapters.git.planning import Change
from greenroom.adapters.git.states import NOTHING, Ground, State, same
from greenroom.core.base.records import record

DRAFT: Final = ".greenroom-"
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


@record
class Folder:
    """A folder that comes or goes with the files in it."""

    path: str
    mode: int = 0o777


@record
class Moves:
    """All changes one way: folders that go when they are empty, and those that come."""

    changes: tuple[Change, ...]
    leave: tuple[Folder, ...] = ()
    come: tuple[Folder, ...] = ()

    def back(self) -> Moves:
        """The other way round."""
        turned = tuple(Change(path=one.path, before=one.after, after=one.before) for one in self.changes)
        return Moves(changes=turned, leave=self.come, come=self.leave)


class Interfered(Exception):
    """A file is neither as it was nor as it is to be."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def folders(ground: Ground, changes: Sequence[Change]) -> tuple[tuple[Folder, ...], tuple[Folder, ...]]:
    """Those that will have nothing in them any more, and those that are missing."""
    gone = {one.path for one in changes if one.after.kind == "none"}
    there = [one.path for one in changes if one.after.kind != "none"]
    needed = {above for path in there for above in _above(path)}
    leave = dict[str, Folder]()
    for folder in sorted({above for path in gone for above in _above(path)}, key=lambda one: -one.count("/")):
        found = _emptied(ground, folder, gone | set(leave))
        if found is not None and folder not in needed:
            leave[folder] = found
    come = [one for one in sorted(needed) if ground.look(one)[0].kind != "folder"]
    return tuple(leave.values()), tuple(Folder(path=one) for one in come)


def perform(ground: Ground, moves: Moves, content: Callable[[str], bytes], token: str) -> None:
    """Do all of it, or what is left of it; `Interfered` at the first file that somebody else has changed."""
    clear(ground, moves.changes, token)
    for one in sorted(moves.changes, key=lambda one: -one.path.count("/")):
        if one.after.kind == "none" and _is_open(ground, one):
            with ground.folder_of(one.path) as (folder, name):
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
    for gone in sorted(moves.leave, key=lambda one: -one.path.count("/")):
        _drop(ground, gone)
    for new in sorted(moves.come, key=lambda one: one.path.count("/")):
        _make(ground, new)
    for number, one in enumerate(moves.changes):
        if one.after.kind != "none" and _is_open(ground, one):
            _write(ground, one, content(one.after.blob), f"{DRAFT}{token}-{number}.tmp")


def roll_back(ground: Ground, moves: Moves, content: Callable[[str], bytes], token: str) -> None:
    """Make it what it was, but for files that somebody else has changed."""
    rest = tuple(one for one in moves.changes if _is_either(ground, one))
    perform(ground, Moves(changes=rest, leave=moves.leave, come=moves.come).back(), content, token)


def edited(ground: Ground, changes: Iterable[Change]) -> list[str]:
    """Files that are neither as they were nor as they are to be."""
    return [one.path for one in changes if not _is_either(ground, one)]


def changed(ground: Ground, changes: Iterable[Change]) -> list[str]:
    """Files that are not as they were before."""
    return [one.path for one in changes if not same(_now(ground, one), one.before)]


def untouched(ground: Ground, changes: Iterable[Change]) -> bool:
    """Whether every file is as it was before."""
    return not changed(ground, changes)


def clear(ground: Ground, changes: Sequence[Change], token: str) -> None:
    """Take away what was being written when we were killed."""
    for number, one in enumerate(changes):
        with suppress(OSError), ground.folder_of(one.path) as (folder, _):
            os.unlink(f"{DRAFT}{token}-{number}.tmp", dir_fd=folder)


def _is_either(ground: Ground, change: Change) -> bool:
    now = _now(ground, change)
    return same(now, change.before) or same(now, change.after)


def _is_open(ground: Ground, change: Change) -> bool:
    """Whether a change is still to be done."""
    now = _now(ground, change)
    if same(now, change.after):
        return False
    if not same(now, change.before):
        raise Interfered(change.path)
    return True


def _now(ground: Ground, change: Change) -> State:
    """What is there. Where a folder stands or a file is in the way that has to go first, that is nothing yet."""
    now = ground.look(change.path)[0]
    return NOTHING if now.kind in ("folder", "blocked") and "none" in (change.before.kind, change.after.kind) else now


def _write(ground: Ground, change: Change, content: bytes, draft: str) -> None:
    with ground.folder_of(change.path) as (folder, name):
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        if change.after.kind == "link":
            os.symlink(os.fsdecode(content), draft, dir_fd=folder)
        else:
            _drafted(folder, name, draft, content, change.after.mode)
        with _tidied(folder, draft):
            _placed(folder, draft, name, new=change.before.kind == "none")
        os.fsync(folder)


def _drafted(folder: int, name: str, draft: str, content: bytes, mode: int) -> None:
    """The new content, whole and durable, under another name. One with few permissions has the usual ones added."""
    usual = mode & ~0o111 == 0
    file = os.open(draft, NEW, (0o777 if mode else 0o666) if usual else 0o600, dir_fd=folder)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        if not usual:
            _given(file, folder, name)
            os.fchmod(file, mode & 0o1777)
        os.fsync(file)


def _given(file: int, folder: int, name: str) -> None:
    """Let it be whose the file is that it replaces."""
    with suppress(FileNotFoundError, PermissionError):
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
        os.fchown(file, old.st_uid, old.st_gid)


def _placed(folder: int, draft: str, name: str, *, new: bool) -> None:
    """Give it its name; a new one only where nothing is."""
    if new:
        try:
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise Interfered(name) from None
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
        else:
            os.unlink(draft, dir_fd=folder)
            return
    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _tidied(folder: int, draft: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _drop(ground: Ground, gone: Folder) -> None:
    with suppress(OSError), ground.folder_of(gone.path) as (folder, name):
        os.rmdir(name, dir_fd=folder)


def _make(ground: Ground, new: Folder) -> None:
    with ground.folder_of(new.path) as (folder, name), suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
        if new.mode != Folder(path="").mode:
            os.chmod(name, new.mode, dir_fd=folder)
        os.fsync(folder)


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def _emptied(ground: Ground, folder: str, gone: set[str]) -> Folder | None:
    """The folder, if nothing but what goes is in it."""
    with suppress(OSError), ground.folder_of(f"{folder}/.") as (number, _):
        with os.scandir(number) as found:
            alone = all(f"{folder}/{one.name}" in gone for one in found)
        if alone:
            return Folder(path=folder, mode=stat.S_IMODE(os.fstat(number).st_mode))
    return None
