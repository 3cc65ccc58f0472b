"""Greenroom's own files and locks: atomic writes, JSON files, removal of whole folders."""

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

from greenroom.core.base.errors import translate
from greenroom.core.ports.workspace import WorkspaceFault

LOCK_TIMEOUT_S: Final = 10.0
"""How long to wait for another Greenroom process, in seconds."""


def write_atomic(place: Path, content: bytes) -> None:
    """Write a file atomically: readers see the old or the new content. Do nothing if the content is the same."""
    if has_content(place, content):
        return
    with translate_disk_errors(str(place)):
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
    """Return whether a file has exactly this content."""
    try:
        return place.read_bytes() == content
    except OSError:
        return False


def write_json(place: Path, data: Mapping[str, object]) -> None:
    """Write data as JSON. File names that are not UTF-8 are preserved."""
    write_atomic(place, json.dumps(data, indent=1).encode())


def read_json(place: Path) -> dict[str, object] | None:
    """Read what `write_json` wrote; None if the file is missing or invalid."""
    try:
        data = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, object]", data) if isinstance(data, dict) else None


@contextmanager
def translate_disk_errors(what: str) -> Iterator[None]:
    """Turn an OSError about `what` into a *disk* fault."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = translate("git.disk_full_reason")
        elif error.errno in (errno.EACCES, errno.EPERM):
            why = translate("git.owner_reason", why=why)
        raise WorkspaceFault("disk", "git.not_written", path=what, why=why) from error


@asynccontextmanager
async def lock(place: Path, timeout: float = LOCK_TIMEOUT_S) -> AsyncIterator[None]:
    """Hold a lock file until the block or the process ends. Raise a *locked* fault after `timeout` seconds."""
    with translate_disk_errors(str(place)):
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + timeout
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > end:
                raise WorkspaceFault("locked", "git.used_elsewhere")
            await asyncio.sleep(0.02)
        yield
    finally:
        os.close(number)


def is_not_folder(place: Path) -> bool:
    """Return whether something other than a real folder is at this path."""
    return place.is_symlink() or (place.exists() and not place.is_dir())


def measure_folder(place: Path) -> int:
    """Return the bytes of all files below a folder. A file that is being removed does not count."""
    size = 0
    for here, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                size += Path(here, name).lstat().st_size
    return size


def remove_tree(place: Path) -> None:
    """Remove a folder and its contents, including folders that a command made read-only."""
    try:
        shutil.rmtree(place)
    except PermissionError:
        place.chmod(0o700)
        for here, folders, _ in os.walk(place):  # top-down: make a folder readable before listing it
            for path in (Path(here, name) for name in folders if not Path(here, name).is_symlink()):
                path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(place)
