"""search_files: where something occurs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from greenroom.abilities.tools.files.globs import expanded
from greenroom.abilities.tools.files.hunting import Hunt, Match, TooSlow
from greenroom.abilities.tools.files.texts import Unreadable, decoded
from greenroom.abilities.tools.files.tool import FileTool, failed, given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import FileFault, Files, Walk
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, ToolCard

KNOWN: Final = ("pattern", "literal", "ignore_case", "folder", "glob", "context", "limit")
SECONDS: Final = 10.0
USUAL: Final = 50
MOST: Final = 200
CONTEXT: Final = 5
FILES: Final = 50_000
"""Files that are looked through at most."""

LARGE: Final = 2_000_000
"""Bytes of a file; larger ones are hardly ever source text."""

TOGETHER: Final = 32
"""Files that are read side by side."""

ROOM: Final = SHOWN - 1000


@record
class Query:
    """What is asked for."""

    folder: str
    globs: tuple[str, ...]
    context: int
    limit: int


class SearchFiles(FileTool):
    """Pure."""

    card = ToolCard(
        spec=ToolSpec(
            name="search_files",
            description=(
                "Find where a text or a regular expression occurs in the workspace's text files, line by line, "
                "without those that .gitignore names. Use it to find definitions and uses. Not for reading a file: "
                'use read_code. Example: {"pattern": "def load_\\\\w+", "glob": "*.py", "context": 2}'
            ),
            parameters={
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "A regular expression in Python's language."},
                    "literal": {"type": "boolean", "description": "Look for the pattern as it is written."},
                    "ignore_case": {"type": "boolean"},
                    "folder": {"type": "string", "description": "Where to look; the whole workspace if left out."},
                    "glob": {"type": "string", "description": "Which files, as in .gitignore: *.py, docs/**/*.md."},
                    "context": {"type": "integer", "minimum": 0, "description": f"Lines around, up to {CONTEXT}."},
                    "limit": {"type": "integer", "minimum": 1, "description": f"At most {MOST}; usually {USUAL}."},
                },
                "required": ["pattern"],
            },
            pure=True,
        ),
        group="read",
        effect="pure",
        seconds=60,
    )

    def _paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("folder") or ".",)

    async def run(self, bench: Bench) -> Outcome:
        """The lines, and what was not looked at."""
        try:
            arguments = given(bench)
            arguments.only(KNOWN)
            query = Query(
                folder=arguments.text("folder", ""),
                globs=tuple(expanded(arguments.text("glob", ""))),
                context=arguments.number("context", 0, 0, CONTEXT),
                limit=arguments.number("limit", USUAL, 1, MOST),
            )
            pattern, literal = arguments.text("pattern", blank=True), arguments.truth("literal")
            hunt = Hunt(pattern, literal=literal, ignore_case=arguments.truth("ignore_case"), seconds=SECONDS)
            walk = await self._files.walk(query.folder, globs=query.globs, limit=FILES)
        except (FileFault, ModelFault) as fault:
            return failed(fault)
        paths = [one.path for one in walk.entries if one.kind == "file" and not self._hides(one.path)]
        search = Search(self._files, hunt, query)
        await search.run(paths, walk)
        return search.outcome()


class Search:
    """One search through many files, and what came of it."""

    def __init__(self, files: Files, hunt: Hunt, query: Query) -> None:
        self._files = files
        self._hunt = hunt
        self._query = query
        self._found: list[tuple[str, Match]] = []
        self._notes: list[str] = []
        self._unread = 0
        self._slow = ""

    async def run(self, paths: Sequence[str], walk: Walk) -> None:
        """Look through them until there is enough or the time is over."""
        if walk.cut:
            self._notes.append("not everything was looked at, there is too much in this folder: name one below it")
        elif not walk.whole:
            self._notes.append("there are more files than were looked through")
        for start in range(0, len(paths), TOGETHER):
            group = paths[start : start + TOGETHER]
            contents = await asyncio.gather(*(self._read(path) for path in group))
            try:
                await asyncio.to_thread(self._look, group, contents)
            except TooSlow as slow:
                self._slow = str(slow)
                return
            if len(self._found) >= self._query.limit:
                self._notes.append("there may be more: narrow it down, or give a limit")
                return

    def outcome(self) -> Outcome:
        """What is said. A search that has found nothing in its time has failed."""
        if self._slow and not self._found:
            return Outcome(state="failed", error=self._slow, result={"reason": "too_slow"})
        if self._unread:
            self._notes.append(f"{self._unread} files were passed over: no text, too large, or gone")
        if self._hunt.cut:
            self._notes.append("of very long lines only the beginning was looked at")
        if self._slow:
            self._notes.append("the search took too long and was ended: use a simpler pattern, a glob or a folder")
        rows, shown = _rows(self._found)
        if shown < len(self._found):
            self._notes.append(f"{len(self._found) - shown} more are not shown")
        notes = "".join(f"; {note}" for note in self._notes)
        head = f"{len(self._found)} matches in {len({path for path, _ in self._found})} files{notes}."
        return Outcome(result={"output": "\n".join((head, *rows)), "count": len(self._found)})

    async def _read(self, path: str) -> bytes | None:
        try:
            return await self._files.read(path, LARGE)
        except FileFault:
            return None

    def _look(self, paths: Sequence[str], contents: Sequence[bytes | None]) -> None:
        for path, content in zip(paths, contents, strict=True):
            if self._hunt.over:
                raise self._hunt.slow()
            left = self._query.limit - len(self._found)
            if left <= 0:
                return
            try:
                text = decoded(content, path).content if content is not None else None
            except Unreadable:
                text = None
            self._unread += text is None
            found = self._hunt.matches(text, self._query.context, left) if text is not None else []
            self._found += [(path, match) for match in found]


def _rows(found: Sequence[tuple[str, Match]]) -> tuple[list[str], int]:
    """The lines of as many matches as there is room for; a line that two of them show is shown once."""
    rows: dict[tuple[str, int], str] = {}
    hits = {(path, match.line) for path, match in found}
    room = ROOM
    for number, (path, match) in enumerate(found):
        for line, text in match.shown:
            if (path, line) in rows:
                continue
            mark = ":" if (path, line) in hits else "-"
            row = rows[path, line] = f"{path}{mark}{line}{mark} {text}"
            room -= len(row.encode(errors="replace")) + 1
        if room < 0 and number:
            return list(rows.values()), number + 1
    return list(rows.values()), len(found)
