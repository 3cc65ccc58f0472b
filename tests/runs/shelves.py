"""A project that is only a table of texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class Table:
    """Files by path; folders are what is above them. The machine has every program but those that it `lacks`."""

    def __init__(self, files: Mapping[str, str | bytes], lacks: Collection[str] = ()) -> None:
        self._lacks = lacks
        self._files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    def read(self, path: str) -> bytes | None:
        """The file."""
        return self._files.get(path)

    def names(self, folder: str) -> frozenset[str]:
        """What lies there."""
        begin = "" if folder == "." else f"{folder}/"
        return frozenset(path[len(begin) :].partition("/")[0] for path in self._files if path.startswith(begin))

    def has_program(self, name: str) -> bool:
        """Whether the machine has it."""
        return name not in self._lacks
