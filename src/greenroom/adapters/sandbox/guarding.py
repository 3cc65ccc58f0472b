"""What governs a workspace: git's settings and hooks, ours, other agents'. Which there were before the commands, which
are to be pinned, and what is made harmless after them.

One rule for all that looks like git: what was there, and is still the same, is a person's. Everything else is looked
at, whatever state it is in, and what cannot be made harmless is put aside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.disarming import (
    PROTECTED,
    disarm,
    lead,
    leads_inside,
    put_sign_aside,
    unmake,
)
from greenroom.adapters.sandbox.doors import is_alive
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.keeping import put_back, remembered
from greenroom.adapters.sandbox.leading import led_to
from greenroom.adapters.sandbox.outer_git import outer_git
from greenroom.adapters.sandbox.repositories import Repositories
from greenroom.adapters.sandbox.stand_in import put_in, take_away
from greenroom.adapters.sandbox.together import Facts, Together
from greenroom.core.base.errors import WorldFault

NOTHING: Final = Facts(known={}, led={}, absent=(), kept={})
MASKED: Final = ("config", "config.worktree", "hooks")
"""What of the protected is masked where it is not there. For a `commondir` something has to stand in."""


class Guarding:
    """Of one workspace, over all commands in it, and of what they have `besides` for themselves. What was there when
    none ran is a person's.

    With `remember` nothing else keeps commands from changing what governs.
    """

    def __init__(self, ground: Ground, *, besides: Iterable[Path] = (), remember: bool = False) -> None:
        self._ground = ground
        self._remember = remember
        self._repositories = Repositories(ground.root)
        self._besides = [Repositories(one) for one in besides]
        self._together = Together(ground.scratch, ground.root)
        self._lent_git = any(one.at == ".git" for one in ground.lent)
        self._running = 0
        self.facts = NOTHING

    def begin(self) -> None:
        """A command is about to run."""
        if self._running == 0:
            self.facts = self._together.enter(self._look, self._mend)
        self._running += 1

    def end(self) -> None:
        """A command has ended: make harmless what it may have left."""
        self._running -= 1
        if self._running or not self._together.leave(self._mend, self.facts):
            self._disarm(self.facts)

    def alive(self) -> str:
        """One still runs; says why it has to end. A new `commondir` exchanges all of a person's settings at once."""
        self._together.alive()
        for place, names in self.facts.known.items():
            if "commondir" not in names and os.path.lexists(place / "commondir"):
                self._made_harmless(self._repositories, place, ("commondir",))
                return f"Ended: it has made {str(place / 'commondir')!r}, with which git's settings would be others."
        return ""

    def governing(self) -> Iterator[Path]:
        """What governs us and other agents, whether it is there or not. Of a link that is what it leads to, if that is
        in the workspace; `WorldFault` where our own folder is one."""
        for path in self._names():
            if not path.is_symlink():
                yield path
            elif path.name in self._ground.shown:
                raise WorldFault(
                    f"{str(path)!r} is a link, so nobody can keep commands from changing what it leads to. "
                    "Put a real one in its place."
                )
            else:
                yield from self._at_the_end_of(path)

    def masked(self) -> Iterator[Path]:
        """What of a repository is not there, and is not to be made."""
        for place, names in self.facts.known.items():
            yield from (place / name for name in MASKED if name not in names)

    def _at_the_end_of(self, link: Path) -> Iterator[Path]:
        with suppress(OSError, RuntimeError):
            target = link.resolve(strict=True)
            if target.is_relative_to(self._ground.root) and target != self._ground.root:
                yield target

    def _names(self) -> list[Path]:
        return [self._ground.root / name for name in self._ground.kept]

    def _look(self) -> Facts:
        """While no command runs."""
        root, governing = self._ground.root, [*self.governing()]
        try:
            found = self._repositories.found()
            led = {
                path: hooks for place in found.folders for path, hooks in led_to(root, place, self._ground.home).items()
            }
            stood_in = () if self._remember else tuple(place for place in found.folders if put_in(place))
            known = {place: frozenset(_present(place)) for place in found.folders}
            masked = (place / name for place, names in known.items() for name in MASKED if name not in names)
            return Facts(
                known=known,
                led=led,
                absent=tuple(one for one in (*governing, *led, *masked) if not os.path.lexists(one)),
                kept=remembered(self._remembered([*known], led)),
                numbers={place: _number(place) for place in known},
                signs={sign: lead(sign) for sign in found.signs},
                outer=() if self._lent_git else tuple(outer_git(root)),
                sockets=tuple(path for path in found.sockets if is_alive(path)),
                stood_in=stood_in,
            )
        finally:
            self._repositories.opening.close()

    def _remembered(self, known: list[Path], led: Iterable[Path]) -> list[Path]:
        """What mounts cannot keep: links, and files that have a second name by which they can be changed."""
        places = [place / name for place in known for name in PROTECTED]
        links = [path for path in self._names() if path.is_symlink()]
        if self._remember:
            return [*self._settings(), *links, *places, *led]
        return [*links, *(path for path in (*places, *led) if _has_second_name(path))]

    def _settings(self) -> Iterator[Path]:
        """What governs, without what the house itself writes while commands run."""
        for path in self.governing():
            yield from (
                (path / name for name in self._ground.shown[path.name]) if path.name in self._ground.shown else [path]
            )

    def _mend(self, facts: Facts) -> None:
        """While no command runs any more: everything that governs is what it was."""
        if self._remember:
            self._remove_stand_ins()
        put_back(facts.kept)
        take_away(facts.stood_in)
        _remove_mount_points(facts.absent)
        self._disarm(facts)

    def _remove_stand_ins(self) -> None:
        """Something else than a folder, a link above all, in the place of one of ours: it was not there before."""
        for path in self._names():
            with suppress(OSError):
                if path.name in self._ground.shown and not stat.S_ISDIR(os.lstat(path).st_mode):
                    path.unlink()

    # ------------------------------------------------------------------------------------------- after the commands

    def _disarm(self, facts: Facts) -> None:
        for one, before in ((self._repositories, facts), *((one, NOTHING) for one in self._besides)):
            try:
                self._disarm_all(one, before)
            finally:
                one.opening.close()

    def _disarm_all(self, repositories: Repositories, facts: Facts) -> None:
        found = repositories.found()
        for sign in found.signs:
            self._judge(repositories.root, sign, facts)
        for place in found.folders:
            same = self._is_same(place, facts)
            names = facts.known[place] if same else frozenset()
            if place == repositories.root and not same:
                unmake(place, place)
            else:
                self._made_harmless(repositories, place, [name for name in PROTECTED if name not in names])

    def _judge(self, root: Path, sign: Path, facts: Facts) -> None:
        says = lead(sign)
        lent = self._lent_git and sign == self._ground.root / ".git"
        if not lent and says != facts.signs.get(sign) and not leads_inside(root, says):
            put_sign_aside(root, sign)

    def _is_same(self, place: Path, facts: Facts) -> bool:
        """Whether it is what it was, and not something else in its place. What is remembered was put back by now."""
        return place in facts.known and (self._remember or facts.numbers.get(place) == _number(place))

    def _made_harmless(self, repositories: Repositories, place: Path, names: Iterable[str]) -> None:
        try:
            disarm(repositories.root, place, names)
        except (OSError, ValueError):
            if os.path.lexists(place):
                unmake(repositories.root, place)


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


def _number(path: Path) -> int:
    with suppress(OSError):
        return os.lstat(path).st_ino
    return 0


def _has_second_name(path: Path) -> bool:
    with suppress(OSError):
        kind = os.lstat(path)
        return stat.S_ISREG(kind.st_mode) and kind.st_nlink > 1
    return False
