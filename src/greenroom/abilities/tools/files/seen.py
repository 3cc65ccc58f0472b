"""What an agent has seen of the files: read from the ended steps of its own thread, so a restart forgets nothing.

A step's result says under `files` which content was seen (`digest`), and which lines of it; a change says what it was
made from (`before`). What has left the thread's window is no longer seen: then the file has to be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from greenroom.core.base.records import Data, record
from greenroom.core.state.step import Step

TOOLS: Final = frozenset({"read_code", "patch", "rewrite"})


@record
class Seen:
    """The content that was seen last, and the lines of it; `whole` is true when those are all."""

    digest: str
    whole: bool = False
    lines: tuple[tuple[int, int], ...] = ()


def seen_in(history: Iterable[Step], tools: Collection[str] = TOOLS) -> Mapping[str, Seen]:
    """What was seen by means of these tools, by real path."""
    found: dict[str, Seen] = {}
    for step in history:
        if step.work.type == "tool" and step.work.executor in tools and step.state == "finished":
            for file in _files(step.result or {}):
                path = str(file.get("path"))
                found[path] = _next(found.get(path), file)
    return found


def _files(result: Data) -> Iterator[Data]:
    files = result.get("files")
    if isinstance(files, list | tuple):
        yield from (one for one in files if isinstance(one, dict))


def _next(before: Seen | None, file: Data) -> Seen:
    digest = str(file.get("digest"))
    if "before" in file:
        knew = before is not None and before.whole and before.digest == file["before"]
        return Seen(digest=digest, whole=knew or bool(file.get("whole")))
    same = before if before is not None and before.digest == digest else Seen(digest=digest)
    if same.whole:
        return same
    lines = same.lines
    match file.get("lines"):
        case [int(first), int(last)]:
            lines = _joined((*lines, (first, last)))
        case _:
            pass
    total = file.get("total")
    return Seen(digest=digest, lines=lines, whole=total == 0 or lines == ((1, total),))


def _joined(lines: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same lines in as few stretches as possible."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)
