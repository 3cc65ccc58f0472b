"""The ground of a workspace: from a path to an open folder and a name in it, without ever leaving the root.

No path is looked at first and opened later: it is opened folder by folder, each beneath the one before and never
through a link. What happens then happens in that open folder, whatever its path means by now.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from greenroom.core.ports.files import PROTECTED, FileFault, FileReason, is_protected, within

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
        with self._root() as root:
            for _ in range(LINKS):
                parent, _, name = path.rpartition("/")
                if name in ("", ".", ".."):
                    return Place(self._open(root, path, shown), "")
                folder = self._open(root, parent, shown)
                target = _target_or_close(folder, name)
                if target is None:
                    return Place(folder, name)
                os.close(folder)
                path = self._beside(parent, target, shown)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _beside(self, parent: str, target: str, shown: str) -> str:
        """Where a link in this folder leads, as seen from the root. That `..` leads out is seen later, on opening."""
        if not target.startswith("/"):
            return f"{parent}/{target}".strip("/")
        try:
            return within(target, self.names)
        except FileFault:
            raise _leads_out(shown, target) from None

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

    def _open(self, root: int, path: str, shown: str) -> int:
        """The folder at a path that may have links and `..` in it: one folder after the other, links read by hand."""
        way = _Path(open=[os.dup(root)], rest=deque(path.split("/")))
        try:
            while way.rest:
                self._step(way, way.rest.popleft(), shown)
        except BaseException:
            way.close()
            raise
        way.close(keep=way.open[-1])
        return way.open[-1]

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
            self._follow(way, part, error, shown)

    def _follow(self, way: _Path, part: str, error: OSError, shown: str) -> None:
        target = _target(way.open[-1], part)
        if target is None:
            raise error
        way.links += 1
        if way.links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            target = self._beside("", target, shown)
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


def _target_or_close(folder: int, name: str) -> str | None:
    try:
        return _target(folder, name)
    except BaseException:
        os.close(folder)
        raise


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
