"""What has to be done to a tree so that it has somebody's changes, or why it cannot be done. Nothing is done here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from greenroom.adapters.git.comparing import Delta
from greenroom.adapters.git.states import EXECUTABLE, NOTHING, State, same, state_in_tree
from greenroom.core.base.records import record
from greenroom.core.ports.files import is_protected
from greenroom.core.ports.workspace import Clash, Clashes

Merge = Callable[[str, str, str], Awaitable[str | None]]
"""The three blobs of a file (the person's, the base, the work's) as one; None if they do not go together."""


@record
class Change:
    """One file: what it is, and what it is to be."""

    path: str
    before: State
    after: State


@record
class Planned:
    """Everything that is to be done; `merged` are files that both have changed."""

    changes: tuple[Change, ...] = ()
    merged: tuple[str, ...] = ()


WHY: Final[Mapping[str, str]] = {
    "blocked": "a part of its path is no folder here",
    "folder": "a folder stands in its place",
    "other": "something that is no file stands in its place",
    "none": "you deleted it, and the work changed it",
}


async def planned(deltas: Sequence[Delta], now: Mapping[str, State], merge: Merge) -> Planned | Clashes:
    """Each file that the work changed, against what is there `now`."""
    clashes, changes, merged = list[Clash](), list[Change](), list[str]()
    gone = {one.path for one in deltas if one.new_mode == "000000"}
    for one in deltas:
        made = await _settled(one, _freed(one.path, now, gone), merge)
        if isinstance(made, str):
            clashes.append(Clash(path=one.path, why=made))
            continue
        change, both = made
        merged += [one.path] if both else []
        changes += [change] if not same(change.before, change.after) else []
    return Clashes(clashes=tuple(clashes)) if clashes else Planned(changes=tuple(changes), merged=tuple(merged))


def _freed(path: str, now: Mapping[str, State], gone: set[str]) -> State:
    """What is there once everything that has to go is gone: a file may become a folder, and the other way round."""
    state = now[path]
    above = path.split("/")[:-1]
    if state.kind == "blocked" and any("/".join(above[:number]) in gone for number in range(1, len(above) + 1)):
        return NOTHING
    if state.kind == "folder" and any(one.startswith(f"{path}/") for one in gone):
        return NOTHING
    return state


async def _settled(delta: Delta, now: State, merge: Merge) -> tuple[Change, bool] | str:
    """What becomes of one file, and whether both have changed it; or why nothing can."""
    old, new = state_in_tree(delta.old_mode, delta.old), state_in_tree(delta.new_mode, delta.new)
    if any(is_protected(part) or part in ("", "..", ".") for part in delta.path.split("/")):
        return "it is git's or greenroom's own, and is never written"
    if "other" in (old.kind, new.kind):
        return "it is a repository of its own"
    if same(now, new):
        return Change(path=delta.path, before=now, after=now), False
    if same(now, old):
        return Change(path=delta.path, before=now, after=_with_mode(new, now)), False
    if not old.kind == new.kind == now.kind == "file":
        return _why(old, new, now)
    blob = await _blob(old, new, now, merge)
    if blob is None:
        return "you and the work changed the same lines"
    runs = new.runs if new.runs != old.runs else now.runs
    after = State(kind="file", blob=blob, mode=_mode(now.mode, runs=runs))
    return Change(path=delta.path, before=now, after=after), True


async def _blob(old: State, new: State, now: State, merge: Merge) -> str | None:
    if now.blob == old.blob:
        return new.blob
    if new.blob in (old.blob, now.blob):
        return now.blob
    return await merge(now.blob, old.blob, new.blob)


def _why(old: State, new: State, now: State) -> str:
    if now.kind in WHY:
        return WHY[now.kind]
    if new.kind == "none":
        return "you changed it, and the work deleted it"
    return "both you and the work have added it" if old.kind == "none" else "it became something else than a file"


def _with_mode(new: State, now: State) -> State:
    """A file that takes another's place has its permissions; a new one has none yet, and gets the usual ones."""
    if new.kind != "file":
        return new
    mode = _mode(now.mode, runs=new.runs) if now.kind == "file" else EXECUTABLE if new.runs else 0
    return State(kind="file", blob=new.blob, mode=mode)


def _mode(mode: int, *, runs: bool) -> int:
    """The same permissions, with those to run it for everybody who may read it."""
    return mode | (mode >> 2 & EXECUTABLE) if runs else mode & ~EXECUTABLE
