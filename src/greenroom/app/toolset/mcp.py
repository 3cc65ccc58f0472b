"""The MCP servers of a workspace: their settings, the tool listings that a person approved, and their tools for a run.

Adding a server to the user's settings edits the file's text and leaves everything else unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from greenroom.abilities.protocols.strict_json import is_encodable
from greenroom.adapters.mcp.catalogue import ListedTool, OfferedTool, ToolCatalogue, ToolPin, make_offers, make_pins
from greenroom.adapters.mcp.client import (
    DEFAULT_TIMEOUTS,
    McpClient,
    McpTimeouts,
    McpTool,
    ServerEnvironment,
    close_all,
    make_stored_tools,
)
from greenroom.adapters.mcp.configuration import ROOT_KEY, McpServer, find_server_table, parse_servers, render_masked
from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.adapters.web.address_filter import is_metadata_host
from greenroom.app.first_settings import SETTINGS_HEADER
from greenroom.app.messages import translate
from greenroom.app.settings.home import RecordFile, change_file, config_folder, read_inside
from greenroom.app.settings.keys import quote_toml
from greenroom.app.settings.layers import is_shared_folder
from greenroom.app.settings.schema import Settings, join_key, read_toml
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.app.trust import IsTrusted, TrustItem
from greenroom.core.base.errors import RefusedError, WorldFault, make_refusal
from greenroom.core.base.records import Data, encode, record

PROJECT_FILE: Final = ".mcp.json"
MAX_PROJECT_FILE_BYTES: Final = 1_000 * 1024


@record
class FoundServer:
    """A server. `where` is the workspace that it comes from, empty for the person's own."""

    server: McpServer
    where: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the server is in the person's settings."""
        return not self.where

    @property
    def masked_summary(self) -> str:
        """The server in one line, with masked values."""
        return render_masked(self.server)

    @property
    def trust_item(self) -> TrustItem:
        """What a person trusts before a project's server starts."""
        shown_command = self.server.summary if self.is_own else self.server.full_summary
        return TrustItem(kind="server", name=self.server.name, shown=shown_command, digest=self.server.digest)


@record
class Servers:
    """All servers. `hidden` project servers have the name of the person's own; `faults` are sentences."""

    entries: tuple[FoundServer, ...] = ()
    hidden: tuple[FoundServer, ...] = ()
    faults: tuple[str, ...] = ()

    def get(self, name: str) -> FoundServer:
        """Return a server by name. Raise `WorldFault` with the closest name if there is none."""
        by_name = {entry.server.name: entry for entry in self.entries}
        if name in by_name:
            return by_name[name]
        near = get_close_matches(name, by_name, n=1)
        hint = translate("hints.meant", near=near[0]) if near else translate("mcp.see_list")
        raise WorldFault("toolset.unknown_mcp_server", name=name, hint=hint)


def list_servers(root: Path, settings: Settings) -> Servers:
    """Return all servers of a workspace, the person's own first. No server is started."""
    project_entries, faults = read_project_servers(root)
    return Servers(
        entries=(
            *(FoundServer(server=entry) for entry in settings.mcp.values()),
            *(entry for entry in project_entries if entry.server.name not in settings.mcp),
        ),
        hidden=tuple(entry for entry in project_entries if entry.server.name in settings.mcp),
        faults=faults,
    )


def list_server_items(root: Path) -> tuple[TrustItem, ...]:
    """Return the project's servers that need trust."""
    return tuple(entry.trust_item for entry in read_project_servers(root)[0])


def read_project_servers(root: Path) -> tuple[tuple[FoundServer, ...], tuple[str, ...]]:
    """Read the servers of `.mcp.json`, with the errors. An invalid entry does not affect the others."""
    entries: list[FoundServer] = []
    faults: list[str] = []
    try:
        table = _read_project_table(root)
    except WorldFault as fault:
        return (), (str(fault),)
    for name, server_table in table.items():
        try:
            entries += [
                FoundServer(server=server, where=str(root.resolve()))
                for server in parse_servers({ROOT_KEY: {name: server_table}}, PROJECT_FILE)
            ]
        except WorldFault as fault:
            faults.append(str(fault))
    return tuple(entries), tuple(faults)


