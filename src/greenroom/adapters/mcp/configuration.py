"""The configured servers: `mcpServers` in `.mcp.json`, or tables `[mcp.NAME]` in the settings.

Reading starts nothing and resolves nothing: `${…}` stays until a server starts. Then the server gets allowed variables
of the environment, and those that its settings name.
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

from greenroom.adapters.mcp.schemas import is_plain, to_one_line
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import encode, evolve, record

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}`, or `${NAME:-default}`."""


class HiddenValue:
    """A value in `env` or `headers`. Only `reveal` returns it, for starting the server."""

    __slots__ = ("_written",)

    def __init__(self, value: str) -> None:
        self._written: Final = value

    def reveal(self) -> str:
        """Return the value as written in the settings, including `${…}`."""
        return self._written

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the person's variables in the value."""
        return tuple(match[1] for match in VARIABLE.finditer(self._written))

    def __repr__(self) -> str:
        return "****"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiddenValue) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self._written)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A possible secret cannot be serialised.")


CALL_TIMEOUT_S: Final = 120
MAX_CALL_TIMEOUT_S: Final = 3600
"""How long a call may take, in seconds: by default and at most."""

MAX_NAME_CHARS: Final = 64
MAX_SUMMARY_CHARS: Final = 1_000_000
"""Length limit in characters of the text that a person approves; it is never cut in practice."""

ROOT_KEY: Final = "mcpServers"
FIELD_NAME: Final = re.compile(r"[!-9;<>-~]+")
"""The name of a variable or header: no space, colon or equals sign."""

HTTP_TYPES: Final = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})


@record
class McpServer:
    """A server from the settings: a `command` or a `url`. `seconds` limits a call, `starting` the start (0: default).

    `read_only` names the tools that change nothing according to the *owner*. The server's own claim is not enough.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, HiddenValue] = msgspec.field(default_factory=dict)
    folder: str = ""
    url: str = ""
    headers: Mapping[str, HiddenValue] = msgspec.field(default_factory=dict)
    seconds: int = CALL_TIMEOUT_S
    starting: int = 0
    read_only: tuple[str, ...] = ()
    enabled: bool = True

    @property
    def digest(self) -> str:
        """The hash that trust is bound to: everything that decides what starts and what it gets."""
        values = {f"env {name}": value for name, value in self.env.items()}
        values |= {f"h {name}": value for name, value in self.headers.items()}
        revealed = sorted((name, value.reveal()) for name, value in values.items())
        facts = (self.name, self.command, self.args, self.folder, self.url, revealed, sorted(self.read_only))
        return hashlib.sha256(encode(facts)).hexdigest()

    @property
    def taken_variables(self) -> tuple[str, ...]:
        """The person's variables that the server gets."""
        hidden = (*self.env.values(), *self.headers.values())
        return tuple(sorted({name for value in hidden for name in value.variables}))

    @property
    def summary(self) -> str:
        """A one-line summary without possible secrets."""
        return self._render(sorted(self.env))

    @property
    def full_summary(self) -> str:
        """The summary that a person sees before trusting a server of a project, with the values in `env`. `${…}` refers
        to the person's own variables and is not resolved."""
        return self._render([f"{name}={shlex.quote(value.reveal())}" for name, value in sorted(self.env.items())])

    def _render(self, env: Sequence[str]) -> str:
        target = self.url or " ".join((self.command, *self.args))
        lists = (
            ("in", (self.folder,) if self.folder else ()),
            ("env", env),
            ("headers", sorted(self.headers)),
            ("takes your", self.taken_variables),
        )
        details = "; ".join(f"{word} {', '.join(names)}" for word, names in lists if names)
        return to_one_line(f"{self.name}: {target}" + (f" ({details})" if details else ""), MAX_SUMMARY_CHARS)


def parse_servers(data: object, source: str = ".mcp.json", *, is_own: bool = False) -> tuple[McpServer, ...]:
    """Parse all servers of a file or table. Raise `WorldFault` with the wrong key of `source`.

    `is_own` marks the person's own file. Other files must not declare a tool harmless.
    """
    return tuple(
        _parse_server(source, name, raw, is_own=is_own) for name, raw in find_server_table(data, source).items()
    )


