"""The files of a workspace, accessed in the calling thread: resolve a path to an open folder and a name, never outside.

A path is never checked first and opened later. It is opened folder by folder, each relative to the one before and never
through a link. All operations use that open folder, even if its path changes meanwhile.
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

from greenroom.core.ports.files import (
    PROTECTED_NAMES,
    EntryKind,
    FileEntry,
    FileFault,
    FileReason,
    compute_digest,
    is_protected,
    make_relative,
)

RENAME_NOREPLACE: Final = 1


def rename_without_replacing(folder: int, name: str, new: str) -> None:
    """Rename within a folder. Raise `FileExistsError` if the new name exists."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    error = errno.ENOSYS
    if call is not None:
        done = call(folder, os.fsencode(name), folder, os.fsencode(new), RENAME_NOREPLACE)
        error = ctypes.get_errno() if done else 0
    if error in (errno.ENOSYS, errno.EINVAL):
        # Other systems: link to the new name, which fails if it exists, then remove the old name.
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(name, dir_fd=folder)
    elif error:
        raise OSError(error, os.strerror(error), new)


FAULT_TEXTS: Final[Mapping[int, tuple[FileReason, str]]] = {
    errno.ENOENT: ("missing", "There is no {path!r}."),
    errno.ENOTDIR: ("kind", "A part of {path!r} that should be a folder is not a folder."),
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


def make_fault(error: OSError, path: str) -> FileFault:
    reason, template = FAULT_TEXTS.get(error.errno or 0, ("disk", "{path!r} cannot be used: {error}."))
    return FileFault(reason, template.format(path=path, error=error.strerror or str(error)))


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Translate errors in the block to faults about this path."""
    try:
        yield
    except OSError as error:
        raise make_fault(error, path) from error
    except UnicodeEncodeError as error:
        raise FileFault("path", f"{path[:200]!r} is not a path: it cannot be written as UTF-8.") from error


OPEN_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
MAX_LINKS: Final = 40
"""How many links a path may contain, as in the kernel."""

MAX_DEPTH: Final = 1000
"""How many folders may be between a file and the root."""

Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """An open folder and a name in it that is not a link. The name is empty for the folder itself."""

    folder: int
    name: str


@dataclass(slots=True)
class PathWalk:
    """A walk along a path: the open folders, their names, and the remaining parts."""

    open: list[int]
    rest: deque[str]
    names: list[str] = field(default_factory=list)
    links: int = 0

    def go_up(self) -> bool:
        """Go up one folder; return False at the root."""
        if not self.names:
            return False
        self.names.pop()
        os.close(self.open.pop())
        return True

    def close(self, *, keep: int | None = None) -> None:
        """Close all folders except `keep`."""
        for descriptor in self.open:
            if descriptor != keep:
                os.close(descriptor)


class ConfinedRoot:
    """The root of a workspace; no path can leave it."""

    def __init__(self, root: Path, *, at: Path | None = None) -> None:
        real = root.resolve()
        self.root = real.as_posix()
        names = (self.root, root.absolute().as_posix(), *((at.absolute().as_posix(),) if at is not None else ()))
        self.names = tuple(dict.fromkeys(names))

    def relative_path(self, path: str) -> str:
        return make_relative(path, self.names)

    def resolve_links(self, path: str) -> str:
        """Return the path with its links resolved, as far as it exists."""
        with translate_errors(path), self._open_root() as root:
            walk = PathWalk(open=[os.dup(root)], rest=deque(self.relative_path(path).split("/")))
            try:
                self._follow_links(walk, path)
            finally:
                walk.close()
        return "/".join(walk.names)

    @contextmanager
    def open_place(self, path: str) -> Iterator[OpenPlace]:
        """Open the folder that contains this path, whether the path exists or not."""
        given, path = path, self.relative_path(path)
        with translate_errors(given):
            opened_place = self._find_place(path, given)
        try:
            yield opened_place
        finally:
            os.close(opened_place.folder)

    @contextmanager
    def open_folder(self, path: str) -> Iterator[int]:
        with self.open_place(path) as place:
            with translate_errors(path):
                descriptor = os.open(place.name or ".", OPEN_FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=place.folder)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def refuse_protected(self, place: OpenPlace, path: str) -> None:
        """Refuse paths of git and Greenroom, by name and by the identity of all parent folders."""
        with translate_errors(path), self._open_root() as root:
            is_inside = is_protected(place.name) or self._is_in_protected(place.folder, _read_inode(root), path)
        if is_inside:
            raise FileFault("protected", f"{path!r} belongs to git or Greenroom and is not written by a tool.")

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        descriptor = os.open(self.root, OPEN_FOLDER_FLAGS)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _find_place(self, path: str, given: str) -> OpenPlace:
        """Open the folder of a path, one part after the other, and resolve links explicitly."""
        with self._open_root() as root:
            walk = PathWalk(open=[os.dup(root)], rest=deque(path.split("/")))
        name = ""
        try:
            while walk.rest:
                name = walk.rest.popleft()
                if walk.rest or name in ("", ".", ".."):
                    self._step(walk, name, given)
                    name = ""
                elif (target := _read_link(walk.open[-1], name)) is not None:
                    self._follow(walk, target, given)
        except BaseException:
            walk.close()
            raise
        walk.close(keep=walk.open[-1])
        return OpenPlace(walk.open[-1], name)

    def _follow_links(self, walk: PathWalk, given: str) -> None:
        """Follow the path while there are folders. After a file or a missing part, only plain names may follow."""
        while walk.rest:
            part = walk.rest.popleft()
            try:
                self._step(walk, part, given)
            except (FileNotFoundError, NotADirectoryError):
                if ".." in walk.rest:
                    raise
                walk.names += [part, *walk.rest]
                return

    def _step(self, walk: PathWalk, part: str, given: str) -> None:
        if part in ("", "."):
            return
        if part == "..":
            if not walk.go_up():
                raise _make_outside_fault(given, "..")
            return
        try:
            walk.open.append(os.open(part, OPEN_FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=walk.open[-1]))
            walk.names.append(part)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            target = _read_link(walk.open[-1], part)
            if target is None:
                raise
            self._follow(walk, target, given)

    def _follow(self, walk: PathWalk, target: str, given: str) -> None:
        walk.links += 1
        if walk.links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            try:
                target = make_relative(target, self.names)
            except FileFault:
                raise _make_outside_fault(given, target) from None
            while walk.go_up():
                pass
        walk.rest.extendleft(reversed(target.split("/")))

    def _is_in_protected(self, folder: int, root: Inode, path: str) -> bool:
        """Return whether any parent folder is a `.git` or `.greenroom`, under any name."""
        current, below = os.dup(folder), [_read_inode(folder)]
        try:
            for _ in range(MAX_DEPTH):
                if below[-1] == root:
                    return False
                above = os.open("..", OPEN_FOLDER_FLAGS, dir_fd=current)
                os.close(current)
                current = above
                if not _list_protected(above).isdisjoint(below):
                    return True
                below.append(_read_inode(above))
        finally:
            os.close(current)
        raise FileFault("outside", f"{path!r} is no longer in the workspace: a folder above it was moved.")


def _make_outside_fault(path: str, target: str) -> FileFault:
    return FileFault("outside", f"{path!r} leads out of the workspace, through a link to {target!r}.")


def _read_link(folder: int, name: str) -> str | None:
    """Return the target of a link; None if the name is not a link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise
        return None


def _read_inode(folder: int) -> Inode:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def _list_protected(folder: int) -> set[Inode]:
    """Return the inodes that are called `.git` or `.greenroom` here, in any spelling, including links."""
    inodes: set[Inode] = set()
    for name in PROTECTED_NAMES:
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder)
            inodes.add((status.st_dev, status.st_ino))
    return inodes


