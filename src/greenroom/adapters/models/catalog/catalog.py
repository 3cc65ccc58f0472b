"""The catalog of providers and models, read once from the two files beside this module. It uses no network.

`providers.toml` lists the providers. `families.toml` lists what models with certain names can do.
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

from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ModelCard

Wire = Literal["openai", "pydantic_ai"]

_DOTTED_VENDOR: Final = re.compile(r"(?:[a-z]+\.)+(?=[a-z])")
"""Bedrock's notation for a vendor: `eu.anthropic.claude-…`."""


@record
class Provider:
    """A provider of models. `keys` are environment variables. If `base_url` is empty, the person must set it."""

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
class ModelFamily:
    """A family of similar models: name patterns, providers (best known first) and capabilities."""

    names: tuple[str, ...]
    at: tuple[str, ...]
    card: ModelCard


def read_table(name: str) -> Data:
    """Read one of the two files."""
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


@cache
def load_providers() -> Mapping[str, Provider]:
    """Return all providers by name, in the order in which they are proposed."""
    tables = convert(read_table("providers.toml"), dict[str, dict[str, object]])
    return MappingProxyType({name: convert({**table, "name": name}, Provider) for name, table in tables.items()})


@cache
def load_families() -> Sequence[ModelFamily]:
    """Return all families, specific ones before general ones."""
    tables = convert(read_table("families.toml")["family"], list[dict[str, object]])
    return tuple(convert({**table, "card": table}, ModelFamily) for table in tables)


def get_provider(name: str) -> Provider:
    """Return the provider with this name. Raise `WorldFault` if there is none."""
    found_provider = load_providers().get(name.strip().lower())
    if found_provider is None:
        raise make_unknown_fault(name, load_providers())
    return found_provider


def make_unknown_fault(name: str, names: Collection[str]) -> WorldFault:
    """Return the fault for an unknown provider, with similar names."""
    close_matches = get_close_matches(name.strip().lower(), names, n=3, cutoff=0.6)
    hint = (
        translate("hints.meant_names", names=quote_names(close_matches, " or "))
        if close_matches
        else translate("hints.known", names=quote_names(sorted(names), ", "))
    )
    return WorldFault("models.unknown_provider", name=name, hint=hint)


def quote_names(names: Sequence[str], separator: str) -> str:
    """Join names in backticks."""
    return separator.join(f"`{name}`" for name in names)


def normalise_name(model: str) -> str:
    """Return the name for matching families: lower case, without vendor and tag."""
    name = model.strip().lower().removeprefix("ft:").rsplit("/", 1)[-1].split(":", 1)[0]
    return _DOTTED_VENDOR.sub("", name, count=1) if _DOTTED_VENDOR.match(name) else name


def find_family(model: str) -> ModelFamily | None:
    """Return the first family whose patterns match; None if there is none."""
    name = normalise_name(model)
    return next(
        (family for family in load_families() if any(fnmatchcase(name, pattern) for pattern in family.names)), None
    )


def find_card(model: str) -> ModelCard:
    """Return the card of a model, named without its provider. An unknown model gets the cautious default."""
    family = find_family(model)
    return ModelCard() if family is None else family.card


def split_model_name(name: str, own_providers: Collection[str] = ()) -> tuple[str, str]:
    """Split `provider:model` at the first colon. `own_providers` are providers from the settings."""
    first, colon, model = (part.strip() for part in name.partition(":"))
    lower = first.lower()
    chosen = first if first in own_providers else lower
    if colon and (chosen in load_providers() or chosen in own_providers):
        if not model:
            raise WorldFault("models.no_model_name", name=name, example=make_example(chosen))
        return chosen, model
    proposed = propose_names(name.strip())
    if proposed:
        raise WorldFault("models.propose_full_name", name=name, names=quote_names(proposed, " or "))
    if colon:
        raise make_unknown_fault(first, {*load_providers(), *own_providers})
    raise WorldFault("models.name_without_provider", name=name, example=make_example("openai"))


def make_example(name: str) -> str:
    """Return an example of a full model name."""
    known_provider = load_providers().get(name)
    return f"`{name}:{(known_provider.strong if known_provider else '') or 'MODEL'}`"


def propose_names(model: str) -> Sequence[str]:
    """Return full names for a model of a known family."""
    family = find_family(model)
    if family is None:
        return ()
    if "/" in model:
        return (f"openrouter:{model}",)
    # In Ollama a tag names the size; other providers have it in the name.
    at = ("ollama",) if ":" in model and "ollama" in family.at else family.at
    return tuple(f"{place}:{model}" for place in at if place != "openrouter") or (f"openrouter:{model}",)


