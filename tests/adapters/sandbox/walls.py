"""Walls of each kind around a folder, in tests. Without bubblewrap these fail: `./go test` installs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.cgroups import Cgroups
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.landlocked import Landlocked, landlock_version
from greenroom.core.ports.sandbox import Limits, Outlet, Wall


def ground_of(root: Path, scratch: Path, at: Path | None = None) -> Ground:
    return Ground(root=root, at=at or root, home=Path.home(), scratch=scratch)


def walled(root: Path, scratch: Path, limits: Limits | None = None) -> Wall:
    limits = limits or Limits()
    return Bubblewrap(ground_of(root, scratch), limits, cgroups=Cgroups(limits))


@asynccontextmanager
async def behind(wall: Wall, root: Path, outlet: Outlet | None = None) -> AsyncIterator[PlainCommands]:
    """Commands behind a wall, closed in the end."""
    commands = PlainCommands(root, wall=wall, outlet=outlet)
    try:
        yield commands
    finally:
        commands.close()


def landlocked(root: Path, scratch: Path, limits: Limits | None = None) -> Wall:
    limits = limits or Limits()
    return Landlocked(ground_of(root, scratch), limits, cgroups=Cgroups(limits), version=landlock_version())
