"""Making files durable."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def flush(handle: int) -> None:
    """Return when the file is on the disk, not only in a cache of the system or the drive."""
    everything = getattr(fcntl, "F_FULLFSYNC", None)  # macOS only
    if everything is None:
        os.fsync(handle)
    else:
        fcntl.fcntl(handle, everything)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable: a new file's contents are not its name."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flush(handle)
    finally:
        os.close(handle)
