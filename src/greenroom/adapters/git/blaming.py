"""Who wrote a line: from the file as it lies there to the step of an agent that has it in its commit."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Final

from greenroom.adapters.git.applying import ground_of
from greenroom.adapters.git.blobs import keep
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import Paper, papers
from greenroom.adapters.git.names import unquoted
from greenroom.adapters.git.refs import WHOLE, is_here, value_of
from greenroom.adapters.git.seeding import joined
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.states import State
from greenroom.adapters.git.trailers import mark_of, trailers_of
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Blamed, WorkspaceFault

IDENT: Final = re.compile(rb"\$Id(?:: [0-9a-f]{40,64} )?\$")
"""What git makes of `$Id$` in a file with the attribute *ident*, and that itself."""

BINARY: Final = 8000
"""Bytes at the beginning of a file in which git looks for a zero: a text has none."""


@record
class Origin:
    """The commit that a line is from, the file's name and the line's number there."""

    commit: str
    path: str
    line: int
    boundary: bool = False


@record
class Spot:
    """A line of a file that has this content."""

    path: str
    line: int
    content: bytes


@record
class Work:
    """What was done from one commit to another, and the line that may be of it."""

    base: str
    tip: str
    spot: Spot


async def blame(house: House, path: str, line: int) -> Blamed | None:
    """The line's commit, and the step behind it."""
    state, content = await asyncio.to_thread(ground_of(house).look, path)
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    if why := _why_none(house, path, state, content) or _too_far(path, line, len(lines)):
        raise WorkspaceFault("name", why)
    here = Spot(path=path, line=line, content=content)
    found = await _in_history(house, here)
    text = lines[line - 1].rstrip(b"\r").decode(errors="replace")
    told = Blamed(commit=found.commit if found else "", text=text)
    for work in await _works(house, here, state, found):
        origin = await _in_work(house, work)
        if origin is not None:
            mark = mark_of(await _message(house, origin.commit))
            return Blamed(commit=told.commit, text=told.text, step=mark, recorded=origin.commit)
    return told if told.commit else None


def _why_none(house: House, path: str, state: State, content: bytes) -> str:
    """Why what lies there has no lines; empty for a text."""
    match state.kind:
        case "none" | "blocked":
            return f"There is no file {path!r} in {str(house.repository.root)!r}."
        case "folder":
            return f"{path!r} is a folder. Name a file in it."
        case "link":
            return f"{path!r} is a link to {os.fsdecode(content)!r}, and has no lines of its own."
        case "other":
            return f"{path!r} is no file, so it has no lines."
        case "file":
            return f"{path!r} is binary, so it has no lines." if b"\0" in content[:BINARY] else ""


def _too_far(path: str, line: int, count: int) -> str:
    if 0 < line <= count:
        return ""
    has = "is empty" if not count else f"has {count} line{'s' if count != 1 else ''}"
    return f"There is no line {line} in {path!r}: it {has}."


async def _in_history(house: House, here: Spot) -> Origin | None:
    """The line's origin in the person's own commits; None for one that is in none yet."""
    head = await value_of(house, "HEAD")
    return await _followed(house, head, here) if head else None


async def _in_work(house: House, work: Work) -> Origin | None:
    """The step that wrote the line; None if it was there before, or came later. Where it stands decides, and not how it
    reads: an empty line and a bracket are everybody's."""
    if not await value_of(house, work.tip):
        return None  # somebody else's, or forgotten
    found = await _followed(house, work.tip, work.spot, since=f"{work.base}..")
    return None if found is None or found.boundary else found


async def _followed(house: House, commit: str, spot: Spot, since: str = "") -> Origin | None:
    """Where a line is from, followed from the file as it is now through this commit; None if it is not in that."""
    now = await _on_top(house, commit, spot)
    found = await _blamed(house, f"{since}{now}", spot.path, spot.line)
    return None if found is None or found.commit == now else found


async def _on_top(house: House, commit: str, spot: Spot) -> str:
    """A commit that follows this one with the file as it is now, but for what git may have changed on the way."""
    last = await house.plain.tried("cat-file", "blob", f"{commit}:{spot.path}")
    (blob,) = await keep(house, [spot.content if last.code else _kept_like(last.out, spot.content)])
    with house.temporary() as folder:
        git = house.on(house.repository.root, folder / "index")
        await git.ask("read-tree", commit)
        await git.ask("update-index", "-z", "--add", "--index-info", stdin=joined([f"100644 {blob}\t{spot.path}"]))
        tree = await git.text("write-tree", "--missing-ok")
    return await commit_tree(house, tree, commit, "now")


def _kept_like(other: bytes, content: bytes) -> bytes:
    """With the names of itself and the line ends of another: git has both in files and not in its commits."""
    if name := IDENT.search(other):
        content = IDENT.sub(name[0], content)
    if b"\r\n" in other:
        return content if b"\r\n" in content else content.replace(b"\n", b"\r\n")
    return content.replace(b"\r\n", b"\n")


async def _works(house: House, here: Spot, state: State, found: Origin | None) -> list[Work]:
    """Where to look for the step, best first. A person may have committed work themselves, which then has nothing in
    its message that leads to it."""
    written = list(reversed(await papers(house)))
    if found is not None and (pairs := await _committed(house, found.commit, written)):
        content = await house.plain.ask("cat-file", "blob", f"{found.commit}:{found.path}")
        spot = Spot(path=found.path, line=found.line, content=content)
        return [Work(base=base, tip=tip, spot=spot) for base, tip in pairs]
    every = [one for one in written if one.state == "applied" and here.path in one.paths]
    mine = [one for one in every if await _may_be_of(house, one, here.path, state, found)]
    return [Work(base=one.base, tip=one.tip, spot=here) for one in mine]


async def _committed(house: House, commit: str, written: Sequence[Paper]) -> list[tuple[str, str]]:
    """Base and tip of the work that a commit is of: what is written down of it counts, for a hook can have made any
    message of ours, and else what its message says, for it can come from elsewhere."""
    if own := [(one.base, one.tip) for one in written if one.commit == commit]:
        return own
    told = trailers_of(await _message(house, commit))
    pair = told.get("base", ""), told.get("tip", "")
    return [pair] if all(WHOLE.fullmatch(one) for one in pair) else []  # anybody can have written it


async def _may_be_of(house: House, paper: Paper, path: str, state: State, found: Origin | None) -> bool:
    """Whether a line can be of this work: not if its commit was there before the work began. Work that is in what is
    checked out has its lines there, unless a filter changed them; then the file has to be as the work left it."""
    if found is not None and await _is_older(house, found.commit, paper.base):
        return False
    if not paper.commit or not await is_here(house, paper.commit):
        return True
    return found is None and any((one.path, one.after.blob) == (path, state.blob) for one in paper.changes)


async def _is_older(house: House, commit: str, base: str) -> bool:
    return (await house.refs.tried("merge-base", "--is-ancestor", commit, base)).code == 0


async def _blamed(house: House, revision: str, path: str, line: int) -> Origin | None:
    said = await house.plain.tried("blame", "--porcelain", "-L", f"{line},{line}", revision, "--", path)
    if said.code:
        return None
    first, *rest = os.fsdecode(said.out).split("\n")
    commit, number = first.split(" ")[:2]
    names = [unquoted(one.removeprefix("filename ")) for one in rest if one.startswith("filename ")]
    return Origin(commit=commit, path=names[0] if names else path, line=int(number), boundary="boundary" in rest)


async def _message(house: House, commit: str) -> str:
    return os.fsdecode(await house.plain.ask("log", "-1", "--no-show-signature", "--format=%B", commit))
