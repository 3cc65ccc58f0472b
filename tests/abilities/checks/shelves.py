"""A project that is only a table of texts."""

from __future__ import annotations

from collections.abc import Mapping


class Table:
    """Files by path; folders are what is above them."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self._files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    def read(self, path: str) -> bytes | None:
        """The file."""
        return self._files.get(path)

    def names(self, folder: str) -> frozenset[str]:
        """What lies there."""
        begin = "" if folder == "." else f"{folder}/"
        return frozenset(path[len(begin) :].partition("/")[0] for path in self._files if path.startswith(begin))
