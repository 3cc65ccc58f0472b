"""Which servers there are: the `mcpServers` form of `.mcp.json`, and the same as tables `[mcp.NAME]` of our settings.

Reading starts nothing, and fills nothing in: `${…}` stays as it is written until a server is started. Then it gets an
allow-list of our own environment, and what its settings name.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from greenroom.adapters.mcp.schemas import is_plain, one_line
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import encode, evolve, record

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}`, or `${NAME:-what to take instead}`."""


class Hidden:
    """What stands in `env` or `headers`. Only `reveal` gives it away, to the one who starts the server."""

    __slots__ = ("_written",)

    def __init__(self, written: str) -> None:
        self._written: Final = written

    def reveal(self) -> str:
        """As it is written in the settings, `${…}` and all."""
        return self._written

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the person's variables that it is filled in with."""
        return tuple(found[1] for found in VARIABLE.finditer(self._written))

    def __repr__(self) -> str:
        return "****"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hidden) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self._written)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("What may be a secret is not written down.")


SECONDS: Final = 120
LONGEST: Final = 3600
"""Seconds that a call may take: usually, and at most."""

LONGEST_NAME: Final = 64
EVERYTHING: Final = 1_000_000
"""Characters of what a person agrees to: nothing of it is cut away."""

ROOT: Final = "mcpServers"
KEYS: Final = (
    *("type", "command", "args", "env", "cwd", "url", "headers"),
    *("timeout", "start_timeout", "disabled", "read_only"),
)
STDIO: Final = frozenset({"stdio"})
HTTP: Final = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})


@record
class Server:
    """One server as the settings say it: a `command`, or a `url`. `seconds` is how long a call may take, `starting`
    how long its start may take (0: what is usual).

    `read_only` names the tools of which its *owner* says that they change nothing; a server's own word is not enough.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, Hidden] = msgspec.field(default_factory=dict)
    folder: str = ""
    url: str = ""
    headers: Mapping[str, Hidden] = msgspec.field(default_factory=dict)
    seconds: int = SECONDS
    starting: int = 0
    read_only: tuple[str, ...] = ()
    enabled: bool = True

    @property
    def digest(self) -> str:
        """What trust is bound to: everything that decides what is started, and what it is given."""
        secrets = {
            **{f"env {name}": one for name, one in self.env.items()},
            **{f"h {n}": o for n, o in self.headers.items()},
        }
        told = sorted((name, one.reveal()) for name, one in secrets.items())
        whole = (self.name, self.command, self.args, self.folder, self.url, told, sorted(self.read_only))
        return hashlib.sha256(encode(whole)).hexdigest()

    @property
    def takes(self) -> tuple[str, ...]:
        """The person's variables that it is given."""
        hidden = (*self.env.values(), *self.headers.values())
        return tuple(sorted({name for one in hidden for name in one.variables}))

    @property
    def shown(self) -> str:
        """It in a line, without what may be secret."""
        return self._told(sorted(self.env))

    @property
    def laid_open(self) -> str:
        """What a person is shown before a stranger's is trusted: also what stands in its `env`. That of a `${…}` is
        the person's own, and is not filled in."""
        return self._told([f"{name}={shlex.quote(one.reveal())}" for name, one in sorted(self.env.items())])

    def _told(self, env: Sequence[str]) -> str:
        what = self.url or " ".join((self.command, *self.args))
        lists = (
            ("in", (self.folder,) if self.folder else ()),
            ("env", env),
            ("headers", sorted(self.headers)),
            ("takes your", self.takes),
        )
        given = "; ".join(f"{word} {', '.join(names)}" for word, names in lists if names)
        return one_line(f"{self.name}: {what}" + (f" ({given})" if given else ""), EVERYTHING)


def servers(data: object, source: str = ".mcp.json", *, own: bool = False) -> tuple[Server, ...]:
    """All servers of a file or of a table of tables; `WorldFault` says which key of `source` is wrong, and how.

    `own` says that it is the person's own file. Another one may not call a tool harmless.
    """
    return tuple(_Entry(source, name, told, own=own).server() for name, told in table_of(data, source).items())


def table_of(data: object, source: str) -> Mapping[str, object]:
    """What stands under each name, not looked at yet."""
    if not isinstance(data, Mapping):
        raise WorldFault(f'{source}: it is no table. Write {{"{ROOT}": {{"NAME": {{"command": "…"}}}}}}.')
    table = data.get(ROOT, data)
    if not isinstance(table, Mapping):
        raise WorldFault(f"{source}: `{ROOT}` must be a table with a server under each name.")
    return table


