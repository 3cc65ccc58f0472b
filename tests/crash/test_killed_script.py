"""The whole program is killed with -9 in the middle of a script: its step is in doubt, and no process is left of it."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.conformance.running import marked, until_gone, until_there
from tests.crash.lives import fork_server
from tests.crash.script import next_life, script_life


async def killed(home: Path, token: str, wait: float) -> float:
    """Kill a life in the middle of its script and look at the next one; returns when the last process was dead."""
    process = fork_server().Process(target=script_life, args=(str(home), token))
    process.start()
    try:
        await until_there(home / "up")
        assert marked(token), "or this test shows nothing"
        await asyncio.sleep(wait)
    finally:
        process.kill()
        began = time.monotonic()
        process.join(10)
    await until_gone(token, seconds=2)
    dead = time.monotonic() - began
    first = (await next_life(home))[0]
    assert (first.work.executor, first.state, first.attempt) == ("execute_script", "uncertain", 1)
    assert "it is not known whether this happened" in first.error
    assert (home / "ran").read_text() == "ran\n", "it must not be run again"
    assert marked(token) == []
    return dead


async def test_a_script_that_was_cut_off_is_uncertain_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    await killed(tmp_path, "once", 0.1)


@pytest.mark.prove
@pytest.mark.timeout(1200)
async def test_a_hundred_scripts_that_were_cut_off_leave_nothing_behind(tmp_path: Path) -> None:
    source = random.Random(100)
    took = []
    for number in range(100):
        home = tmp_path / str(number)
        home.mkdir()
        took.append(await killed(home, f"kill-{number}", source.uniform(0, 0.2)))
    took.sort()
    print(
        f"\n100 kills, 100 uncertain, 0 processes left; dead after {took[50]:.3f} s (median), {took[-1]:.3f} s (most)"
    )
