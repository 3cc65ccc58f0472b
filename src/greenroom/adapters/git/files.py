"""Files and locks of our own: written whole, read as they are, removed with all that is in them."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, cast

from greenroom.core.ports.workspace import WorkspaceFault

PATIENCE: Final = 10.0
"""Seconds to wait for another greenroom."""


def write_whole(place: Path, content: bytes) -> None:
    """Write a file so that readers see the old or the new one; one that has this content already is left alone."""
    if has_content(place, content):
        return
    with disk_faults(str(place)):
        number, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        try:
            with os.fdopen(number, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(place)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise


def has_content(place: Path, content: bytes) -> bool:
    """Whether a file has this in it."""
    try:
        return place.read_bytes() == content
    except OSError:
        return False


def write_data(place: Path, data: Mapping[str, object]) -> None:
    """Write data as JSON; names that are not UTF-8 come back as they were."""
    write_whole(place, json.dumps(data, indent=1).encode())


def read_data(place: Path) -> dict[str, object] | None:
    """What `write_data` wrote; None if there is nothing, or something else."""
    try:
        found = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


@contextmanager
def disk_faults(what: str) -> Iterator[None]:
    """Turn an OSError about `what` into a *disk* fault."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = "the disk is full; make room and try again"
        elif error.errno in (errno.EACCES, errno.EPERM):
            why = f"{why}; look who owns it, make it writable and try again"
        raise WorkspaceFault("disk", f"{what!r} cannot be written: {why}.") from error


@asynccontextmanager
async def lock(place: Path, patience: float = PATIENCE) -> AsyncIterator[None]:
    """Hold a lock file; it is free as soon as the process that holds it ends. A *locked* fault after `patience`."""
    with disk_faults(str(place)):
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + patience
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > end:
                why = "Another greenroom is at work on this, perhaps in another terminal. Let it end, and try again."
                raise WorkspaceFault("locked", why)
            await asyncio.sleep(0.02)
        yield
    finally:
        os.close(number)


def is_no_folder(place: Path) -> bool:
    """Whether something else than a real folder stands there."""
    return place.is_symlink() or (place.exists() and not place.is_dir())


def remove_tree(place: Path) -> None:
    """Remove a folder with all that is in it, also folders in which a command took the right to write away."""
    try:
        shutil.rmtree(place)
    except PermissionError:
        place.chmod(0o700)
        for here, folders, _ in os.walk(place):  # from the top: a folder is opened before it is looked into
            for path in (Path(here, name) for name in folders if not Path(here, name).is_symlink()):
                path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(place)
