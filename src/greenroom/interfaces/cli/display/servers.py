"""What an MCP server has, for people and for programs. Its words are a stranger's."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from greenroom.app.mcp_servers import Seen
from greenroom.interfaces.cli.display.output import Output, harmless
from greenroom.interfaces.cli.display.progress import Progress
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.words import shorten

TOOLS: Final = (Column(name="tool"), Column(name="what it says of itself", gives=True))
LINE: Final = 100


def tools_told(seen: Seen) -> list[dict[str, object]]:
    """Its tools for a program."""
    return [{"name": one.name, "description": one.description} for one in seen.catalogue.offered.values()]


def left_out_told(seen: Seen) -> list[dict[str, object]]:
    """What is left out, for a program."""
    return [{"name": one.name, "why": one.why} for one in seen.catalogue.left_out]


def show_tools(out: Output, progress: Progress, seen: Seen) -> None:
    """Its tools for people, and what is left out."""
    offered = seen.catalogue.offered.values()
    rows = [row(one.name, shorten(harmless(" ".join(one.description.split())), LINE)) for one in offered]
    out.show(f"It speaks MCP {seen.version} and has {counted(len(rows))}.")
    if rows:
        out.show(Fitted(TOOLS, rows))
    show_left_out(progress, seen)


def show_left_out(progress: Progress, seen: Seen) -> None:
    """What no agent gets, and why."""
    for left in seen.catalogue.left_out:
        progress.note(f"Left out: {harmless(left.name)}. {harmless(left.why)}", style="yellow")


def show_changes(out: Output, seen: Seen) -> None:
    """What differs from what was agreed to, line by line."""
    for one in seen.catalogue.changes:
        out.show(Text(f"  {one.how}: {harmless(one.name)}", style="yellow"))
        for line in harmless(one.diff).splitlines():
            out.show(Text(f"    {line}", style={"+": "green", "-": "red"}.get(line[:1], "dim")))


def counted(tools: int) -> str:
    """How many."""
    return "1 tool" if tools == 1 else f"{tools} tools"
