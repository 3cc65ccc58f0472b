"""Two system calls that Python has no name for.

openat2 opens a path, and the kernel sees to it that nothing leads out of a folder; renameat2 renames only if nothing is
there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from functools import cache
from typing import Final

SYS_OPENAT2: Final = 437
"""The same number on every architecture that came after 2019's unification, x86_64 and aarch64 among them."""

RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_BENEATH: Final = 0x08
RENAME_NOREPLACE: Final = 1
AGAIN: Final = 32
"""How often it is asked again when the kernel says that somebody renamed something meanwhile."""


class _How(ctypes.Structure):
    """The kernel's struct open_how."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(folder: int, path: str, flags: int) -> int:
    """A descriptor of what the path leads to below the folder; EXDEV if it would lead out of it."""
    how = _How(flags=flags | os.O_CLOEXEC, mode=0, resolve=RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    name = os.fsencode(path)
    error = errno.EAGAIN
    for _ in range(AGAIN):
        found, error = _call(folder, name, how)
        if found >= 0:
            return found
        if error not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(error, os.strerror(error), path)


def rename_to_new(folder: int, name: str, new: str) -> None:
    """Rename within a folder; FileExistsError when there is something."""
    call = getattr(_libc(), "renameat2", None)
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


@cache
def can_open_beneath() -> bool:
    """Whether this system has it; some containers forbid it."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"):
        return False
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(open_beneath(folder, ".", os.O_RDONLY | os.O_DIRECTORY))
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _call(folder: int, name: bytes, how: _How) -> tuple[int, int]:
    number, at, size = ctypes.c_long(SYS_OPENAT2), ctypes.c_long(folder), ctypes.c_size_t(ctypes.sizeof(how))
    found = _libc().syscall(number, at, ctypes.c_char_p(name), ctypes.byref(how), size)
    return int(found), ctypes.get_errno()


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