CHUNK_BYTES: Final = 1 << 20
LOCK_TIMEOUT_S: Final = 10.0
"""How long to wait for another writer in the same folder, in seconds."""

OPEN_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
OPEN_NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
KEPT_MODE_BITS: Final = 0o1777
"""The mode bits that new content keeps. Like every write, it clears the set-id bits."""

DRAFT_PREFIX: Final = ".greenroom-"
"""Prefix of a file that is being written. The next attempt replaces what a crash left."""


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """The file that is about to be replaced."""

    status: os.stat_result
    digest: str


class Disk:
    """File operations below one root."""

    def __init__(self, root: ConfinedRoot) -> None:
        self._root = root

    def read(self, path: str, limit: int) -> bytes:
        """Read a whole file. Raise `FileFault` if it is larger than `limit`."""
        with self._root.open_place(path) as place, translate_errors(path), open_file(place, path) as (file, status):
            if status.st_size > limit:
                raise _make_too_large_fault(path, status.st_size, limit)
            content = b"".join(_read_chunks(file, limit + 1))
        if len(content) > limit:
            raise _make_too_large_fault(path, len(content), limit)
        return content

    def stat(self, path: str) -> FileEntry | None:
        try:
            with self._root.open_place(path) as place, translate_errors(path):
                status = os.stat(place.name or ".", dir_fd=place.folder, follow_symlinks=False)
                digest = _compute_digest(place, path) if stat.S_ISREG(status.st_mode) else ""
        except FileFault as fault:
            if fault.reason == "missing":
                return None
            raise
        return make_entry(self._root.relative_path(path), status, digest)

    def list_entries(self, path: str) -> list[FileEntry]:
        relative = self._root.relative_path(path)
        with self._root.open_folder(path) as folder, translate_errors(path), os.scandir(folder) as scan:
            rows = [(item.name, item.stat(follow_symlinks=False)) for item in scan]
        return [make_entry(f"{relative}/{decode_name(name)}".lstrip("/"), status) for name, status in sorted(rows)]

    def write(self, path: str, content: bytes, expected: str | None) -> None:
        """Write a whole file atomically, if its current content is `expected`."""
        if expected is None:
            self._make_parents(path)
        with self._root.open_place(path) as place:
            self._root.refuse_protected(place, path)
            with translate_errors(path), lock_folder(place.folder, path):
                self._replace(place, path, content, _check_expected(place, path, expected))

    def delete(self, path: str, expected: str) -> None:
        """Delete a file, if its content is `expected`."""
        with self._root.open_place(path) as place:
            self._root.refuse_protected(place, path)
            with translate_errors(path), lock_folder(place.folder, path):
                _check_expected(place, path, expected)
                os.unlink(place.name, dir_fd=place.folder)
                os.fsync(place.folder)

    def _make_parents(self, path: str) -> None:
        """Create the missing parent folders of a path."""
        parts = self._root.relative_path(path).split("/")[:-1]
        for number in range(1, len(parts) + 1):
            above = "/".join(parts[:number])
            with self._root.open_place(above) as place:
                if not place.name or _read_status(place) is not None:
                    continue
                self._root.refuse_protected(place, path)
                with translate_errors(above), suppress(FileExistsError):
                    os.mkdir(place.name, dir_fd=place.folder)
                    os.fsync(place.folder)

    def _replace(self, place: OpenPlace, path: str, content: bytes, old: ExistingFile | None) -> None:
        key = compute_digest(f"{place.name}\n".encode(errors="surrogateescape") + content)
        draft = f"{DRAFT_PREFIX}{key[:20]}.tmp"
        try:
            _write_draft(place.folder, draft, content, old.status if old else None)
            if old is None:
                rename_without_replacing(place.folder, draft, place.name)
            else:
                now = _read_status(place)  # writing a large file takes time
                if now is None or _make_signature(now) != _make_signature(old.status):
                    raise FileFault("changed", f"{path!r} is not what it was: it was changed meanwhile.")
                os.rename(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=place.folder)
        os.fsync(place.folder)


