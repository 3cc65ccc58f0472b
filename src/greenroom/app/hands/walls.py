"""The walls around the commands of a workspace: chosen, and put up, when somebody first needs to know."""

from __future__ import annotations

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal, TypeAlias

from platformdirs import user_cache_path

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.sandbox.choice import Chosen, chosen, wall_of
from greenroom.adapters.sandbox.ground import Ground
from greenroom.app.settings.home import config_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import Limits, Tier, Wall

__all__ = ("Tier", "Walls", "Wish", "strongest")

Wish: TypeAlias = Literal["auto", "off"]
KNOWN: Final = "sandbox.json"
OFF: Final = Chosen(tier="none", why=('sandbox = "off" in your settings',))


def strongest(wish: Wish = "auto") -> Chosen:
    """The walls that hold on this machine, tried if that is not known yet: half a second, once."""
    if wish == "off":
        return OFF
    return _now(user_cache_path("greenroom", appauthor=False) / KNOWN)


def _now(cache: Path) -> Chosen:
    """Trying means running commands, and who asks may be in the middle of something: so it has a loop of its own."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(lambda: asyncio.run(chosen(_opened, Path.home(), cache))).result()


def _opened(root: Path, wall: Wall | None) -> PlainCommands:
    return PlainCommands(root, wall=wall)


class Walls:
    """Around the workspace at `root`, which commands see at `at`. `proxy` is the one way out, if there is one."""

    def __init__(self, root: Path, wish: Wish = "auto", *, at: Path | None = None, proxy: Path | None = None) -> None:
        self._root = root.resolve()
        self._at = at or self._root
        self._wish = wish
        self._proxy = proxy
        self._wall: Wall | None = None
        self._chosen: Chosen | None = None

    @property
    def chosen(self) -> Chosen:
        """Which ones, and why no better ones."""
        if self._chosen is None:
            self._chosen = strongest(self._wish)
            if self._chosen.tier != "none":
                self._put_up(self._chosen)
        return self._chosen

    def hold(self) -> bool:
        """Whether a command cannot hurt: then nobody has to be asked."""
        return self.chosen.tier in ("walled", "landlocked")

    def wall(self) -> Wall | None:
        """The walls, for whoever runs commands; None where there are none."""
        return self._wall if self.chosen.tier != "none" else None

    def close(self) -> None:
        """Take them down; also those behind which nothing was run."""
        if self._wall is not None:
            self._wall.close()

    def _put_up(self, found: Chosen) -> None:
        """Some places are too wide for walls, or cannot be reached behind them: then a person is asked, as without."""
        try:
            ground = Ground(
                root=self._root, at=self._at, home=Path.home(), scratch=_scratch(), hidden=(config_folder(),)
            )
            self._wall = wall_of(found.tier, ground, Limits(), self._proxy)
        except (WorldFault, OSError) as fault:
            self._chosen = Chosen(tier="none", why=(*found.why, f"{found.tier}: {fault}"))


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
