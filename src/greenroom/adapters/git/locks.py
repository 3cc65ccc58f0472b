"""Locks of our own: held by a process, and gone with it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from greenroom.adapters.git.files import told
from greenroom.core.ports.workspace import WorkspaceFault

PATIENCE: Final = 30.0
"""Seconds that another one of ours may take."""


@asynccontextmanager
async def alone(place: Path, patience: float = PATIENCE) -> AsyncIterator[None]:
    """Nobody else who asks for this file's lock has it meanwhile."""
    with told(str(place)):
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + patience
        while not _taken(number):
            if time.monotonic() > end:
                why = "Another greenroom is at work on this, perhaps in another terminal. Let it end, and try again."
                raise WorkspaceFault("locked", why)
            await asyncio.sleep(0.02)
        yield
    finally:
        os.close(number)


def _taken(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