def make_entry(path: str, status: os.stat_result, digest: str = "") -> FileEntry:
    """Convert a status of the system to an entry."""
    return FileEntry(
        path=path, kind=detect_kind(status), size=status.st_size, mode=stat.S_IMODE(status.st_mode), digest=digest
    )


def detect_kind(status: os.stat_result) -> EntryKind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def decode_name(name: str) -> str:
    """Decode a name for display. A name that is not UTF-8 can be listed, but not opened."""
    return os.fsencode(name).decode("utf-8", "replace")


@contextmanager
def open_file(place: OpenPlace, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a file for reading. Anything else is refused first, because opening a pipe or device has effects."""
    _refuse_non_files(os.stat(place.name or ".", dir_fd=place.folder, follow_symlinks=False), path)
    file = os.open(place.name, OPEN_READ_FLAGS, dir_fd=place.folder)
    try:
        status = os.fstat(file)
        _refuse_non_files(status, path)
        yield file, status
    finally:
        os.close(file)


@contextmanager
def lock_folder(folder: int, path: str) -> Iterator[None]:
    """Lock a folder against other writers of Greenroom, in this process or another."""
    end = time.monotonic() + LOCK_TIMEOUT_S
    while not _try_lock(folder):
        if time.monotonic() > end:
            raise FileFault(
                "disk", f"Another program has kept the folder of {path!r} locked for {LOCK_TIMEOUT_S:.0f} s."
            )
        time.sleep(0.005)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)


def _try_lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Without file locks, writing continues: the content is compared in any case.
        return error.errno not in (errno.EWOULDBLOCK, errno.EINTR)
    return True


def _refuse_non_files(status: os.stat_result, path: str) -> None:
    kind = detect_kind(status)
    if kind == "file":
        return
    what = {"folder": "a folder", "link": "a link that changes all the time"}.get(kind, "a pipe, a socket or a device")
    raise FileFault("kind", f"{path!r} is {what}, not a file.")


def _read_chunks(file: int, limit: int) -> Iterator[bytes]:
    while limit > 0 and (piece := os.read(file, min(limit, CHUNK_BYTES))):
        limit -= len(piece)
        yield piece


def _read_status(place: OpenPlace) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _compute_digest(place: OpenPlace, path: str) -> str:
    hasher = hashlib.sha256()
    with open_file(place, path) as (file, _):
        while piece := os.read(file, CHUNK_BYTES):
            hasher.update(piece)
    return hasher.hexdigest()


def _check_expected(place: OpenPlace, path: str, expected: str | None) -> ExistingFile | None:
    """Return the existing file. Raise `FileFault` if it is not as the caller expects."""
    status = _read_status(place) if place.name else os.fstat(place.folder)
    if status is None:
        if expected is not None:
            raise FileFault("missing", f"{path!r} has vanished.")
        return None
    _refuse_non_files(status, path)
    if expected is None:
        raise FileFault("exists", f"{path!r} is there already.")
    if not status.st_mode & 0o222 or not os.access(place.name, os.W_OK, dir_fd=place.folder):
        raise FileFault("read_only", f"{path!r} is read-only (mode {stat.S_IMODE(status.st_mode):o}).")
    digest = _compute_digest(place, path)
    if digest != expected:
        raise FileFault("changed", f"{path!r} is not what it was: it was changed meanwhile.")
    return ExistingFile(status=status, digest=digest)


def _make_signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _write_draft(folder: int, name: str, content: bytes, old: os.stat_result | None) -> None:
    """Write the new content durably under a temporary name."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, OPEN_NEW_FLAGS, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest[:CHUNK_BYTES]) :]
        if old is not None:
            with suppress(PermissionError):
                os.fchown(file, old.st_uid, old.st_gid)
            os.fchmod(file, stat.S_IMODE(old.st_mode) & KEPT_MODE_BITS)
        os.fsync(file)
    finally:
        os.close(file)


def _make_too_large_fault(path: str, size: int, limit: int) -> FileFault:
    return FileFault("too_large", f"{path!r} has {size:,} bytes; at most {limit:,} are read.")
