"""The MCP servers of a workspace: which there are, what a person saw of their tools, and those tools for a run."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from greenroom.adapters.mcp.catalogue import Catalogue, Listed, Offer, Pin, offers, pins
from greenroom.adapters.mcp.client import PATIENCE, McpClient, McpTool, Patience, Surroundings, close_all, stored_kit
from greenroom.adapters.mcp.configuration import ROOT, Server, masked, servers, table_of
from greenroom.adapters.models.catalog.catalog import providers
from greenroom.app.settings.home import RecordFile, config_folder
from greenroom.app.settings.layers import for_everybody
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.toolbox import Equipment
from greenroom.app.trust import Brought, Trusted
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import encode, record

__all__ = ("FILE", "Found", "Servers", "brought_servers", "masked", "servers_in", "surroundings", "withheld")

FILE: Final = ".mcp.json"
LONGEST_FILE: Final = 1_000_000
"""Bytes of that file."""


@record
class Found:
    """One server. `where` is the workspace that brings it; it is empty for the person's own."""

    server: Server
    where: str = ""

    @property
    def own(self) -> bool:
        """Whether the person has set it up."""
        return not self.where

    @property
    def brought(self) -> Brought:
        """What a person agrees to before a project's server is started."""
        shown = self.server.shown if self.own else self.server.laid_open
        return Brought(kind="server", name=self.server.name, shown=shown, digest=self.server.digest)


@record
class Servers:
    """All of them. `hidden` are a project's that have the name of one of the person's own; `faults` are sentences."""

    found: tuple[Found, ...] = ()
    hidden: tuple[Found, ...] = ()
    faults: tuple[str, ...] = ()

    def named(self, name: str) -> Found:
        """The one of this name; `WorldFault` with the nearest if there is none."""
        known = {one.server.name: one for one in self.found}
        if name in known:
            return known[name]
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "`greenroom mcp list` has them."
        raise WorldFault(f"There is no MCP server {name!r} here. {hint}")


def servers_in(root: Path, settings: Settings) -> Servers:
    """All servers of a workspace, the person's own first. Nothing is started."""
    brought, faults = project_servers(root)
    return Servers(
        found=(
            *(Found(server=one) for one in settings.mcp.values()),
            *(one for one in brought if one.server.name not in settings.mcp),
        ),
        hidden=tuple(one for one in brought if one.server.name in settings.mcp),
        faults=faults,
    )


def brought_servers(root: Path) -> tuple[Brought, ...]:
    """What a workspace brings that `greenroom trust` has to show."""
    return tuple(one.brought for one in project_servers(root)[0])


def project_servers(root: Path) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """The servers of `.mcp.json`, and what is wrong there: one bad entry costs no other one."""
    found: list[Found] = []
    faults: list[str] = []
    try:
        table = _table(root)
    except WorldFault as fault:
        return (), (str(fault),)
    for name, told in table.items():
        try:
            found += [Found(server=one, where=str(root.resolve())) for one in servers({ROOT: {name: told}}, FILE)]
        except WorldFault as fault:
            faults.append(str(fault))
    return tuple(found), tuple(faults)


def _table(root: Path) -> Mapping[str, object]:
    text = _read(root)
    if text is None:
        return {}
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WorldFault(f"{FILE} is not JSON: {error}. Its servers are left out until it is corrected.") from None
    return table_of(data, FILE)


def _read(root: Path) -> bytes | None:
    path = root / FILE
    try:
        if for_everybody(root) or not path.is_file():
            return None  # in a place like /tmp anybody may have left it
        if not path.resolve().is_relative_to(root.resolve()):
            raise WorldFault(
                f"{FILE} leads out of the workspace, so its servers are left out. Put the file itself there."
            )
        with path.open("rb") as file:
            text = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise WorldFault(f"{FILE} cannot be read: {error.strerror}. Its servers are left out.") from None
    if len(text) > LONGEST_FILE:
        raise WorldFault(f"{FILE} has more than {LONGEST_FILE // 1_000_000} MB, so its servers are left out.")
    return text.removeprefix(b"\xef\xbb\xbf")