LOOPBACK_OF_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Loopback addresses for servers that listen on every interface."""


def resolve_base_url(provider: Provider, environ: Mapping[str, str], configured: str = "") -> str:
    """Return the base URL without a trailing slash: `configured`, else the provider's variable, else its default."""
    from_environment = environ.get(provider.base_url_env, "").strip() if provider.base_url_env else ""
    if configured.strip():
        return complete_base_url(provider, configured.strip(), "base_url")
    if from_environment:
        return complete_base_url(provider, from_environment, f"${provider.base_url_env}")
    if not provider.base_url and provider.wire == "openai":
        raise WorldFault("models.no_default_address", name=provider.name, base_url_env=provider.base_url_env)
    return provider.base_url


def complete_base_url(provider: Provider, text: str, source: str) -> str:
    """Complete an address that a person typed (`0.0.0.0:11434`, `:1234`, `https://host`) to a base URL."""
    default = urlsplit(provider.base_url)
    if "://" not in text and provider.local:
        text = add_port(text, default)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, default
    if parts.scheme not in {"http", "https"} or not host:
        raise WorldFault("models.address_not_url", source=source, name=provider.name)
    if parts.username is not None:
        raise WorldFault("models.address_contains_password", source=source, name=provider.name)
    host = LOOPBACK_OF_ANY.get(host, host)
    place = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/") or provider.path or default.path
    return urlunsplit((parts.scheme, place if port is None else f"{place}:{port}", path, parts.query, ""))


def add_port(text: str, default: SplitResult) -> str:
    """Complete a host without a scheme, as in OLLAMA_HOST, with the default host and port."""
    host, slash, path = text.partition("/")
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    return f"http://{name or '127.0.0.1'}:{port or default.port}{slash}{path}"


@record
class FoundKey:
    """A provider and the environment variable that holds its key."""

    provider: Provider
    variable: str


@record
class ModelServer:
    """A model server that answers, and its models."""

    provider: Provider
    base_url: str
    models: tuple[str, ...]


def find_keys(environ: Mapping[str, str]) -> Sequence[FoundKey]:
    """Return the providers that have a key. If two share a variable, only the first counts."""
    keys: dict[str, FoundKey] = {}
    for candidate in load_providers().values():
        variable = next((name for name in candidate.keys if environ.get(name, "").strip()), None)
        if variable is not None and variable not in keys:
            keys[variable] = FoundKey(provider=candidate, variable=variable)
    return tuple(keys.values())


def is_local(base_url: str) -> bool:
    """Return whether the address is on this machine. Raise `WorldFault` if it is invalid."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WorldFault("models.invalid_base_url", base_url=base_url)
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return parts.hostname == "localhost"


MAX_LIST_BYTES: Final = 1_000_000
"""Largest size of a list of models, in bytes. A larger response is not from a model server."""


_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)


def read_size(model: str) -> float:
    """Return how many billion parameters the name of a model claims; 0 if it claims nothing."""
    return max((float(size) for size in _SIZE.findall(model)), default=0.0)


async def find_local_servers(timeout: float = 0.3, *, environ: Mapping[str, str] = os.environ) -> Sequence[ModelServer]:
    """Return the local servers that answer in time, with their models, the largest first."""
    import aiohttp

    async def read_body(response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > MAX_LIST_BYTES:
                return b""
        return bytes(body)

    async def query_server(session: aiohttp.ClientSession, provider: Provider) -> ModelServer | None:
        try:
            base_url = resolve_base_url(provider, environ)
            async with session.get(f"{base_url}/models", allow_redirects=False) as response:
                models = json.decode(await read_body(response), type=_ModelList).data or []
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, WorldFault):
            # There is no model server: no answer, another service, or an invalid address.
            return None
        names = sorted((model.id for model in models), key=lambda name: (-read_size(name), name))
        return ModelServer(provider=provider, base_url=base_url, models=tuple(names))

    local = [provider for provider in load_providers().values() if provider.local]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session:
        answers = await asyncio.gather(*(query_server(session, provider) for provider in local))
    return tuple(server for server in answers if server is not None)


class _ModelEntry(Struct):
    id: str


class _ModelList(Struct):
    data: list[_ModelEntry] | None
    """Ollama without any model sends null."""
