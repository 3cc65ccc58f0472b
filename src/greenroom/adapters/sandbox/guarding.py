"""What governs a workspace: git's settings and hooks, ours, other agents'. Which there were before the commands, which
are to be pinned, and what is made harmless after them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.disarming import PROTECTED, disarm
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.keeping import put_back, remembered
from greenroom.adapters.sandbox.leading import led_to
from greenroom.adapters.sandbox.repositories import Repositories
from greenroom.adapters.sandbox.together import Facts, Together
from greenroom.core.base.errors import WorldFault

NOTHING: Final = Facts(known={}, led={}, absent=(), kept={})


class Guarding:
    """Of one workspace, over all commands in it. What was there when none ran is a person's.

    With `remember` nothing else keeps commands from changing what governs.
    """

    def __init__(self, ground: Ground, *, remember: bool = False) -> None:
        self._ground = ground
        self._remember = remember
        self._repositories = Repositories(ground.root)
        self._together = Together(ground.scratch, ground.root)
        self._facts = NOTHING
        self._running = 0

    @property
    def known(self) -> Mapping[Path, frozenset[str]]:
        """The folders of repositories, and what of the protected is in each."""
        return self._facts.known

    @property
    def led(self) -> Mapping[Path, bool]:
        """What of the workspace git reads besides, because a person's settings say so: files, and (True) folders."""
        return self._facts.led

    def begin(self) -> None:
        """A command is about to run."""
        if self._running == 0:
            self._facts = self._together.enter(self._look, self._mend)
        self._running += 1

    def end(self) -> None:
        """A command has ended: make harmless what it may have left."""
        self._running -= 1
        if self._running or not self._together.leave(self._mend, self._facts):
            self._disarm(self._facts)

    def alive(self) -> None:
        """One still runs."""
        self._together.alive()

    def governing(self) -> Iterator[Path]:
        """What governs us and other agents, whether it is there or not; `WorldFault` for one that leads elsewhere."""
        for path in self._names():
            if path.is_symlink():
                raise WorldFault(
                    f"{str(path)!r} is a link, so nobody can keep commands from changing what it leads to. "
                    "Put a real one in its place."
                )
            yield path

    def _names(self) -> list[Path]:
        return [self._ground.root / name for name in self._ground.kept]

    def _look(self) -> Facts:
        """While no command runs."""
        found = self._repositories.found()
        led = {path: folder for place in found for path, folder in led_to(self._ground.root, place).items()}
        places = [*(place / name for place in found for name in PROTECTED), *led]
        return Facts(
            known={place: frozenset(_present(place)) for place in found},
            led=led,
            absent=tuple(one for one in (*self.governing(), *led) if not os.path.lexists(one)),
            kept=remembered([*self._settings(), *places]) if self._remember else {},
        )

    def _settings(self) -> Iterator[Path]:
        """What governs, without what the house itself writes while commands run."""
        for path in self.governing():
            yield from (
                (path / name for name in self._ground.shown[path.name]) if path.name in self._ground.shown else [path]
            )

    def _mend(self, facts: Facts) -> None:
        """While no command runs any more: everything that governs is what it was."""
        if facts.kept:
            self._remove_stand_ins()
            put_back(facts.kept)
        self._disarm(facts)
        _remove_mount_points(facts.absent)

    def _remove_stand_ins(self) -> None:
        """Something else than a folder, a link above all, in the place of one of ours: it was not there before."""
        for path in self._names():
            with suppress(OSError):
                if path.name in self._ground.shown and not stat.S_ISDIR(os.lstat(path).st_mode):
                    path.unlink()

    def _disarm(self, facts: Facts) -> None:
        for place in self._repositories.found():
            known = facts.known.get(place)
            fresh = PROTECTED if known is None else tuple(name for name in PROTECTED if name not in known)
            with suppress(OSError):
                disarm(self._ground.root, place, fresh)


def _remove_mount_points(absent: tuple[Path, ...]) -> None:
    """What was not there is not there afterwards: walls need something to stand on."""
    for path in absent:
        with suppress(OSError):
            kind = os.lstat(path)
            if stat.S_ISDIR(kind.st_mode):
                path.rmdir()
            elif kind.st_size == 0:
                path.unlink()


def _present(place: Path) -> Iterator[str]:
    return (name for name in PROTECTED if os.path.lexists(place / name))