class _Entry:
    """One server's table, with words for what is wrong in it. What it holds may be a secret, and is not repeated."""

    def __init__(self, source: str, name: object, told: object, *, own: bool) -> None:
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not is_plain(name):
            raise WorldFault(
                f"{source}: {one_line(repr(name), 80)} is no name for a server. Use up to {LONGEST_NAME} letters."
            )
        if not isinstance(told, Mapping):
            raise WorldFault(f"{source}: `{name}` must be a table with a `command` or a `url`.")
        self._source = source
        self._name = name
        self._told: Mapping[str, object] = told
        self._own = own

    def server(self) -> Server:
        """It, if everything fits."""
        self._refuse_slips()
        http = self._is_http()
        return Server(
            name=self._name,
            command="" if http else self._text("command"),
            args=() if http else self._texts("args"),
            env={} if http else self._hidden("env"),
            folder="" if http else self._text("cwd"),
            url=self._url() if http else "",
            headers=self._hidden("headers") if http else {},
            seconds=self._seconds("timeout") or SECONDS,
            starting=self._seconds("start_timeout"),
            read_only=self._read_only(),
            enabled=not self._flag("disabled"),
        )

    def _wrong(self, key: str, what: str) -> WorldFault:
        end = "" if what.endswith("?") else "."
        return WorldFault(f"{self._source}: `{self._name}.{key}` {what}{end}")

    def _refuse_slips(self) -> None:
        """Other programs have keys of their own, which are passed over; a slip of the pen is none of them."""
        for key in self._told:
            near = get_close_matches(str(key), KEYS, n=1, cutoff=0.8)
            if key not in KEYS and near:
                raise self._wrong(one_line(str(key), 40), f"is not known. Did you mean `{near[0]}`?")

    def _is_http(self) -> bool:
        kind = self._told.get("type")
        if kind == "sse":
            raise self._wrong("type", 'is "sse", which MCP has given up. Ask for its streamable HTTP address: "http"')
        if kind is not None and (not isinstance(kind, str) or kind not in STDIO | HTTP):
            raise self._wrong("type", 'must be "stdio" or "http"')
        has_command, has_url = "command" in self._told, "url" in self._told
        if has_command and has_url:
            raise self._wrong("command", "stands beside `url`. A server has one of the two")
        http = kind in HTTP or (kind is None and has_url)
        if not (has_url if http else has_command):
            raise self._wrong("url" if http else "command", "is missing")
        return http

    def _text(self, key: str) -> str:
        value = self._told.get(key, "")
        if not isinstance(value, str) or "\0" in value or (key == "command" and not value.strip()):
            raise self._wrong(key, "must be a text that is not empty" if key == "command" else "must be a text")
        if "${" in value:
            raise self._wrong(key, "has a ${…}, which is filled in only in `env` and `headers`. Write the value")
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._told.get(key, ())
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and "\0" not in one for one in value):
            raise self._wrong(key, "must be a list of texts")
        if any("${" in one for one in value):
            raise self._wrong(key, "has a ${…}, which is filled in only in `env` and `headers`. Write the value")
        return tuple(value)

    def _hidden(self, key: str) -> Mapping[str, Hidden]:
        value = self._told.get(key, {})
        if not isinstance(value, Mapping):
            raise self._wrong(key, "must be a table of texts")
        for name, one in value.items():
            if not isinstance(name, str) or not name.isascii() or not name.isprintable() or set(name) & set("= :"):
                raise self._wrong(key, "has a name that is none")
            if not isinstance(one, str) or set(one) & set("\0\r\n"):
                raise self._wrong(f"{key}.{name}", "must be a text of one line")
        return {name: Hidden(one) for name, one in value.items()}

    def _url(self) -> str:
        text = self._text("url")
        try:
            parts = urlsplit(text)
            fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
            fits = fits and text.isascii() and text.isprintable() and " " not in text and parts.port != 0
        except ValueError:
            fits = False
        if not fits:
            raise self._wrong("url", "must be an address like https://host/mcp, without a password in it")
        return text

    def _seconds(self, key: str) -> int:
        """So many; 0 where nothing is said."""
        value = self._told.get(key)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= LONGEST:
            raise self._wrong(key, f"must be a number of seconds from 1 to {LONGEST}")
        return round(value)

    def _flag(self, key: str) -> bool:
        value = self._told.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong(key, "must be true or false")
        return value

    def _read_only(self) -> tuple[str, ...]:
        if "read_only" in self._told and not self._own:
            raise self._wrong(
                "read_only", "says that tools are harmless, which only your own settings can. Put it there"
            )
        return self._texts("read_only")