def surroundings(found: Found, root: Path, environ: Mapping[str, str], settings: Settings) -> Surroundings:
    """Where it is started, and what it is never given.

    A project's server begins in its workspace. One of the person's own does only if its `cwd` says so: programs like
    `npx` or `python -m` take what lies in the current folder for their own, and a workspace may be a stranger's.
    """
    home = environ.get("HOME") or str(root)
    folder = root if found.where or found.server.folder else Path(home)
    return Surroundings(folder, environ, withheld(settings))


def withheld(settings: Settings) -> frozenset[str]:
    """The variables with keys of model providers."""
    known = {name for one in providers().values() for name in one.keys}
    return frozenset(known | {one.key_env for one in settings.providers.values() if one.key_env})


NAME: Final = "mcp.json"
MOST: Final = 4_000_000
"""Bytes of one listing. A model could not read a hundredth of it."""

AGAIN: Final = "Delete it; `greenroom mcp check` writes it anew."


@record
class Known:
    """One server's listing; `where` and `name` say whose it is, `digest` with which settings it was started."""

    where: str
    name: str
    digest: str
    listed: tuple[Listed, ...]

    @property
    def agreed(self) -> Mapping[str, Pin]:
        """What a person has agreed to."""
        return pins(self.listed)

    @property
    def offered(self) -> tuple[Offer, ...]:
        """What of it agents get."""
        return offers(self.name, self.listed)[0]


@record
class _Kept:
    version: int = 1
    servers: tuple[Known, ...] = ()


