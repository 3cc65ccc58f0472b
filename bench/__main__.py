"""`python -m bench NAME [--json]`: run one measurement and print its figures.

Not a judge: the table says which goals were missed, the exit code does not.
"""

import asyncio
import importlib
import json
import operator
import sys
from collections.abc import Coroutine, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Protocol, cast

from rich.console import Console
from rich.table import Table

Figures = dict[str, float]
Goals = Mapping[str, tuple[str, float]]
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Bench(Protocol):
    """What a file of this folder offers."""

    GOALS: Goals

    def run(self) -> Figures | Coroutine[None, None, Figures]:
        """Measure."""
        ...


def known() -> list[str]:
    """The names that can be measured: the files of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def load(name: str) -> Bench:
    """The measurement called `name`, which is one of the known ones."""
    return cast(Bench, importlib.import_module(f"bench.{name}"))


def measure(bench: Bench) -> Figures:
    """Run it, whichever colour its function has."""
    figures = bench.run()
    return asyncio.run(figures) if isinstance(figures, Coroutine) else figures


def verdict(value: float, goal: tuple[str, float] | None) -> str:
    """`yes` or `no` against a goal, nothing without one."""
    if goal is None:
        return ""
    sign, limit = goal
    return "yes" if COMPARE[sign](value, limit) else "no"


def number(value: float) -> str:
    """A figure with the digits that count, and no powers of ten."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def table(name: str, figures: Figures, goals: Goals) -> Table:
    """The figures as people read them."""
    shown = Table(title=f"bench {name}")
    shown.add_column("name")
    for column in ("value", "goal", "ok"):
        shown.add_column(column, justify="right")
    for figure, value in figures.items():
        goal = goals.get(figure)
        limit = f"{goal[0]} {goal[1]:,g}" if goal else ""
        shown.add_row(figure, number(value), limit, verdict(value, goal))
    return shown


def main(arguments: list[str]) -> int:
    """0 when something was measured, 2 when the request was not understood."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"]
    if len(names) != 1 or names[0] not in known():
        asked = " ".join(names) or "nothing"
        print(f"bench: cannot measure {asked!r}; known: {', '.join(known()) or 'none yet'}", file=sys.stderr)
        return 2
    with redirect_stdout(sys.stderr):  # whatever a measurement says on its way, stdout holds the figures only
        bench = load(names[0])
        figures = measure(bench)
    if as_json:
        print(json.dumps(figures))
    else:
        Console().print(table(names[0], figures, bench.GOALS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
