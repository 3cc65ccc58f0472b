"""The syntax of changed files, asked of those who know."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from greenroom.abilities.checks.changed import Changed
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.syntax import broken
from tests.app.checks.projects import written


async def faults(root: Path, files: dict[str, str], python: str = sys.executable) -> list[str]:
    written(root, files)
    commands = PlainCommands(root)
    try:
        changes = [Changed(path=path, after=text.encode()) for path, text in files.items()]
        return [f"{one.path}:{one.line}" for one in await broken(changes, commands, python)]
    finally:
        commands.close()


async def test_what_the_projects_own_python_takes_is_no_fault(tmp_path: Path) -> None:
    files = {"a.py": "def f(:\n", "b.json": "{", "c.py": "x = 1"}
    assert await faults(tmp_path, files) == ["a.py:1", "b.json:1"]
    assert await faults(tmp_path, files, "/bin/true") == ["b.json:1"]
    assert await faults(tmp_path, files, "no-such-python") == ["a.py:1", "b.json:1"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_node_looks_at_scripts_and_runs_none(tmp_path: Path) -> None:
    files = {
        "bad.js": "let x = 1;\nlet y = ;\n",
        "good.mjs": "import fs from 'node:fs'; fs.writeFileSync('ran', '');\n",
        "module.js": "import fs from 'node:fs';\nexport const x = 1;\n",
        "view.js": "const a = <b>no script</b>;\n",
        "x.ts": "let y = ;",
    }
    assert await faults(tmp_path, files) == ["bad.js:2"]
    assert not (tmp_path / "ran").exists()