def _read_project_table(root: Path) -> Mapping[str, object]:
    path = root / PROJECT_FILE
    if is_shared_folder(root) or not (path.is_file() or path.is_symlink()):
        return {}  # in a folder like /tmp any user may have left it
    try:
        text = read_inside(path, root, MAX_PROJECT_FILE_BYTES)
        data = msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except WorldFault as fault:
        raise WorldFault("toolset.project_servers_unreadable", project_file=PROJECT_FILE, fault=fault) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise WorldFault("toolset.project_servers_not_json", project_file=PROJECT_FILE, error=error) from None
    return find_server_table(data, PROJECT_FILE)


def build_server_environment(
    entry: FoundServer, root: Path, environ: Mapping[str, str], settings: Settings
) -> ServerEnvironment:
    """Return where a server starts and which variables it never gets.

    A project's server starts in its workspace. The person's own server starts there only if its `cwd` says so. Programs
    like `npx` and `python -m` load code from the current folder, and the workspace may be untrusted.
    """
    home = environ.get("HOME") or str(root)
    folder = root if entry.where or entry.server.folder else Path(home)
    return ServerEnvironment(folder, environ, list_withheld_variables(settings))


def list_withheld_variables(settings: Settings) -> frozenset[str]:
    """Return the variables with keys of model providers."""
    catalog_names = {name for provider in load_providers().values() for name in provider.keys}
    return frozenset(catalog_names | {provider.key_env for provider in settings.providers.values() if provider.key_env})


MAX_LISTING_BYTES: Final = 4_000_000
"""The size limit of one listing, in bytes. Models can read only a fraction of that."""


@record
class ServerListing:
    """A server's tool listing. `where` and `name` identify the server, `digest` its settings."""

    where: str
    name: str
    digest: str
    listed: tuple[ListedTool, ...]

    @property
    def agreed_pins(self) -> Mapping[str, ToolPin]:
        """The pins of the approved tools."""
        return make_pins(self.listed)

    @property
    def offered_tools(self) -> tuple[OfferedTool, ...]:
        """The tools that agents get."""
        return make_offers(self.name, self.listed)[0]


@record
class _ListingsFile:
    version: int = 1
    servers: tuple[ServerListing, ...] = ()


class Listings:
    """The approved tool listings of servers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = RecordFile(path, _ListingsFile, "mcp.listing_content", "mcp.rewrite_listing")

    def latest(self, entry: FoundServer) -> ServerListing | None:
        """Return the latest listing of a server, with any settings."""
        return next((listing for listing in self._file.read().servers if _is_same_server(listing, entry)), None)

    def get(self, entry: FoundServer) -> ServerListing | None:
        """Return the listing of a server with exactly these settings."""
        last = self.latest(entry)
        return last if last is not None and last.digest == entry.server.digest else None

    def save(self, entry: FoundServer, listed: tuple[ListedTool, ...]) -> None:
        """Save a listing that a person has approved."""
        name, digest = entry.server.name, entry.server.digest
        new = ServerListing(where=entry.where, name=name, digest=digest, listed=listed)
        if len(encode(new)) > MAX_LISTING_BYTES:
            raise WorldFault(
                "toolset.server_listing_too_large", name=name, max_listing_bytes=MAX_LISTING_BYTES // 1_000_000
            )
        self._file.change(lambda kept: _ListingsFile(servers=(*_other_listings(kept, entry), new)))

    def forget(self, entry: FoundServer) -> None:
        if self.latest(entry) is not None:
            self._file.change(lambda kept: _ListingsFile(servers=_other_listings(kept, entry)))


def open_listings() -> Listings:
    """Open the person's listings. $GREENROOM_CONFIG does not move this file, because its folder may be untrusted."""
    return Listings(config_folder() / "mcp.json")


def _other_listings(file: _ListingsFile, entry: FoundServer) -> tuple[ServerListing, ...]:
    return tuple(listing for listing in file.servers if not _is_same_server(listing, entry))


def _is_same_server(listing: ServerListing, entry: FoundServer) -> bool:
    return (listing.where, listing.name) == (entry.where, entry.server.name)


MANUAL_PATIENCE: Final = McpTimeouts(start=60.0)
"""Time limits when a person waits. The first start may download the program."""

RUN_PATIENCE: Final = McpTimeouts(start=15.0)


