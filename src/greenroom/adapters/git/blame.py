"""Who wrote a line: from the file as it lies there to the step of an agent that has it in its commit."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.apply import is_here, tree_with
from greenroom.adapters.git.journal import Paper, State, papers
from greenroom.adapters.git.refs import commit_tree, is_ancestor, mark_of, trailers_of, value_of
from greenroom.adapters.git.repository import Repository
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Blamed, WorkspaceFault

WHOLE: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
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


async def blame(repository: Repository, path: str, line: int) -> Blamed | None:
    """The line's commit, and the step behind it."""
    content = await asyncio.to_thread(_read_text, repository.root, path)
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    if not 0 < line <= len(lines):
        has = "is empty" if not lines else f"has {len(lines)} line{'s' if len(lines) != 1 else ''}"
        raise WorkspaceFault("name", f"There is no line {line} in {path!r}: it {has}.")
    here = Spot(path=path, line=line, content=content)
    head = await value_of(repository, "HEAD")
    found = await _followed(repository, head, here) if head else None
    text = lines[line - 1].rstrip(b"\r").decode(errors="replace")
    commit = found.commit if found else ""
    for base, tip, spot in await _list_work(repository, here, found):
        if not await value_of(repository, tip):
            continue  # somebody else's, or forgotten
        # Where it stands decides, and not how it reads: an empty line and a bracket are everybody's.
        origin = await _followed(repository, tip, spot, since=f"{base}..")
        if origin is not None and not origin.boundary:
            mark = mark_of(await _message(repository, origin.commit))
            return Blamed(commit=commit, text=text, step=mark, recorded=origin.commit)
    return Blamed(commit=commit, text=text) if commit else None


def _read_text(root: Path, path: str) -> bytes:
    """What is in a text file; a *name* fault for what has no lines."""
    place, why = root / path, ""
    try:
        kind = place.lstat().st_mode
    except OSError:
        raise WorkspaceFault("name", f"There is no file {path!r} in {str(root)!r}.") from None
    if stat.S_ISDIR(kind):
        why = f"{path!r} is a folder. Name a file in it."
    elif stat.S_ISLNK(kind):
        why = f"{path!r} is a link to {str(place.readlink())!r}, and has no lines of its own."
    elif not stat.S_ISREG(kind):
        why = f"{path!r} is no file, so it has no lines."
    content = b"" if why else place.read_bytes()
    if b"\0" in content[:BINARY]:
        why = f"{path!r} is binary, so it has no lines."
    if why:
        raise WorkspaceFault("name", why)
    return content


async def _followed(repository: Repository, commit: str, spot: Spot, since: str = "") -> Origin | None:
    """Where a line is from, followed from the file as it is now through this commit; None if it is not in that."""
    now = await _commit_on_top(repository, commit, spot)
    words = ("blame", "--porcelain", "-L", f"{spot.line},{spot.line}", f"{since}{now}", "--", spot.path)
    said = await repository.plain.tried(*words)
    if said.code or said.out.startswith(now.encode()):
        return None
    first, *rest = os.fsdecode(said.out).split("\n")
    found, number = first.split(" ")[:2]
    name = next((row.removeprefix("filename ") for row in rest if row.startswith("filename ")), spot.path)
    path = spot.path if name.startswith('"') else name  # in quotes git writes a tab, a quote … in a name
    return Origin(commit=found, path=path, line=int(number), boundary="boundary" in rest)


async def _commit_on_top(repository: Repository, commit: str, spot: Spot) -> str:
    """A commit that follows this one with the file as it is now, but for what git may have changed on the way."""
    name = f"{commit}:{spot.path}"
    last = (await repository.objects.contents([name]))[name] if await repository.objects.find(name) else spot.content
    content = spot.content  # with the line ends of the last one: git may have others in files than in its commits
    if b"\r\n" not in last:
        content = content.replace(b"\r\n", b"\n")
    elif b"\r\n" not in content:
        content = content.replace(b"\n", b"\r\n")
    blob = await repository.write("blob", content)
    tree = await tree_with(repository, commit, {spot.path: State(kind="file", blob=blob)})
    return await commit_tree(repository, tree, commit, "now")


async def _list_work(repository: Repository, here: Spot, found: Origin | None) -> list[tuple[str, str, Spot]]:
    """Where to look for the step, best first: base and tip of some work, and the line in it.

    A person may have committed work themselves, which then has nothing in its message that leads to it.
    """
    written = list(reversed(await papers(repository)))
    if found is not None and (pairs := await _committed(repository, found.commit, written)):
        name = f"{found.commit}:{found.path}"
        content = (await repository.objects.contents([name]))[name]
        spot = Spot(path=found.path, line=found.line, content=content)
        return [(base, tip, spot) for base, tip in pairs]
    every = [paper for paper in written if paper.state == "applied" and here.path in paper.paths]
    return [(paper.base, paper.tip, here) for paper in every if await _may_be_of(repository, paper, found)]


async def _committed(repository: Repository, commit: str, written: Sequence[Paper]) -> list[tuple[str, str]]:
    """Base and tip of the work that a commit is of: what is written down of it counts, for a hook can have made any
    message of ours, and else what its message says, for it can come from elsewhere."""
    if own := [(one.base, one.tip) for one in written if one.commit == commit]:
        return own
    told = trailers_of(await _message(repository, commit))
    pair = told.get("base", ""), told.get("tip", "")
    return [pair] if all(WHOLE.fullmatch(one) for one in pair) else []  # anybody can have written it


async def _may_be_of(repository: Repository, paper: Paper, found: Origin | None) -> bool:
    """Whether a line can be of this work: not if its commit was there before the work began. Work that HEAD has was
    looked for there."""
    if found is not None and await is_ancestor(repository, found.commit, paper.base):
        return False
    return not paper.commit or not await is_here(repository, paper.commit)


async def _message(repository: Repository, commit: str) -> str:
    found = await repository.objects.commit(commit)
    return found.message if found is not None else ""
