"""The tool `run_checks`: run the project's checks on the current work and report new failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta

from greenroom.abilities.tools.tool import (
    Arguments,
    CardedTool,
    build_schema,
    convert_arguments,
    make_card,
    read_arguments,
)
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT_KEY, Check, Checker, CheckReport, CheckResult, report_to_data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import Target

NAME: Final = "run_checks"
MAX_LINES: Final = 30
"""Maximum lines about the checks. Their output may have as many again."""

MAX_NAMES_SHOWN: Final = 8
MAX_LINE_CHARS: Final = 300


def render_report(report: CheckReport) -> str:
    """Render the report in at most twice `MAX_LINES` lines."""
    lines = [line for entry in report.checks for line in _render_entry(entry)]
    lines += [f"Not run: {said}" for said in report.left]
    if all(entry.is_clean for entry in report.checks):
        lines.append("Nothing newly fails.")
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"… and {len(lines) - MAX_LINES + 1} more lines."]
    return "\n".join(line[:MAX_LINE_CHARS] for line in (*lines, *_render_excerpts(report)))


def _render_entry(entry: CheckResult) -> Iterator[str]:
    if entry.outcome == "could_not_run":
        yield f"{entry.check}: could not run. {entry.reason}"
        return
    known = entry.compared
    yield f"{entry.check}: {_describe_verdict(entry)} ({_describe_counts(entry)})."
    if known is None:
        return
    yield from _render_names("newly fails", known.new, known.count("new"))
    yield from _render_names("already failed before the work, and still does", known.old, known.count("old"))
    yield from _render_names("failed before and passes now", known.mended, known.count("mended"))
    yield from _render_names("flaky (failed, then passed with nothing changed)", known.flaky, len(known.flaky))
    yield from _render_names("was there before and is not run any more", known.gone, known.count("gone"))
    if known.fewer:
        yield f"  {known.fewer} fewer tests ran than before the work. The person will see that."
    if not entry.steady:
        yield "  It changed files of the workspace itself: so it proves nothing."


def _describe_verdict(entry: CheckResult) -> str:
    if entry.compared is None:
        return "passes" if entry.outcome == "passed" else "FAILS"
    if entry.compared.new:
        return "NEW FAILURES"
    return "passes" if entry.outcome == "passed" else "nothing new fails"


def _describe_counts(entry: CheckResult) -> str:
    parts = ((entry.passed, "passed"), (entry.failing, "failed"), (entry.skipped, "skipped"))
    told_of = ", ".join(f"{number} {word}" for number, word in parts if number)
    return told_of or f"exit code {entry.exit}"


def _render_names(what: str, names: Sequence[str], count: int) -> Iterator[str]:
    if names:
        more = f" and {count - MAX_NAMES_SHOWN} more" if count > MAX_NAMES_SHOWN else ""
        yield f"  {what}: {', '.join(names[:MAX_NAMES_SHOWN])}{more}"


def _render_excerpts(report: CheckReport) -> Iterator[str]:
    """Yield the output that explains failures. The failing checks share the available lines."""
    speaking = [entry for entry in report.checks if entry.excerpt and not entry.is_clean]
    each = max(MAX_LINES // max(1, len(speaking)) - 1, 3)
    for entry in speaking:
        yield f"--- output of {entry.check}"
        yield from _cut_middle(entry.excerpt.splitlines(), each)


def _cut_middle(lines: Sequence[str], max_lines: int) -> Sequence[str]:
    """Keep both ends: most outputs have the location at the beginning and the comparison at the end."""
    head = max_lines // 3
    return lines if len(lines) <= max_lines else (*lines[:head], "…", *lines[head + 1 - max_lines :])


NO_CHECKS_MESSAGE: Final = (
    "This project had no checks that can be run when this began. What you set up yourself you can run with "
    "execute_script. Say in your summary how the work can be checked."
)


class RunChecksArguments(Arguments, frozen=True):
    only: Annotated[
        tuple[str, ...],
        Meta(description="Names of checks, as an earlier result names them; without it all are run."),
    ] = ()


class RunChecksTool(CardedTool):
    """Runs checks. Keyed: checks have no lasting effects, so an interrupted check runs again once its processes are
    dead."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        # Each check has its own timeout, so the card has none. Without checks, nothing runs.
        self.card = make_card(
            NAME,
            "Run the project's own checks (tests, types, lint) on the files as they are now. Use it after you have "
            "changed something and before you say that it is done. They run in a fresh worktree of your change, so "
            "what you have installed yourself is not there. It says what newly fails because of the work, and what "
            "already failed before, which is not yours to mend unless you were asked to. Do not use it to look "
            'around or to run one command: execute_script does that. Example: {"only": ["pytest"]}',
            build_schema(RunChecksArguments),
            group="command",
            effect="keyed" if checker.checks else "pure",
        )

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Return the command lines. They run code that an agent may have written, so the policy decides as for any
        command."""
        try:
            chosen = self._choose_checks(convert_arguments(RunChecksArguments, arguments, self.name).only)
        except ModelFault:
            chosen = tuple(self._checker.checks)
        return tuple(Target(kind="command", value=check.line) for check in chosen)

    async def run(self, context: StepContext) -> Outcome:
        only = read_arguments(RunChecksArguments, context.step).only
        if not self._choose_checks(only):
            raise ModelFault(NO_CHECKS_MESSAGE)
        report = await self._checker.run(only, context)
        return Outcome(result={"output": render_report(report), REPORT_KEY: report_to_data(report)}, blobs=report.blobs)

    def _choose_checks(self, only: Sequence[str]) -> tuple[Check, ...]:
        names = [check.name for check in self._checker.checks]
        odd = next((check for check in only if check not in names), None)
        if odd is not None:
            raise ModelFault(f"There is no check {odd!r}. There are: {', '.join(names) or 'none'}.")
        return tuple(check for check in self._checker.checks if not only or check.name in only)
