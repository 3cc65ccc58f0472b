"""The system calls of Linux that Python does not know, by number: they have the same one on every machine."""

from __future__ import annotations

import ctypes
import os
from typing import Final

OPEN_TREE: Final = 428
MOVE_MOUNT: Final = 429
MOUNT_SETATTR: Final = 442
LANDLOCK_CREATE: Final = 444
LANDLOCK_ADD: Final = 445
LANDLOCK_RESTRICT: Final = 446

NEW_MOUNTS: Final = 0x0002_0000
NEW_USERS: Final = 0x1000_0000
NEW_NETWORK: Final = 0x4000_0000

NO_NEW_PRIVILEGES: Final = 38
SET_SECCOMP: Final = 22
SECCOMP_FILTER: Final = 2

Argument = int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None


def system_call(number: int, *arguments: Argument) -> int:
    """Make it; `OSError` when the kernel says no."""
    return _checked(int(_libc().syscall(ctypes.c_long(number), *map(_passed, arguments))))


def unshare(flags: int) -> None:
    """Leave namespaces that are shared with others."""
    _checked(int(_libc().unshare(ctypes.c_int(flags))))


def enter(descriptor: int, kind: int) -> None:
    """Go into a namespace."""
    _checked(int(_libc().setns(ctypes.c_int(descriptor), ctypes.c_int(kind))))


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    """Mount something."""
    words = [word.encode() for word in (source, target, kind)]
    _checked(int(_libc().mount(*words, ctypes.c_ulong(flags), options.encode())))


def process_control(option: int, *arguments: Argument) -> None:
    """`prctl`, all five arguments of it."""
    filled = (*arguments, *(0,) * (4 - len(arguments)))
    _checked(int(_libc().prctl(ctypes.c_int(option), *map(_passed, filled))))


def set_capabilities(header: ctypes.Structure, data: ctypes.Structure) -> None:
    """`capset`."""
    _checked(int(_libc().capset(ctypes.byref(header), ctypes.byref(data))))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _passed(argument: Argument) -> object:
    if isinstance(argument, ctypes.Structure):
        return ctypes.byref(argument)
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
