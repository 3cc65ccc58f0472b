"""Run all attempts at all tiers for the tables of docs/sandbox-results.md.

`python -m tests.sandbox.report --write` fills the page; without `--write` it only prints. It takes some minutes and
needs bubblewrap. As root it tries more.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, get_args

from tests.sandbox.attempt import MEANING, Kind
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.holes import HOLES
from tests.sandbox.judging import TIERS, Judged, judged, told

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "sandbox-results.md"


def table(results: Sequence[Judged]) -> str:
    """Return how many attempts of each class escaped at each tier."""
    lines = [
        f"| what is tried | attempts | without a sandbox | {' | '.join(TIERS)} |",
        f"|---|--:|--:|{'--:|' * len(TIERS)}",
    ]
    kinds = get_args(Kind)
    lines += [_row(MEANING[kind], [one for one in results if one.attempt.kind == kind]) for kind in kinds]
    lines.append(_row("**all**", results))
    return "\n".join(lines)


def _row(name: str, results: Iterable[Judged]) -> str:
    found = list(results)
    possible = [one for one in found if one.tier == TIERS[0] and one.verdict not in {"vacuous", "not possible here"}]
    out = [sum(one.tier == tier and one.verdict == "escaped" for one in found) for tier in TIERS]
    count = len({str(one.attempt) for one in found})
    return f"| {name} | {count} | {len(possible)} | {' | '.join(map(str, out))} |"


def holes() -> str:
    """Return what escapes, and why, by tier."""
    lines = [
        f"- `{tier}`, {MEANING[kind]}: *{name}*: {why}."
        for tier, kinds in HOLES.items()
        for kind, names in kinds.items()
        for name, why in names.items()
    ]
    return "\n".join(lines) or "None."


def filled(page: str, what: str, made: str) -> str:
    """Return the page with this part replaced."""
    begin, end = f"<!-- the {what}: python -m tests.sandbox.report --write -->", f"<!-- end of the {what} -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{made}\n{end}{after}"


def counts(page: str) -> dict[str, int]:
    """Return the number of attempts of each class on the page."""
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    return {row[1].strip(): int(row[2]) for row in rows if len(row) == len(TIERS) + 5 and row[2].strip().isdigit()}


async def _main(*, write: bool) -> None:
    results: list[Judged] = []
    for attempt in ATTEMPTS:
        here = await judged(attempt, TIERS)
        print(told(here), end="", flush=True)
        results += here
    made = table(results)
    print(f"\n\n{made}")
    if write:
        await asyncio.to_thread(_write, made)


def _write(made: str) -> None:
    page = filled(PAGE.read_text("utf-8"), "table", made)
    PAGE.write_text(filled(page, "holes", holes()), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_main(write="--write" in sys.argv))
