"""What the system says of a file, as a sentence for a person or an agent."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from greenroom.core.ports.files import FileFault, FileReason

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
