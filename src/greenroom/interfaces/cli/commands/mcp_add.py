"""`greenroom mcp add` and `remove`: servers come into a person's own settings file, and out of it again."""

from __future__ import annotations

import os
import shlex
from typing import Final

from greenroom.app.mcp_servers import Seen
from greenroom.app.mcp_settings import OwnFile, Wanted
from greenroom.app.settings.layers import user_file
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.interfaces.cli.asked.allowing import McpAdd, McpRemove
from greenroom.interfaces.cli.display.servers import left_out_told, show_tools, tools_told
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.servers import Around, around
from greenroom.interfaces.cli.runs.session import Desk

NOTHING: Final = "Nothing was changed. --force adds it all the same."


async def mcp_add(desk: Desk, order: McpAdd) -> Exit:
    """All that can be refused is refused first; then it is looked at; then it is written."""
    here = around(desk)
    wanted = _wanted(order)
    found, file = wanted.found(), OwnFile(user_file(os.environ))
    if order.name in here.settings.mcp:
        hint = f"Remove it first: {command(desk, 'mcp', 'remove', order.name)}"
        raise Refused(Rejected(code="exists", why=f"You have an MCP server {order.name!r} already.", hint=hint))
    file.check(order.name, wanted.table)
    desk.out.begin(command="mcp add", name=order.name)
    desk.progress.note(f"Starting {order.name} …", style="dim")
    try:
        seen: Seen | None = await here.look(found)
    except WorldFault as fault:
        if not order.force:
            raise WorldFault(f"{fault} {NOTHING}") from None
        desk.progress.note(str(fault), style="red")
        seen = None
    file.add(order.name, wanted.table)
    if seen is not None:
        here.listings.keep(found, seen.catalogue.listed)
    return _told(desk, order, here, file, seen)


def _told(desk: Desk, order: McpAdd, here: Around, file: OwnFile, seen: Seen | None) -> Exit:
    desk.out.show(f"Added: {order.name} (in {file.path})")
    if any(one.server.name == order.name for one in here.servers.found if not one.own):
        desk.progress.note(
            "The project has one of the same name, which is not used any more: yours is.", style="yellow"
        )
    if seen is None:
        look = command(desk, "mcp", "check", shlex.quote(order.name))
        desk.progress.note(f"It is not used before you have looked at its tools: {look}", style="yellow")
        return desk.out.result("added", Exit.DONE, file=str(file.path), works=False)
    show_tools(desk.out, desk.progress, seen)
    desk.progress.note("\nAn agent has them whose file says `groups: [mcp]`, or names them under `tools`.")
    told = {"version": seen.version, "tools": tools_told(seen), "left_out": left_out_told(seen)}
    return desk.out.result("added", Exit.DONE, file=str(file.path), works=True, **told)


def _wanted(order: McpAdd) -> Wanted:
    return Wanted(
        name=order.name,
        words=order.words,
        env=order.env,
        headers=order.headers,
        read_only=order.read_only,
        cwd=order.cwd,
        timeout=order.timeout,
        start_timeout=order.start_timeout,
    )


async def mcp_remove(desk: Desk, order: McpRemove) -> Exit:
    """Take it out, and forget what was seen of it."""
    here = around(desk)
    found = here.servers.named(order.name)
    if not found.own:
        hint = 'Take it out of .mcp.json, or switch it off there with "disabled": true.'
        raise Refused(Rejected(code="not_yours", why=f"The project brings the MCP server {order.name!r}.", hint=hint))
    file = OwnFile(user_file(os.environ))
    file.remove(order.name)
    here.listings.forget(found)
    desk.out.begin(command="mcp remove", name=order.name)
    desk.out.show(f"Removed: {order.name} (from {file.path})")
    return desk.out.result("removed", Exit.DONE, file=str(file.path))
