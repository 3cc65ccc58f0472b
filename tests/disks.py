"""A small real disk, and how to fill it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096


@contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """Mount a disk of this size (`8m`), or skip the test if mounting is not permitted."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Fill the disk and return the file that takes the room."""
    filler = os.open(place / "filler", os.O_CREAT | os.O_WRONLY)
    size = PAGE
    try:
        while size:
            try:
                os.write(filler, b"x" * size)
            except OSError:
                size //= 2
    finally:
        os.close(filler)
    return place / "filler"
