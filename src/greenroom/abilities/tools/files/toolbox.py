"""The tools for files, all of them for one workspace."""

from __future__ import annotations

from greenroom.abilities.tools.files.listing import ListFiles
from greenroom.abilities.tools.files.patching import Patch
from greenroom.abilities.tools.files.reading import ReadCode
from greenroom.abilities.tools.files.rewriting import Rewrite
from greenroom.abilities.tools.files.searching import SearchFiles
from greenroom.abilities.tools.files.tool import Hides
from greenroom.core.ports.files import Files
from greenroom.core.ports.tool import ToolExecutor


def _nothing(_: str) -> bool:
    return False


def file_tools(files: Files, *, hides: Hides = _nothing) -> tuple[ToolExecutor, ...]:
    """read_code, list_files, search_files, patch and rewrite; `hides` names what lists and searches pass over."""
    return tuple(tool(files, hides) for tool in (ReadCode, ListFiles, SearchFiles, Patch, Rewrite))
