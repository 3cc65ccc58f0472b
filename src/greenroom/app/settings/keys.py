"""API keys: from environment variables, from the settings, or from a key file that only its owner can read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.app.settings.home import change_file, config_folder
from greenroom.app.settings.schema import ProviderSettings, read_toml
from greenroom.app.settings.values import Secret
from greenroom.core.base.errors import WorldFault

KEYS_FILE: Final = "keys.toml"
ACCESSIBLE_TO_OTHERS: Final = 0o077


def keys_file(folder: Path | None = None) -> Path:
    return (folder or config_folder()) / KEYS_FILE


def find_key(
    name: str, environ: Mapping[str, str], provider_settings: ProviderSettings | None = None, folder: Path | None = None
) -> tuple[Secret, str] | None:
    """Return a provider's key and its source: environment variables, then the user's settings, then the key file."""
    provider = load_providers().get(name)
    variables = (
        *((provider_settings.key_env,) if provider_settings and provider_settings.key_env else ()),
        *(provider.keys if provider else ()),
    )
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            return Secret(name, value), f"${variable}"
    if provider_settings is not None and provider_settings.key is not None:
        return provider_settings.key, "config.toml"
    value = saved_keys(folder).get(name, "")
    return (Secret(name, value), KEYS_FILE) if value else None


def key_for(
    name: str, environ: Mapping[str, str], provider_settings: ProviderSettings | None = None, folder: Path | None = None
) -> Secret | None:
    key_and_source = find_key(name, environ, provider_settings, folder)
    return key_and_source[0] if key_and_source is not None else None


def saved_keys(folder: Path | None = None) -> Mapping[str, str]:
    """Return the keys of the key file by provider. Raise `WorldFault` if other users can read the file."""
    path = keys_file(folder)
    raw = read_toml(path)
    if raw is None:
        return {}
    refuse_readable(path)
    for name, value in raw.items():
        if not isinstance(value, str):
            raise WorldFault("settings.key_not_text", path=path, name=name)
    return {name: str(value).strip() for name, value in raw.items()}


def refuse_readable(path: Path) -> None:
    """Raise `WorldFault` if other users can read a file with keys."""
    if path.stat().st_mode & ACCESSIBLE_TO_OTHERS:
        raise WorldFault("settings.keys_readable_by_others", path=path, quoted_path=shlex.quote(str(path)))


def save_key(name: str, value: str, folder: Path | None = None) -> Path:
    """Save a key to the key file atomically, and return the file's path."""
    path = keys_file(folder)
    key = value.strip()
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise WorldFault("settings.malformed_key", name=name)
    if not name.strip() or not name.isprintable():
        raise WorldFault("settings.malformed_provider_name", name=name)
    change_file(path, lambda: _render_keys({**saved_keys(folder), name: key}))
    return path


def _render_keys(keys: Mapping[str, str]) -> str:
    return "".join(f"{quote_toml(provider)} = {quote_toml(key)}\n" for provider, key in keys.items())


def quote_toml(text: str) -> str:
    """Return a text as a TOML string. For printable text this equals JSON."""
    return msgspec.json.encode(text).decode()
