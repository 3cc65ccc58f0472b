"""Blame: find the commit and the step of an agent that wrote a line."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.apply import is_in_head, write_tree_with
from greenroom.adapters.git.journal import FileState, JournalEntry, list_entries
from greenroom.adapters.git.refs import find_ref, is_ancestor, parse_commit_info, parse_trailers, write_commit
from greenroom.adapters.git.repository import Repository
from greenroom.core.base.errors import translate
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import BlameLine, CommitInfo, WorkspaceFault

FULL_HASH: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
BINARY_PROBE_BYTES: Final = 8000
"""How many bytes are searched for a zero byte, as git does to detect binary files."""


@record
class LineOrigin:
    """The commit that wrote a line, with the file name and line number in that commit."""

    commit: str
    path: str
    line: int
    boundary: bool = False


@record
class LinePosition:
    """A line number in a file with this content."""

    path: str
    line: int
    content: bytes


async def blame(repository: Repository, path: str, line: int) -> BlameLine | None:
    """Return the commit of a line and the step behind it; None if the line is not committed."""
    content = await asyncio.to_thread(_read_text, repository.root, path)
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    if not 0 < line <= len(lines):
        code = "git.no_line" if lines else "git.empty_file"
        raise WorkspaceFault("name", code, line=line, path=path, count=len(lines))
    position = LinePosition(path=path, line=line, content=content)
    head = await find_ref(repository, "HEAD")
    origin_in_head = await _follow_line(repository, head, position) if head else None
    text = lines[line - 1].rstrip(b"\r").decode(errors="replace")
    commit = origin_in_head.commit if origin_in_head else ""
    for base, tip, spot in await _list_work(repository, position, origin_in_head):
        if not await find_ref(repository, tip):
            continue  # from another clone, or already removed
        # Match by position, not by text: empty lines and brackets occur everywhere.
        origin = await _follow_line(repository, tip, spot, since=f"{base}..")
        if origin is not None and not origin.boundary:
            mark = parse_commit_info(await _read_message(repository, origin.commit))
            return BlameLine(commit=commit, text=text, step=mark, recorded=origin.commit)
    return BlameLine(commit=commit, text=text) if commit else None


def _read_text(root: Path, path: str) -> bytes:
    """Read a text file. Raise a *name* fault for anything without lines."""
    place, problem = root / path, ""
    try:
        kind = place.lstat().st_mode
    except OSError:
        raise WorkspaceFault("name", "git.no_file", path=path, root=str(root)) from None
    if stat.S_ISDIR(kind):
        problem = translate("git.is_folder", path=path)
    elif stat.S_ISLNK(kind):
        problem = translate("git.is_link", path=path, target=str(place.readlink()))
    elif not stat.S_ISREG(kind):
        problem = translate("git.not_regular", path=path)
    content = b"" if problem else place.read_bytes()
    if b"\0" in content[:BINARY_PROBE_BYTES]:
        problem = translate("git.is_binary", path=path)
    if problem:
        raise WorkspaceFault("name", problem)
    return content


async def _follow_line(repository: Repository, commit: str, spot: LinePosition, since: str = "") -> LineOrigin | None:
    """Trace a line of the current file through the history of a commit; None if the commit does not contain it."""
    commit_now = await _commit_on_top(repository, commit, spot)
    words = ("blame", "--porcelain", "-L", f"{spot.line},{spot.line}", f"{since}{commit_now}", "--", spot.path)
    result = await repository.plain_git.run_unchecked(*words)
    if result.code or result.out.startswith(commit_now.encode()):
        return None
    first, *rest = os.fsdecode(result.out).split("\n")
    origin, number = first.split(" ")[:2]
    name = next((row.removeprefix("filename ") for row in rest if row.startswith("filename ")), spot.path)
    path = spot.path if name.startswith('"') else name  # git quotes names with tabs, quotes …
    return LineOrigin(commit=origin, path=path, line=int(number), boundary="boundary" in rest)


async def _commit_on_top(repository: Repository, commit: str, spot: LinePosition) -> str:
    """Write a commit on top of this one that contains the current file, with matching line endings."""
    name = f"{commit}:{spot.path}"
    committed = (
        (await repository.objects.read_contents([name]))[name] if await repository.objects.find(name) else spot.content
    )
    content = spot.content  # with the line endings of the commit: git may convert them on checkout
    if b"\r\n" not in committed:
        content = content.replace(b"\r\n", b"\n")
    elif b"\r\n" not in content:
        content = content.replace(b"\n", b"\r\n")
    blob = await repository.write_object("blob", content)
    tree = await write_tree_with(repository, commit, {spot.path: FileState(kind="file", blob=blob)})
    return await write_commit(repository, tree, commit, "now")


async def _list_work(
    repository: Repository, here: LinePosition, origin: LineOrigin | None
) -> list[tuple[str, str, LinePosition]]:
    """Return the changes to search for the step, best first: base, tip, and the line's position.

    If a person committed the change themselves, its message has no trailers, so all applied entries are candidates.
    """
    journal_entries = list(reversed(await list_entries(repository)))
    if origin is not None and (pairs := await _find_base_and_tip(repository, origin.commit, journal_entries)):
        name = f"{origin.commit}:{origin.path}"
        content = (await repository.objects.read_contents([name]))[name]
        spot = LinePosition(path=origin.path, line=origin.line, content=content)
        return [(base, tip, spot) for base, tip in pairs]
    candidates = [paper for paper in journal_entries if paper.state == "applied" and here.path in paper.paths]
    return [(paper.base, paper.tip, here) for paper in candidates if await _may_contain(repository, paper, origin)]


async def _find_base_and_tip(
    repository: Repository, commit: str, journal_entries: Sequence[JournalEntry]
) -> list[tuple[str, str]]:
    """Return base and tip of the change in a commit.

    The journal decides first, because a hook may have rewritten the message. Trailers decide for commits from
    elsewhere.
    """
    if pairs := [(entry.base, entry.tip) for entry in journal_entries if entry.commit == commit]:
        return pairs
    trailers = parse_trailers(await _read_message(repository, commit))
    pair = trailers.get("base", ""), trailers.get("tip", "")
    return [pair] if all(FULL_HASH.fullmatch(entry) for entry in pair) else []  # the message is not trusted


async def _may_contain(repository: Repository, entry: JournalEntry, origin: LineOrigin | None) -> bool:
    """Return whether a line can come from this entry: its commit must be newer than the entry's base.

    An entry whose commit is in HEAD was already searched there.
    """
    if origin is not None and await is_ancestor(repository, origin.commit, entry.base):
        return False
    return not entry.commit or not await is_in_head(repository, entry.commit)


async def _read_message(repository: Repository, commit: str) -> str:
    found_commit = await repository.objects.read_commit(commit)
    return found_commit.message if found_commit is not None else ""


async def blame_file(repository: Repository, base: str, tip: str, path: str) -> list[BlameLine]:
    """Return the origin of each line of a file in a commit. Lines that are older than `base` have no step."""
    name = f"{tip}:{path}"
    if not await repository.objects.find(name):
        raise WorkspaceFault("name", "git.no_file", path=path, root=str(repository.root))
    out = await repository.plain_git.run("blame", "--porcelain", f"{base}..{tip}", "--", path)
    rows = os.fsdecode(out).split("\n")
    lines, commit, steps = list[BlameLine](), "", dict[str, CommitInfo | None]()
    for row in rows:
        if row.startswith("\t"):
            lines.append(BlameLine(commit=commit, text=row[1:], step=steps.get(commit)))
        elif row == "boundary":
            steps[commit] = None
        elif FULL_HASH.fullmatch(row.partition(" ")[0]) and row.count(" ") >= 2:
            commit = row.partition(" ")[0]
            if commit not in steps:
                steps[commit] = parse_commit_info(await _read_message(repository, commit))
    return lines


async def list_writers(repository: Repository, base: str, tip: str) -> dict[str, list[CommitInfo]]:
    """Return the steps that changed each file between two commits, newest first."""
    words = ("log", "-z", "--no-merges", "--no-renames", "--name-only", "--format=%x01%H", f"{base}..{tip}")
    found, info = dict[str, list[CommitInfo]](), None
    for field in os.fsdecode(await repository.plain_git.run(*words)).split("\0"):
        text = field.strip("\n")
        if text.startswith("\x01"):
            info = parse_commit_info(await _read_message(repository, text[1:41]))
            text = text.partition("\n")[2]
        if text and info is not None:
            found.setdefault(text, []).append(info)
    return found
