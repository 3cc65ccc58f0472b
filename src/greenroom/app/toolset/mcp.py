"""The MCP servers of a workspace: which there are, what a person saw of their tools, and those tools for a run.

Adding a server to the person's settings changes the text of that file and leaves all else as it was written.
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

import msgspec

from greenroom.adapters.mcp.catalogue import Catalogue, Listed, Offer, Pin, offers, pins
from greenroom.adapters.mcp.client import PATIENCE, McpClient, McpTool, Patience, Surroundings, close_all, stored_kit
from greenroom.adapters.mcp.configuration import ROOT, Server, masked, servers, table_of
from greenroom.adapters.models.catalog.catalog import providers
from greenroom.app.first_settings import HEAD
from greenroom.app.settings.home import RecordFile, change, config_folder, read_inside
from greenroom.app.settings.keys import quoted
from greenroom.app.settings.layers import for_everybody
from greenroom.app.settings.schema import Settings, dotted, read_toml
from greenroom.app.toolset.toolbox import Equipment
from greenroom.app.trust import Brought, Trusted
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.records import Data, encode, record

__all__ = ("FILE", "Found", "Servers", "brought_servers", "masked", "servers_in", "surroundings", "withheld")

FILE: Final = ".mcp.json"
LONGEST_FILE: Final = 1_000 * 1024
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
    path = root / FILE
    if for_everybody(root) or not (path.is_file() or path.is_symlink()):
        return {}  # in a place like /tmp anybody may have left it
    try:
        text = read_inside(path, root, LONGEST_FILE)
        data = msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except WorldFault as fault:
        raise WorldFault(f"{FILE} {fault}. Its servers are left out.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise WorldFault(f"{FILE} is not JSON: {error}. Its servers are left out until it is corrected.") from None
    return table_of(data, FILE)


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
        watch = _watch(found.server.name, tell or logging.getLogger(__name__).warning)
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


def _watch(name: str, tell: Tell) -> Callable[[Catalogue], None]:
    """Tells of each difference once, however often a server is started."""
    told = ""

    def look_at(catalogue: Catalogue) -> None:
        nonlocal told
        before, told = told, told_changes(name, catalogue) if catalogue.changes else ""
        if told and told != before:
            tell(told)

    return look_at


TABLE: Final = "mcp"
BARE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def refuse_name(name: str) -> None:
    """`WorldFault` for what is no name for a server."""
    if not BARE.fullmatch(name):
        raise WorldFault(
            f"{name[:80]!r} is no name for an MCP server. Use up to 64 letters, digits, - and _: its tools are named "
            "after it."
        )


class OwnFile:
    """The file, which may not be there yet. Only its owner reads it once it was changed: a server's `env` may hold
    secrets."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self, name: str, table: Data) -> None:
        """`WorldFault` if it could not be added; nothing is written."""
        with_server(self._text(), name, table, str(self.path))

    def add(self, name: str, table: Data) -> None:
        """Put a server at the end."""
        change(self.path, lambda: with_server(self._text(), name, table, str(self.path)))

    def remove(self, name: str) -> None:
        """Take a server out."""
        change(self.path, lambda: without_server(self._text(), name, str(self.path)))

    def _text(self) -> str:
        if read_toml(self.path) is None:
            return f"{HEAD.format(where='')}version = 1\n"
        return self.path.read_bytes().decode()


def with_server(text: str, name: str, table: Data, source: str) -> str:
    """The text with one more table."""
    block = written(name, table)
    end = "\r\n" if "\r\n" in text else "\n"
    body = text if text.endswith("\n") or not text.strip() else f"{text}{end}"
    gap = end if body.strip() else ""
    made = body + gap + block.replace("\n", end)
    before = _meaning(text)
    wanted = {**before, TABLE: {**_servers(before), name: dict(table)}}
    if name in _servers(before) or _meaning(made) != wanted:
        raise WorldFault(f"{source} is written in a way that nothing can be added to by itself. Add this:\n\n{block}")
    return made


