"""The files of a workspace, in the thread that calls: from a path to an open folder and a name in it, never outside.

No path is looked at first and opened later: it is opened folder by folder, each beneath the one before and never
through a link. What happens then happens in that open folder, whatever its path means by now.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from greenroom.core.ports.files import PROTECTED, Entry, FileFault, FileReason, Kind, digest_of, is_protected, within

RENAME_NOREPLACE: Final = 1


def rename_to_new(folder: int, name: str, new: str) -> None:
    """Rename within a folder; FileExistsError when there is something."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    error = errno.ENOSYS
    if call is not None:
        done = call(folder, os.fsencode(name), folder, os.fsencode(new), RENAME_NOREPLACE)
        error = ctypes.get_errno() if done else 0
    if error in (errno.ENOSYS, errno.EINVAL):
        # Elsewhere: a second name is refused too if there is something, and then the first one is taken away.
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(name, dir_fd=folder)
    elif error:
        raise OSError(error, os.strerror(error), new)


SAID: Final[Mapping[int, tuple[FileReason, str]]] = {
    errno.ENOENT: ("missing", "There is no {path!r}."),
    errno.ENOTDIR: ("kind", "A part of {path!r} that should be a folder is none."),
    errno.EISDIR: ("kind", "{path!r} is a folder."),
    errno.EEXIST: ("exists", "{path!r} is there already."),
    errno.ELOOP: ("outside", "{path!r} goes through too many links."),
    errno.ENAMETOOLONG: ("path", "The name {path!r} is too long for this file system."),
    errno.EINVAL: ("path", "This file system does not take the name {path!r}."),
    errno.EACCES: ("read_only", "This process has no right to {path!r}."),
    errno.EPERM: ("read_only", "This process has no right to {path!r}."),
    errno.EROFS: ("read_only", "{path!r} is on a read-only file system."),
    errno.ENOSPC: ("disk", "The disk is full. {path!r} is as it was; make room and try again."),
    errno.EDQUOT: ("disk", "The disk quota is used up. {path!r} is as it was; make room and try again."),
    errno.EFBIG: ("disk", "{path!r} would be larger than this system allows; it is as it was."),
}


def fault_of(error: OSError, path: str) -> FileFault:
    """The fault that this error is, about this path."""
    reason, said = SAID.get(error.errno or 0, ("disk", "{path!r} cannot be used: {error}."))
    return FileFault(reason, said.format(path=path, error=error.strerror or str(error)))


@contextmanager
def told(path: str) -> Iterator[None]:
    """Whatever the system refuses in here is a fault about this path."""
    try:
        yield
    except OSError as error:
        raise fault_of(error, path) from error
    except UnicodeEncodeError as error:
        raise FileFault("path", f"{path[:200]!r} is no path: it cannot be written as UTF-8.") from error


FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
LINKS: Final = 40
"""Links that a path may go through, as in the kernel."""

DEEPEST: Final = 1000
"""Folders between a file and the root."""

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """An open folder and a name in it, at which there is no link; the name is "" for the folder itself."""

    folder: int
    name: str


@dataclass(slots=True)
class _Path:
    """A walk along a path: the folders that are open, their names, what is still to go."""

    open: list[int]
    rest: deque[str]
    names: list[str] = field(default_factory=list)
    links: int = 0

    def back(self) -> bool:
        """One folder up; False at the root."""
        if not self.names:
            return False
        self.names.pop()
        os.close(self.open.pop())
        return True

    def close(self, *, keep: int | None = None) -> None:
        """Close all folders but one."""
        for one in self.open:
            if one != keep:
                os.close(one)