@record
class ServerInspection:
    """The result of an inspection: the protocol version, the tools, and the differences from the known listing."""

    version: str
    catalogue: ToolCatalogue


async def inspect_server(
    entry: FoundServer,
    environment: ServerEnvironment,
    listing: ServerListing | None = None,
    *,
    patience: McpTimeouts = MANUAL_PATIENCE,
) -> ServerInspection:
    """Inspect a server once. Raise `WorldFault` if it does not work. Nothing is saved or left running."""
    agreed = listing.agreed_pins if listing is not None else None
    await refuse_metadata(entry.server)
    client = McpClient(entry.server, environment, agreed=agreed, timeouts=patience)
    try:
        health = await client.check()
        if not health.works:
            raise WorldFault(health.why)
        return ServerInspection(version=health.version, catalogue=await client.get_catalogue())
    finally:
        await client.close()


async def refuse_metadata(server: McpServer) -> None:
    """Raise `WorldFault` if a server's address is the metadata service of a cloud. Local addresses are fine."""
    host = urlsplit(server.url).hostname
    if host and await is_metadata_host(host):
        raise WorldFault("mcp.metadata", name=server.name, host=host)


async def inspect_new_servers(
    root: Path,
    environ: Mapping[str, str],
    settings: Settings,
    trusted: IsTrusted,
    *,
    patience: McpTimeouts = RUN_PATIENCE,
) -> tuple[str, ...]:
    """Inspect all new servers that can start before a run, and save their listings. Return a sentence for each server
    that does not work or whose tools differ from an earlier listing."""
    listings = open_listings()
    enabled = [entry for entry in list_servers(root, settings).entries if entry.server.enabled]
    new_servers = [
        entry for entry in enabled if (entry.is_own or trusted(entry.trust_item)) and listings.get(entry) is None
    ]
    environments = [build_server_environment(entry, root, environ, settings) for entry in new_servers]
    sentences = await asyncio.gather(
        *(
            _inspect_and_save(entry, environment, listings, patience)
            for entry, environment in zip(new_servers, environments, strict=True)
        )
    )
    return tuple(entry for entry in sentences if entry)


async def _inspect_and_save(
    entry: FoundServer, environment: ServerEnvironment, listings: Listings, patience: McpTimeouts
) -> str:
    try:
        listing = listings.latest(entry)
        inspection = await inspect_server(entry, environment, listing, patience=patience)
        if inspection.catalogue.changes:
            return describe_changes(entry.server.name, inspection.catalogue)
        listings.save(entry, inspection.catalogue.listed)
    except WorldFault as fault:
        return str(fault)
    return " ".join(inspection.catalogue.describe_left_out(entry.server.name))


def describe_changes(name: str, catalogue: ToolCatalogue) -> str:
    """Describe how a server's tools differ from those that a person approved."""
    shown_changes = ", ".join(f"{change.name} ({change.how})" for change in catalogue.changes[:MAX_TOOLS_SHOWN])
    more = len(catalogue.changes) - MAX_TOOLS_SHOWN
    rest = translate("hints.and_more", count=more) if more > 0 else ""
    return translate("mcp.tools_changed", name=name, changes=shown_changes, more=rest, quoted_name=shlex.quote(name))


MAX_TOOLS_SHOWN: Final = 5


TellPerson: TypeAlias = Callable[[str], None]


def load_server_tools(
    root: Path,
    environ: Mapping[str, str],
    settings: Settings,
    trusted: IsTrusted,
    *,
    tell: TellPerson | None = None,
    patience: McpTimeouts = DEFAULT_TIMEOUTS,
) -> ToolSource:
    """Return the tools of all usable servers, with a note for each other one. No server is started. `tell` is called
    during a run when a server's tools differ from those that the person approved."""
    servers_here = list_servers(root, settings)
    listings = open_listings()
    clients: list[McpClient] = []
    tools: list[McpTool] = []
    notes = list(servers_here.faults)
    agreed = [entry for entry in servers_here.entries if entry.is_own or trusted(entry.trust_item)]
    for server_entry in agreed:
        listing = _find_listing(server_entry, listings)
        if isinstance(listing, str):
            notes += [listing] if listing else []
            continue
        environment = build_server_environment(server_entry, root, environ, settings)
        watch = _make_change_watcher(server_entry.server.name, tell or logging.getLogger(__name__).warning)
        client = McpClient(
            server_entry.server, environment, agreed=listing.agreed_pins, timeouts=patience, on_catalogue=watch
        )
        clients.append(client)
        tools += make_stored_tools(client, listing.listed)
    untrusted = tuple(
        translate("mcp.project_server_needs_trust", name=entry.server.name)
        for entry in servers_here.entries
        if entry not in agreed and entry.server.enabled
    )
    return ToolSource(
        tools=tuple(tools), notes=tuple(notes), untrusted=untrusted, close_callbacks=(partial(close_all, clients),)
    )


