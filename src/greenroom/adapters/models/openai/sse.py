"""Server-sent events, from bytes that may be torn anywhere."""

from __future__ import annotations

from typing import Final, NamedTuple

BOM: Final = b"\xef\xbb\xbf"


class Sent(NamedTuple):
    """One event: what `data:` said, and the name that `event:` gave it, if any."""

    data: bytes
    name: str = ""


class Events:
    """Takes pieces, gives whole events. Comments (keep-alives) vanish; bare lines of JSON count as data."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._name = ""
        self._begun = False

    def feed(self, piece: bytes) -> list[Sent]:
        """The events that are whole now."""
        text = self._rest + piece
        if not self._begun and len(text) >= len(BOM):
            self._begun, text = True, text.removeprefix(BOM)
        lines = text.splitlines(keepends=True)
        # A line is whole when its end is there; a \r may be half of one.
        torn = bool(lines) and not lines[-1].endswith(b"\n")
        self._rest = lines.pop() if torn else b""
        found: list[Sent] = []
        for line in lines:
            self._take(line.rstrip(b"\r\n"), found)
        return found

    def end(self) -> list[Sent]:
        """What was left when the stream ended, with or without its last empty line."""
        found: list[Sent] = []
        for line in self._rest.splitlines():
            self._take(line, found)
        self._take(b"", found)
        self._rest = b""
        return found

    def _take(self, line: bytes, found: list[Sent]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line:
            if self._data:
                found.append(Sent(b"\n".join(self._data), self._name))
            self._data, self._name = [], ""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode(errors="replace")
        elif line[:1] in (b"{", b"["):
            self._data.append(line)
