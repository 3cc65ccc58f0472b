"""The sandbox of an ordinary person: limits hold all the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOMEBODY = "61234"
STARTS = "import greenroom, msgspec, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
PYTHONS = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")


def as_somebody(*words: str, home: str) -> subprocess.CompletedProcess[str]:
    """Run this as somebody who is not root, with our packages."""
    path = os.pathsep.join(filter(None, (str(ROOT), str(ROOT / "src"), *sys.path)))
    env = {"HOME": home, "PATH": "/usr/bin:/bin", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    become = ("setpriv", "--reuid", SOMEBODY, "--regid", SOMEBODY, "--clear-groups")
    return subprocess.run(
        (*become, *words), cwd=home, env=env, capture_output=True, text=True, check=False, timeout=280
    )


ONLY_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can become somebody else"
)


def made_by_somebody(*attempts: str) -> str:
    """What is said of these attempts, made by somebody who is not root."""
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, int(SOMEBODY), int(SOMEBODY))
        usable = [one for one in PYTHONS if as_somebody(one, "-c", STARTS, home=home).returncode == 0]
        if not usable:
            pytest.skip("nobody but root can run this Python")
        made = as_somebody(usable[0], "-m", "tests.sandbox.anybody", *attempts, home=home)
    return " ".join(made.stdout.split()) + made.stderr


@pytest.mark.prove
@pytest.mark.timeout(300)
@ONLY_ROOT
def test_limits_hold_for_somebody_who_is_not_root() -> None:
    assert made_by_somebody("resources") == "30 attempts"


@pytest.mark.prove
@pytest.mark.timeout(300)
@ONLY_ROOT
@pytest.mark.parametrize("kinds", [("git",), ("reads", "environment", "greenroom", "persistence")], ids=str)
def test_nothing_is_planted_or_read_by_somebody_who_is_not_root(kinds: tuple[str, ...]) -> None:
    said = made_by_somebody(*kinds)
    assert re.fullmatch(r"\d+ attempts", said), said
