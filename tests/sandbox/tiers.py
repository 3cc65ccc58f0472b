"""The tiers by name, as ways to open `Commands` on a workspace. *plain* and *bare* are controls without a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.landlock import Landlock, read_landlock_version
from greenroom.adapters.sandbox.view import SandboxView
from greenroom.core.ports.commands import CommandRunner
from greenroom.core.ports.sandbox import CommandLimits
from tests.adapters.sandbox.walls import bubblewrap_program
from tests.sandbox.bare import BareCommands
from tests.sandbox.limits import LIMITS

CONTROLS: Final = ("plain", "bare")


def open_tier(tier: str, root: Path, own: Mapping[str, str]) -> CommandRunner:
    """Open commands at this tier, in this workspace, with this environment of Greenroom."""
    return OPENERS[tier](root, own)


def _plain(root: Path, own: Mapping[str, str]) -> CommandRunner:
    return LocalCommands(root, environ=own)


def open_walled(root: Path, own: Mapping[str, str], limits: CommandLimits = LIMITS) -> LocalCommands:
    """Open commands in the default tier's sandbox."""
    wall = Bubblewrap(_ground(root, own), limits, program=bubblewrap_program())
    return LocalCommands(root, environ=own, sandbox=wall)


def _landlocked(root: Path, own: Mapping[str, str]) -> CommandRunner:
    wall = Landlock(_ground(root, own), LIMITS, version=read_landlock_version())
    return LocalCommands(root, environ=own, sandbox=wall)


def _ground(root: Path, own: Mapping[str, str]) -> SandboxView:
    return SandboxView(root=root, at=root, home=Path(own["HOME"]), scratch=root.parent / "scratch")


OPENERS: Final[dict[str, Callable[[Path, Mapping[str, str]], CommandRunner]]] = {
    "plain": _plain,
    "bare": BareCommands,
    "bubblewrap": open_walled,
    "landlock": _landlocked,
}
