"""How much lies in a workspace. It is counted when the disk has so much more on it that it may be too much."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.ports.sandbox import Limits

BLOCK: Final = 512


OFTEN: Final = 2.0
SHARE: Final = 20
"""Others may free on the disk what is used up here, so it is counted now and then too: every two seconds, but for no
more than a twentieth of the time."""

SLACK: Final = 8
"""What lies there in the beginning is not counted until the disk has grown by this part of the quota."""


class Quota:
    """Of these folders together. A look at the disk is cheap; a count reads every folder."""

    def __init__(self, folders: tuple[Path, ...], limits: Limits) -> None:
        self._folders = folders
        self._limits = limits
        self._counted = (limits.quota - limits.quota // SLACK, limits.entries - limits.entries // SLACK)
        self._then: tuple[int, int] | None = None
        self._due = time.monotonic() + OFTEN

    def overrun(self, unlinked: Callable[[], int] = int) -> str:
        """Why it is too much; empty while it is not. `unlinked` counts files that are open and lie in no folder."""
        now = self._on_disk()
        if self._then is None:
            self._then = now
        grown = [have + after - before for have, after, before in zip(self._counted, now, self._then, strict=True)]
        fits = grown[0] <= self._limits.quota and grown[1] <= self._limits.entries
        began = time.monotonic()
        if fits and began < self._due:
            return ""
        size, entries = self._count()
        self._counted, self._then = (size + unlinked(), entries), now
        took = time.monotonic() - began
        self._due = began + max(OFTEN, SHARE * took)
        return self._said(*self._counted)

    def _said(self, size: int, entries: int) -> str:
        if size > self._limits.quota:
            most = f"{self._limits.quota / 1024**3:.3g} GiB"
            return f"Ended: more than {most} lie in the workspace, which is all it may hold. Remove something."
        if entries > self._limits.entries:
            return f"Ended: more than {self._limits.entries:,} files lie in the workspace. Remove some."
        return ""

    def _on_disk(self) -> tuple[int, int]:
        """Bytes and entries on the disks of the folders, whoever they belong to."""
        size = entries = 0
        for folder in self._folders:
            disk = os.statvfs(folder)
            size += (disk.f_blocks - disk.f_bfree) * disk.f_frsize
            entries += disk.f_files - disk.f_ffree
        return size, entries

    def _count(self) -> tuple[int, int]:
        size = entries = 0
        waiting = [str(folder) for folder in self._folders]
        while waiting:
            with suppress(OSError):  # it went while we looked
                found, blocks, below = _in_folder(waiting.pop())
                size, entries = size + blocks * BLOCK, entries + found
                waiting += below
        return size, entries


def _in_folder(folder: str) -> tuple[int, int, list[str]]:
    """How many entries, how many blocks they have, and the folders among them."""
    with os.scandir(folder) as found:
        entries = list(found)
    blocks = sum(entry.stat(follow_symlinks=False).st_blocks for entry in entries)
    return len(entries), blocks, [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
