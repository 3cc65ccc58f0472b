"""What a person has told git about files, for their repository and for themselves: read, never run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.git.running import Git
from greenroom.core.base.records import record

NO: Final = frozenset({"false", "no", "off", "0"})
YES: Final = frozenset({"true", "yes", "on", "1", "input"})
FILTERS: Final = re.compile(r"filter\..+\.(?:clean|process)|gpg(?:\..+)?\.program", re.DOTALL)


@record
class Habits:
    """How this repository's files are to be taken. `converts` says that line ends may differ from what git keeps.
    `programs` are the command lines that git itself runs at a commit; `filters` those of them without which nothing is
    committed: they change files, or sign."""

    file_mode: bool = True
    symlinks: bool = True
    ignore_case: bool = False
    precompose: bool = False
    converts: bool = False
    hashes: str = "sha1"
    excludes: str = ""
    attributes: str = ""
    programs: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


async def habits_of(git: Git, env: Mapping[str, str]) -> Habits:
    """`git` is one that reads the person's settings too."""
    told = _read(await git.ask("config", "--list", "-z", "--includes"))
    home = Path(env.get("HOME") or "/nonexistent")
    own = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    filters = tuple(value for name, value in told.items() if FILTERS.fullmatch(name))
    return Habits(
        file_mode=told.get("core.filemode", "true").lower() not in NO,
        symlinks=told.get("core.symlinks", "true").lower() not in NO,
        ignore_case=told.get("core.ignorecase", "false").lower() in YES,
        precompose=told.get("core.precomposeunicode", "false").lower() in YES,
        converts=told.get("core.autocrlf", "false").lower() in YES,
        hashes=told.get("extensions.objectformat", "sha1").lower(),
        excludes=_path(told.get("core.excludesfile"), own / "ignore", home),
        attributes=_path(told.get("core.attributesfile"), own / "attributes", home),
        programs=(*filters, told.get("core.fsmonitor", "")),
        filters=filters,
    )


def _read(listed: bytes) -> dict[str, str]:
    told = {}
    for one in os.fsdecode(listed).split("\0"):
        name, given, value = one.partition("\n")
        told[name.lower()] = value if given else "true"
    return told


def _path(named: str | None, usual: Path, home: Path) -> str:
    place = usual if named is None else home / named[2:] if named.startswith("~/") else Path(named)
    return str(place) if place.is_absolute() and place.is_file() else ""
