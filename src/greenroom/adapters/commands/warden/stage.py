"""Folders put where somebody without rights on the way to them can reach them, in a view that only one process has."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict

from greenroom.adapters.commands.warden.syscalls import (
    MOUNT_SETATTR,
    MOVE_MOUNT,
    NEW_MOUNTS,
    NEW_USERS,
    OPEN_TREE,
    mount,
    system_call,
    unshare,
)

HERE: Final = -100
CLONED: Final = 0x0008_0001  # OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
RECURSIVE: Final = 0x8000
OF_DESCRIPTOR: Final = 0x1000
FROM_DESCRIPTOR: Final = 0x4
MAPPED: Final = 0x0010_0000
PRIVATE: Final = 0x0004_4000  # MS_PRIVATE | MS_REC
ALL_IDS: Final = 4_294_967_295


class Placed(TypedDict):
    """One folder or file, and where it is put."""

    source: str
    place: str
    owned: bool


class _Attributes(ctypes.Structure):
    """`struct mount_attr`."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("users", ctypes.c_uint64),
    )


def put_up(stage: str, staged: Sequence[Placed], uid: int) -> None:
    """Take a view of our own and put them there. Sources are opened first: the stage may hide them.

    The kernel takes all of it down with the last process that has this view.
    """
    unshare(NEW_MOUNTS)
    mount("none", "/", "", PRIVATE, "")
    users = _root_and(uid) if any(one["owned"] for one in staged) else -1
    trees = [_tree(one, users) for one in staged]
    mount("tmpfs", stage, "tmpfs", 0, "mode=755,size=1m")
    for one, tree in zip(staged, trees, strict=True):
        place = Path(stage, one["place"])
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(f"/proc/self/fd/{tree}").is_dir():
            place.mkdir()
        else:
            place.touch()
        system_call(MOVE_MOUNT, tree, b"", HERE, os.fsencode(place), FROM_DESCRIPTOR)
        os.close(tree)
    if users >= 0:
        os.close(users)


def _tree(one: Placed, users: int) -> int:
    flags = CLONED if one["owned"] else CLONED | RECURSIVE
    tree = system_call(OPEN_TREE, HERE, os.fsencode(one["source"]), flags)
    if one["owned"]:
        # What belongs to root on the disk belongs to another one in this view, and the other way round.
        change = _Attributes(MAPPED, 0, 0, users)
        system_call(MOUNT_SETATTR, tree, b"", OF_DESCRIPTOR, change, ctypes.sizeof(change))
    return tree


def _root_and(uid: int) -> int:
    """A user namespace in which root and this one have changed places; nobody is in it."""
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(NEW_USERS)
            os.write(ready[1], b".")
            os.close(done[1])
            os.read(done[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    try:
        if os.read(ready[0], 1):
            swapped = f"0 {uid} 1\n1 1 {uid - 1}\n{uid} 0 1\n{uid + 1} {uid + 1} {ALL_IDS - uid - 1}\n"
            for kind in ("uid", "gid"):
                Path(f"/proc/{child}/{kind}_map").write_text(swapped, encoding="ascii")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for number in (*done, ready[0]):
            os.close(number)
        os.waitpid(child, 0)
