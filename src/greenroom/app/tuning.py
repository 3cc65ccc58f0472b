"""What a process that runs teams sets once at its start. A library does not do this to its user: doors do."""

from __future__ import annotations

import asyncio
import gc
import os
import sys


def tune_process() -> None:
    """Collect garbage less often: records are acyclic and die by reference count, so looking for cycles finds none.

    Measured with 1,000 active agents: a quarter less CPU per step. And wait for children without threads.
    """
    gc.set_threshold(50_000, 20, 100)
    if sys.version_info < (3, 12) and _can_wait_by_file():
        # As later Pythons do by themselves. Before, each child has a thread that waits for it: with the hundreds of
        # gits of a job, a quarter of their time.
        asyncio.get_event_loop_policy().set_child_watcher(asyncio.PidfdChildWatcher())


def _can_wait_by_file() -> bool:
    """Whether this system shows a process as a file; some containers allow nobody that."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True
