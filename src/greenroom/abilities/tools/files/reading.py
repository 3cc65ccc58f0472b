"""read_code: a file, or some lines of it, with their numbers."""

from __future__ import annotations

import asyncio
from typing import Final

from greenroom.abilities.tools.files.arguments import Arguments
from greenroom.abilities.tools.files.texts import counted, decoded, flat
from greenroom.abilities.tools.files.tool import FileTool, failed, given
from greenroom.abilities.tools.files.writing import LIMIT
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import FileFault, digest_of
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, ToolCard

LINES: Final = 2000
"""Lines that are given at once."""

LONG: Final = 2000
"""Characters of a line; of a longer one the beginning."""

ROOM: Final = SHOWN - 1000
FARTHEST: Final = 10**9


class ReadCode(FileTool):
    """Pure: reading again gives what is there then."""

    card = ToolCard(
        spec=ToolSpec(
            name="read_code",
            description=(
                "Read a text file of the workspace, with line numbers. Use it before you change a file, and by range "
                "for a long one. Not for finding something: use search_files. "
                'Example: {"file": "src/app.py", "start_line": 40, "end_line": 90}'
            ),
            parameters={
                "type": "object",
                "properties": {
                    "file": {"type": "string", "description": "Path from the workspace's root."},
                    "start_line": {"type": "integer", "minimum": 1, "description": "First line; 1 if left out."},
                    "end_line": {"type": "integer", "minimum": 1, "description": "Last line; the end if left out."},
                },
                "required": ["file"],
            },
            pure=True,
        ),
        group="read",
        effect="pure",
        seconds=60,
    )

    async def run(self, bench: Bench) -> Outcome:
        """The lines, how many there are, and where it stopped."""
        try:
            arguments = given(bench)
            arguments.only(("file", "start_line", "end_line"))
            file = arguments.text("file")
            raw = await self._files.read(file, LIMIT)
            real = self._files.real(file)
            result = await asyncio.to_thread(numbered, raw, file, real, arguments)
        except (FileFault, ModelFault) as fault:
            return failed(fault)
        return Outcome(result=result)


def numbered(raw: bytes, file: str, real: str, arguments: Arguments) -> Data:
    """The result: what is shown, and what of which content that is."""
    lines = flat(decoded(raw, file).content).split("\n")
    if lines[-1] == "":
        lines.pop()
    first = arguments.number("start_line", 1, 1, FARTHEST)
    end = arguments.number("end_line", max(len(lines), first), 1, FARTHEST)
    last = min(end, len(lines))
    seen: dict[str, object] = {"path": real, "digest": digest_of(raw), "total": len(lines)}
    if not lines:
        return {"output": f"{file}: the file is empty.", "files": [seen]}
    if first > end:
        raise ModelFault(f"start_line {first} comes after end_line {end}. {file!r} has {counted(len(lines), 'line')}.")
    if first > last:
        raise ModelFault(f"There is no line {first} in {file!r}: it has {counted(len(lines), 'line')}.")
    rows, cut = _rows(lines, first, last)
    stop = first + len(rows) - 1
    if not cut:
        seen["lines"] = [first, stop]
    rest = f" Read on with start_line {stop + 1}." if stop < last else ""
    short = f" Of lines longer than {LONG} characters only the beginning is shown." if cut else ""
    head = f"{file}: lines {first}-{stop} of {len(lines)}.{rest}{short}"
    return {"output": "\n".join((head, *rows)), "files": [seen]}


def _rows(lines: list[str], first: int, last: int) -> tuple[list[str], bool]:
    """As many lines as there is room for, at least one; and whether one of them is not whole."""
    rows: list[str] = []
    size, cut = 0, False
    for number in range(first, min(last, first + LINES - 1) + 1):
        line = lines[number - 1]
        row = f"{number:6}\t{line[:LONG]}{'…' if len(line) > LONG else ''}"
        size += len(row.encode(errors="replace")) + 1
        if rows and size > ROOM:
            break
        cut = cut or len(line) > LONG
        rows.append(row)
    return rows, cut