def _find_listing(entry: FoundServer, listings: Listings) -> ServerListing | str:
    """Return a server's listing, or why it is not used and what to do. A disabled server has an empty reason."""
    name = entry.server.name
    if not entry.server.enabled:
        return ""
    try:
        listing = listings.get(entry)
    except WorldFault as fault:
        return translate("mcp.server_not_used", name=name, fault=fault)
    if listing is not None:
        return listing
    return translate("mcp.review_first", name=name, quoted_name=shlex.quote(name))


def _make_change_watcher(name: str, tell: TellPerson) -> Callable[[ToolCatalogue], None]:
    """Return a watcher that reports each difference once, even if a server restarts."""
    last_sentence = ""

    def look_at(catalogue: ToolCatalogue) -> None:
        nonlocal last_sentence
        before, last_sentence = last_sentence, describe_changes(name, catalogue) if catalogue.changes else ""
        if last_sentence and last_sentence != before:
            tell(last_sentence)

    return look_at


MCP_TABLE: Final = "mcp"
SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def refuse_server_name(name: str) -> None:
    """Raise `WorldFault` for an invalid server name."""
    if not SERVER_NAME.fullmatch(name):
        raise WorldFault("toolset.bad_server_name", name=name[:80])


class UserSettingsFile:
    """The user's settings file, if any. A change makes it private, because a server's `env` may hold secrets."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self, name: str, table: Data) -> None:
        """Raise `WorldFault` if the server could not be added. Nothing is written."""
        with_server(self._text(), name, table, str(self.path))

    def add(self, name: str, table: Data) -> None:
        """Add a server at the end of the file."""
        change_file(self.path, lambda: with_server(self._text(), name, table, str(self.path)))

    def remove(self, name: str) -> None:
        change_file(self.path, lambda: without_server(self._text(), name, str(self.path)))

    def _text(self) -> str:
        if read_toml(self.path) is None:
            return f"{SETTINGS_HEADER.format(where='')}version = 1\n"
        return self.path.read_bytes().decode()


def with_server(text: str, name: str, table: Data, source: str) -> str:
    """Return the text with one more server table."""
    block = f"[{join_key((MCP_TABLE, name))}]\n" + "".join(
        f"{key} = {_render_value(value)}\n" for key, value in table.items()
    )
    end = "\r\n" if "\r\n" in text else "\n"
    body = text if text.endswith("\n") or not text.strip() else f"{text}{end}"
    gap = end if body.strip() else ""
    new_text = body + gap + block.replace("\n", end)
    old_settings = _parse_or_empty(text)
    expected = {**old_settings, MCP_TABLE: {**_server_table(old_settings), name: dict(table)}}
    if name in _server_table(old_settings) or _parse_or_empty(new_text) != expected:
        raise WorldFault("toolset.add_server_yourself", source=source, block=block)
    return new_text


def without_server(text: str, name: str, source: str) -> str:
    """Return the text without a server's tables. Comments before the next table stay with that table."""
    key = join_key((MCP_TABLE, name))
    kept_lines: list[str] = []
    tail: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            is_server_head = line.lstrip().startswith((f"[{key}]", f"[{key}."))
            if is_server_head and not is_inside and kept_lines and not kept_lines[-1].strip():
                kept_lines.pop()
            is_inside = is_server_head
        if not is_inside:
            kept_lines += [*tail, line]
            tail = []
        else:
            tail = [*tail, line] if not line.strip() or line.lstrip().startswith("#") else []
    new_text = "".join((*kept_lines, *(line for line in tail if line.strip())))
    old_settings = _parse_or_empty(text)
    rest = {entry: value for entry, value in _server_table(old_settings).items() if entry != name}
    # An empty table that remains means the same as none.
    if {MCP_TABLE: {}, **_parse_or_empty(new_text)} != {**old_settings, MCP_TABLE: rest}:
        raise WorldFault("toolset.delete_server_yourself", source=source, key=key)
    return new_text


