"""Sockets that lie in a workspace: a door to somebody of the machine, who is no part of the workspace."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def is_alive(path: Path) -> bool:
    """Whether somebody listens. What a dead process left may be taken away, and made again."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        with socket.socket(socket.AF_UNIX) as knock:
            knock.setblocking(False)
            knock.connect(f"/proc/self/fd/{folder}/{path.name}")
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True  # of another kind, or too busy to answer
    finally:
        os.close(folder)
    return True
