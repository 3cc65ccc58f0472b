"""The second signal ends the process at once, and still says how to continue."""

import subprocess
import sys

PROGRAM = """
import asyncio, os, signal
from greenroom.cli.context import SignalStop

async def work():
    try:
        await asyncio.Event().wait()
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

async def main():
    stop = SignalStop()
    stop.last_words = "Stopped. Continue with: greenroom resume x"
    task = asyncio.create_task(work())
    stop.watch(task)
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
    await task

asyncio.run(main())
"""


def test_the_second_signal_ends_at_once_and_names_the_way_on_in_a_line_of_its_own() -> None:
    ended = subprocess.run((sys.executable, "-c", PROGRAM), capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "\nStopped. Continue with: greenroom resume x\n")
