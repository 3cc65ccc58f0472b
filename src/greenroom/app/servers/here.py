"""Which MCP servers there are in a workspace: the person's own, and those that the project brings in `.mcp.json`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.mcp.client import Surroundings
from greenroom.adapters.mcp.configuration import ROOT, Server, masked, servers, table_of
from greenroom.adapters.models.catalog.catalog import providers
from greenroom.app.settings.layers import for_everybody
from greenroom.app.settings.schema import Settings
from greenroom.app.trust.brought import Brought
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

__all__ = ("FILE", "Found", "Servers", "brought_servers", "masked", "servers_in", "surroundings", "withheld")

FILE: Final = ".mcp.json"
LONGEST: Final = 1_000_000
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
            text = file.read(LONGEST + 1)
    except OSError as error:
        raise WorldFault(f"{FILE} cannot be read: {error.strerror}. Its servers are left out.") from None
    if len(text) > LONGEST:
        raise WorldFault(f"{FILE} has more than {LONGEST // 1_000_000} MB, so its servers are left out.")
    return text.removeprefix(b"\xef\xbb\xbf")


# ------------------------------------------------------------------------------------------------- where they start


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
