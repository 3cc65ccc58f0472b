"""Nothing outlives a house that is killed with -9, also not what ignores being told and left its session long ago."""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conformance.running import marked, until_gone, until_there

ROOT = Path(__file__).resolve().parents[3]


def begun(root: Path, token: str) -> subprocess.Popen[bytes]:
    """A house that has been begun."""
    words = [sys.executable, "-m", "tests.adapters.processes.house", str(root), token]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL)


async def dead_after(root: Path, token: str) -> float:
    """Kill a house in the middle of a command; returns how many seconds later all its processes are dead."""
    house = begun(root, token)
    try:
        await until_there(root / "up")
        assert len(marked(token)) >= 3, "or this test shows nothing"
    finally:
        house.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        house.wait()
    await until_gone(token)
    return time.monotonic() - killed


async def test_nothing_outlives_a_house_that_is_killed(tmp_path: Path) -> None:
    assert await dead_after(tmp_path, "house") < 1.0


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_nothing_outlives_fifty_houses_that_are_killed(tmp_path: Path) -> None:
    took = []
    for number in range(50):
        root = tmp_path / str(number)
        root.mkdir()
        took.append(await dead_after(root, f"house-{number}"))
    print(f"\n50 kills, nothing left; dead after {statistics.median(took):.3f} s (median), {max(took):.3f} s (most)")
    assert max(took) < 1.0
