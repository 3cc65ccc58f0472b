"""`python -m bench NAME [--json]`: run one benchmark and print its figures.

The table shows missed goals; the exit code does not depend on them.
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
    """The interface of a benchmark module."""

    GOALS: Goals

    def run(self) -> Figures | Coroutine[None, None, Figures]:
        """Measure."""
        ...


def known() -> list[str]:
    """Return the names of all benchmarks: the files of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def load(name: str) -> Bench:
    """Load a known benchmark by name."""
    return cast(Bench, importlib.import_module(f"bench.{name}"))


def measure(bench: Bench) -> Figures:
    """Run a benchmark, whether its `run` is plain or async."""
    figures = bench.run()
    return asyncio.run(figures) if isinstance(figures, Coroutine) else figures


def verdict(value: float, goal: tuple[str, float] | None) -> str:
    """Return `yes` or `no` against a goal, "" without a goal."""
    if goal is None:
        return ""
    sign, limit = goal
    return "yes" if COMPARE[sign](value, limit) else "no"


def number(value: float) -> str:
    """Format a figure with its significant digits, without exponents."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def table(name: str, figures: Figures, goals: Goals) -> Table:
    """Return the figures as a table."""
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
    """Return 0 after a measurement, 2 for an invalid request."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"]
    folders = names[1:] if names[:1] == ["merge"] else []
    if len(names) != 1 + len(folders) or names[0] not in known():
        asked = " ".join(names) or "nothing"
        print(f"bench: cannot measure {asked!r}; known: {', '.join(known()) or 'none yet'}", file=sys.stderr)
        return 2
    with redirect_stdout(sys.stderr):  # stdout contains only the figures, not the output of the measurement
        bench = load(names[0])
        figures = measure(bench)
    if as_json:
        print(json.dumps(figures))
    else:
        Console().print(table(names[0], figures, bench.GOALS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
