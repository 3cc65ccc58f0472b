"""What lies in a copy and is in no commit: the work is not all that a person would be given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.app.jobs.recording import moved_in, passed_over_in
from greenroom.core.ports.workspace import LeftOut, Worktree
from greenroom.core.state.step import Step

SHOWN: Final = 5
MEGABYTE: Final = 1024 * 1024


async def left_behind(worktree: Worktree, steps: Sequence[Step]) -> tuple[str, ...]:
    """A sentence about each: what it is, and what to do about it. What commands have made where the checks make their
    files is nobody's work; but a person's file that went there would be nothing but deleted."""
    looked, moved = await worktree.look(), await worktree.moved(passed_over_in(steps), moved_in(steps))
    every = [*map(_said, looked.left_out), *(_moved(old, new) for old, new in moved.items())]
    more = len(every) - SHOWN
    return (*every[:SHOWN], *((f"{more} more files are not delivered either.",) if more > 0 else ()))


def _moved(old: str, new: str) -> str:
    return (
        f"{old!r} was moved to {new!r}, where the checks make files, and nothing that commands put there is delivered: "
        "it would only be deleted. Write it there with rewrite, or put it elsewhere. If it is to go, delete it there "
        "by its name."
    )


def _said(one: LeftOut) -> str:
    match one.why:
        case "repository":
            return (
                f"{one.path!r} is a repository of its own, so nothing in it is delivered. If its files are part of the "
                f"work, delete '{one.path}/.git'; else delete it, or let git ignore it."
            )
        case "submodule":
            return (
                f"{one.path!r} is in a submodule, which is another repository, so it is not delivered. It has to be "
                "changed there, and not in this work."
            )
        case "too_large":
            large = f"{one.size // MEGABYTE} MB"
            return f"{one.path!r} is too large to be delivered ({large}). Make it smaller, or let git ignore it."
        case "unreadable":
            return f"{one.path!r} cannot be read, so it is not delivered. Make it readable, or delete it."
        case _:
            return f"{one.path!r} is no file that can be delivered. Delete it, or let git ignore it."
