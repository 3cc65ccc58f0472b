"""The folders of a browser: its own folder, and the store of screenshots.

The browser's folder has its profile, its start script, and the lifeline that ends all its processes.
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

_UNSAFE_CHARS: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FolderScreenshotStore:
    """A store of screenshots below `folder`, which only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def save(self, task: str, number: int, image: bytes) -> str:
        """Save a screenshot and return its folder; empty if the disk fails, which does not stop the task."""
        folder = self._folder / (_UNSAFE_CHARS.sub("-", task).strip(".-") or "errand")
        try:
            await asyncio.to_thread(_write_image, folder, number, image)
        except OSError:
            return ""
        return str(folder)


def _write_image(folder: Path, number: int, image: bytes) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / f"{number:03}.jpg").write_bytes(image)


SOURCE_FOLDER: Final = str(Path(__file__).resolve().parents[3])
SUPERVISOR_CODE: Final = (
    "import sys; sys.path.append(sys.argv[1]); from greenroom.adapters.processes.program_supervisor import browse; "
    "sys.exit(browse(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))"
)
UNUSED_UID: Final = 62_349
"""A user id that belongs to no person, service or command of an agent."""

PREFERENCES: Final = {
    "webrtc": {
        "ip_handling_policy": "disable_non_proxied_udp",
        "multiple_routes_enabled": False,
        "nonproxied_udp_enabled": False,
    },
}
"""Preferences without a command line switch."""

END_TIMEOUT_S: Final = 10.0
"""How long the supervisor may take to end all processes, in seconds. It normally needs one."""


class BrowserFolder:
    """The folder for one run of `program`. Under root, the program runs as another user, never as root."""

    def __init__(self, program: str) -> None:
        self._owner = (UNUSED_UID, UNUSED_UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        self.folder = Path(tempfile.mkdtemp(prefix="greenroom-browser-"))
        self._lifeline: int | None = None
        self._end_pipe: int | None = None
        try:
            self._prepare(program)
        except BaseException:
            self.close()
            raise

    @property
    def profile(self) -> Path:
        """The profile folder, which is also Chromium's home."""
        return self.folder / "profile"

    @property
    def starter(self) -> Path:
        """The script to start instead of Chromium."""
        return self.folder / "start"

    def _prepare(self, program: str) -> None:
        self.folder.chmod(0o711)  # Chromium's user must reach its profile; nothing else is visible
        self.profile.mkdir(mode=0o700)
        default_profile = self.profile / "Default"
        default_profile.mkdir(mode=0o700)
        (default_profile / "Preferences").write_text(json.dumps(PREFERENCES), "utf-8")
        if os.geteuid() == 0:
            for path in (self.profile, default_profile, default_profile / "Preferences"):
                os.chown(path, *self._owner)
        for name in ("life", "done"):
            os.mkfifo(self.folder / name, 0o600)
        self._lifeline = os.open(self.folder / "life", os.O_RDWR | os.O_NONBLOCK)
        os.write(self._lifeline, b".")
        self._end_pipe = os.open(self.folder / "done", os.O_RDONLY | os.O_NONBLOCK)
        words = (
            sys.executable,
            "-I",
            "-S",
            "-c",
            SUPERVISOR_CODE,
            SOURCE_FOLDER,
            str(self.folder),
            *map(str, self._owner),
            program,
        )
        self.starter.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        self.starter.chmod(0o700)

    async def end(self) -> None:
        """Release the lifeline and wait until the supervisor has ended. It ends last."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await self._wait_for_supervisor()
        except TimeoutError:
            raise BrowserFault("browser.chromium_still_runs", profile=str(self.profile)) from None

    async def _wait_for_supervisor(self) -> None:
        """Wait until no process holds the other end. A supervisor that starts later finds the lifeline cut."""
        assert self._end_pipe is not None
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._end_pipe, news.set)
        try:
            while _is_held(self._end_pipe):
                await news.wait()
                news.clear()
        finally:
            loop.remove_reader(self._end_pipe)

    def close(self) -> None:
        for pipe in (self._lifeline, self._end_pipe):
            if pipe is not None:
                os.close(pipe)
        self._lifeline = self._end_pipe = None
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_held(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return True


@asynccontextmanager
async def open_browser_folder(program: str) -> AsyncIterator[BrowserFolder]:
    """Create a browser folder for the block. Its clean-up is not interrupted by a cancellation."""
    folder = await asyncio.to_thread(BrowserFolder, program)
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.ensure_future(_end_and_remove(folder)))


async def _end_and_remove(folder: BrowserFolder) -> None:
    try:
        await folder.end()
    finally:
        await asyncio.to_thread(folder.close)
