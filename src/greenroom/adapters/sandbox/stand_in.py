"""A `commondir` that says what git would do without one: while it is there, and pinned, nobody can put another there.

With an empty one git takes the repository for broken, so it cannot be masked as everything else that is not there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "commondir"
ITSELF: Final = b".\n"
DRAFT: Final = "commondir.by-greenroom"


def put_in(place: Path) -> bool:
    """Whether there is one now, made by us: only in a real repository, and where there was none."""
    with suppress(OSError):
        whole = (place / "HEAD").is_file() and (place / "refs").is_dir() and (place / "objects").is_dir()
        if not whole or os.path.lexists(place / NAME):
            return False
        draft, owner = place / DRAFT, place.stat()
        draft.unlink(missing_ok=True)
        draft.write_bytes(ITSELF)
        if os.geteuid() == 0:
            os.chown(draft, owner.st_uid, owner.st_gid)
        draft.rename(place / NAME)  # at once: git takes half of one for a broken repository
        return True
    return False


def take_away(places: Iterable[Path]) -> None:
    """Those that still say the same."""
    for place in places:
        with suppress(OSError):
            path = place / NAME
            if not path.is_symlink() and path.stat().st_size == len(ITSELF) and path.read_bytes() == ITSELF:
                path.unlink()
