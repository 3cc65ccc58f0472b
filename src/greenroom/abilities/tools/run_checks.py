"""`run_checks`: run the project's checks on the work as it is now, and read what newly fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, fitted, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT, Check, Checked, Checker, Report, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Target

NAME: Final = "run_checks"
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
    yield from _listed("newly fails", known.new, known.count("new"))
    yield from _listed("already failed before the work, and still does", known.old, known.count("old"))
    yield from _listed("failed before and passes now", known.mended, known.count("mended"))
    yield from _listed("flaky (failed, then passed with nothing changed)", known.flaky, len(known.flaky))
    yield from _listed("was there before and is not run any more", known.gone, known.count("gone"))
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


def _listed(what: str, names: Sequence[str], count: int) -> Iterator[str]:
    if names:
        more = f" and {count - NAMES} more" if count > NAMES else ""
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


NONE: Final = (
    "This project had no checks that can be run when this began. What you set up yourself you can run with "
    "execute_script. Say in your summary how the work can be checked."
)


class RunChecksArguments(Arguments, frozen=True):
    """Which checks."""

    only: Annotated[
        tuple[str, ...],
        Meta(description="Names of checks, as an earlier result names them; without it all are run."),
    ] = ()


class RunChecks(CardedTool):
    """Keyed: checks change nothing that counts, so one that was cut off is run again, once its processes are dead."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        # Each check has its own limit of time, so the card has none. Where there is no check, nothing is ever run.
        self.card = make_card(
            NAME,
            "Run the project's own checks (tests, types, lint) on the files as they are now. Use it after you have "
            "changed something and before you say that it is done. They run in a fresh worktree of your change, so "
            "what you have installed yourself is not there. It says what newly fails because of the work, and what "
            "already failed before, which is not yours to mend unless you were asked to. Do not use it to look "
            'around or to run one command: execute_script does that. Example: {"only": ["pytest"]}',
            schema_of(RunChecksArguments),
            group="command",
            effect="keyed" if checker.checks else "pure",
        )

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The command lines: they run code that an agent may have written, and are decided about like any other."""
        try:
            chosen = self._chosen(fitted(RunChecksArguments, arguments, self.name).only)
        except ModelFault:
            chosen = tuple(self._checker.checks)
        return tuple(Target(kind="command", value=one.line) for one in chosen)

    async def run(self, bench: Bench) -> Outcome:
        """Run them, one after the other."""
        only = given(RunChecksArguments, bench.step).only
        if not self._chosen(only):
            raise ModelFault(NONE)
        report = await self._checker.run(only, bench)
        return Outcome(result={"output": told(report), REPORT: as_data(report)}, blobs=report.blobs)

    def _chosen(self, only: Sequence[str]) -> tuple[Check, ...]:
        names = [one.name for one in self._checker.checks]
        odd = next((one for one in only if one not in names), None)
        if odd is not None:
            raise ModelFault(f"There is no check {odd!r}. There are: {', '.join(names) or 'none'}.")
        return tuple(one for one in self._checker.checks if not only or one.name in only)
