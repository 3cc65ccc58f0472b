"""Folders that cannot be written: by permissions, or by mounting, because permissions do not stop root."""

import os
import subprocess
from pathlib import Path

import pytest


def make_read_only(home: Path, under: Path | None = None) -> None:
    """Make a folder read-only. With `under`, only for access through that path."""
    if os.geteuid() != 0 and under is None:
        for path in (*home.rglob("*"), home):
            path.chmod(0o500 if path.is_dir() else 0o400)
        return
    place = under or home
    bind = subprocess.run(["mount", "--bind", str(home), str(place)], check=False, capture_output=True)
    again = subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=False, capture_output=True)
    if bind.returncode or again.returncode:
        pytest.skip("root may write everywhere, and this machine does not let us mount a read-only folder")


def make_writable(home: Path) -> None:
    """Undo `make_read_only`."""
    if os.geteuid() == 0:
        subprocess.run(["umount", "--lazy", str(home)], check=False, capture_output=True)
        return
    home.chmod(0o700)
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
