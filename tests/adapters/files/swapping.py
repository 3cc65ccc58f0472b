"""An attacker process that constantly swaps a folder or a file with a link out of the workspace."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

RENAME_EXCHANGE = 2
AT_FDCWD = -100
SECRET, PLAIN = b"SECRET", b"plain\n"


def swap_for_ever(one: Path, other: Path, target: str) -> None:
    """Exchange two names as fast as possible. If a write replaced the link, create a new one."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    print("at it", flush=True)
    for number in count():
        if libc.renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE):
            raise OSError(ctypes.get_errno(), "renameat2")
        if number % 20 == 0 and not one.is_symlink() and not other.is_symlink():
            fresh = other.with_name("fresh")
            fresh.symlink_to(target)
            fresh.rename(other)


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Swap these two paths during the block. The second is the link."""
    words = [sys.executable, __file__, str(one), str(other), str(other.readlink())]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"at it\n"
        yield
        assert process.poll() is None, "the attacker has given up"
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def can_exchange(folder: Path) -> bool:
    """Return whether this system can exchange two names atomically."""
    one, other = folder / "one", folder / "other"
    one.touch()
    other.touch()
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    done = call is not None and not call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)
    one.unlink()
    other.unlink()
    return done


if __name__ == "__main__":
    swap_for_ever(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
