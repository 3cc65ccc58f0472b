"""The sandbox around the commands of a workspace: chosen, and made, when it is first needed."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Final, Literal, TypeAlias

from platformdirs import user_cache_path

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.adapters.sandbox.choice import Chosen, chosen, wall_of
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.layers import Links
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.schema import SandboxSettings, WebSettings
from greenroom.app.toolset.egress import CLOSED, WayOut, no_way_out
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import Closed
from greenroom.core.base.records import evolve
from greenroom.core.ports.sandbox import HOLDING, Limits, Shown, Tier, Wall

__all__ = ("HOLDING", "Tier", "Walls", "Wish", "strongest", "tier_in")

Wish: TypeAlias = Literal["auto", "off"]
KNOWN: Final = "sandbox.json"
OFF: Final = Chosen(tier="none", why=('walls = "off" below [sandbox] in your settings',))
USUAL: Final = SandboxSettings()
NO_WEB: Final = WebSettings()


def strongest(wish: Wish = "auto") -> Chosen:
    """The best sandbox of this machine, tried if that is not known yet: half a second, once. A workspace may get a
    weaker one."""
    if wish == "off":
        return OFF
    cache = user_cache_path("greenroom", appauthor=False) / KNOWN
    # Trying means running commands, and who asks may be in the middle of something: so it has a loop of its own.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(chosen(_opened, Path.home(), cache))).result()


def tier_in(root: Path, settings: SandboxSettings | None = None, *, at: Path | None = None) -> Chosen:
    """The sandbox that commands in this folder get, and why no better one: the folder need not be there yet. Nothing
    is left standing."""
    with tempfile.TemporaryDirectory(prefix="greenroom-") as folder:
        walls = Walls(root if root.is_dir() else Path(folder), settings or USUAL, at=at)
        try:
            return walls.chosen
        finally:
            walls.take_down()


def _opened(root: Path, wall: Wall | None) -> PlainCommands:
    return PlainCommands(root, wall=wall)


class Walls:
    """Around the workspace at `root`, which commands see at `at`, as the person has set them up.

    What is `lent` comes from elsewhere. Only namespaces can show things where they are not: in another sandbox, and
    without one, the workspace is seen where it is, and what is lent with a layer is a link there. The hosts that they
    name are the one way out; what is local is as they say for the `web`.
    """

    def __init__(
        self,
        root: Path,
        settings: SandboxSettings = USUAL,
        *,
        at: Path | None = None,
        lent: Sequence[Shown] = (),
        web: WebSettings = NO_WEB,
    ) -> None:
        self._root = root.resolve()
        self._at = at or self._root
        self._lent = tuple(lent)
        self._wish = settings.walls
        self._out = WayOut(settings.hosts, web)
        self._wall: Wall | None = None
        self._links: Links | None = None
        self._chosen: Chosen | None = None
        self._choosing = Lock()

    @property
    def chosen(self) -> Chosen:
        """Which ones, and why no better ones."""
        with self._choosing:
            if self._chosen is None:
                self._chosen = strongest(self._wish)
                self._put_up(self._chosen)
            return self._chosen

    def hold(self) -> bool:
        """Whether a command cannot hurt: then nobody has to be asked."""
        return self.chosen.tier in HOLDING

    def wall(self) -> Wall | None:
        """The walls; None where there are none."""
        return self._wall if self.chosen.tier != "none" else None

    async def opened(self) -> Wall | None:
        """The same for whoever runs commands."""
        return await asyncio.to_thread(self.wall)

    def reach(self) -> tuple[str, ...] | None:
        """The hosts that every command gets to: behind walls a few or none, without them (None) whatever they like."""
        if not self.hold():
            return None
        return self._out.hosts if self.chosen.tier == "bubblewrap" else ()

    def shut(self, closed: Callable[[Sequence[str]], Closed]) -> None:
        """What is closed to who was let to some hosts by name, commands do not reach."""
        self._out.closed = closed

    async def door(self, hosts: tuple[str, ...]) -> str:
        """Where a command gets out, if it may: only one kind of walls has such a place."""
        return await self._out.door(hosts) if self.chosen.tier == "bubblewrap" else ""

    def let(self, guard: int, hosts: tuple[str, ...]) -> None:
        """This command may reach these hosts too, until it ends."""
        self._out.let(guard, hosts)

    def remarks(self, guard: int, printed: str) -> str:
        """What to add to the output of a command that was kept from reaching somebody."""
        tier = self.chosen.tier
        if tier in ("bubblewrap", "none"):
            return self._out.remarks(guard, printed) if tier == "bubblewrap" else ""
        return no_way_out(tier) if self._out.lets(guard) or CLOSED.search(printed) else ""

    def end(self, guard: int) -> None:
        """It is dead: what it was let is over."""
        self._out.end(guard)

    async def close(self) -> None:
        """Take it down; also one in which nothing was run."""
        self.take_down()
        await self._out.close()

    def take_down(self) -> None:
        """All but the way out."""
        for one in (self._wall, self._links):
            if one is not None:
                one.close()

    def _put_up(self, found: Chosen) -> None:
        """Some places are too wide for a sandbox, or cannot be reached in it: then a person is asked, as without."""
        try:
            ground = Ground(
                root=self._root, at=self._root, home=Path.home(), scratch=_scratch(), hidden=(config_folder(),)
            )
            if found.tier == "bubblewrap":
                ground = evolve(ground, at=self._at, lent=self._lent)
            elif found.tier == "landlock":
                ground = evolve(ground, lent=self._linked())
            self._wall = wall_of(found.tier, ground, Limits(), found.program)
        except (WorldFault, OSError) as fault:
            self._chosen = Chosen(tier="none", why=(*found.why, f"{found.tier}: {fault}"))
        if self._wall is None or self._wall.tier == "seatbelt":
            self._links = Links(self._root, self._linked())

    def _linked(self) -> tuple[Shown, ...]:
        """What is lent with a layer, seen from where the workspace lies."""
        places = [(one, self._at / one.at) for one in self._lent if one.layer]
        return tuple(
            replace(one, at=str(place.relative_to(self._at))) for one, place in places if place.is_relative_to(self._at)
        )


def _scratch() -> Path:
    """In the person's cache; as root where somebody else can reach it too."""
    if os.geteuid() != 0:
        return user_cache_path("greenroom", appauthor=False) / "scratch"
    folder = Path(tempfile.gettempdir(), "greenroom-scratch")
    folder.mkdir(mode=0o711, exist_ok=True)
    known = folder.lstat()
    if folder.is_symlink() or known.st_uid != 0:
        raise WorldFault(f"{str(folder)!r} is not ours. Remove it.")
    return folder
