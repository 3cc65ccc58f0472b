"""Who wrote a line: from the file as it lies there to the step of an agent that has it in its commit."""

from __future__ import annotations

import asyncio
import os
from typing import Final

from greenroom.adapters.git.applying import ground_of
from greenroom.adapters.git.blobs import contents_of, keep
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import papers
from greenroom.adapters.git.names import OURS, unquoted
from greenroom.adapters.git.refs import under, value_of
from greenroom.adapters.git.seeding import joined
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.states import State
from greenroom.adapters.git.trailers import mark_of, trailers_of
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Blamed, WorkspaceFault

BINARY: Final = 8000
"""Bytes at the beginning of a file in which git looks for a zero: a text has none."""


@record
class Origin:
    """The commit that a line is from, the file's name and the line's number there."""

    commit: str
    path: str
    line: int
    boundary: bool = False


async def blame(house: House, path: str, line: int) -> Blamed | None:
    """The line's commit, and the step behind it."""
    state, content = await asyncio.to_thread(ground_of(house).look, path)
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    if why := _why_none(house, path, state, content) or _too_far(path, line, len(lines)):
        raise WorkspaceFault("name", why)
    text = lines[line - 1].rstrip(b"\r")
    head = await value_of(house, "HEAD")
    found = await _in_history(house, path, line, state, head)
    told = Blamed(commit=found.commit if found else "", text=text.decode(errors="replace"))
    for base, tip, name in await _works(house, path, found):
        origin = await _in_work(house, base, tip, name, text, line)
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


async def _in_history(house: House, path: str, line: int, state: State, head: str) -> Origin | None:
    """The line's origin in the person's own commits; None for one that is in none yet."""
    if not head:
        return None
    kept = await _as_committed(house, head, path, state)
    with house.temporary() as folder:
        git = house.on(house.repository.root, folder / "index")
        await git.ask("read-tree", head)
        await git.ask("update-index", "-z", "--add", "--index-info", stdin=joined([f"100644 {kept}\t{path}"]))
        tree = await git.text("write-tree", "--missing-ok")
    now = await commit_tree(house, tree, head, "now")
    origin = await _blamed(house, now, path, line)
    return None if origin is None or origin.commit == now else origin


async def _as_committed(house: House, head: str, path: str, state: State) -> str:
    """The file as a commit would have it: with the line ends that the last one has."""
    last = await house.plain.tried("rev-parse", "--verify", "--quiet", f"{head}:{path}")
    if last.code:
        return state.blob
    both = await contents_of(house, (blob := last.out.decode().strip(), *await keep(house, [await _read(house, path)])))
    now = both.get(state.blob, b"")
    if b"\r\n" in both[blob] or b"\r\n" not in now:
        return state.blob
    return (await keep(house, [now.replace(b"\r\n", b"\n")]))[0]


async def _read(house: House, path: str) -> bytes:
    return (await asyncio.to_thread(ground_of(house).look, path))[1]


async def _works(house: House, path: str, found: Origin | None) -> list[tuple[str, str, str]]:
    """Where to look for the step, best first: base, tip and the file's name there. A person may have committed work
    themselves, which then has nothing in its message that leads to it."""
    if found is not None:
        told = trailers_of(await _message(house, found.commit))
        if "base" in told and "tip" in told:
            return [(told["base"], told["tip"], found.path)]
    runs = {name.split("/")[2] for name, _, _ in await under(house, f"{OURS}/") if "/@applied/" in name}
    every = [one for run in sorted(runs) for one in await papers(house, run) if one.state == "applied"]
    mine = [one for one in reversed(every) if path in one.paths]
    if found is not None:
        mine = [one for one in mine if not await _is_older(house, found.commit, one.base)]
    return [(one.base, one.tip, path) for one in mine]


async def _is_older(house: House, commit: str, base: str) -> bool:
    """Whether a commit was there before the work began: then it has nothing of it."""
    return (await house.refs.tried("merge-base", "--is-ancestor", commit, base)).code == 0


async def _in_work(house: House, base: str, tip: str, path: str, text: bytes, line: int) -> Origin | None:
    """The step that wrote a line like this one, nearest to where it stands now; None if the line was there before."""
    said = await house.plain.tried("cat-file", "blob", f"{tip}:{path}")
    if said.code:
        return None
    like = [number for number, one in enumerate(said.out.split(b"\n"), 1) if one.rstrip(b"\r") == text]
    if not like:
        return None
    found = await _blamed(house, f"{base}..{tip}", path, min(like, key=lambda number: abs(number - line)))
    return None if found is None or found.boundary else found


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
