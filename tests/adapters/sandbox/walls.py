"""Sandboxes of each kind around a folder, in tests. `./go` installs a bubblewrap where there is a wheel of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.landlock import Landlock, landlock_version
from greenroom.adapters.sandbox.programs import Program, find_programs
from greenroom.core.ports.sandbox import Limits, Outlet, Shown, Wall

CACHE = user_cache_path("greenroom", appauthor=False)


def bubblewrap_program() -> Program:
    """The best one of this machine; the test is skipped where there is none."""
    if not (found := find_programs(CACHE)):
        pytest.skip("there is no bubblewrap here")
    return found[0]


def git(root: Path, *words: str) -> str:
    """git as a person runs it: no setting is stronger than those of the repository."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root.parent)}
    who = ["-c", "user.name=p", "-c", "user.email=p@x"]
    return subprocess.run(["git", *who, *words], cwd=root, env=env, capture_output=True, text=True, check=False).stdout


def ground_of(root: Path, scratch: Path, at: Path | None = None, lent: tuple[Shown, ...] = ()) -> Ground:
    return Ground(root=root, at=at or root, home=Path.home(), scratch=scratch, lent=lent)


def walled(root: Path, scratch: Path, limits: Limits | None = None) -> Wall:
    limits = limits or Limits()
    return Bubblewrap(ground_of(root, scratch), limits, program=bubblewrap_program())


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
    return Landlock(ground_of(root, scratch), limits, version=landlock_version())