class Ground:
    """One workspace on this disk."""

    def __init__(self, root: Path, *, at: Path | None = None) -> None:
        real = root.resolve()
        self.root = real.as_posix()
        known = (self.root, root.absolute().as_posix(), *((at.absolute().as_posix(),) if at is not None else ()))
        self.names = tuple(dict.fromkeys(known))

    def named(self, path: str) -> str:
        """The path as seen from the root."""
        return within(path, self.names)

    def real(self, path: str) -> str:
        """The path with its links followed, as far as there is something."""
        with told(path), self._root() as root:
            way = _Path(open=[os.dup(root)], rest=deque(self.named(path).split("/")))
            try:
                self._follow_links(way, path)
            finally:
                way.close()
        return "/".join(way.names)

    @contextmanager
    def place(self, path: str) -> Iterator[Place]:
        """The open folder in which this is, or would be."""
        shown, path = path, self.named(path)
        with told(shown):
            found = self._placed(path, shown)
        try:
            yield found
        finally:
            os.close(found.folder)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """The open folder that this is."""
        with self.place(path) as place:
            with told(path):
                found = os.open(place.name or ".", FOLDER | os.O_NOFOLLOW, dir_fd=place.folder)
            try:
                yield found
            finally:
                os.close(found)

    def guard(self, place: Place, path: str) -> None:
        """Refuse what is git's or ours: by its name, and by what each folder above it is to the one above that."""
        with told(path), self._root() as root:
            inside = is_protected(place.name) or self._in_protected(place.folder, _identity(root), path)
        if inside:
            raise FileFault("protected", f"{path!r} belongs to git or Greenroom and is not written by a tool.")

    @contextmanager
    def _root(self) -> Iterator[int]:
        found = os.open(self.root, FOLDER)
        try:
            yield found
        finally:
            os.close(found)

    def _placed(self, path: str, shown: str) -> Place:
        """The folder that a path leads to and the name in it, one folder after the other, links read by hand."""
        with self._root() as root:
            way = _Path(open=[os.dup(root)], rest=deque(path.split("/")))
        name = ""
        try:
            while way.rest:
                name = way.rest.popleft()
                if way.rest or name in ("", ".", ".."):
                    self._step(way, name, shown)
                    name = ""
                elif (target := _target(way.open[-1], name)) is not None:
                    self._follow(way, target, shown)
        except BaseException:
            way.close()
            raise
        way.close(keep=way.open[-1])
        return Place(way.open[-1], name)

    def _follow_links(self, way: _Path, shown: str) -> None:
        """Go as far as there are folders; behind a file, or nothing, only plain names may follow."""
        while way.rest:
            part = way.rest.popleft()
            try:
                self._step(way, part, shown)
            except (FileNotFoundError, NotADirectoryError):
                if ".." in way.rest:
                    raise
                way.names += [part, *way.rest]
                return

    def _step(self, way: _Path, part: str, shown: str) -> None:
        if part in ("", "."):
            return
        if part == "..":
            if not way.back():
                raise _leads_out(shown, "..")
            return
        try:
            way.open.append(os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=way.open[-1]))
            way.names.append(part)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            target = _target(way.open[-1], part)
            if target is None:
                raise
            self._follow(way, target, shown)

    def _follow(self, way: _Path, target: str, shown: str) -> None:
        way.links += 1
        if way.links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            try:
                target = within(target, self.names)
            except FileFault:
                raise _leads_out(shown, target) from None
            while way.back():
                pass
        way.rest.extendleft(reversed(target.split("/")))

    def _in_protected(self, folder: int, root: Identity, path: str) -> bool:
        """Whether some folder on the way up is what one above it calls `.git`, under whatever name we came there."""
        at, below = os.dup(folder), [_identity(folder)]
        try:
            for _ in range(DEEPEST):
                if below[-1] == root:
                    return False
                above = os.open("..", FOLDER, dir_fd=at)
                os.close(at)
                at = above
                if not _called_protected(above).isdisjoint(below):
                    return True
                below.append(_identity(above))
        finally:
            os.close(at)
        raise FileFault("outside", f"{path!r} is no longer in the workspace: a folder above it was moved.")


def _leads_out(path: str, target: str) -> FileFault:
    return FileFault("outside", f"{path!r} leads out of the workspace, through a link to {target!r}.")