class Listings:
    """What was seen of the tools of servers, and agreed to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = RecordFile(path, _Kept, "which tools of servers you agreed to", AGAIN)

    def latest(self, found: Found) -> Known | None:
        """What was seen of it last, whatever its settings were."""
        return next((known for known in self._file.read().servers if _is(known, found)), None)

    def of(self, found: Found) -> Known | None:
        """What was seen of exactly this server."""
        last = self.latest(found)
        return last if last is not None and last.digest == found.server.digest else None

    def keep(self, found: Found, listed: tuple[Listed, ...]) -> None:
        """A person has seen this and agrees to it."""
        name, digest = found.server.name, found.server.digest
        new = Known(where=found.where, name=name, digest=digest, listed=listed)
        if len(encode(new)) > MOST:
            raise WorldFault(f"The MCP server {name!r} says more than {MOST // 1_000_000} MB about its tools.")
        self._file.change(lambda kept: _Kept(servers=(*_others(kept, found), new)))

    def forget(self, found: Found) -> None:
        """It is not wanted any more."""
        if self.latest(found) is not None:
            self._file.change(lambda kept: _Kept(servers=_others(kept, found)))


def own_listings() -> Listings:
    """The person's file. $GREENROOM_CONFIG does not move it: what lies beside that file may be a stranger's."""
    return Listings(config_folder() / NAME)


def _others(kept: _Kept, found: Found) -> tuple[Known, ...]:
    return tuple(known for known in kept.servers if not _is(known, found))


def _is(known: Known, found: Found) -> bool:
    return (known.where, known.name) == (found.where, found.server.name)


BY_HAND: Final = Patience(start=60.0)
"""A person waits for it, and sees that it takes its time: the first start may have to fetch the program."""

BEFORE_A_RUN: Final = Patience(start=15.0)


@record
class Seen:
    """What a server is and has: the version that it speaks, its tools, and what differs from what was known."""

    version: str
    catalogue: Catalogue


async def look(found: Found, around: Surroundings, known: Known | None = None, *, patience: Patience = BY_HAND) -> Seen:
    """Look at it once; `WorldFault` says why it does not work. Nothing is kept, and nothing of it is left running."""
    agreed = known.agreed if known is not None else None
    client = McpClient(found.server, around, agreed=agreed, patience=patience)
    try:
        health = await client.check()
        if not health.works:
            raise WorldFault(health.why)
        return Seen(version=health.version, catalogue=await client.catalogue())
    finally:
        await client.close()


async def meet(
    root: Path,
    environ: Mapping[str, str],
    settings: Settings,
    trusted: Trusted,
    *,
    patience: Patience = BEFORE_A_RUN,
) -> tuple[str, ...]:
    """Before a run: look at all servers that may be started and that nobody has looked at, and keep what they have.

    Returns a sentence for each that does not work, or has other tools than it had under other settings.
    """
    listings = own_listings()
    enabled = [one for one in servers_in(root, settings).found if one.server.enabled]
    new = [one for one in enabled if (one.own or trusted(one.brought)) and listings.of(one) is None]
    around = [surroundings(one, root, environ, settings) for one in new]
    said = await asyncio.gather(*(_met(one, place, listings, patience) for one, place in zip(new, around, strict=True)))
    return tuple(one for one in said if one)


async def _met(found: Found, around: Surroundings, listings: Listings, patience: Patience) -> str:
    try:
        known = listings.latest(found)
        seen = await look(found, around, known, patience=patience)
        if seen.catalogue.changes:
            return told_changes(found.server.name, seen.catalogue)
        listings.keep(found, seen.catalogue.listed)
    except WorldFault as fault:
        return str(fault)
    return ""


def told_changes(name: str, catalogue: Catalogue) -> str:
    """That a server is not what a person has agreed to."""
    what = ", ".join(f"{one.name} ({one.how})" for one in catalogue.changes[:SHOWN])
    more = len(catalogue.changes) - SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"The MCP server {name!r} has other tools than you agreed to: {what}{rest}. They are not used before you look "
        f"at them: greenroom mcp check {shlex.quote(name)}"
    )


SHOWN: Final = 5
"""How many tools a sentence lists."""


Tell: TypeAlias = Callable[[str], None]


def equipment_of(
    root: Path,
    environ: Mapping[str, str],
    settings: Settings,
    trusted: Trusted,
    *,
    tell: Tell | None = None,
    patience: Patience = PATIENCE,
) -> Equipment:
    """The tools of all servers that may be used here, and a note for each that may not. Nothing is started.

    `tell` hears, in the middle of a run, that a server has other tools than the person agreed to.
    """
    here = servers_in(root, settings)
    listings = own_listings()
    clients: list[McpClient] = []
    tools: list[McpTool] = []
    notes = list(here.faults)
    agreed = [one for one in here.found if one.own or trusted(one.brought)]
    for found in agreed:
        known = _usable(found, listings)
        if isinstance(known, str):
            notes += [known] if known else []
            continue
        around = surroundings(found, root, environ, settings)
        watch = _Watch(found.server.name, tell or logging.getLogger(__name__).warning)
        client = McpClient(found.server, around, agreed=known.agreed, patience=patience, looked=watch)
        clients.append(client)
        tools += stored_kit(client, known.listed)
    waiting = tuple(
        f"The MCP server {one.server.name!r} of this project is not used before you agree to it: greenroom trust"
        for one in here.found
        if one not in agreed and one.server.enabled
    )
    return Equipment(tools=tuple(tools), notes=tuple(notes), unagreed=waiting, closing=(partial(close_all, clients),))


def _usable(found: Found, listings: Listings) -> Known | str:
    """What is known of its tools; else why it is not used, and what helps: empty for one that is switched off."""
    name = found.server.name
    if not found.server.enabled:
        return ""
    try:
        known = listings.of(found)
    except WorldFault as fault:
        return f"The MCP server {name!r} is not used. {fault}"
    if known is not None:
        return known
    return (
        f"The MCP server {name!r} is not used before you have looked at its tools: greenroom mcp check "
        f"{shlex.quote(name)}"
    )


class _Watch:
    """Tells of each difference once, however often a server is started."""

    def __init__(self, name: str, tell: Tell) -> None:
        self._name = name
        self._tell = tell
        self._told = ""

    def __call__(self, catalogue: Catalogue) -> None:
        said = told_changes(self._name, catalogue) if catalogue.changes else ""
        if said and said != self._told:
            self._tell(said)
        self._told = said
