"""Print the table of projects after their tests, whichever process ran them."""

import pytest

from tests.projects.row import draw

CELLS = "cells"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Collect the rows that the tests have recorded."""
    reports = [
        report for outcome in ("passed", "failed", "skipped") for report in terminalreporter.stats.get(outcome, ())
    ]
    rows = [value for report in reports for name, value in report.user_properties if name == CELLS]
    if rows:
        terminalreporter.section("projects")
        terminalreporter.write_line(draw([tuple(cells) for cells in rows]))
