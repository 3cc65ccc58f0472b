"""Tables that fit the terminal: some columns give way, others are left out, and an id is never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that `gives` way is cut when there is no room; one that `needs` so many columns is else left out."""

    name: str
    style: str = ""
    right: bool = False
    gives: bool = False
    least: int = 0
    needs: int = 0

    @property
    def justify(self) -> Literal["left", "right"]:
        """Figures stand right."""
        return "right" if self.right else "left"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table of texts. One that is `spread` takes the whole width, so that it does not jump when it changes."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    spread: bool = False

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it in this width."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=self.spread)
        shown = [place for place, one in enumerate(self.columns) if one.needs <= options.max_width]
        for column in (self.columns[place] for place in shown):
            table.add_column(
                Text(column.name, no_wrap=True, overflow="ellipsis"),
                style=column.style,
                justify=column.justify,
                min_width=column.least or None,
                no_wrap=not column.gives,
                ratio=1 if self.spread and column.gives and column.needs == 0 else None,
            )
        for row in self.rows:
            table.add_row(*(row[place] for place in shown))
        yield table


def row(*cells: str | Text) -> list[Text]:
    """Cells that stay on one line."""
    texts = [Text(cell) if isinstance(cell, str) else cell for cell in cells]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    return texts
