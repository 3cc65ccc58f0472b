"""Help as wide as the terminal is: typer's has fifty columns at least, and a terminal breaks what is wider anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Final

from typer._click import Context, HelpFormatter

WIDEST: Final = 100
NARROWEST: Final = 24
"""Columns below which nothing can be laid out."""


class FittingFormatter(HelpFormatter):
    """One that breaks lines where the terminal ends."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        there = min(shutil.get_terminal_size().columns, max_width or WIDEST) - 2
        super().__init__(indent_increment, width or max(there, NARROWEST), max_width)

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names beside what they mean; a name that leaves no room for that has a line of its own."""
        super().write_dl(rows, min(col_max, self.width // 2), col_spacing)


class FittingContext(Context):
    """What a command is run in, whose help fits."""

    formatter_class = FittingFormatter
