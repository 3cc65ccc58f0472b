"""What is kept of what a command prints: its beginning and its end, never more than fits, nothing that is obeyed."""

from __future__ import annotations

from collections import deque
from typing import Final

from greenroom.core.base.unseen import Seen

BEGINNING: Final = 15 * 1024 * 1024
END: Final = 1024 * 1024
"""Characters. A result is written in one piece, and a larger one would keep the whole house waiting for a second."""


class Kept:
    """Takes pieces as they come. What does not fit is counted, and said."""

    def __init__(self, beginning: int = BEGINNING, end: int = END) -> None:
        self._room = beginning
        self._most = end
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tailed = 0
        self._seen = Seen()
        self.dropped = 0

    def add(self, text: str, missing: int = 0) -> str:
        """One more piece; `missing` is what was lost beside it. Returns what of it can be shown."""
        self.dropped += missing
        seen = self._seen.piece(text)
        self._take(seen)
        return seen

    def end(self) -> None:
        """There is no more to come."""
        self._take(self._seen.end())

    @property
    def text(self) -> str:
        """All that is kept."""
        gap = f"\n[… {self.dropped} characters are not kept …]\n" if self.dropped else ""
        return "".join((*self._head, gap, *self._tail))

    def _take(self, text: str) -> None:
        if self._room:
            self._head.append(text[: self._room])
            text = text[self._room :]
            self._room -= len(self._head[-1])
        if text:
            self._tail.append(text)
            self._tailed += len(text)
        while self._tailed > self._most:
            self._shorten()

    def _shorten(self) -> None:
        first = self._tail.popleft()
        over = min(self._tailed - self._most, len(first))
        if over < len(first):
            self._tail.appendleft(first[over:])
        self._tailed -= over
        self.dropped += over
