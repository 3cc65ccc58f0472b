"""What a snapshot has not and work needs: virtual environments, node_modules, and the files of other repositories."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.house import House
from greenroom.adapters.git.seeding import Listed, listing, split
from greenroom.adapters.git.submodules import has_something
from greenroom.core.ports.workspace import Lent

PACKAGES: Final = frozenset({".venv", "venv", "node_modules"})
MADE: Final = "pyvenv.cfg"
"""Stands in every virtual environment, whatever it is called."""


async def lent(house: House, names: Sequence[str] = ()) -> tuple[Lent, ...]:
    """What is to be shown, read-only, where a worktree has nothing."""
    git = house.refs.also("-c", f"core.excludesFile={house.habits.excludes or os.devnull}")
    if house.repository.own:
        git = house.on(house.repository.root, house.repository.git / "index")
    listed = await listing(git)
    ignored = split(await git.ask("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
    others = split(await git.ask("ls-files", "-z", "--others", "--exclude-standard"))
    found = [*_packages(house.repository.root, ignored, {*PACKAGES, *names}), *_repositories(listed, others)]
    return tuple(await asyncio.to_thread(_there, house.repository.root, found))


def _packages(root: Path, ignored: Iterable[str], names: set[str]) -> Iterator[Lent]:
    """Ignored folders of these names, and those that are in them: a folder that ignores itself is listed in parts."""
    found = dict[str, None]()
    for one in ignored:
        parts = one.rstrip("/").split("/")
        whole = one.rstrip("/")
        place = next((number for number, part in enumerate(parts, 1) if part in names), 0)
        if place and (place < len(parts) or one.endswith("/")):
            found["/".join(parts[:place])] = None
        elif one.endswith("/") and (root / whole / MADE).is_file():
            found[whole] = None
    yield from (Lent(path=path, source=str(root / path), kind="packages") for path in found)


def _repositories(listed: Iterable[Listed], others: Iterable[str]) -> Iterator[Lent]:
    for one in listed:
        if one.is_submodule:
            yield Lent(path=one.path, source="", kind="submodule")
    for path in others:
        if path.endswith("/"):
            yield Lent(path=path.rstrip("/"), source="", kind="repository")


def _there(root: Path, found: Iterable[Lent]) -> Iterator[Lent]:
    """Those that have something in them."""
    for one in found:
        place = root / one.path
        if has_something(place):
            yield Lent(path=one.path, source=str(place), kind=one.kind)
