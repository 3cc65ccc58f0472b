"""Who a command is. Never root: whoever is root outside is somebody else behind walls, and the files stay whose they
were."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record

NOBODY_S: Final = 62_347
"""A number that belongs to nobody: distributions give out no such one, neither to people nor to services."""

NAME: Final = "greenroom"
"""How a command is called that is not the person."""


@record
class Identity:
    """`changes` says that we have to become it. `swapped`: what is root's in the workspace is seen as its own."""

    uid: int
    gid: int
    changes: bool = False
    swapped: bool = False


def identity(root: Path) -> Identity:
    """Ourselves; as root the owner of the workspace, and if that is root too, a number that is nobody's."""
    if os.geteuid() != 0:
        return Identity(uid=os.geteuid(), gid=os.getegid())
    owner = root.stat()
    if owner.st_uid != 0:
        return Identity(uid=owner.st_uid, gid=owner.st_gid or NOBODY_S, changes=True)
    return Identity(uid=NOBODY_S, gid=NOBODY_S, changes=True, swapped=True)
