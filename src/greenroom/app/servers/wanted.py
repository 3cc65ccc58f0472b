"""A server as a person describes it in a line: a command or an address, and what goes with it."""

from __future__ import annotations

import re
from typing import Final

from greenroom.adapters.mcp.configuration import ROOT, servers
from greenroom.app.servers.here import Found
from greenroom.app.servers.own_file import refuse_name
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.records import Data, record

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
        headers = dict(_header(one) for one in self.headers)
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


def _header(text: str) -> tuple[str, str]:
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
