"""What linters and type checkers print: findings by file, without line numbers, so that a moved one is no new one."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from greenroom.core.ports.checks import Word

LONGEST: Final = 2_000
AT: Final = re.compile(r"(?P<file>[\w./\\@+-]+\.\w+)(?::\d+(?::\d+)?(?:-\d+)?|\(\d+,\d+\)):?\s+(?:-\s+)?(?P<said>\S.*)")
"""mypy, ruff (concise), flake8, pyright, tsc, gcc, go vet, rubocop."""

ARROW: Final = re.compile(r"\s*--> (?P<file>[\w./\\@+-]+\.\w+):\d+:\d+")
"""ruff (full), clippy: what is said stands in the line before."""

UNDER: Final = re.compile(r"\s+\d+:\d+\s+(?P<said>(?:error|warning)\s+\S.*)")
"""eslint: the file stands in a line of its own above."""

FILE: Final = re.compile(r"(?:/|\./)?[\w./\\@+ -]+\.\w{1,5}")
QUIET: Final = ("note:", "warning:", "warning ")


def findings(text: str) -> dict[str, Word]:
    """All findings; of equal ones in one file each has its number."""
    every: Counter[str] = Counter()
    file = before = ""
    for line in text.splitlines():
        if len(line) > LONGEST:
            continue
        said = _said(line, file, before)
        if said:
            every[said] += 1
        elif FILE.fullmatch(line.strip()):
            file = line.strip()
        before = line.strip() or before
    return {f"{name} ({n})" if n > 1 else name: "failed" for name in every for n in range(1, every[name] + 1)}


def _said(line: str, file: str, before: str) -> str:
    at = AT.fullmatch(line)
    if at is not None:
        return "" if at["said"].startswith(QUIET) else f"{at['file']}: {' '.join(at['said'].split())}"
    arrow = ARROW.fullmatch(line)
    if arrow is not None:
        return f"{arrow['file']}: {before}"
    under = UNDER.fullmatch(line)
    if under is not None and file and under["said"].startswith("error"):
        return f"{file}: {' '.join(under['said'].split())}"
    return ""
