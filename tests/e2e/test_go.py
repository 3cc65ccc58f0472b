"""The `go` script: it works where it lies, and its commands where they were typed."""

import os
import shutil
import subprocess
from pathlib import Path

GO = Path(__file__).parents[2] / "go"


def stand_in(path: Path, script: str) -> None:
    """A program that says what it was told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_command_runs_in_the_folder_it_was_typed_in(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    elsewhere.mkdir()
    stand_in(tmp_path / "bin" / "uv", "exit 0")
    stand_in(project / ".venv" / "bin" / "greenroom", 'echo "$PWD: $GREENROOM_CALLED_AS $*"')
    shutil.copy(GO, project / "go")
    called = subprocess.run(
        ["../project/go", "runs", "--home", "here"],
        cwd=elsewhere,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert called.stdout == f"{elsewhere}: ../project/go runs --home here\n"
