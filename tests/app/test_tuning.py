"""What a door sets for its whole process."""

import asyncio
import os
import subprocess
import sys

import pytest

from greenroom.app import tuning

COUNTED = """
import asyncio, threading
from greenroom.app.tuning import tune_process

async def children():
    seen = set()
    for _ in range(3):
        child = await asyncio.create_subprocess_exec("sleep", "0.05")
        seen |= {one.name for one in threading.enumerate()}
        assert await child.wait() == 0
    return len(seen)

tune_process()
print(asyncio.run(children()))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system shows no process as a file")
def test_nobody_waits_for_a_child_in_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_where_a_process_is_no_file_children_are_waited_for_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    monkeypatch.setattr(asyncio, "get_event_loop_policy", lambda: pytest.fail("another way was set"))
    tuning.tune_process()
