"""What a model reads of checks that ran: first what newly fails, with the part of the output that tells why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from greenroom.core.ports.checks import Checked, Report

LINES: Final = 30
"""Lines about the checks, and as many of their output."""

NAMES: Final = 8
WIDE: Final = 300


def told(report: Report) -> str:
    """The whole report in at most twice so many lines."""
    lines = [line for one in report.checks for line in _about(one)]
    lines += [f"Not run: {said}" for said in report.left]
    if all(one.clean for one in report.checks):
        lines.append("Nothing newly fails.")
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"… and {len(lines) - LINES + 1} more lines."]
    return "\n".join(line[:WIDE] for line in (*lines, *_why(report)))


def _about(one: Checked) -> Iterator[str]:
    if one.outcome == "could_not_run":
        yield f"{one.check}: could not run. {one.reason}"
        return
    known = one.compared
    yield f"{one.check}: {_verdict(one)} ({_counts(one)})."
    if known is None:
        return
    yield from _listed("newly fails", known.new)
    yield from _listed("already failed before the work, and still does", known.old)
    yield from _listed("failed before and passes now", known.mended)
    yield from _listed("flaky (failed, then passed with nothing changed)", known.flaky)
    yield from _listed("was there before and is not run any more", (*known.gone, *known.skipped))
    if known.fewer:
        yield f"  {known.fewer} fewer tests ran than before the work. The person will see that."
    if not one.steady:
        yield "  It changed files of the workspace itself: so it proves nothing."


def _verdict(one: Checked) -> str:
    if one.compared is None:
        return "passes" if one.outcome == "passed" else "FAILS"
    if one.compared.new:
        return "NEW FAILURES"
    return "passes" if one.outcome == "passed" else "nothing new fails"


def _counts(one: Checked) -> str:
    parts = ((one.passed, "passed"), (one.failing, "failed"), (one.skipped, "skipped"))
    told_of = ", ".join(f"{number} {word}" for number, word in parts if number)
    return told_of or f"exit code {one.exit}"


def _listed(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        yield f"  {what}: {', '.join(names[:NAMES])}{more}"


def _why(report: Report) -> Iterator[str]:
    """Of the output, the part that tells why: shared among the checks that have something to say."""
    speaking = [one for one in report.checks if one.excerpt and not one.clean]
    each = max(LINES // max(1, len(speaking)) - 1, 3)
    for one in speaking:
        yield f"--- output of {one.check}"
        yield from _ends(one.excerpt.splitlines(), each)


def _ends(lines: Sequence[str], most: int) -> Sequence[str]:
    """What was compared stands at the end of most outputs, where it happened at the beginning."""
    head = most // 3
    return lines if len(lines) <= most else (*lines[:head], "…", *lines[head + 1 - most :])