def _render_value(value: object) -> str:
    match value:
        case str():
            return quote_toml(value).replace("\x7f", "\\u007f")
        case Mapping():
            return (
                f"{{ {', '.join(f'{quote_toml(str(key))} = {_render_value(inner)}' for key, inner in value.items())} }}"
            )
        case list() | tuple():
            return f"[{', '.join(map(_render_value, value))}]"
        case _:
            return str(value).lower()


def _server_table(settings: Data) -> Mapping[str, object]:
    table = settings.get(MCP_TABLE, {})
    return table if isinstance(table, Mapping) else {}


def _parse_or_empty(text: str) -> Data:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError:
        return {}


VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
HEADER_PATTERN: Final = re.compile(r"([A-Za-z0-9_-]+)\s*[=:]\s*(.+)", re.ASCII | re.DOTALL)
ADD_USAGE: Final = "mcp.add_usage"


@record
class NewServer:
    """A server as typed. `words` are a command with arguments, or one address."""

    name: str
    words: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    cwd: str = ""
    timeout: float | None = None
    start_timeout: float | None = None

    @property
    def is_address(self) -> bool:
        """Whether it is a remote server."""
        return "://" in "".join(self.words[:1])

    @property
    def table(self) -> Data:
        """Return the settings table. Raise `RefusedError` for contradictory options."""
        refuse_server_name(self.name)
        if not self.words or not self.words[0].strip():
            raise _make_usage_error(translate("mcp.neither_command_nor_address", name=self.name), translate(ADD_USAGE))
        address_or_command = self._build_address_table() if self.is_address else self._build_command_table()
        other_keys = {"read_only": list(self.read_only), "timeout": self.timeout, "start_timeout": self.start_timeout}
        return {**address_or_command, **{key: value for key, value in other_keys.items() if value not in (None, [])}}

    def build(self) -> FoundServer:
        """Build the server. Raise `WorldFault` if the settings would be invalid."""
        (server,) = parse_servers({ROOT_KEY: {self.name: self.table}}, "greenroom mcp add", is_own=True)
        return FoundServer(server=server)

    def _build_address_table(self) -> Data:
        if len(self.words) > 1:
            raise _make_usage_error(
                translate("mcp.both_command_and_address", name=self.name),
                translate("mcp.one_of_two", usage=translate(ADD_USAGE)),
            )
        if self.env or self.cwd:
            raise _make_usage_error(translate("mcp.remote_without_env"), translate("mcp.use_header"))
        headers = dict(_parse_header(header) for header in self.headers)
        return {"url": self.words[0].strip(), **({"headers": headers} if headers else {})}

    def _build_command_table(self) -> Data:
        if self.headers:
            raise _make_usage_error(translate("mcp.program_without_headers"), translate("mcp.use_env"))
        if any(not is_encodable(word) for word in (*self.words, *self.env, self.cwd)):
            raise _make_usage_error(translate("mcp.command_not_text"), translate("mcp.write_utf8"))
        other_keys = {
            "args": list(self.words[1:]),
            "env": dict(_parse_variable(variable) for variable in self.env),
            "cwd": self.cwd,
        }
        return {"command": self.words[0], **{key: value for key, value in other_keys.items() if value}}


def _parse_variable(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`. A name alone passes the person's variable of that name."""
    name, equals, value = text.partition("=")
    if not VARIABLE_NAME.fullmatch(name):
        raise _make_usage_error(translate("mcp.env_form"), translate("mcp.env_name_alone"))
    return name, value if equals else f"${{{name}}}"


def _parse_header(text: str) -> tuple[str, str]:
    match = HEADER_PATTERN.fullmatch(text.strip())
    if match is None:
        raise _make_usage_error(translate("mcp.header_form"), translate("mcp.header_example"))
    return match[1], match[2]


def _make_usage_error(why: str, hint: str) -> RefusedError:
    return make_refusal("usage", why, hint)
