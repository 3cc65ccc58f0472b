"""Adding a server to the person's own settings file, and taking it out. All else stays as it was written.

The text is changed, not written anew, so comments stay. What it means is compared afterwards: a file that is written in
a way that is not understood here is left alone, and the person is told what to do in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.mcp.configuration import ROOT, servers
from greenroom.app.first_settings import HEAD
from greenroom.app.mcp_servers import Found
from greenroom.app.settings.home import change
from greenroom.app.settings.keys import quoted
from greenroom.app.settings.schema import dotted, read_toml
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.records import Data, record

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
