"""Landlock, told by data: which files may be reached, and how. It cannot be taken back."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Sequence
from typing import Final, TypedDict

from greenroom.adapters.commands.warden.syscalls import (
    LANDLOCK_ADD,
    LANDLOCK_CREATE,
    LANDLOCK_RESTRICT,
    system_call,
)

PATH_BENEATH: Final = 1
OF_FILES: Final = 0b1100_0000_0000_0111
"""Rights that a file can have; the others are those of folders."""


class Rules(TypedDict):
    """What is forbidden, but for what the rules let."""

    files: int
    network: int
    scopes: int
    rules: Sequence[tuple[str, int]]


class _Ruleset(ctypes.Structure):
    """`struct landlock_ruleset_attr`."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    """`struct landlock_path_beneath_attr`."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(rules: Rules) -> None:
    """From now on. What is not there cannot be let."""
    known = _Ruleset(rules["files"], rules["network"], rules["scopes"])
    # A kernel that is older than a field takes the structure without it, as long as it would be empty.
    size = 24 if rules["scopes"] else 16 if rules["network"] else 8
    ruleset = system_call(LANDLOCK_CREATE, known, size, 0)
    for path, rights in rules["rules"]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        beneath = _Beneath(rights if folder else rights & OF_FILES, place)
        system_call(LANDLOCK_ADD, ruleset, PATH_BENEATH, beneath, 0)
        os.close(place)
    system_call(LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)
