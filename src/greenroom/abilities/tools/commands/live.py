"""What a command prints, line by line, for those who watch it run. What it comes to is told by its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from greenroom.core.ports.executor import ToolPrinted

MOST: Final = 200_000
"""Characters of one command. Who wants more reads it in its result."""

LONGEST: Final = 4_000
"""Characters of a line that is not ended yet, before it is shown all the same."""


class LiveLines:
    """Shows whole lines, so that what is looked for in them (a secret, say) is not cut in two."""

    def __init__(self, show: Callable[[ToolPrinted], None], most: int = MOST) -> None:
        self._show = show
        self._room = most
        self._begun = ""

    def add(self, text: str) -> None:
        """One more piece."""
        if self._room <= 0 or not text:
            return
        whole, newline, rest = (self._begun + text).rpartition("\n")
        lines = f"{whole}{newline}"
        if len(rest) > LONGEST:
            lines, rest = f"{lines}{rest}\n", ""
        self._begun = rest
        if lines:
            self._tell(lines)

    def end(self) -> None:
        """The last line, if nothing has ended it."""
        rest, self._begun = self._begun, ""
        if rest and self._room > 0:
            self._tell(f"{rest}\n")

    def _tell(self, lines: str) -> None:
        self._room -= len(lines)
        more = "" if self._room > 0 else "[… it prints more than is shown here …]\n"
        self._show(ToolPrinted(text=f"{lines}{more}"))
