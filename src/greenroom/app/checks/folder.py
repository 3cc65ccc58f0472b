"""A real folder that is looked at for its checks: plain files inside it, and never more than a little of each."""

from __future__ import annotations

from pathlib import Path

from greenroom.abilities.checks.looking import LONGEST


class FolderLook:
    """What cannot be seen is not there: this never raises."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        """A plain file, wherever in the folder a link leads."""
        try:
            root, file = self._root.resolve(), (self._root / path).resolve()
            if not file.is_relative_to(root) or not file.is_file() or file.stat().st_size > LONGEST:
                return None
            return file.read_bytes()
        except (OSError, ValueError, RuntimeError):
            return None

    def names(self, folder: str) -> frozenset[str]:
        """What lies in a folder. That of a virtual environment may be a link that leads elsewhere."""
        try:
            return frozenset(one.name for one in (self._root / folder).iterdir())
        except (OSError, ValueError, RuntimeError):
            return frozenset()