PASSED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    }
)
"""What a server gets of our own environment. A key that nobody thought of stays out."""

TELLING: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)
SHORTEST: Final = 6
"""Characters of a secret. A shorter one is found in harmless text as well."""

COVER: Final = "****"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A server with everything filled in. It is shown to nobody, and lives as long as it takes to start one."""

    server: Server
    env: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def cover(self, text: str) -> str:
        """A text in which a server, or a fault, may have repeated a secret: without it."""
        for secret in self.secrets:
            text = text.replace(secret, COVER)
        return text


def filled(server: Server, environ: Mapping[str, str], withheld: Collection[str] = ()) -> Filled:
    """What it is started with; `WorldFault` for a variable that is not there, or is `withheld` from all servers."""
    env = {name: _value(server, f"env.{name}", one, environ, withheld) for name, one in server.env.items()}
    headers = {name: _value(server, f"headers.{name}", one, environ, withheld) for name, one in server.headers.items()}
    passed = {name: environ[name] for name in PASSED if name in environ}
    return Filled(
        server=server,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **env},
        headers=headers,
        secrets=tuple(sorted(set(_secrets(server, env, headers)), key=len, reverse=True)),
    )


def _value(server: Server, key: str, hidden: Hidden, environ: Mapping[str, str], withheld: Collection[str]) -> str:
    def fill(found: re.Match[str]) -> str:
        name, instead = found[1], found[2]
        if name in withheld:
            raise WorldFault(
                f"The MCP server {server.name!r} asks for {name} (`{key}`), a model provider's key, which no server is "
                "given. If it needs a key of its own, put that into another variable."
            )
        value = environ.get(name, instead)
        if value is None:
            raise WorldFault(
                f"The MCP server {server.name!r} needs the variable {name} (`{key}`). Set it and try again."
            )
        if set(value) & set("\0\r\n"):
            raise WorldFault(f"The variable {name} has several lines; `{key}` of {server.name!r} takes one.")
        return value

    return VARIABLE.sub(fill, hidden.reveal())


def _secrets(server: Server, env: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    """All that is not to be repeated: of a header also the part behind `Bearer`."""
    telling = [value for name, value in env.items() if TELLING.search(name) or value != server.env[name].reveal()]
    for value in (*telling, *headers.values()):
        for part in (value, value.rpartition(" ")[2]):
            if len(part) >= SHORTEST:
                yield part


def refuse_absent(filled: Filled, folder: Path) -> None:
    """`WorldFault` for a program, or a folder to begin in, that is not there."""
    server = filled.server
    where = folder / server.folder
    if not where.is_dir():
        raise WorldFault(f"The MCP server {server.name!r} cannot be started: there is no folder {str(where)!r}.")
    if shutil.which(server.command, path=filled.env["PATH"]) is None and "/" not in server.command:
        raise WorldFault(
            f"The MCP server {server.name!r} cannot be started: there is no program {server.command!r}. "
            "Install it, or write its whole path."
        )


_NAMED: Final = re.compile(r"([\w.-]+)(=|:\s*)(?=\S)")
"""How a value is named inside a word: `--api-key=…`, `TOKEN=…`, `Authorization: …`."""

_QUERY: Final = re.compile(r"([?&][^=&#]*=)[^&#]*")


def masked(server: Server) -> str:
    """Its command or address, and what it is given, in a line."""
    covered = evolve(server, args=tuple(_words(server.args)), url=_address(server.url))
    return covered.shown.removeprefix(f"{server.name}: ")


def _words(args: tuple[str, ...]) -> Iterator[str]:
    hides = False
    for word in args:
        flag = word.startswith("-")
        yield COVER if hides and not flag else _word(word)
        hides = flag and "=" not in word and bool(TELLING.search(word))


def _word(word: str) -> str:
    if "://" in word:
        return _address(word)
    named = _NAMED.match(word)
    return f"{named[0]}{COVER}" if named and TELLING.search(named[1]) else word


def _address(url: str) -> str:
    return _QUERY.sub(rf"\1{COVER}", url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """What a link is made from. `folder` is where a command begins; `changed` is called when its tools are others."""

    filled: Filled
    folder: Path
    changed: Callable[[], None]