def without_server(text: str, name: str, source: str) -> str:
    """The text without this table and those below it. Comments before the next table belong to that one."""
    key = dotted((TABLE, name))
    kept: list[str] = []
    tail: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            begins = line.lstrip().startswith((f"[{key}]", f"[{key}."))
            if begins and not inside and kept and not kept[-1].strip():
                kept.pop()
            inside = begins
        if not inside:
            kept += [*tail, line]
            tail = []
        else:
            tail = [*tail, line] if not line.strip() or line.lstrip().startswith("#") else []
    made = "".join((*kept, *(line for line in tail if line.strip())))
    before = _meaning(text)
    rest = {entry: value for entry, value in _servers(before).items() if entry != name}
    # An empty table that is left means the same as none.
    if {TABLE: {}, **_meaning(made)} != {**before, TABLE: rest}:
        raise WorldFault(
            f"{source} is written in a way that nothing can be taken out of by itself. Delete `{key}` there."
        )
    return made


def written(name: str, table: Data) -> str:
    """A server as a table of its own."""
    return f"[{dotted((TABLE, name))}]\n" + "".join(f"{key} = {_value(one)}\n" for key, one in table.items())


def _value(value: object) -> str:
    match value:
        case str():
            return quoted(value).replace("\x7f", "\\u007f")
        case Mapping():
            return f"{{ {', '.join(f'{quoted(str(key))} = {_value(one)}' for key, one in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return str(value).lower()


def _servers(settings: Data) -> Mapping[str, object]:
    found = settings.get(TABLE, {})
    return found if isinstance(found, Mapping) else {}


def _meaning(text: str) -> Data:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError:
        return {}


VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
HEADER: Final = re.compile(r"([A-Za-z0-9_-]+)\s*[=:]\s*(.+)", re.ASCII | re.DOTALL)
HOW: Final = "`greenroom mcp add NAME -- COMMAND ARGS…` is for a program, `greenroom mcp add NAME URL` for an address."


@record
class Wanted:
    """What was typed. `words` are the command with its arguments, or one address."""

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
        """Whether it is a server elsewhere."""
        return "://" in "".join(self.words[:1])

    @property
    def table(self) -> Data:
        """The same as settings have it; `Refused` for what does not fit together."""
        refuse_name(self.name)
        if not self.words or not self.words[0].strip():
            raise _unfit(f"What is {self.name!r}?", HOW)
        told = self._address() if self.is_address else self._command()
        more = {"read_only": list(self.read_only), "timeout": self.timeout, "start_timeout": self.start_timeout}
        return {**told, **{key: value for key, value in more.items() if value not in (None, [])}}

    def found(self) -> Found:
        """The server; `WorldFault` where settings could not have it like this."""
        (server,) = servers({ROOT: {self.name: self.table}}, "greenroom mcp add", own=True)
        return Found(server=server)

    def _address(self) -> Data:
        if len(self.words) > 1:
            raise _unfit(
                f"{self.name!r} has an address and a command beside it.", f"A server has one of the two. {HOW}"
            )
        if self.env or self.cwd:
            raise _unfit("A server elsewhere has no environment of yours.", "Give it a --header.")
        headers = dict(_parse_header(one) for one in self.headers)
        return {"url": self.words[0].strip(), **({"headers": headers} if headers else {})}

    def _command(self) -> Data:
        if self.headers:
            raise _unfit("A program gets no headers.", "Give it an --env.")
        if any(not _is_text(word) for word in (*self.words, *self.env, self.cwd)):
            raise _unfit("The command holds bytes that are no text.", "Write it in UTF-8.")
        more = {"args": list(self.words[1:]), "env": dict(_variable(one) for one in self.env), "cwd": self.cwd}
        return {"command": self.words[0], **{key: value for key, value in more.items() if value}}


def _variable(text: str) -> tuple[str, str]:
    """`NAME=VALUE`; a name alone takes what the person's variable holds when the server is started."""
    name, equals, value = text.partition("=")
    if not VARIABLE.fullmatch(name):
        raise _unfit("An --env is NAME=VALUE.", "NAME alone hands over your variable of that name.")
    return name, value if equals else f"${{{name}}}"


def _parse_header(text: str) -> tuple[str, str]:
    found = HEADER.fullmatch(text.strip())
    if found is None:
        raise _unfit("A --header is NAME=VALUE.", "For instance: --header 'Authorization=Bearer ${MY_TOKEN}'")
    return found[1], found[2]


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unfit(why: str, hint: str) -> Refused:
    return Refused(Rejected(code="usage", why=why, hint=hint))
