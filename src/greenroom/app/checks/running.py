"""One check, run once: its line in a shell, what it printed, what that says.

A report in JUnit's form is made where pytest runs, wherever in the line that is. It is written outside of the tree and
printed at the end, behind a mark: what is behind walls can be read no other way.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from greenroom.abilities.checks.reading.outcome import outcome
from greenroom.abilities.tools.commands.hearing import heard
from greenroom.abilities.tools.commands.kept import Kept
from greenroom.abilities.tools.commands.live import LiveLines
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.checks import Check, Ran, Witness
from greenroom.core.ports.commands import Command, Commands, Ended
from greenroom.core.ports.executor import ToolPrinted

SCRIPT: Final = """
scratch=$(mktemp -d) || exit 125
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM
if [ -n "$3" ]; then
  export PYTEST_ADDOPTS="'--junitxml=$scratch/pytest.xml' -o junit_family=xunit1 -o 'cache_dir=$scratch/cache'"
fi
sh -c "$1"
status=$?
if [ -s "$scratch/pytest.xml" ]; then
  printf '\\n%s\\n' "$2"
  cat "$scratch/pytest.xml"
fi
exit $status
"""
ENV: Final = {"CI": "1", "FORCE_COLOR": "0", "PY_COLORS": "0", "CARGO_TERM_COLOR": "never", "COLUMNS": "120"}
"""Nobody sits there: no watching, no colours, nothing cut to a narrow screen."""

UNKNOWN: Final = ("--junitxml", "unrecognized arguments")
BEGINNING: Final = 3 * 1024 * 1024
END: Final = 12 * 1024 * 1024
"""Characters of an output that are kept; the report stands at its end."""


@record
class Raw:
    """What a check printed and how it ended."""

    ended: Ended
    text: str
    report: str = ""


async def run_once(check: Check, commands: Commands, witness: Witness, line: str = "") -> tuple[Ran, str]:
    """Run it, or another `line` in its place. Returns what came of it, and all that it printed."""
    told = line or check.line
    try:
        raw = await _run(check, told, commands, witness, report=True)
        if raw.ended.code and all(word in raw.text for word in UNKNOWN):
            raw = await _run(check, told, commands, witness, report=False)  # a pytest that knows no reports
    except WorldFault as fault:
        return unable(check, str(fault)), ""
    read = outcome(check, raw.ended, raw.text, raw.report)
    ran = Ran(
        check=check.name,
        digest=check.digest,
        kind=check.kind,
        outcome=read.outcome,
        reason=read.reason,
        exit=raw.ended.code,
        seconds=round(raw.ended.seconds, 2),
        exact=read.exact,
        tests=read.tests,
        passed=read.passed,
        skipped=read.skipped,
    )
    return ran, raw.text


def unable(check: Check, why: str) -> Ran:
    """A check that was not even begun."""
    return Ran(check=check.name, digest=check.digest, kind=check.kind, outcome="could_not_run", reason=why)


async def _run(check: Check, line: str, commands: Commands, witness: Witness, *, report: bool) -> Raw:
    mark = f"greenroom-report-{secrets.token_hex(8)}"
    wanted = "1" if report and check.kind == "test" else ""
    words = ("env", "PYTHONDONTWRITEBYTECODE=1", "sh", "-c", SCRIPT, "check", line, mark, wanted)
    command = Command(words=words, folder=check.folder, seconds=check.seconds, env=ENV)
    kept = Kept(BEGINNING, END)
    ended = await heard(commands.run(command), witness.prepare, kept, LiveLines(_until(mark, witness.show)))
    text, _, found = kept.text.partition(f"\n{mark}\n")
    return Raw(ended=ended, text=text, report=found)


def _until(mark: str, show: Callable[[ToolPrinted], None]) -> Callable[[ToolPrinted], None]:
    """Who watches sees what the check prints, and not the report behind it."""
    over = False

    def shown(event: ToolPrinted) -> None:
        nonlocal over
        text, found, _ = event.text.partition(mark)
        if not over and text:
            show(ToolPrinted(text=text))
        over = over or bool(found)

    return shown
