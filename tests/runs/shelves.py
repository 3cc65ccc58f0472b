"""A project that is a table of texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class Table:
    """Files by path, with implied folders. The machine has every program except those in `lacks`."""

    def __init__(self, files: Mapping[str, str | bytes], lacks: Collection[str] = ()) -> None:
        self._lacks = lacks
        self._files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def names(self, folder: str) -> frozenset[str]:
        begin = "" if folder == "." else f"{folder}/"
        return frozenset(path[len(begin) :].partition("/")[0] for path in self._files if path.startswith(begin))

    def has_program(self, name: str) -> bool:
        """Return whether the machine has the program."""
        return name not in self._lacks
