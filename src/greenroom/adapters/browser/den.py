"""The folders of a browser: its den, and the album of pictures that it has shown.

The den has its profile, what starts it, and the lifeline by which all of it is ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from greenroom.core.ports.browser import BrowserFault

_STRANGE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FolderAlbum:
    """Below `folder`, which only its owner can look into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, errand: str, number: int, picture: bytes) -> str:
        """Keep a picture; where, or nothing when the disk will not have it: a picture is no reason to stop."""
        folder = self._folder / (_STRANGE.sub("-", errand).strip(".-") or "errand")
        try:
            await asyncio.to_thread(_written, folder, number, picture)
        except OSError:
            return ""
        return str(folder)


def _written(folder: Path, number: int, picture: bytes) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / f"{number:03}.jpg").write_bytes(picture)


SOURCES: Final = str(Path(__file__).resolve().parents[3])
KEEPER: Final = (
    "import sys; sys.path.append(sys.argv[1]); from greenroom.adapters.processes.keeper import browse; "
    "sys.exit(browse(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))"
)
NOBODY_S: Final = 62_349
"""A number that belongs to nobody, neither a person nor a service nor the commands of agents."""

PREFERENCES: Final = {
    "webrtc": {
        "ip_handling_policy": "disable_non_proxied_udp",
        "multiple_routes_enabled": False,
        "nonproxied_udp_enabled": False,
    },
}
"""What no switch says."""

PATIENCE: Final = 10.0
"""Seconds that the keeper has to end all of it; it needs one at most."""


class Den:
    """Made for `program`, which runs as somebody else if we are root: never as that."""

    def __init__(self, program: str) -> None:
        self._owner = (NOBODY_S, NOBODY_S) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        self.folder = Path(tempfile.mkdtemp(prefix="greenroom-browser-"))
        self._life: int | None = None
        self._done: int | None = None
        try:
            self._furnish(program)
        except BaseException:
            self.close()
            raise

    @property
    def profile(self) -> Path:
        """What Chromium keeps, and where it is at home."""
        return self.folder / "profile"

    @property
    def starter(self) -> Path:
        """The program that is to be started in the place of Chromium."""
        return self.folder / "start"

    def _furnish(self, program: str) -> None:
        self.folder.chmod(0o711)  # to whoever Chromium is, its profile is to be reached; there is nothing else to see
        self.profile.mkdir(mode=0o700)
        first = self.profile / "Default"
        first.mkdir(mode=0o700)
        (first / "Preferences").write_text(json.dumps(PREFERENCES), "utf-8")
        if os.geteuid() == 0:
            for one in (self.profile, first, first / "Preferences"):
                os.chown(one, *self._owner)
        for name in ("life", "done"):
            os.mkfifo(self.folder / name, 0o600)
        self._life = os.open(self.folder / "life", os.O_RDWR | os.O_NONBLOCK)
        os.write(self._life, b".")
        self._done = os.open(self.folder / "done", os.O_RDONLY | os.O_NONBLOCK)
        words = (sys.executable, "-I", "-S", "-c", KEEPER, SOURCES, str(self.folder), *map(str, self._owner), program)
        self.starter.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        self.starter.chmod(0o700)

    async def end(self) -> None:
        """Let go of the lifeline, and see the keeper end, who ends last."""
        if self._life is not None:
            os.close(self._life)
            self._life = None
        try:
            async with asyncio.timeout(PATIENCE):
                await self._silence()
        except TimeoutError:
            raise BrowserFault(f"Chromium does not end. Look for processes that use {str(self.profile)!r}.") from None

    async def _silence(self) -> None:
        """Until nobody holds the other end. A keeper who comes only now finds the lifeline cut."""
        assert self._done is not None
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._done, heard.set)
        try:
            while _held(self._done):
                await heard.wait()
                heard.clear()
        finally:
            loop.remove_reader(self._done)

    def close(self) -> None:
        """Leave nothing."""
        for one in (self._life, self._done):
            if one is not None:
                os.close(one)
        self._life = self._done = None
        shutil.rmtree(self.folder, ignore_errors=True)


def _held(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return True


@asynccontextmanager
async def den(program: str) -> AsyncIterator[Den]:
    """A den while the block lasts. Its end is not cut short by whoever is in a hurry."""
    made = await asyncio.to_thread(Den, program)
    try:
        yield made
    finally:
        await asyncio.shield(asyncio.ensure_future(_left(made)))


async def _left(made: Den) -> None:
    try:
        await made.end()
    finally:
        await asyncio.to_thread(made.close)
