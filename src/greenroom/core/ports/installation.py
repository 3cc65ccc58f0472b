"""The command that adds an optional extra to this installation of Greenroom."""

from __future__ import annotations

import json
import re
import shlex
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_REQUIREMENT: Final = re.compile(r"([\w.-]+).*extra == [\"'](\w+)[\"']")


@cache
def how_to_install(extra: str, beside: str = "") -> str:
    """Return the command, in backticks, that installs an extra and the package `beside` where this Greenroom is.

    Extras that are installed already stay: some installers keep only what their command names.
    """
    address, prefix = urlsplit(_find_address()), Path(sys.prefix)
    folder = unquote(address.path) if address.scheme == "file" else ""
    extras = ",".join(sorted({*_find_extras(), extra}))
    remote = f" @ {address.geturl()}" if address.scheme and not folder else ""
    target, script = shlex.quote(f"{folder or 'greenroom'}[{extras}]{remote}"), Path(folder, "go")
    if folder and script.is_file() and (prefix.parent == script.parent or (prefix / "uv-receipt.toml").exists()):
        return f"`{shlex.quote(str(script))} uv tool install {target}{f' --with {beside}' if beside else ''}`"
    if (prefix / "uv-receipt.toml").exists():
        return f"`uv tool install {target}{f' --with {beside}' if beside else ''}`"
    if (prefix / "pipx_metadata.json").exists():
        return f"`pipx install --force {target}{f' && pipx inject greenroom {beside}' if beside else ''}`"
    return f"`{shlex.quote(sys.executable)} -m pip install {target}{f' {beside}' if beside else ''}`"


def _find_address() -> str:
    """Return the address that Greenroom was installed from; empty if it came from a package index."""
    try:
        text = distribution("greenroom").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return str(json.loads(text)["url"]) if text else ""


def _find_extras() -> set[str]:
    """Return the extras whose requirements are all installed."""
    try:
        lines = distribution("greenroom").requires or ()
    except PackageNotFoundError:
        return set()
    pairs = [match.groups() for line in lines if (match := _REQUIREMENT.match(line))]
    return {extra for _, extra in pairs} - {extra for name, extra in pairs if not _is_installed(name)}


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
