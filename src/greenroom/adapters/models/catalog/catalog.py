"""What is known of providers and models, read once from the two files beside this one. It touches no network.

`providers.toml` says who serves models, `families.toml` what a model of a certain name can do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct, convert, json

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ModelCard

Wire = Literal["openai", "pydantic_ai"]

_DOTTED_VENDOR: Final = re.compile(r"(?:[a-z]+\.)+(?=[a-z])")
"""Bedrock's way to write a vendor: `eu.anthropic.claude-…`."""


@record
class Provider:
    """Somebody who serves models. `keys` are variables; an empty `base_url` has to be given by the person."""

    name: str
    base_url: str = ""
    base_url_env: str = ""
    path: str = ""
    keys: tuple[str, ...] = ()
    wire: Wire = "openai"
    keyless: bool = False
    local: bool = False
    get_key: str = ""
    strong: str = ""
    fast: str = ""


@record
class Family:
    """Models that are alike: patterns of their names, who serves them (the best known first), what they can do."""

    names: tuple[str, ...]
    at: tuple[str, ...]
    card: ModelCard


def read(name: str) -> Data:
    """One of the two files."""
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


@cache
def providers() -> Mapping[str, Provider]:
    """All providers by name, in the order in which they are proposed."""
    tables = convert(read("providers.toml"), dict[str, dict[str, object]])
    return MappingProxyType({name: convert({**table, "name": name}, Provider) for name, table in tables.items()})


@cache
def families() -> Sequence[Family]:
    """All families, the special before the general."""
    tables = convert(read("families.toml")["family"], list[dict[str, object]])
    return tuple(convert({**table, "card": table}, Family) for table in tables)


def provider(name: str) -> Provider:
    """The provider of this name."""
    found = providers().get(name.strip().lower())
    if found is None:
        raise unknown(name, providers())
    return found


def unknown(name: str, names: Collection[str]) -> WorldFault:
    """There is no such provider; perhaps one of these is meant."""
    near = get_close_matches(name.strip().lower(), names, n=3, cutoff=0.6)
    hint = f"Did you mean {listed(near, ' or ')}?" if near else f"There are: {listed(sorted(names), ', ')}."
    return WorldFault(f"There is no provider {name!r}. {hint}")


def listed(names: Sequence[str], between: str) -> str:
    """Names as they are typed."""
    return between.join(f"`{name}`" for name in names)


def bare(model: str) -> str:
    """The name that a family goes by: no vendor before it, no tag behind it, in lower case."""
    name = model.strip().lower().removeprefix("ft:").rsplit("/", 1)[-1].split(":", 1)[0]
    return _DOTTED_VENDOR.sub("", name, count=1) if _DOTTED_VENDOR.match(name) else name


def family_of(model: str) -> Family | None:
    """The first family with a fitting name."""
    name = bare(model)
    return next((one for one in families() if any(fnmatchcase(name, pattern) for pattern in one.names)), None)


def card_of(model: str) -> ModelCard:
    """What is known of a model (its name without the provider); the cautious card for one that nobody knows."""
    found = family_of(model)
    return ModelCard() if found is None else found.card


def split(name: str, also: Collection[str] = ()) -> tuple[str, str]:
    """(provider, model) of `provider:model`, cut at the first colon. `also` are providers that a person has set up."""
    first, colon, model = (part.strip() for part in name.partition(":"))
    lower = first.lower()
    chosen = first if first in also else lower
    if colon and (chosen in providers() or chosen in also):
        if not model:
            raise WorldFault(f"{name!r} names no model. Write for instance {example(chosen)}.")
        return chosen, model
    proposed = proposals(name.strip())
    if proposed:
        raise WorldFault(f"{name!r} names no provider. Write {listed(proposed, ' or ')}.")
    if colon:
        raise unknown(first, {*providers(), *also})
    raise WorldFault(f"{name!r} names no provider. Write provider:model, for instance {example('openai')}.")


def example(name: str) -> str:
    """A name that can be typed."""
    known = providers().get(name)
    return f"`{name}:{(known.strong if known else '') or 'MODEL'}`"


