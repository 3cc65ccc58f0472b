"""What lies in a copy and can be in no commit: the work is not all that a person would be given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.core.ports.workspace import LeftOut

SHOWN: Final = 5
MEGABYTE: Final = 1024 * 1024


def left_behind(every: Sequence[LeftOut]) -> tuple[str, ...]:
    """A sentence about each: what it is, and what to do about it."""
    more = len(every) - SHOWN
    return (*map(_said, every[:SHOWN]), *((f"{more} more files are not delivered either.",) if more > 0 else ()))


def _said(one: LeftOut) -> str:
    match one.why:
        case "repository":
            return (
                f"{one.path!r} is a repository of its own, so nothing in it is delivered. If its files are part of the "
                f"work, delete '{one.path}/.git'; else delete it, or let git ignore it."
            )
        case "too_large":
            large = f"{one.size // MEGABYTE} MB"
            return f"{one.path!r} is too large to be delivered ({large}). Make it smaller, or let git ignore it."
        case "unreadable":
            return f"{one.path!r} cannot be read, so it is not delivered. Make it readable, or delete it."
        case _:
            return f"{one.path!r} is no file that can be delivered. Delete it, or let git ignore it."
