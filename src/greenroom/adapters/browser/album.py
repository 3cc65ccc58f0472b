"""The album: pictures of what a browser has shown, in a folder of the person's, one below it for each errand."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

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
