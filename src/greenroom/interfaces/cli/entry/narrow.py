"""Help as wide as the terminal is: typer's has fifty columns at least, and a terminal breaks what is wider anywhere.

It is for people: names without types of Python, and exit codes a line each.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from typing import Final

from typer._click import Context, HelpFormatter

WIDEST: Final = 100
NARROWEST: Final = 24
"""Columns below which nothing can be laid out."""


EXITS: Final = "Exit codes:"
"""How a line begins that lists codes and what they mean, with semicolons between them, to the end of a help text."""

TYPED: Final = re.compile(r" <(?:str|list\[str\])>$")
"""What typer adds to a name that is a text, or several words."""


class FittingFormatter(HelpFormatter):
    """One that breaks lines where the terminal ends."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        there = min(shutil.get_terminal_size().columns, max_width or WIDEST) - 2
        super().__init__(indent_increment, width or max(there, NARROWEST), max_width)

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names beside what they mean; a name that leaves no room for that has a line of its own."""
        named = [(TYPED.sub(" TEXT" if name.startswith("-") else "", name), told) for name, told in rows]
        super().write_dl(named, min(col_max, self.width // 2), col_spacing)

    def write_text(self, text: str) -> None:
        """Paragraphs, and exit codes as a list."""
        told, found, codes = text.partition(f"\n{EXITS} ")
        super().write_text(told)
        if found:
            self.write_paragraph()
            super().write_text(EXITS)
            with self.indentation():
                every = " ".join(codes.rstrip(".").split()).split("; ")
                self.write_dl([(code, meaning) for code, _, meaning in (one.partition(" ") for one in every)])


class FittingContext(Context):
    """What a command is run in, whose help fits."""

    formatter_class = FittingFormatter
