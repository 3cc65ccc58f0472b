"""Which servers there are: the `mcpServers` form of `.mcp.json`, and the same as tables `[mcp.NAME]` of our settings.

Reading starts nothing, and fills nothing in: `${…}` stays as it is written until a server is started. Then it gets an
allow-list of our own environment, and what its settings name.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final
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
NAME: Final = re.compile(r"[!-9;<>-~]+")
"""Of a variable or a header: no space, no colon, no equals sign."""

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
        given = {f"env {name}": value for name, value in self.env.items()}
        given |= {f"h {name}": value for name, value in self.headers.items()}
        told = sorted((name, value.reveal()) for name, value in given.items())
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
    return tuple(_server(source, name, told, own=own) for name, told in table_of(data, source).items())


def table_of(data: object, source: str) -> Mapping[str, object]:
    """What stands under each name, not looked at yet."""
    if not isinstance(data, Mapping):
        raise WorldFault(f'{source}: it is no table. Write {{"{ROOT}": {{"NAME": {{"command": "…"}}}}}}.')
    table = data.get(ROOT, data)
    if not isinstance(table, Mapping):
        raise WorldFault(f"{source}: `{ROOT}` must be a table with a server under each name.")
    return table


Seconds = Annotated[float, msgspec.Meta(ge=1, le=LONGEST)]


class _Written(msgspec.Struct, kw_only=True):
    """A server's table. Keys of other programs are passed over."""

    type: str = ""
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str = ""
    url: str | None = None
    headers: dict[str, str] = {}
    timeout: Seconds | None = None
    start_timeout: Seconds | None = None
    disabled: bool = False
    read_only: list[str] = []


def _server(source: str, name: str, told: object, *, own: bool) -> Server:
    """One server, if everything fits. What its table holds may be a secret, and is not repeated in a fault."""
    if not name.strip() or len(name) > LONGEST_NAME or not is_plain(name):
        why = f"{one_line(repr(name), 80)} is no name for a server. Use up to {LONGEST_NAME} letters."
        raise WorldFault(f"{source}: {why}")
    try:
        written = msgspec.convert(told, _Written)
        http = _is_http(written)
        _check(written, told, own=own)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        raise WorldFault(f"{source}: `{name}{where.removesuffix('`')}`: {what[:1].lower()}{what[1:]}.") from None
    return Server(
        name=name,
        command="" if http else written.command or "",
        args=() if http else tuple(written.args),
        env={} if http else {key: Hidden(value) for key, value in written.env.items()},
        folder="" if http else written.cwd,
        url=written.url or "" if http else "",
        headers={key: Hidden(value) for key, value in written.headers.items()} if http else {},
        seconds=round(written.timeout or SECONDS),
        starting=round(written.start_timeout or 0),
        read_only=tuple(written.read_only),
        enabled=not written.disabled,
    )


def _wrong(key: str, what: str) -> msgspec.ValidationError:
    return msgspec.ValidationError(f"{what} - at `$.{key}`")


def _is_http(written: _Written) -> bool:
    if written.type == "sse":
        raise _wrong("type", 'it is "sse", which MCP has given up. Ask for its streamable HTTP address: "http"')
    if written.type not in {"", "stdio", *HTTP}:
        raise _wrong("type", 'it must be "stdio" or "http"')
    if written.command is not None and written.url is not None:
        raise _wrong("command", "it stands beside `url`. A server has one of the two")
    http = written.type in HTTP or (not written.type and written.url is not None)
    if not ((written.url if http else written.command) or "").strip():
        raise _wrong("url" if http else "command", "it is missing")
    return http


def _check(written: _Written, told: object, *, own: bool) -> None:
    """What types do not say."""
    for key in told if isinstance(told, Mapping) else ():
        near = get_close_matches(str(key), written.__struct_fields__, n=1, cutoff=0.8)
        if near and key not in written.__struct_fields__:
            raise _wrong(one_line(str(key), 40), f"it is not known. Did you mean `{near[0]}`?")
    texts = {"command": [written.command or ""], "args": written.args, "cwd": [written.cwd], "url": [written.url or ""]}
    for key, values in texts.items():
        if any("${" in value or "\0" in value for value in values):
            raise _wrong(key, "it has a ${…}, which is filled in only in `env` and `headers`. Write the value")
    for key, table in (("env", written.env), ("headers", written.headers)):
        for name, value in table.items():
            if not NAME.fullmatch(name):
                raise _wrong(key, "it has a name that is none")
            if set(value) & set("\0\r\n"):
                raise _wrong(f"{key}.{name}", "it must be a text of one line")
    if written.url is not None and not _is_address(written.url):
        raise _wrong("url", "it must be an address like https://host/mcp, without a password in it")
    if written.read_only and not own:
        raise _wrong("read_only", "it says that tools are harmless, which only your own settings can. Put it there")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
        return fits and text.isascii() and text.isprintable() and " " not in text and parts.port != 0
    except ValueError:
        return False


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
    covered = evolve(server, args=tuple(_mask_words(server.args)), url=_mask_query(server.url))
    return covered.shown.removeprefix(f"{server.name}: ")


def _mask_words(args: tuple[str, ...]) -> Iterator[str]:
    hides = False
    for word in args:
        flag, named = word.startswith("-"), _NAMED.match(word)
        if hides and not flag:
            yield COVER
        elif "://" in word:
            yield _mask_query(word)
        else:
            yield f"{named[0]}{COVER}" if named and TELLING.search(named[1]) else word
        hides = flag and "=" not in word and bool(TELLING.search(word))


def _mask_query(url: str) -> str:
    return _QUERY.sub(rf"\1{COVER}", url)
