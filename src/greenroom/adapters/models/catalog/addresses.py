"""Where a provider is asked: its own address, or the one that a person gives, completed to what a client needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from greenroom.adapters.models.catalog.catalog import Provider
from greenroom.core.base.errors import WorldFault

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
