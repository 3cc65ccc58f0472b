"""What somebody did to a file since we wrote it, in words."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

from greenroom.adapters.git.states import State

EDITED: Final = "it was edited since"
MADE: Final = "the work deleted it, and it was made anew since"
DELETED: Final = "it was deleted since"
REPLACED: Final = "something else stands in its place since"
PERMITTED: Final = "who may run it was changed since"


def what_changed(then: State, old: bytes, now: State, new: bytes) -> str:
    """From what it was `then`, with this content, to what it is `now`."""
    if then.kind == "none":
        return MADE
    if now.kind in ("none", "blocked"):
        return DELETED
    if now.kind != then.kind:
        return REPLACED
    if now.blob == then.blob:
        return PERMITTED if now.runs != then.runs else EDITED  # and put back, between two looks
    if now.kind != "file" or b"\0" in old or b"\0" in new:
        return EDITED
    return f"{EDITED}, first in line {_first(old, new)}"


def _first(old: bytes, new: bytes) -> int:
    """The number of the first line that is not the same in both."""
    pairs = zip_longest(old.splitlines(keepends=True), new.splitlines(keepends=True))
    return next(number for number, (one, other) in enumerate(pairs, 1) if one != other)
