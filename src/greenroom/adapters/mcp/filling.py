"""What a server is given when it starts: an allow-list of our own environment, and what its settings name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from greenroom.adapters.mcp.configuration import Server
from greenroom.adapters.mcp.hidden import VARIABLE, Hidden
from greenroom.core.base.errors import WorldFault

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
