"""The tiers by name, as ways to open `Commands` on a workspace; *plain* and *bare* are the controls without walls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.landlock import Landlock, landlock_version
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.sandbox import Limits
from tests.adapters.sandbox.walls import bubblewrap_program
from tests.sandbox.bare import BareCommands
from tests.sandbox.limits import LIMITS

CONTROLS: Final = ("plain", "bare")


def open_tier(tier: str, root: Path, own: Mapping[str, str]) -> Commands:
    """Commands at this tier, in this workspace, for a house with this environment."""
    return OPENERS[tier](root, own)


def _plain(root: Path, own: Mapping[str, str]) -> Commands:
    return PlainCommands(root, own=own)


def open_walled(
    root: Path,
    own: Mapping[str, str],
    limits: Limits = LIMITS,
    *,
    at: Path | None = None,
) -> PlainCommands:
    """Commands behind the walls of the default tier; the workspace may be seen at another place."""
    wall = Bubblewrap(_ground(root, own, at), limits, program=bubblewrap_program())
    return PlainCommands(root, own=own, wall=wall)


def _landlocked(root: Path, own: Mapping[str, str]) -> Commands:
    wall = Landlock(_ground(root, own), LIMITS, version=landlock_version())
    return PlainCommands(root, own=own, wall=wall)


def _ground(root: Path, own: Mapping[str, str], at: Path | None = None) -> Ground:
    return Ground(root=root, at=at or root, home=Path(own["HOME"]), scratch=root.parent / "scratch")


OPENERS: Final[dict[str, Callable[[Path, Mapping[str, str]], Commands]]] = {
    "plain": _plain,
    "bare": BareCommands,
    "bubblewrap": open_walled,
    "landlock": _landlocked,
}