def _target(folder: int, name: str) -> str | None:
    """Where the link of this name leads; None if there is none."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise
        return None


def _identity(folder: int) -> Identity:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _called_protected(folder: int) -> set[Identity]:
    """What is called `.git` or `.greenroom` here, in whatever spelling, and also if that is a link."""
    found: set[Identity] = set()
    for name in PROTECTED:
        with suppress(OSError):
            one = os.stat(name, dir_fd=folder)
            found.add((one.st_dev, one.st_ino))
    return found


PIECE: Final = 1 << 20
PATIENCE: Final = 10.0
"""Seconds to wait for another process that writes in the same folder."""

READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
KEPT_MODE: Final = 0o1777
"""The bits of a mode that a new content keeps. Like every write, it takes the right to act as the owner away."""

DRAFT: Final = ".greenroom-"
"""How a file begins that is being written; what a crash leaves of one is taken over by the next attempt."""


@dataclass(frozen=True, slots=True)
class Old:
    """What stands where something is to be written."""

    status: os.stat_result
    digest: str


class Disk:
    """The files of one ground."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def read(self, path: str, limit: int) -> bytes:
        """A whole file."""
        with self._ground.place(path) as place, told(path), opened(place, path) as (file, status):
            if status.st_size > limit:
                raise _too_large(path, status.st_size, limit)
            content = b"".join(_pieces(file, limit + 1))
        if len(content) > limit:
            raise _too_large(path, len(content), limit)
        return content

    def stat(self, path: str) -> Entry | None:
        """What is there."""
        try:
            with self._ground.place(path) as place, told(path):
                status = os.stat(place.name or ".", dir_fd=place.folder, follow_symlinks=False)
                digest = _digest(place, path) if stat.S_ISREG(status.st_mode) else ""
        except FileFault as fault:
            if fault.reason == "missing":
                return None
            raise
        return entry(self._ground.named(path), status, digest)

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder."""
        named = self._ground.named(path)
        with self._ground.folder(path) as folder, told(path), os.scandir(folder) as found:
            both = [(one.name, one.stat(follow_symlinks=False)) for one in found]
        return [entry(f"{named}/{shown(name)}".lstrip("/"), status) for name, status in sorted(both)]

    def write(self, path: str, content: bytes, expected: str | None) -> None:
        """Put a whole file in its place."""
        if expected is None:
            self._make_way(path)
        with self._ground.place(path) as place:
            self._ground.guard(place, path)
            with told(path), alone(place.folder, path):
                old = _expected(place, path, expected)
                self._replace(place, path, content, old)

    def delete(self, path: str, expected: str) -> None:
        """Take a file away."""
        with self._ground.place(path) as place:
            self._ground.guard(place, path)
            with told(path), alone(place.folder, path):
                _expected(place, path, expected)
                os.unlink(place.name, dir_fd=place.folder)
                os.fsync(place.folder)

    def _make_way(self, path: str) -> None:
        """Make the folders above a path that are not there."""
        parts = self._ground.named(path).split("/")[:-1]
        for number in range(1, len(parts) + 1):
            above = "/".join(parts[:number])
            with self._ground.place(above) as place:
                if not place.name or _status(place) is not None:
                    continue
                self._ground.guard(place, path)
                with told(above), suppress(FileExistsError):
                    os.mkdir(place.name, dir_fd=place.folder)
                    os.fsync(place.folder)

    def _replace(self, place: Place, path: str, content: bytes, old: Old | None) -> None:
        key = digest_of(f"{place.name}\n".encode(errors="surrogateescape") + content)
        draft = f"{DRAFT}{key[:20]}.tmp"
        try:
            _draft(place.folder, draft, content, old.status if old else None)
            if old is None:
                rename_to_new(place.folder, draft, place.name)
            else:
                _still(place, path, old.status)
                os.rename(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=place.folder)
        os.fsync(place.folder)


def entry(path: str, status: os.stat_result, digest: str = "") -> Entry:
    """An entry of what the system says."""
    return Entry(path=path, kind=kind_of(status), size=status.st_size, mode=stat.S_IMODE(status.st_mode), digest=digest)


def kind_of(status: os.stat_result) -> Kind:
    """What sort of thing it is."""
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def shown(name: str) -> str:
    """A name that can be written down; one that is no UTF-8 can be listed, but not opened."""
    return os.fsencode(name).decode("utf-8", "replace")


@contextmanager
def opened(place: Place, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """A file for reading. Anything else is refused before it is opened: opening a pipe or a device does things."""
    _only_files(os.stat(place.name or ".", dir_fd=place.folder, follow_symlinks=False), path)
    file = os.open(place.name, READ, dir_fd=place.folder)
    try:
        status = os.fstat(file)
        _only_files(status, path)
        yield file, status
    finally:
        os.close(file)


@contextmanager
def alone(folder: int, path: str) -> Iterator[None]:
    """No other writer of ours, of this process or another, is at work in this folder meanwhile."""
    end = time.monotonic() + PATIENCE
    while not _locked(folder):
        if time.monotonic() > end:
            raise FileFault("disk", f"Another program has kept the folder of {path!r} locked for {PATIENCE:.0f} s.")
        time.sleep(0.005)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # File systems without locks are written without: the content is compared either way.
        return error.errno not in (errno.EWOULDBLOCK, errno.EINTR)
    return True


def _only_files(status: os.stat_result, path: str) -> None:
    kind = kind_of(status)
    if kind == "file":
        return
    what = {"folder": "a folder", "link": "a link that changes all the time"}.get(kind, "a pipe, a socket or a device")
    raise FileFault("kind", f"{path!r} is {what}, not a file.")


def _pieces(file: int, limit: int) -> Iterator[bytes]:
    while limit > 0 and (piece := os.read(file, min(limit, PIECE))):
        limit -= len(piece)
        yield piece


def _status(place: Place) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _digest(place: Place, path: str) -> str:
    found = hashlib.sha256()
    with opened(place, path) as (file, _):
        while piece := os.read(file, PIECE):
            found.update(piece)
    return found.hexdigest()


def _expected(place: Place, path: str, expected: str | None) -> Old | None:
    """What is there, if it is what the caller thinks."""
    status = _status(place) if place.name else os.fstat(place.folder)
    if status is None:
        if expected is not None:
            raise FileFault("missing", f"{path!r} has vanished.")
        return None
    _only_files(status, path)
    if expected is None:
        raise FileFault("exists", f"{path!r} is there already.")
    if not status.st_mode & 0o222 or not os.access(place.name, os.W_OK, dir_fd=place.folder):
        raise FileFault("read_only", f"{path!r} is read-only (mode {stat.S_IMODE(status.st_mode):o}).")
    digest = _digest(place, path)
    if digest != expected:
        raise FileFault("changed", f"{path!r} is not what it was: somebody has changed it meanwhile.")
    return Old(status=status, digest=digest)


def _still(place: Place, path: str, old: os.stat_result) -> None:
    """Reading and writing a large file takes a while; what is looked at last is looked at just before."""
    now = _status(place)
    if now is None or _signature(now) != _signature(old):
        raise FileFault("changed", f"{path!r} is not what it was: somebody has changed it meanwhile.")


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _draft(folder: int, name: str, content: bytes, old: os.stat_result | None) -> None:
    """The new content, whole and durable, under another name."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, NEW, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest[:PIECE]) :]
        if old is not None:
            with suppress(PermissionError):
                os.fchown(file, old.st_uid, old.st_gid)
            os.fchmod(file, stat.S_IMODE(old.st_mode) & KEPT_MODE)
        os.fsync(file)
    finally:
        os.close(file)


def _too_large(path: str, size: int, limit: int) -> FileFault:
    return FileFault("too_large", f"{path!r} has {size:,} bytes; at most {limit:,} are read.")
