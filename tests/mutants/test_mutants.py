"""Seeded bugs in rules, sync, lease and recovery: each must be caught by the suite, or the suite proves little."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = tomllib.loads((Path(__file__).parent / "seeded.toml").read_text())["mutant"]
NAMES = [mutant["name"] for mutant in MUTANTS]
PATIENCE = 120


def with_bug(mutant: dict[str, str]) -> str:
    """The file with the bug in it."""
    text = (ROOT / "src" / "greenroom" / mutant["file"]).read_text()
    assert text.count(mutant["find"]) == 1, f"{mutant['name']!r}: its place is not there exactly once"
    return text.replace(mutant["find"], mutant["put"])


def mutated(folder: Path, mutant: dict[str, str]) -> Path:
    """A copy of the source with the bug in it."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "greenroom" / mutant["file"]).write_text(with_bug(mutant))
    return source


def survives(folder: Path, mutant: dict[str, str]) -> bool:
    """Whether the named tests pass although the bug is there."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COV", "PYTEST"))}
    environment |= {"PYTHONPATH": str(mutated(folder, mutant)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=30"]
    command += mutant["tests"]
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return False  # a suite that hangs has not passed
    assert run.returncode in (0, 1), f"the tests did not run: {run.stdout[-2000:]}{run.stderr[-2000:]}"
    return run.returncode == 0


def test_there_are_at_least_twelve_seeded_bugs() -> None:
    assert len(MUTANTS) >= 12


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_every_seeded_bug_has_its_place(mutant: dict[str, str]) -> None:
    assert mutant["put"] in with_bug(mutant)


@pytest.mark.prove
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_every_seeded_bug_is_caught(tmp_path: Path, mutant: dict[str, str]) -> None:
    assert not survives(tmp_path, mutant)
