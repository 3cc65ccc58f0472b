"""What governs a workspace: git's settings and hooks, ours, other agents'. Which there were before the commands, which
are to be pinned, and what is made harmless after them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from greenroom.adapters.sandbox.disarming import PROTECTED, disarm
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.keeping import Kept, put_back, remembered
from greenroom.adapters.sandbox.leading import led_to
from greenroom.adapters.sandbox.repositories import Repositories
from greenroom.core.base.errors import WorldFault


class Guarding:
    """Of one workspace, over all commands in it. What was there when none ran is a person's."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._repositories = Repositories(ground.root)
        self._known: dict[Path, frozenset[str]] = {}
        self._absent: tuple[Path, ...] = ()
        self._kept: dict[Path, Kept | None] = {}
        self._led: dict[Path, bool] = {}
        self._running = 0

    @property
    def known(self) -> dict[Path, frozenset[str]]:
        """The folders of repositories, and what of the protected is in each."""
        return self._known

    @property
    def led(self) -> dict[Path, bool]:
        """What of the workspace git reads besides, because a person's settings say so: files, and (True) folders."""
        return self._led

    def begin(self, *, remember: bool = False) -> None:
        """A command is about to run. With `remember` nothing else keeps it from changing what governs."""
        if self._running == 0:
            found = self._repositories.found()
            self._known = {place: frozenset(_present(place)) for place in found}
            self._led = {path: folder for place in found for path, folder in led_to(self._ground.root, place).items()}
            self._absent = tuple(one for one in (*self.governing(), *self._led) if not os.path.lexists(one))
            places = [*(place / name for place in found for name in PROTECTED), *self._led]
            self._kept = remembered([*self._settings(), *places]) if remember else {}
        self._running += 1

    def governing(self) -> Iterator[Path]:
        """What governs us and other agents, whether it is there or not; `WorldFault` for one that leads elsewhere."""
        for name in self._ground.kept:
            path = self._ground.root / name
            if path.is_symlink():
                raise WorldFault(
                    f"{str(path)!r} is a link, so nobody can keep commands from changing what it leads to. "
                    "Put a real one in its place."
                )
            yield path

    def _settings(self) -> Iterator[Path]:
        """What governs, without what the house itself writes while commands run."""
        for path in self.governing():
            yield from (
                (path / name for name in self._ground.shown[path.name]) if path.name in self._ground.shown else [path]
            )

    def end(self) -> list[str]:
        """A command has ended: make harmless what it may have left; returns what was."""
        self._running -= 1
        changed = put_back(self._kept) if self._running == 0 else []
        for place in self._repositories.found():
            known = self._known.get(place)
            fresh = PROTECTED if known is None else tuple(name for name in PROTECTED if name not in known)
            with suppress(OSError):
                changed += disarm(self._ground.root, place, fresh)
        if self._running == 0:
            self._remove_mount_points()
        return changed

    def _remove_mount_points(self) -> None:
        """What was not there is not there afterwards: walls need something to stand on."""
        for path in self._absent:
            with suppress(OSError):
                kind = os.lstat(path)
                if stat.S_ISDIR(kind.st_mode):
                    path.rmdir()
                elif kind.st_size == 0:
                    path.unlink()


def _present(place: Path) -> Iterator[str]:
    return (name for name in PROTECTED if os.path.lexists(place / name))