def find_server_table(data: object, source: str) -> Mapping[str, object]:
    """Return the unchecked table of each server by name."""
    if not isinstance(data, Mapping):
        raise WorldFault("mcp.file_not_table", source=source, root_key=ROOT_KEY)
    table = data.get(ROOT_KEY, data)
    if not isinstance(table, Mapping):
        raise WorldFault("mcp.servers_not_table", source=source, root_key=ROOT_KEY)
    return table


Seconds = Annotated[float, msgspec.Meta(ge=1, le=MAX_CALL_TIMEOUT_S)]


class _ServerTable(msgspec.Struct, kw_only=True):
    """The table of a server. Keys of other programs are ignored."""

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


def _parse_server(source: str, name: str, raw: object, *, is_own: bool) -> McpServer:
    """Parse one server. Its table may hold secrets, so errors never quote values."""
    if not name.strip() or len(name) > MAX_NAME_CHARS or not is_plain(name):
        shown_name = to_one_line(repr(name), 80)
        raise WorldFault("mcp.bad_name_in_file", source=source, name=shown_name, limit=MAX_NAME_CHARS)
    try:
        written = msgspec.convert(raw, _ServerTable)
        is_http = _is_http(written)
        _check_table(written, raw, is_own=is_own)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        key, why = f"{name}{where.removesuffix('`')}", f"{what[:1].lower()}{what[1:]}"
        raise WorldFault("mcp.bad_setting", source=source, key=key, why=why) from None
    return McpServer(
        name=name,
        command="" if is_http else written.command or "",
        args=() if is_http else tuple(written.args),
        env={} if is_http else {key: HiddenValue(value) for key, value in written.env.items()},
        folder="" if is_http else written.cwd,
        url=written.url or "" if is_http else "",
        headers={key: HiddenValue(value) for key, value in written.headers.items()} if is_http else {},
        seconds=round(written.timeout or CALL_TIMEOUT_S),
        starting=round(written.start_timeout or 0),
        read_only=tuple(written.read_only),
        enabled=not written.disabled,
    )


def _make_error(key: str, what: str) -> msgspec.ValidationError:
    return msgspec.ValidationError(f"{what} - at `$.{key}`")


def _is_http(written: _ServerTable) -> bool:
    if written.type == "sse":
        raise _make_error("type", translate("mcp.type_sse"))
    if written.type not in {"", "stdio", *HTTP_TYPES}:
        raise _make_error("type", translate("mcp.bad_type"))
    if written.command is not None and written.url is not None:
        raise _make_error("command", translate("mcp.command_and_url"))
    is_http = written.type in HTTP_TYPES or (not written.type and written.url is not None)
    if not ((written.url if is_http else written.command) or "").strip():
        raise _make_error("url" if is_http else "command", translate("mcp.key_missing"))
    return is_http


def _check_table(written: _ServerTable, raw: object, *, is_own: bool) -> None:
    """Check what types cannot express."""
    for key in raw if isinstance(raw, Mapping) else ():
        close_matches = get_close_matches(str(key), written.__struct_fields__, n=1, cutoff=0.8)
        if close_matches and key not in written.__struct_fields__:
            raise _make_error(to_one_line(str(key), 40), translate("mcp.unknown_key", near=close_matches[0]))
    texts = {"command": [written.command or ""], "args": written.args, "cwd": [written.cwd], "url": [written.url or ""]}
    for key, values in texts.items():
        if any("${" in value or "\0" in value for value in values):
            raise _make_error(key, translate("mcp.variable_not_here"))
    for key, table in (("env", written.env), ("headers", written.headers)):
        for name, value in table.items():
            if not FIELD_NAME.fullmatch(name):
                raise _make_error(key, translate("mcp.invalid_name"))
            if set(value) & set("\0\r\n"):
                raise _make_error(f"{key}.{name}", translate("mcp.single_line"))
    if written.url is not None and not _is_server_address(written.url):
        raise _make_error("url", translate("mcp.bad_url"))
    if written.read_only and not is_own:
        raise _make_error("read_only", translate("mcp.read_only_of_user"))


