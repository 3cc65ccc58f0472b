"""Files of our own: written whole, read as they are."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from greenroom.core.ports.workspace import WorkspaceFault


def write_whole(place: Path, content: bytes) -> None:
    """Whoever looks sees the old one or the new one; one that says the same already is left alone."""
    if says(place, content):
        return
    with told(str(place)):
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


def says(place: Path, content: bytes) -> bool:
    """Whether a file has this in it."""
    try:
        return place.read_bytes() == content
    except OSError:
        return False


def write_data(place: Path, data: Mapping[str, object]) -> None:
    """The same with data; names that are no UTF-8 come back as they were."""
    write_whole(place, json.dumps(data, indent=1).encode())


def read_data(place: Path) -> dict[str, object] | None:
    """What was written, None if nothing was, or not by us."""
    try:
        found = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


@contextmanager
def told(what: str) -> Iterator[None]:
    """Whatever the system refuses in here is a fault about this."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = "the disk is full; make room and try again"
        elif error.errno in (errno.EACCES, errno.EPERM):
            why = f"{why}; look who owns it, make it writable and try again"
        raise WorkspaceFault("disk", f"{what!r} cannot be written: {why}.") from error
