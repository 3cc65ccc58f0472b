"""What was in a workspace when no command ran, known to all houses that run commands there, and to those after them.

Two houses in one workspace take what the other's commands have just planted for a person's own, unless they know the
same. A house that is killed cannot make anything harmless: the next one does, because it finds this.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.keeping import Kept
from greenroom.core.base.records import evolve, record

BEAT: Final = 1.0
LATE: Final = 5.0
"""Seconds after the last beat in which a command may still have been alive."""


@record
class Facts:
    """Repositories and what of the protected is in each, what else git reads (files, and (True) folders), what governs
    and was not there, and, where walls cannot keep it out, what it was.

    `numbers` tell whether what is in a place is still the same. `signs` are what else is called `.git`, with what it
    says; `outer` is what git keeps elsewhere of this workspace; `sockets` are somebody's doors. In `stood_in` something
    of ours stands for what was not there.
    """

    known: Mapping[Path, frozenset[str]]
    led: Mapping[Path, bool]
    absent: tuple[Path, ...]
    kept: Mapping[Path, Kept | None]
    numbers: Mapping[Path, int] = {}
    signs: Mapping[Path, str] = {}
    outer: tuple[Path, ...] = ()
    sockets: tuple[Path, ...] = ()
    stood_in: tuple[Path, ...] = ()


class Together:
    """The houses of one person that run commands in the workspace at `root`, by a file in a folder of theirs."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.facts"
        self._file = -1

    def enter(self, look: Callable[[], Facts], mend: Callable[[Facts], None]) -> Facts:
        """What all go by, for as long as one of us runs commands. Whoever is alone says what it is (`look`), after
        having mended what somebody left who was killed: what has changed since was not a command."""
        while True:
            self._open()
            alone = self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not alone:
                self._locked(fcntl.LOCK_SH)
            if not self._is_current():
                self._close()
                continue
            said = self._read()
            if alone:
                return self._begun(said and self._of_the_dead(said), look, mend)
            if said is not None:
                return said
            self._close()  # whoever was there is just leaving, or just coming

    def alive(self) -> None:
        """We still run commands. Whoever finds the file later knows until when."""
        if self._file >= 0 and time.time() - os.fstat(self._file).st_mtime > BEAT:
            os.utime(self._file)

    def leave(self, mend: Callable[[Facts], None], facts: Facts) -> bool:
        """Our last command has ended: if nobody else's runs, everything is mended."""
        try:
            alone = self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB)
            if alone:
                mend(facts)
                self._path.unlink(missing_ok=True)
            return alone
        finally:
            self._close()

    def _of_the_dead(self, left: Facts) -> Facts:
        """What they left, without what somebody has changed when they were dead."""
        died = os.fstat(self._file).st_mtime + LATE
        return evolve(left, kept={place: one for place, one in left.kept.items() if _changed(place) <= died})

    def _begun(self, left: Facts | None, look: Callable[[], Facts], mend: Callable[[Facts], None]) -> Facts:
        try:
            if left is not None:
                mend(left)
            facts = look()
            self._write(json.dumps(_told(facts)).encode("ascii"))
        except BaseException:
            self._path.unlink(missing_ok=True)
            self._close()
            raise
        self._locked(fcntl.LOCK_SH)
        return facts

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self._path, flags, 0o600)

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1

    def _locked(self, how: int) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self._file, how)
            return True
        return False

    def _is_current(self) -> bool:
        """Whether nobody has taken the file away while we waited for it."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        return False

    def _write(self, told: bytes) -> None:
        """Written over, then cut: ext4 waits for the disk when a file is closed that was cut to nothing before."""
        os.pwrite(self._file, told, 0)
        if os.fstat(self._file).st_size > len(told):
            os.ftruncate(self._file, len(told))

    def _read(self) -> Facts | None:
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            return _facts(json.loads(os.pread(self._file, os.fstat(self._file).st_size, 0)))
        return None


def _changed(place: Path) -> float:
    """When it, or something in it, was changed; of what is gone, when it may have gone. Nobody can say otherwise: the
    kernel dates that."""
    with suppress(OSError):
        inner = place.iterdir() if place.is_dir() and not place.is_symlink() else ()
        return max(os.lstat(one).st_ctime for one in (place, *inner))
    with suppress(OSError):
        return os.lstat(place.parent).st_ctime
    return 0.0


def _told(facts: Facts) -> dict[str, object]:
    return {
        "known": {str(place): sorted(names) for place, names in facts.known.items()},
        "led": {str(place): folder for place, folder in facts.led.items()},
        "absent": [str(place) for place in facts.absent],
        "kept": {str(place): None if one is None else _kept_told(one) for place, one in facts.kept.items()},
        "numbers": {str(place): number for place, number in facts.numbers.items()},
        "signs": {str(place): says for place, says in facts.signs.items()},
        "outer": [str(place) for place in facts.outer],
        "sockets": [str(place) for place in facts.sockets],
        "stood_in": [str(place) for place in facts.stood_in],
    }


def _facts(told: Mapping[str, dict[str, list[object] | None]]) -> Facts:
    return Facts(
        known={Path(place): frozenset(map(str, names or ())) for place, names in told["known"].items()},
        led={Path(place): bool(folder) for place, folder in told["led"].items()},
        absent=tuple(map(Path, told["absent"])),
        kept={Path(place): None if one is None else _kept(one) for place, one in told["kept"].items()},
        numbers={Path(place): int(str(number)) for place, number in told["numbers"].items()},
        signs={Path(place): str(says) for place, says in told["signs"].items()},
        outer=tuple(map(Path, told["outer"])),
        sockets=tuple(map(Path, told["sockets"])),
        stood_in=tuple(map(Path, told["stood_in"])),
    )


def _kept_told(kept: Kept) -> list[object]:
    entries = kept.entries
    inner = None if entries is None else {name: _kept_told(one) for name, one in entries.items()}
    return [kept.mode, base64.b64encode(kept.content).decode("ascii"), inner]


def _kept(told: list[object]) -> Kept:
    mode, content, inner = told
    entries = {name: _kept(one) for name, one in inner.items()} if isinstance(inner, dict) else None
    return Kept(mode=int(str(mode)), content=base64.b64decode(str(content)), entries=entries)