def _is_server_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
        return fits and text.isascii() and text.isprintable() and " " not in text and parts.port != 0
    except ValueError:
        return False


PASSED_VARIABLES: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    }
)
"""Variables that a server gets from Greenroom's environment. All others, such as keys, are left out."""

SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)
MIN_SECRET_CHARS: Final = 6
"""Shortest secret in characters. Shorter values also occur in harmless text."""

MASK: Final = "****"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedServer:
    """A server with all values resolved. It is never displayed, and exists only to start the server."""

    server: McpServer
    env: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def redact(self, text: str) -> str:
        """Return the text without secrets, which a server or fault may have repeated."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text


def resolve_server(server: McpServer, environ: Mapping[str, str], withheld: Collection[str] = ()) -> ResolvedServer:
    """Resolve the values of a server. Raise `WorldFault` for a missing variable, or one in `withheld`."""
    env = {name: _resolve_value(server, f"env.{name}", value, environ, withheld) for name, value in server.env.items()}
    headers = {
        name: _resolve_value(server, f"headers.{name}", value, environ, withheld)
        for name, value in server.headers.items()
    }
    passed = {name: environ[name] for name in PASSED_VARIABLES if name in environ}
    return ResolvedServer(
        server=server,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **env},
        headers=headers,
        secrets=tuple(sorted(set(_find_secrets(server, env, headers)), key=len, reverse=True)),
    )


def _resolve_value(
    server: McpServer, key: str, hidden: HiddenValue, environ: Mapping[str, str], withheld: Collection[str]
) -> str:
    def fill(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if name in withheld:
            raise WorldFault("mcp.provider_key_withheld", name=server.name, variable=name, key=key)
        value = environ.get(name, default)
        if value is None:
            raise WorldFault("mcp.server_variable_missing", name=server.name, variable=name, key=key)
        if set(value) & set("\0\r\n"):
            raise WorldFault("mcp.variable_several_lines", name=name, key=key, name2=server.name)
        return value

    return VARIABLE.sub(fill, hidden.reveal())


def _find_secrets(server: McpServer, env: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    """Yield all values to redact; of a header also the part after `Bearer`."""
    secret_values = [
        value for name, value in env.items() if SECRET_NAME.search(name) or value != server.env[name].reveal()
    ]
    for value in (*secret_values, *headers.values()):
        for part in (value, value.rpartition(" ")[2]):
            if len(part) >= MIN_SECRET_CHARS:
                yield part


def refuse_missing_program(resolved: ResolvedServer, folder: Path) -> None:
    """Raise `WorldFault` if the program or its folder does not exist."""
    server = resolved.server
    where = folder / server.folder
    if not where.is_dir():
        raise WorldFault("mcp.server_folder_missing", name=server.name, where=str(where))
    if shutil.which(server.command, path=resolved.env["PATH"]) is None and "/" not in server.command:
        raise WorldFault("mcp.server_program_missing", name=server.name, command=server.command)


_NAMED_VALUE: Final = re.compile(r"([\w.-]+)(=|:\s*)(?=\S)")
"""Matches the name before a value inside a word: `--api-key=…`, `TOKEN=…`, `Authorization: …`."""

_QUERY_VALUE: Final = re.compile(r"([?&][^=&#]*=)[^&#]*")


def render_masked(server: McpServer) -> str:
    """Return the command or address and what the server gets, in one line and with masked values."""
    redacted = evolve(server, args=tuple(_mask_words(server.args)), url=_mask_query(server.url))
    return redacted.summary.removeprefix(f"{server.name}: ")


def _mask_words(args: tuple[str, ...]) -> Iterator[str]:
    hides_next = False
    for word in args:
        flag, named = word.startswith("-"), _NAMED_VALUE.match(word)
        if hides_next and not flag:
            yield MASK
        elif "://" in word:
            yield _mask_query(word)
        else:
            yield f"{named[0]}{MASK}" if named and SECRET_NAME.search(named[1]) else word
        hides_next = flag and "=" not in word and bool(SECRET_NAME.search(word))


def _mask_query(url: str) -> str:
    return _QUERY_VALUE.sub(rf"\1{MASK}", url)