def proposals(model: str) -> Sequence[str]:
    """How to write a model of a known family in full."""
    found = family_of(model)
    if found is None:
        return ()
    if "/" in model:
        return (f"openrouter:{model}",)
    # A tag is Ollama's way to name a size, where others have it in the name.
    at = ("ollama",) if ":" in model and "ollama" in found.at else found.at
    return tuple(f"{place}:{model}" for place in at if place != "openrouter") or (f"openrouter:{model}",)


EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a server listens on every interface it is reached on the loopback one."""


def address(provider: Provider, environ: Mapping[str, str], given: str = "") -> str:
    """The base address without a slash at its end: what is given, else the provider's variable, else its own."""
    named = environ.get(provider.base_url_env, "").strip() if provider.base_url_env else ""
    if given.strip():
        return completed(provider, given.strip(), "base_url")
    if named:
        return completed(provider, named, f"${provider.base_url_env}")
    if not provider.base_url and provider.wire == "openai":
        raise WorldFault(
            f"{provider.name!r} has no address of its own. Set ${provider.base_url_env}, or "
            f"`base_url` under [providers.{provider.name}] in your config.toml."
        )
    return provider.base_url


def completed(provider: Provider, text: str, source: str) -> str:
    """An address as people write it (`0.0.0.0:11434`, `:1234`, `https://host`) as one that can be asked."""
    usual = urlsplit(provider.base_url)
    if "://" not in text and provider.local:
        text = with_port(text, usual)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, usual
    if parts.scheme not in {"http", "https"} or not host:
        raise WorldFault(f"{source} for {provider.name!r} is no address. Write it like https://host/v1.")
    if parts.username is not None:
        raise WorldFault(f"{source} for {provider.name!r} holds a password. Give it as a key instead.")
    host = EVERYWHERE.get(host, host)
    place = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/") or provider.path or usual.path
    return urlunsplit((parts.scheme, place if port is None else f"{place}:{port}", path, parts.query, ""))


def with_port(text: str, usual: SplitResult) -> str:
    """A host without a scheme, as OLLAMA_HOST has it: what it leaves out is as usual."""
    host, slash, path = text.partition("/")
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    return f"http://{name or '127.0.0.1'}:{port or usual.port}{slash}{path}"


@record
class Found:
    """There is a key for this provider in this variable."""

    provider: Provider
    variable: str


@record
class Server:
    """A model server that answers, and the models that it has."""

    provider: Provider
    base_url: str
    models: tuple[str, ...]


def found(environ: Mapping[str, str]) -> Sequence[Found]:
    """The providers that have a key. One that shares its variable with an earlier one needs a variable of its own."""
    here: dict[str, Found] = {}
    for one in providers().values():
        variable = next((name for name in one.keys if environ.get(name, "").strip()), None)
        if variable is not None and variable not in here:
            here[variable] = Found(provider=one, variable=variable)
    return tuple(here.values())


def is_local(base_url: str) -> bool:
    """Whether the address is on this machine."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WorldFault(f"{base_url!r} is no address of a provider. It begins with https:// and often ends in /v1.")
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return parts.hostname == "localhost"


LONGEST_LIST: Final = 1_000_000
"""Bytes of a list of models; whatever answers with more is something else."""


async def local_servers(timeout: float = 0.3, *, environ: Mapping[str, str] = os.environ) -> Sequence[Server]:
    """The local providers that answer in time, with the models that they have."""
    import aiohttp

    async def body_of(response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > LONGEST_LIST:
                return b""
        return bytes(body)

    async def ask(session: aiohttp.ClientSession, provider: Provider) -> Server | None:
        try:
            base_url = address(provider, environ)
            async with session.get(f"{base_url}/models", allow_redirects=False) as response:
                listed = json.decode(await body_of(response), type=_Models).data or []
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, WorldFault):
            # Nothing there, something else there, or an address that is none: all the same, no model server.
            return None
        return Server(provider=provider, base_url=base_url, models=tuple(sorted(model.id for model in listed)))

    local = [provider for provider in providers().values() if provider.local]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session:
        asked = await asyncio.gather(*(ask(session, provider) for provider in local))
    return tuple(server for server in asked if server is not None)


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model] | None
    """Ollama without a model says null."""
