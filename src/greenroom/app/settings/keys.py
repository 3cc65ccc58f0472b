"""The user's keys: taken from the environment first, else from a file that nobody else can read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.models.catalog.catalog import providers
from greenroom.app.settings.home import change, config_folder
from greenroom.app.settings.schema import ProviderSettings, read_toml
from greenroom.app.settings.values import Secret
from greenroom.core.base.errors import WorldFault

NAME: Final = "keys.toml"
OTHERS: Final = 0o077


def keys_file(folder: Path | None = None) -> Path:
    return (folder or config_folder()) / NAME


def find_key(
    name: str, environ: Mapping[str, str], told: ProviderSettings | None = None, folder: Path | None = None
) -> tuple[Secret, str] | None:
    """The key for a provider and where it is from: its variables, then the user's settings, then the key file."""
    known = providers().get(name)
    variables = (*((told.key_env,) if told and told.key_env else ()), *(known.keys if known else ()))
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            return Secret(name, value), f"${variable}"
    if told is not None and told.key is not None:
        return told.key, "config.toml"
    value = saved_keys(folder).get(name, "")
    return (Secret(name, value), NAME) if value else None


def key_for(
    name: str, environ: Mapping[str, str], told: ProviderSettings | None = None, folder: Path | None = None
) -> Secret | None:
    """The key for a provider."""
    found = find_key(name, environ, told, folder)
    return found[0] if found is not None else None


def saved_keys(folder: Path | None = None) -> Mapping[str, str]:
    """All keys of the file by provider, if there is one that only its owner can read."""
    path = keys_file(folder)
    raw = read_toml(path)
    if raw is None:
        return {}
    refuse_open(path)
    for name, value in raw.items():
        if not isinstance(value, str):
            raise WorldFault(f'{path}: the key of {name!r} is no text. Write {name} = "…".')
    return {name: str(value).strip() for name, value in raw.items()}


def refuse_open(path: Path) -> None:
    """`WorldFault` if others can read a file with keys in it."""
    if path.stat().st_mode & OTHERS:
        raise WorldFault(f"{path} holds keys, and others can read it. Type: chmod 600 {shlex.quote(str(path))}")


def save_key(name: str, value: str, folder: Path | None = None) -> Path:
    """Keep a key in the file; all at once, so that a crash loses none."""
    path = keys_file(folder)
    key = value.strip()
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise WorldFault(f"What was given for {name!r} is no key: a key is one word. Copy it again.")
    if not name.strip() or not name.isprintable():
        raise WorldFault(f"{name!r} is no provider's name. Name one, for instance openai.")
    change(path, lambda: _written({**saved_keys(folder), name: key}))
    return path


def _written(keys: Mapping[str, str]) -> str:
    return "".join(f"{quoted(provider)} = {quoted(key)}\n" for provider, key in keys.items())


def quoted(text: str) -> str:
    """A text as TOML writes it; for printable ones that is as in JSON."""
    return msgspec.json.encode(text).decode()
