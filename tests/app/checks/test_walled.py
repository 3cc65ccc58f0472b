"""Checks behind walls: silent, and their reports come out all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.abilities.checks.finding.found import found
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.folder import FolderLook
from greenroom.app.hands.walls import Walls
from tests.app.checks.projects import Shelf, tree_of, written

FAKE = """import os, shlex, sys
options = dict(one.split("=", 1) for one in shlex.split(os.environ["PYTEST_ADDOPTS"]) if one.startswith("--"))
with open(options["--junitxml"], "w") as file:
    file.write('<testsuite><testcase classname="test_a" name="test_b" file="test_a.py"/></testsuite>')
print("1 passed in 0.1s", os.path.exists("/root/.ssh"), file=sys.stderr)
"""


async def test_a_report_gets_out_of_walls(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pytest.py": FAKE, "pytest.ini": ""})
    walls = Walls(root)
    if not walls.hold():
        pytest.skip("no walls hold here")
    commands = PlainCommands(root, wall=walls.opened)
    shelf = Shelf()
    try:
        checks = ProjectChecks(found(FolderLook(root)), commands, tree_of(root))
        (one,) = (await checks.run((), shelf)).checks
    finally:
        commands.close()
        await walls.close()
    assert (one.outcome, one.exit, one.passed, one.steady) == ("passed", 0, 1, True)
    assert shelf.blobs[one.output].strip() == b"1 passed in 0.1s False"
