"""The tools for files, all of them for one workspace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.abilities.tools.files.globs import expanded
from greenroom.abilities.tools.files.patching import Patch
from greenroom.abilities.tools.files.reading import ReadCode
from greenroom.abilities.tools.files.rewriting import Rewrite
from greenroom.abilities.tools.files.searching import SearchFiles
from greenroom.abilities.tools.files.tool import FileTool, Hides, failed, given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import Entry, FileFault, Files
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, ToolCard, ToolExecutor

USUAL: Final = 200
MOST: Final = 1000
ROOM: Final = SHOWN - 1000
HIDDEN: Final = 10_000
"""Files that are looked at beyond those that are shown, since some of them may be hidden."""

CUT: Final = " Not everything was looked at: there is too much in this folder. Name one below it."


class ListFiles(FileTool):
    """Pure."""

    card = ToolCard(
        spec=ToolSpec(
            name="list_files",
            description=(
                "List the files of the workspace, without those that .gitignore names. Use it to find out where "
                "things are. Not for what is in them: use search_files or read_code. "
                'Example: {"folder": "src", "glob": "**/*.py"}'
            ),
            parameters={
                "type": "object",
                "properties": {
                    "folder": {"type": "string", "description": "Where to look; the whole workspace if left out."},
                    "glob": {
                        "type": "string",
                        "description": "Pattern as in .gitignore, seen from the folder: *.py, docs/**/*.{md,rst}.",
                    },
                    "limit": {"type": "integer", "minimum": 1, "description": f"At most {MOST}; usually {USUAL}."},
                },
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
        """The paths, and whether these are all."""
        try:
            arguments = given(bench)
            arguments.only(("folder", "glob", "limit"))
            folder, globs = arguments.text("folder", ""), expanded(arguments.text("glob", ""))
            limit = arguments.number("limit", USUAL, 1, MOST)
            walk = await self._files.walk(folder, globs=globs, limit=limit + HIDDEN)
        except (FileFault, ModelFault) as fault:
            return failed(fault)
        found = [one for one in walk.entries if not self._hides(one.path)]
        rows = _rows(found[:limit])
        every = walk.whole or (walk.cut and len(found) <= limit)
        more = "" if every and len(rows) == len(found) else _more(len(found) if walk.whole else 0)
        where = f" in {folder!r}" if folder else ""
        cut = CUT if walk.cut else ""
        head = f"{len(rows)} files{where}{more}. What .gitignore names is left out.{cut}"
        return Outcome(result={"output": "\n".join((head, *rows)), "count": len(rows)})


def _rows(entries: Iterable[Entry]) -> list[str]:
    rows: list[str] = []
    room = ROOM
    for one in entries:
        row = f"{one.path} (a link)" if one.kind == "link" else one.path
        room -= len(row.encode()) + 1
        if room < 0:
            break
        rows.append(row)
    return rows


def _more(total: int) -> str:
    found = f" of {total}" if total else "; there are more"
    return f"{found}: narrow it down with folder or glob"


def _nothing(_: str) -> bool:
    return False


def file_tools(files: Files, *, hides: Hides = _nothing) -> tuple[ToolExecutor, ...]:
    """read_code, list_files, search_files, patch and rewrite; `hides` names what lists and searches pass over."""
    return tuple(tool(files, hides) for tool in (ReadCode, ListFiles, SearchFiles, Patch, Rewrite))
