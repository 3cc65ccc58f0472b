"""`greenroom mcp list` and `check`: which servers there are here, whether they work, and what has changed in them."""

from __future__ import annotations

import shlex
import sys
from typing import Final

from rich.text import Text

from greenroom.adapters.mcp.configuration import masked
from greenroom.app.mcp_servers import Found, Seen
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.interfaces.cli.asked.allowing import McpCheck, McpList
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.display.servers import (
    counted,
    left_out_told,
    show_changes,
    show_left_out,
    show_tools,
    tools_told,
)
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.servers import Around, around
from greenroom.interfaces.cli.runs.session import Desk

SERVERS: Final = (
    Column(name="server"),
    Column(name="whose"),
    Column(name="tools"),
    Column(name="what", gives=True, needs=60, style="dim"),
)


async def mcp_list(desk: Desk, _: McpList) -> Exit:
    """A row per server."""
    here = around(desk)
    servers = here.servers
    desk.out.begin(command="mcp list")
    desk.out.expect("servers")
    rows: list[list[Text]] = []
    for found in servers.found:
        told = _fields(here, found)
        desk.out.item("server", told)
        rows.append(row(*(harmless(str(told[key])) for key in ("name", "whose", "state", "what"))))
    if rows:
        desk.out.show(Fitted(SERVERS, rows))
    else:
        desk.progress.note(f"There is none. Add one: {command(desk, 'mcp', 'add')} NAME -- COMMAND ARGS…")
    for one in servers.hidden:
        desk.progress.note(f"The project's {one.server.name!r} is not used: yours of the same name is.", style="yellow")
    _say_faults(desk, servers.faults)
    return desk.out.result("ok", Exit.DONE, faults=list(servers.faults))


def _fields(here: Around, found: Found) -> dict[str, object]:
    known = here.listings.of(found)
    state = counted(len(known.offered)) if known is not None else "not looked at"
    if not here.trusts(found):
        state = "not agreed to"
    if not found.server.enabled:
        state = "switched off"
    return {
        "name": found.server.name,
        "whose": "yours" if found.own else "the project's",
        "what": masked(found.server),
        "state": state,
        "tools": None if known is None else len(known.offered),
    }


# ----------------------------------------------------------------------------------------------------------- check


@record
class Checked:
    """How a server is: a `fault` where it does not work; `agreed` says that its tools are used from now on."""

    found: Found
    seen: Seen | None = None
    fault: str = ""
    agreed: bool = False


async def mcp_check(desk: Desk, order: McpCheck) -> Exit:
    """Look at one or all of them, and keep what the person agrees to."""
    here = around(desk)
    servers = here.servers
    chosen = [servers.named(order.name)] if order.name else [one for one in servers.found if one.server.enabled]
    desk.out.begin(command="mcp check")
    desk.out.expect("servers")
    faults = () if order.name else servers.faults
    _say_faults(desk, faults)
    right = not faults
    for found in chosen:
        one = await _checked(desk, order, here, found)
        desk.out.item("server", _checked_fields(one))
        right = right and one.agreed
    if not chosen:
        desk.progress.note(f"There is none. Add one: {command(desk, 'mcp', 'add')} NAME -- COMMAND ARGS…")
    return desk.out.result("ok" if right else "failed", Exit.DONE if right else Exit.FAILED, faults=list(faults))


async def _checked(desk: Desk, order: McpCheck, here: Around, found: Found) -> Checked:
    name = found.server.name
    if not here.trusts(found):
        return _failed(desk, found, f"The project brings {name!r}; it is not started before you agree: greenroom trust")
    known = here.listings.latest(found)
    desk.progress.note(f"Starting {harmless(name)} …", style="dim")
    try:
        seen = await here.look(found, known)
    except WorldFault as fault:
        return _failed(desk, found, str(fault))
    _say(desk, name, seen, first=known is None)
    differs = bool(seen.catalogue.changes)
    agreed = not differs or order.yes or _agrees(desk)
    if agreed:
        here.listings.keep(found, seen.catalogue.listed)
    if differs:
        again = command(desk, "mcp", "check", shlex.quote(name), "--yes")
        desk.progress.note("Agreed." if agreed else f"What differs is not used. Agree to it: {again}", style="yellow")
    return Checked(found=found, seen=seen, agreed=agreed)


def _failed(desk: Desk, found: Found, fault: str) -> Checked:
    desk.out.show(Text(f"✗ {harmless(found.server.name)}", style="red"))
    desk.out.show(f"  {harmless(fault)}")
    return Checked(found=found, fault=fault)


def _say(desk: Desk, name: str, seen: Seen, *, first: bool) -> None:
    changes = len(seen.catalogue.changes)
    if changes:
        differ = "1 tool differs" if changes == 1 else f"{changes} tools differ"
        desk.out.show(Text(f"! {harmless(name)}: {differ} from what you agreed to", style="yellow"))
        show_changes(desk.out, seen)
        show_left_out(desk.progress, seen)
        return
    desk.out.show(Text(f"✓ {harmless(name)}", style="green"))
    if first:
        show_tools(desk.out, desk.progress, seen)
    else:
        desk.out.show(f"  It speaks MCP {seen.version} and has {counted(len(seen.catalogue.offered))}, as you agreed.")
        show_left_out(desk.progress, seen)


def _agrees(desk: Desk) -> bool:
    """Whether the person says yes; nobody is asked where nobody can answer."""
    if not desk.out.text or not sys.stdin.isatty():
        return False
    try:
        return Person().agrees("Agree to this?")
    except Gone:
        return False


def _checked_fields(one: Checked) -> dict[str, object]:
    told: dict[str, object] = {"name": one.found.server.name, "works": one.seen is not None, "agreed": one.agreed}
    if one.seen is None:
        return {**told, "fault": one.fault}
    changes = [{"name": change.name, "how": change.how, "diff": change.diff} for change in one.seen.catalogue.changes]
    told |= {"version": one.seen.version, "tools": tools_told(one.seen), "left_out": left_out_told(one.seen)}
    return {**told, "changes": changes}


def _say_faults(desk: Desk, faults: tuple[str, ...]) -> None:
    for fault in faults:
        desk.progress.note(harmless(fault), style="yellow")
