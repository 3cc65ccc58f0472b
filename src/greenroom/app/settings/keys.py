"""The user's keys: taken from the environment first, else from a file that nobody else can read."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from platformdirs import user_config_path

from greenroom.adapters.models.catalog.catalog import providers
from greenroom.app.settings.schema import ProviderSettings, read_toml
from greenroom.app.settings.values import Secret
from greenroom.core.base.errors import WorldFault

NAME: Final = "keys.toml"
OTHERS: Final = 0o077


def keys_file(folder: Path | None = None) -> Path:
    return (folder or user_config_path("greenroom", appauthor=False)) / NAME


def key_for(
    name: str, environ: Mapping[str, str], told: ProviderSettings | None = None, folder: Path | None = None
) -> Secret | None:
    """The key for a provider: its variables, then the user's settings, then the key file."""
    known = providers().get(name)
    variables = (*((told.key_env,) if told and told.key_env else ()), *(known.keys if known else ()))
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            return Secret(name, value)
    if told is not None and told.key is not None:
        return told.key
    value = saved_keys(folder).get(name, "")
    return Secret(name, value) if value else None


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
    try:
        with alone(path.parent):
            keys = {**saved_keys(folder), name: key}
            replace(path, "".join(f"{quoted(one)} = {quoted(told)}\n" for one, told in keys.items()))
    except OSError as error:
        raise WorldFault(f"The key cannot be saved in {path}: {error.strerror}. Give it by a variable.") from None
    return path


def quoted(text: str) -> str:
    """A text as TOML writes it; for printable ones that is as in JSON."""
    return msgspec.json.encode(text).decode()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else writes in this folder meanwhile, and from now on nobody else looks into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    with locked(folder):
        yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else who asks for the same writes in this folder meanwhile."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, text: str) -> None:
    """A new file in the place of the old one, never readable by others."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
