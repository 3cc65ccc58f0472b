"""A run of a check beside the one on the base: only what newly fails counts, and the lines that tell why are shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from greenroom.core.ports.checks import AS_A_WHOLE, LONGEST_NAME, NAMED, Checked, Compared, Ran, Report

TITLE: Final = " › "
"""ava puts the file's name before a test's title once there is a second file: `test › counts`."""


def compare(base: Ran, now: Ran, flaky: Collection[str] = ()) -> Compared:
    """What newly fails, still fails, and passes again. `flaky` are names that failed and then passed, unchanged."""
    failing = now.failing - frozenset(flaky)
    old = {name for name in failing if failed_before(name, base)}
    new = failing - old
    if now.outcome == "could_not_run" and base.outcome != "could_not_run":
        new |= {AS_A_WHOLE}
    ran = now.outcome != "could_not_run"
    passes_again = {name for name in base.failing if ran and not any(same(name, other) for other in now.failing)}
    gone: set[str] = set()
    if ran and _names_all(base) and _names_all(now):
        passed = [name for name, word in base.tests.items() if word == "passed"]
        gone = {name for name in passed if now.tests.get(name, "skipped") == "skipped"}
    sorts = {"new": new, "old": old, "mended": passes_again, "gone": gone}
    counts = {sort: len(names) for sort, names in sorts.items() if len(names) > NAMED}
    return Compared(
        new=cut(new),
        old=cut(old),
        mended=cut(passes_again),
        flaky=cut(flaky),
        gone=cut(gone),
        counts=counts,
    )


def _names_all(ran: Ran) -> bool:
    """Whether every test that passed has a name."""
    return ran.exact or ran.passed == sum(word == "passed" for word in ran.tests.values())


def failed_before(name: str, base: Ran) -> bool:
    """Whether this test, or the whole file that it is in, failed on the base too."""
    if any(same(name, other) for other in base.failing):
        return True
    return name.partition("::")[0] in base.failing


def same(name: str, other: str) -> bool:
    """Whether two runs mean one test: its name may have got the file's before it."""
    return name == other or name.endswith(f"{TITLE}{other}") or other.endswith(f"{TITLE}{name}")


def has_names(ran: Ran) -> bool:
    """Whether every failure of a run has a name: an exit code, or a number of failures, has none."""
    return AS_A_WHOLE not in ran.failing


def cut(names: Iterable[str]) -> tuple[str, ...]:
    """As many names as a report keeps."""
    return tuple(shorten(name) for name in sorted(names)[:NAMED])


def shorten(name: str) -> str:
    """A test's name as a report has it: some runners print whole arguments in it."""
    return name[:LONGEST_NAME]


def describe(report: Report) -> str:
    """A report in one line: `pytest: 212 pass, 1 already fails`."""
    return "; ".join(f"{entry.check}: {_counts(entry)}" for entry in report.checks) or "no check was run"


def _counts(entry: Checked) -> str:
    if entry.outcome == "could_not_run":
        return f"could not run ({entry.reason.rstrip('.')})"
    known = entry.compared
    new = known.count("new") if known is not None else 0
    old = known.count("old") if known is not None else entry.failing
    parts = [f"{entry.passed} pass" if entry.passed else "passes" if not entry.failing else ""]
    parts += [f"{new} newly fail{'s' if new == 1 else ''}"] if new else []
    parts += [f"{old} already fail{'s' if old == 1 else ''}"] if old else []
    parts += [f"{entry.skipped} skipped"] if entry.skipped else []
    return ", ".join(filter(None, parts))


LINES: Final = 30
"""Lines of an excerpt."""

WIDE: Final = 240
RULE: Final = re.compile(r"([=_!*─-])\1{5,}")
"""Lines that runners draw."""

TELLING: Final = re.compile(
    r"^E\s|\bError\b|\bFAIL|\bfailed\b|AssertionError|panicked at|✖|✕|not ok|error[:\[]|^>\s|expected|Traceback",
    re.IGNORECASE,
)


def excerpt(text: str, failing: Sequence[str] = ()) -> str:
    """At most so many lines: those about the failing tests first, in the order in which they stand there."""
    lines = [RULE.sub(r"\1\1\1", line)[:WIDE] for line in text.splitlines() if line.strip()]
    if len(lines) <= LINES:
        return "\n".join(lines)
    wanted = _around(lines, failing)
    if not wanted:
        return "\n".join(("…", *lines[-LINES:]))
    chosen = sorted(wanted[:LINES])
    told: list[str] = []
    for before, at in zip((-1, *chosen), chosen, strict=False):
        told += ["…"] if at > before + 1 and told else []
        told.append(lines[at])
    return "\n".join(told[: LINES + 10])


def _around(lines: Sequence[str], failing: Sequence[str]) -> list[int]:
    """The places of lines that tell something, the most telling first."""
    short = {one.rpartition("::")[2] or one for one in failing}
    naming = [at for at, line in enumerate(lines) if any(one in line for one in list(short)[:20])]
    telling = [at for at, line in enumerate(lines) if TELLING.search(line)]
    near = [at for place in naming[:3] for at in range(place, min(place + 12, len(lines)))]
    return list(dict.fromkeys((*near, *telling, *naming)))
